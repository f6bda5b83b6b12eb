// Error per window against what the gate measured: the champion's level as steps, the policy's limit above it, and a
// mark where something was decided. Drawn as SVG with classes, so it follows the theme; the heat table below has the
// same numbers as text.
import { useLocation } from 'preact-iso';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Decision, Monitor, Window } from '../api/types';
import { number, plural, span } from '../lib/format';
import { real } from '../lib/heat';
import { paths, withQuery } from '../lib/url';
import { Card } from '../ui/parts';
import { inside, specOf } from './monitor';

const H = 220;
const PAD = { left: 44, right: 12, top: 18, bottom: 30 };

/** Round numbers that cover 0 … max in about four steps. */
export function ticks(max: number): number[] {
  if (!(max > 0)) return [0, 1];
  const raw = max / 4;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * unit).find((s) => s >= raw) ?? unit;
  const out: number[] = [];
  for (let i = 0; i === 0 || (out[i - 1] as number) < max; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

function useWidth(): [preact.RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const observer = new ResizeObserver(() => setWidth(Math.max(320, el.clientWidth)));
    observer.observe(el);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

interface Scale {
  x: (i: number) => number;
  y: (v: number) => number;
  step: number;
}

/** A line that is broken where a window has no value. */
function line(windows: Window[], s: Scale, value: (w: Window) => number | null): string {
  let d = '';
  let down = false;
  windows.forEach((w, i) => {
    const v = value(w);
    if (v !== null) d += `${down ? 'L' : 'M'}${s.x(i).toFixed(1)} ${s.y(v).toFixed(1)}`;
    down = v !== null;
  });
  return d;
}

/** One flat piece per window: a level holds for the whole of it. */
function stairs(windows: Window[], s: Scale, value: (w: Window) => number | null): string {
  let d = '';
  let before: number | null = null;
  windows.forEach((w, i) => {
    const v = value(w);
    if (v === null) {
      before = null;
      return;
    }
    const left = s.x(i) - s.step / 2;
    d += before === null ? `M${left.toFixed(1)} ${s.y(v).toFixed(1)}` : `L${left.toFixed(1)} ${s.y(v).toFixed(1)}`;
    d += `H${(left + s.step).toFixed(1)}`;
    before = v;
  });
  return d;
}

function Marks({ project, windows, decisions, s }: { project: string; windows: Window[]; decisions: Decision[]; s: Scale }) {
  return (
    <>
      {windows.map((w, i) => {
        const d = decisions.find((x) => x.window_id === w.id && x.fired && ['retrain', 'rollback'].includes(x.action));
        if (!d) return null;
        const x = s.x(i);
        return (
          <a href={paths.decision(project, d.id)} aria-label={`${d.action} in ${span(w.start, w.end)}`}>
            <title>{d.reason}</title>
            <line class="mark-line" x1={x} x2={x} y1={PAD.top - 2} y2={H - PAD.bottom} />
            <path class="mark" d={`M${x - 6} ${PAD.top - 14}h12v7l-6 6-6-6z`} />
          </a>
        );
      })}
    </>
  );
}

function Frame({ s, top, width, windows }: { s: Scale; top: number[]; width: number; windows: Window[] }) {
  const every = Math.ceil(windows.length / Math.max(1, Math.floor((width - PAD.left) / 64)));
  return (
    <>
      {top.map((v) => (
        <>
          <line class="grid" x1={PAD.left} x2={width - PAD.right} y1={s.y(v)} y2={s.y(v)} />
          <text class="tick" x={PAD.left - 8} y={s.y(v) + 4} text-anchor="end">
            {number(v)}
          </text>
        </>
      ))}
      {windows.map((w, i) =>
        i % every === 0 ? (
          <text class="tick" x={s.x(i)} y={H - 10} text-anchor="middle">
            {span(w.start, w.end)}
          </text>
        ) : null,
      )}
    </>
  );
}

interface ChartProps {
  project: string;
  monitor: Monitor;
  windows: Window[];
  decisions: Decision[];
}

export function PerformanceChart({ project, monitor, windows, decisions }: ChartProps) {
  const { url, query, route } = useLocation();
  const [box, width] = useWidth();
  const closed = windows.filter((w) => w.state === 'closed').reverse();
  if (!closed.some((w) => w.performance !== null)) return null;
  const spec = specOf(monitor);
  const metric = String(inside(spec, 'performance', 'metric') ?? 'error');
  const ratio = real(inside(spec, 'policy', 'performance', 'max_ratio'));
  const limit = (w: Window) => (w.level !== null && ratio !== undefined ? w.level * ratio : null);
  const top = ticks(Math.max(...closed.flatMap((w) => [w.performance ?? 0, limit(w) ?? 0])) * 1.02);
  const step = (width - PAD.left - PAD.right) / closed.length;
  const s: Scale = {
    step,
    x: (i) => PAD.left + step * (i + 0.5),
    y: (v) => H - PAD.bottom - (v / (top.at(-1) as number)) * (H - PAD.top - PAD.bottom),
  };
  const hot = closed.filter((w) => w.performance !== null && limit(w) !== null && w.performance > (limit(w) as number)).length;
  return (
    <Card
      title={`${metric} in production`}
      after={
        <ul class="legend">
          <li><span class="key k-value" aria-hidden="true" />in the window</li>
          <li><span class="key k-level" aria-hidden="true" />champion on its holdout</li>
          {ratio !== undefined && <li><span class="key k-limit" aria-hidden="true" />limit, {number(ratio)}×</li>}
          <li><span class="key k-mark" aria-hidden="true" />retraining</li>
        </ul>
      }
    >
      <div class="svg-chart" ref={box}>
        <svg width={width} height={H} role="group" aria-label={`${metric} over ${plural(closed.length, 'window')}; above the limit in ${hot}.`}>
          <Frame s={s} top={top} width={width} windows={closed} />
          <path class="limit" d={stairs(closed, s, limit)} />
          <path class="level" d={stairs(closed, s, (w) => w.level)} />
          <path class="value" d={line(closed, s, (w) => w.performance)} />
          {closed.map((w, i) =>
            w.performance === null ? null : (
              <circle class={`dot sev-${w.severity} ${limit(w) !== null && w.performance > (limit(w) as number) ? 'hot' : ''}`} cx={s.x(i)} cy={s.y(w.performance)} r={query.window === w.id ? 6 : 3.5} />
            ),
          )}
          <Marks project={project} windows={closed} decisions={decisions} s={s} />
          {closed.map((w, i) => (
            <rect class="hit" x={s.x(i) - step / 2} y={PAD.top} width={step} height={H - PAD.top - PAD.bottom} onClick={() => route(withQuery(url, { window: w.id }))}>
              <title>{`${span(w.start, w.end)}: ${number(w.performance)}${w.level === null ? '' : `, champion ${number(w.level)}`}${w.model_version ? ` (${w.model_version.replace('/', ' v')})` : ''}`}</title>
            </rect>
          ))}
        </svg>
      </div>
    </Card>
  );
}
