// The log of a step. Only the rows on screen are in the page, however long the log is. Following stops the moment
// somebody scrolls up; a pill says what has come since.
import { useLocation } from 'preact-iso';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useList } from '../api/resource';
import type { Attempt, LogLine, Step } from '../api/types';
import { tokens } from '../lib/ansi';
import { attemptAt, choices, logQuery } from '../lib/attempt';
import { bytes, clock, count, plural, time } from '../lib/format';
import { useKeys } from '../lib/keys';
import { type Viewport, atEnd, scrollTo, visibleRows } from '../lib/rows';
import { type LineRange, api, formatLines, parseLines, withQuery } from '../lib/url';
import { Icon } from '../ui/icons';
import { Empty, ErrorBox, useQuery } from '../ui/parts';
import { type LogSource, useLog } from './log_source';

const ROW = 20;
/** What of a line is drawn; the rest is in the raw log. */
const TEXT_MAX = 4000;

export const LineText = ({ text }: { text: string }) => {
  const shown = text.length > TEXT_MAX ? text.slice(0, TEXT_MAX) : text;
  const parts = useMemo(() => tokens(shown), [shown]);
  return (
    <span class="log-text">
      {parts.map((t) => (t.cls ? <span class={t.cls}>{t.text}</span> : t.text))}
      {text.length > TEXT_MAX && <span class="log-cut"> … {count(text.length - TEXT_MAX)} characters more in the raw log</span>}
    </span>
  );
};

interface RowProps {
  number: number;
  line: LogLine | undefined;
  marked: boolean;
  times: boolean;
  onMark: (line: number, extend: boolean) => void;
}

const Row = ({ number, line, marked, times, onMark }: RowProps) => (
  <div class={`log-row ${line ? `from-${line.stream}` : 'absent'} ${marked ? 'marked' : ''}`} role="listitem">
    <span class="log-no" title="Mark this line in the address; with Shift, up to it" onClick={(e) => onMark(number, e.shiftKey)}>
      {number}
    </span>
    {times && <span class="log-time" title={line && time(line.time, true)}>{line ? clock(line.time) : ''}</span>}
    {line ? <LineText text={line.text} /> : <span class="log-text dim">…</span>}
  </div>
);

/** The lines that the address marks, and how to mark others. */
function useMarks(): [LineRange | undefined, (range: LineRange) => void] {
  const [marks, setMarks] = useState(() => parseLines(location.hash));
  useEffect(() => {
    const changed = () => setMarks(parseLines(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  const set = (range: LineRange) => {
    history.replaceState(null, '', location.pathname + location.search + formatLines(range));
    setMarks(range);
  };
  return [marks, set];
}

/** Scrolling, following, and which rows that shows. */
function useScroll(source: LogSource, marks: LineRange | undefined) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState<Viewport>({ top: 0, height: 600 });
  const [following, setFollowing] = useState(!marks);
  const [seen, setSeen] = useState(0);
  const total = source.lines.total;
  const lastTop = useRef(0);

  const read = () => {
    const b = box.current;
    if (!b) return;
    const next = { top: b.scrollTop, height: b.clientHeight };
    if (next.top < lastTop.current - 1 && !atEnd(next, b.scrollHeight, ROW)) setFollowing(false);
    lastTop.current = next.top;
    setView(next);
  };
  const toEnd = () => {
    const b = box.current;
    if (!b) return;
    b.scrollTop = b.scrollHeight;
    lastTop.current = b.scrollTop;
    setView({ top: b.scrollTop, height: b.clientHeight });
  };

  useEffect(() => {
    const b = box.current;
    if (!b) return;
    const observer = new ResizeObserver(read);
    observer.observe(b);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (following) toEnd();
  }, [following, source.turn, view.height]);
  useEffect(() => {
    if (following || seen > total) setSeen(total);
  }, [following, total]);
  // What was there when the log was opened is not new, wherever one looks at it.
  useEffect(() => {
    if (source.state.ready) setSeen(source.lines.total);
  }, [source.state.ready]);
  // A permalink: its line is brought into view once, when the log is there.
  const brought = useRef(false);
  const bring = (line: number) => {
    const b = box.current;
    if (!b) return;
    setFollowing(false);
    b.scrollTop = scrollTo(Math.min(line, total) - 1, { top: 0, height: b.clientHeight }, total, ROW);
    read();
  };
  useLayoutEffect(() => {
    if (!marks || brought.current || !source.state.ready || total < marks.first) return;
    brought.current = true;
    bring(marks.first);
  }, [source.state.ready, total]);

  return { box, view, following, setFollowing, unseen: following ? 0 : Math.max(0, total - seen), read, bring };
}

/** Lines for those without a pointer, and far ones for everybody: "120" or "120-140". */
function GoTo({ go }: { go: (r: LineRange) => void }) {
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    const range = parseLines(`L${new FormData(e.currentTarget as HTMLFormElement).get('line')}`);
    if (range) go(range);
  };
  return (
    <form class="toggle" onSubmit={submit}>
      <label>
        Line <input data-filter name="line" inputMode="numeric" pattern="[0-9]+(-[0-9]+)?" size={7} title="A line, or two with a hyphen" />
      </label>
    </form>
  );
}

/** Whose log it is: of which attempt, and of which of its ranks. */
function Attempts({ step }: { step: Step }) {
  const [query, setQuery] = useQuery();
  const attempts = useList<Attempt>(step.attempts > 1 || step.nodes > 1 ? api(['steps', step.id, 'attempts'], { limit: 500 }) : undefined);
  const at = attempts.data && attemptAt(attempts.data, query, step.attempts);
  if (!attempts.data || !at) return null;
  const { numbers, ranks } = choices(attempts.data, at);
  const list = attempts.data;
  const go = (id: string) => {
    const a = list.find((x) => x.id === id);
    if (a) setQuery(logQuery(a, step.attempts));
  };
  return (
    <>
      {numbers.length > 1 && (
        <label>
          Attempt{' '}
          <select value={at.id} onChange={(e) => go(e.currentTarget.value)}>
            {numbers.map((a) => (
              <option value={a.id} selected={a.id === at.id}>
                {a.number} – {a.state}
              </option>
            ))}
          </select>
        </label>
      )}
      {ranks.length > 1 && (
        <label>
          Rank{' '}
          <select value={at.id} onChange={(e) => go(e.currentTarget.value)}>
            {ranks.map((a) => (
              <option value={a.id} selected={a.id === at.id}>
                {a.rank} on {a.worker} – {a.state}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  );
}

function Notes({ source }: { source: LogSource }) {
  const { state, lines } = source;
  return (
    <>
      {state.lost > 0 && (
        <p class="log-note warn" role="status">
          Connection lost, trying again in {state.lost} s. Shown are lines up to {count(lines.total)}.
        </p>
      )}
      {state.dropped > 0 && (
        <p class="log-note warn" role="status">
          {bytes(state.dropped)} of output could not be kept: the log had reached its limit.
        </p>
      )}
      {state.error && lines.total > 0 && (
        <p class="log-note warn" role="status">
          Some lines could not be read: {state.error.message}{' '}
          <button type="button" class="small" onClick={source.retry}>
            Try again
          </button>
        </p>
      )}
    </>
  );
}

export function LogView({ step }: { step: Step }) {
  const { url } = useLocation();
  const [query, setQuery] = useQuery();
  const base = query.attempt ? api(['attempts', query.attempt, 'log']) : api(['steps', step.id, 'log'], { rank: query.rank });
  const started = !!query.attempt || step.attempts > 0;
  if (!started && step.ended_at)
    return <Empty title={`${step.name} did not start`}>{step.message || `It was ${step.state}.`} So it has no log.</Empty>;
  if (!started)
    return (
      <Empty title={`${step.name} has not started`}>
        {step.needs.length > 0 && step.state === 'waiting' ? `It waits for ${step.needs.join(', ')}.` : 'Its log begins when a worker has taken it.'}
      </Empty>
    );
  return <Log base={base} step={step} times={query.times === '1'} setTimes={(on) => setQuery({ times: on ? '1' : undefined }, true)} url={url} />;
}

function Log({ base, step, times, setTimes, url }: { base: string; step: Step; times: boolean; setTimes: (on: boolean) => void; url: string }) {
  const source = useLog(base);
  const [marks, setMarks] = useMarks();
  const mark = (line: number, extend: boolean) =>
    setMarks(extend && marks ? { first: Math.min(marks.first, line), last: Math.max(marks.first, line) } : { first: line, last: line });
  const scroll = useScroll(source, marks);
  const { lines, state } = source;
  const rows = visibleRows(scroll.view, lines.total, ROW);
  useEffect(() => source.want(rows.first + 1, rows.first + rows.count), [rows.first, rows.count, source.turn]);
  useKeys([
    { keys: 'f', does: 'follow the log, or stop', run: () => scroll.setFollowing((on) => !on) },
    { keys: 't', does: 'show or hide times', run: () => setTimes(!times) },
  ]);
  if (state.error && lines.total === 0) return <ErrorBox error={state.error} retry={source.retry} />;
  const numbers = Array.from({ length: rows.count }, (_, i) => rows.first + 1 + i);
  return (
    <div class="log">
      <div class="log-bar">
        <span class="log-count">
          {!state.ready ? 'Reading…' : plural(lines.total, 'line')}
          {state.ready && !state.complete && !state.lost && <span class="live on"><span class="dot" aria-hidden="true" />live</span>}
        </span>
        <Attempts step={step} />
        <GoTo
          go={(range) => {
            setMarks(range);
            scroll.bring(range.first);
          }}
        />
        <span class="spacer" />
        <label class="toggle">
          <input type="checkbox" checked={times} onChange={(e) => setTimes(e.currentTarget.checked)} /> Times
        </label>
        <label class="toggle">
          <input type="checkbox" checked={scroll.following} onChange={(e) => scroll.setFollowing(e.currentTarget.checked)} /> Follow
        </label>
        <a class="button" href={withQuery(base, { raw: 'true' })} download={`${step.name}.log`}>
          <Icon name="download" /> Raw
        </a>
      </div>
      <Notes source={source} />
      <div class="log-box" ref={scroll.box} onScroll={scroll.read} tabIndex={0} role="log" aria-live="off" aria-label={`Log of ${step.name}`}>
        {state.ready && lines.total === 0 && <p class="log-note">{state.complete ? 'The step has written nothing.' : 'Nothing has been written yet.'}</p>}
        <div class="log-all" style={{ height: `${rows.height}px` }}>
          <div class={`log-window ${times ? 'with-times' : ''}`} role="list" style={{ transform: `translateY(${rows.offset}px)` }}>
            {numbers.map((n) => (
              <Row key={n} number={n} line={lines.get(n)} times={times} marked={!!marks && n >= marks.first && n <= marks.last} onMark={mark} />
            ))}
          </div>
        </div>
      </div>
      {scroll.unseen > 0 && (
        <button type="button" class="pill" onClick={() => scroll.setFollowing(true)}>
          <Icon name="down" /> {plural(scroll.unseen, 'new line')}
        </button>
      )}
      <p class="sr" aria-live="polite">
        {state.complete ? 'The log is complete.' : ''}
      </p>
      {marks && (
        <p class="log-foot">
          Marked: {formatLines(marks).slice(1)}. The address of this page leads here. <a href={url.replace(/#.*/, '')} onClick={() => history.replaceState(null, '', url)}>Clear</a>
        </p>
      )}
    </div>
  );
}
