import { useLocation } from 'preact-iso';
import { useList, useResource } from '../api/resource';
import type { Attempt, Run, Step, TrackingRun } from '../api/types';
import { attemptEvidence, causeOf, isGang, logMatches, logQuery } from '../lib/attempt';
import { bytes, number, plural } from '../lib/format';
import { placeSteps } from '../lib/graph';
import { isSystem } from '../lib/metrics';
import { api, paths, withQuery } from '../lib/url';
import { blockedText } from '../lib/waits';
import { JsonView, isEmpty, isObject } from '../ui/json';
import { Card, Facts, Glyph, Load, State, Time, Took } from '../ui/parts';
import { LogTail } from './log_tail';
import { Waiting, isPending } from './run_wait';
import { isActive } from './runs';

const FAILED = ['failed', 'lost'];
const BUSY = ['assigned', 'running', 'finishing'];

const NODE = { width: 208, height: 58, gapX: 52, gapY: 14 };

const reusedAs = (step: Step) => (step.reused?.by === 'cache' ? 'cached' : 'taken over');

/** Steps in columns, each right of what it needs. */
function Graph({ steps, selected }: { steps: Step[]; selected: Step | undefined }) {
  const { url } = useLocation();
  const placed = placeSteps(steps);
  const byName = new Map(placed.map((p) => [p.step.name, p]));
  const chosen = new Set(steps.flatMap((s) => s.selected ?? []));
  const x = (column: number) => column * (NODE.width + NODE.gapX);
  const y = (row: number) => row * (NODE.height + NODE.gapY);
  const width = x(Math.max(...placed.map((p) => p.column))) + NODE.width;
  const height = y(Math.max(...placed.map((p) => p.row))) + NODE.height;
  const edges = placed.flatMap((p) => p.step.needs.map((n) => ({ from: byName.get(n), to: p })));
  return (
    <div class="graph" role="group" aria-label="Steps and what they need">
      <div class="graph-inner" style={{ width: `${width}px`, height: `${height}px` }}>
        <svg width={width} height={height} aria-hidden="true">
          {edges.map(({ from, to }) => {
            if (!from) return null;
            const x1 = x(from.column) + NODE.width;
            const y1 = y(from.row) + NODE.height / 2;
            const x2 = x(to.column) - 3;
            const y2 = y(to.row) + NODE.height / 2;
            const bend = Math.max(20, (x2 - x1) / 2);
            return (
              <>
                <path class="edge" d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`} />
                <path class="edge-end" d={`M${x2 - 5} ${y2 - 4}L${x2 + 1} ${y2}L${x2 - 5} ${y2 + 4}`} />
              </>
            );
          })}
        </svg>
        {placed.map(({ step, column, row }) => (
          <a
            class={`node n-${step.state}`}
            data-row
            aria-current={selected?.id === step.id ? 'true' : undefined}
            href={withQuery(url, { step: step.name })}
            style={{ left: `${x(column)}px`, top: `${y(row)}px`, width: `${NODE.width}px`, height: `${NODE.height}px` }}
          >
            <Glyph of={step.state} />
            <span class="node-name">
              {chosen.has(step.name) && <span title="chosen">★ </span>}
              {step.name}
            </span>
            <span class="node-sub">
              {step.blocked ? <span title={step.blocked.message}>{step.state}: {blockedText(step.blocked)}</span> : step.reused ? reusedAs(step) : step.state}{' '}
              {step.metric && step.metric_value != null && <span title={step.metric}>{number(step.metric_value)} </span>}
              {step.started_at && <Took from={step.started_at} to={step.ended_at} running={BUSY.includes(step.state)} />}
            </span>
          </a>
        ))}
      </div>
    </div>
  );
}

function Outputs({ step }: { step: Step }) {
  const entries = isObject(step.outputs) ? Object.entries(step.outputs) : [];
  if (entries.length === 0) return null;
  return (
    <p class="outputs">
      Writes{' '}
      {entries.map(([name, o]) => (
        <span class="chip">
          {name}
          {isObject(o) && typeof o.bytes === 'number' && <span class="dim"> {bytes(o.bytes)}</span>}
        </span>
      ))}
    </p>
  );
}

/** What an end rests on; of the attempt that failed the step it is there to be read at once. */
function Evidence({ attempt, open }: { attempt: Attempt; open: boolean }) {
  const { facts, tail, rest } = attemptEvidence(attempt);
  return (
    <details class="evidence" open={open}>
      <summary>Evidence</summary>
      <Facts list={facts} />
      {tail.length > 0 && (
        <>
          <h3>The end of its log</h3>
          <pre class="tail" tabIndex={0}>{tail.join('\n')}</pre>
        </>
      )}
      {!isEmpty(rest) && <JsonView value={rest} />}
    </details>
  );
}

/** What log policies have found, each with a way to the line. */
function Matches({ attempt, href }: { attempt: Attempt; href: (line: number) => string }) {
  const all = logMatches(attempt.log_matches);
  return (
    <ul class="reason">
      {all.map((m) => (
        <li>
          <b>{m.name}</b> {m.action !== 'label' && <span class="dim">{m.action} </span>}
          <a href={href(m.line)}>line {m.line}</a>
          {m.count > 1 && <span class="dim"> and {number(m.count - 1)} more</span>}: <code>{m.text}</code>
        </li>
      ))}
    </ul>
  );
}

function Attempts({ step }: { step: Step }) {
  const attempts = useList<Attempt>(api(['steps', step.id, 'attempts'], { limit: 500 }), {
    on: (e) => e.subject === step.id || e.parent === step.id,
    every: BUSY.includes(step.state) ? 5000 : undefined,
  });
  return (
    <Load of={attempts} rows={2}>
      {(list) => (list.length === 0 ? <p class="dim">{step.message ?? 'No worker has taken it yet.'}</p> : <AttemptTable step={step} list={list} />)}
    </Load>
  );
}

function AttemptTable({ step, list }: { step: Step; list: Attempt[] }) {
  const { url } = useLocation();
  const gang = list.some(isGang);
  const cause = causeOf(list, step);
  const log = (a: Attempt) => withQuery(url, { tab: 'logs', step: step.name, ...logQuery(a, step.attempts) });
  // The end that is read first: of the newest attempt, and of its ranks the cause.
  const first = (a: Attempt) => FAILED.includes(a.state) && (cause ? a.id === cause.id : a.id === step.attempt_id);
  return (
    <div class="table-wrap">
      <table class="data compact">
        <thead>
          <tr>
            <th scope="col">No.</th>
            {gang && <th scope="col" class="num">Rank</th>}
            <th scope="col">State</th>
            <th scope="col">Worker</th>
            <th scope="col" class="num">Exit</th>
            <th scope="col">Started</th>
            <th scope="col" class="num">Took</th>
            <th scope="col" class="num">Log</th>
          </tr>
        </thead>
        <tbody>
          {list.map((a) => (
            <>
              <tr>
                <td>{a.number}</td>
                {gang && <td class="num">{a.rank}</td>}
                <td>
                  <State of={a.state} />
                  {a.id === cause?.id && <div class="sub s-failed">the cause</div>}
                </td>
                <td class="nowrap">
                  {a.worker} <span class="dim">{a.runtime}</span>
                  {a.devices.length > 0 && <div class="sub">{plural(a.devices.length, 'GPU')}</div>}
                </td>
                <td class="num">{a.exit_code ?? (a.signal ? `signal ${a.signal}` : '–')}</td>
                <td class="nowrap"><Time at={a.started_at} seconds /></td>
                <td class="num nowrap"><Took from={a.started_at} to={a.ended_at} running={['preparing', 'running', 'finishing'].includes(a.state)} /></td>
                <td class="num nowrap">
                  <a href={log(a)}>{plural(a.log_lines, 'line')}</a>
                  {!a.log_complete && a.ended_at && <div class="sub s-warn">not all has arrived</div>}
                </td>
              </tr>
              {((a.message && a.message !== step.message) || a.warning || !isEmpty(a.evidence) || logMatches(a.log_matches).length > 0) && (
                <tr class="under">
                  <td />
                  <td colSpan={gang ? 7 : 6}>
                    {a.message !== step.message && a.message}
                    {a.warning && <p class="s-warn">{a.warning}</p>}
                    <Matches attempt={a} href={(n) => `${log(a)}#L${n}`} />
                    {!isEmpty(a.evidence) && <Evidence attempt={a} open={first(a)} />}
                  </td>
                </tr>
              )}
            </>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Tracked({ step, active }: { step: Step; active: boolean }) {
  const { url } = useLocation();
  const tracking = useResource<TrackingRun>(step.tracking_run ? api(['tracking-runs', step.tracking_run]) : undefined, {
    on: (e) => e.subject === step.tracking_run || e.parent === step.id,
    every: active ? 4000 : undefined,
  });
  if (!step.tracking_run) return null;
  return (
    <Load of={tracking} rows={3}>
      {(t) => (
        <div class="columns">
          <Card title="Params">
            {t.params.length === 0 ? (
              <p class="dim">The step has logged none.</p>
            ) : (
              <dl class="pairs">
                {t.params.map((p) => (
                  <>
                    <dt>{p.key}</dt>
                    <dd class="mono wrap">{p.value}</dd>
                  </>
                ))}
              </dl>
            )}
          </Card>
          <Card title="Metrics" after={<a href={withQuery(url, { tab: 'metrics', step: step.name })}>Charts</a>}>
            {t.metrics.every(isSystem) ? (
              <p class="dim">The step has logged none.</p>
            ) : (
              <dl class="pairs">
                {t.metrics.filter((m) => !isSystem(m)).map((m) => (
                  <>
                    <dt>{m.key}</dt>
                    <dd class="num" title={`step ${m.step}`}>{number(m.value)}</dd>
                  </>
                ))}
              </dl>
            )}
          </Card>
        </div>
      )}
    </Load>
  );
}

export function RunOverview({ run, steps, selected }: { run: Run; steps: Step[]; selected: Step | undefined }) {
  return (
    <>
      {steps.length > 0 && <Graph steps={steps} selected={selected} />}
      {selected && (
        <>
          <Card
            title={
              <>
                {selected.name} <State of={selected.state} />
              </>
            }
          >
            {selected.message && !selected.reused && <p class={`reason r-${selected.state}`}>{selected.message}{selected.reason && <code class="reason-code">{selected.reason}</code>}</p>}
            {selected.reused && (
              <p>
                {selected.reused.by === 'cache' ? 'Found in the cache: nothing was run.' : 'Nothing was run.'} It stands for this step as it ran in{' '}
                <a href={withQuery(paths.run(selected.reused.run_id), { step: selected.name })}>another run</a>, which has its log.
              </p>
            )}
            {isPending(selected) && <Waiting key={selected.id} step={selected} />}
            {(selected.attempts > 0 || (!isPending(selected) && !selected.reused)) && <Attempts key={selected.id} step={selected} />}
            <Outputs step={selected} />
          </Card>
          <LogTail key={selected.id} step={selected} />
          <Tracked key={selected.id} step={selected} active={isActive(run.state)} />
        </>
      )}
    </>
  );
}
