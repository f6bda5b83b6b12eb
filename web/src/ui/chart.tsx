// A line chart of one metric: its last value per bucket with the span between least and greatest, drawn by uPlot on a
// canvas. Colours are read from the theme and read again when that changes. It is mounted only while on screen.
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Real, Series } from '../api/types';
import { duration, number } from '../lib/format';
import { palette } from '../lib/theme';

export type XAxis = 'step' | 'time';

const HEIGHT = 190;

const finite = (v: Real): number | null => (typeof v === 'number' && Number.isFinite(v) ? v : null);

interface Columns {
  x: number[];
  last: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
}

export function columns(s: Series, x: XAxis, log: boolean): Columns {
  const t0 = s.points[0]?.time ?? 0;
  const y = (v: Real) => {
    const n = finite(v);
    return log && n !== null && n <= 0 ? null : n;
  };
  return {
    x: s.points.map((p) => (x === 'step' ? p.step : (p.time - t0) / 1000)),
    last: s.points.map((p) => y(p.last)),
    min: s.points.map((p) => y(p.min)),
    max: s.points.map((p) => y(p.max)),
  };
}

/** What the chart shows, in a sentence. */
export function summary(s: Series): string {
  const values = s.points.map((p) => finite(p.last)).filter((v): v is number => v !== null);
  const last = s.points.at(-1);
  if (!last || values.length === 0) return 'No finite value so far.';
  const least = Math.min(...s.points.map((p) => finite(p.min) ?? Infinity));
  const most = Math.max(...s.points.map((p) => finite(p.max) ?? -Infinity));
  const odd = s.points.length - values.length;
  return `${number(last.last)} at step ${last.step}, between ${number(least)} and ${number(most)}${odd > 0 ? `; ${odd === 1 ? '1 value is no number' : `${odd} values are no numbers`}` : ''}.`;
}

function options(el: HTMLElement, width: number, x: XAxis, log: boolean): uPlot.Options {
  const style = getComputedStyle(el);
  const token = (name: string) => style.getPropertyValue(name).trim();
  const axis = { stroke: token('--ink-2'), grid: { stroke: token('--line'), width: 1 }, ticks: { show: false }, font: `11px ${token('--sans')}` };
  const xText = x === 'step' ? (v: number) => String(v) : (v: number) => duration(v * 1000).replace('.0 s', ' s');
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { sync: { key: 'metrics' }, points: { size: 6 }, drag: { x: true, y: false } },
    scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
    axes: [
      { ...axis, size: 26, values: (_, vs) => vs.map(xText) },
      { ...axis, size: 56, values: (_, vs) => vs.map((v) => (v === null ? '' : number(v))) },
    ],
    bands: [{ series: [3, 2], fill: token('--accent-soft') }],
    series: [
      {},
      { stroke: token('--accent'), width: 1.75, points: { show: false } },
      { stroke: 'transparent', points: { show: false } },
      { stroke: 'transparent', points: { show: false } },
    ],
  };
}

interface ChartProps {
  series: Series;
  x: XAxis;
  log: boolean;
}

function Canvas({ series, x, log, onPoint }: ChartProps & { onPoint: (i: number | null) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const data = (): uPlot.AlignedData => {
    const c = columns(series, x, log);
    return [c.x, c.last, c.min, c.max];
  };
  const colours = palette.value;
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const o = options(el, el.clientWidth || 400, x, log);
    o.hooks = { setCursor: [(u) => onPoint(u.cursor.idx ?? null)] };
    plot.current = new uPlot(o, data(), el);
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: el.clientWidth, height: HEIGHT }));
    observer.observe(el);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, [x, log, colours]);
  useEffect(() => plot.current?.setData(data()), [series]);
  return <div class="chart-canvas" ref={box} role="img" aria-label={`${series.key}: ${summary(series)}`} />;
}

const DataTable = ({ series }: { series: Series }) => (
  <div class="chart-table table-wrap">
    <table class="data compact">
      <thead>
        <tr>
          <th scope="col" class="num">Step</th>
          <th scope="col" class="num">Last</th>
          <th scope="col" class="num">Min</th>
          <th scope="col" class="num">Max</th>
          <th scope="col" class="num">Points</th>
        </tr>
      </thead>
      <tbody>
        {series.points.map((p) => (
          <tr>
            <td class="num">{p.step}</td>
            <td class="num">{number(p.last)}</td>
            <td class="num">{number(p.min)}</td>
            <td class="num">{number(p.max)}</td>
            <td class="num">{p.count}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

export function Chart({ series, x, log }: ChartProps) {
  const box = useRef<HTMLElement>(null);
  const [near, setNear] = useState(false);
  const [table, setTable] = useState(false);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    if (!box.current) return;
    const observer = new IntersectionObserver((e) => setNear(e.some((i) => i.isIntersecting)), { rootMargin: '300px' });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const point = at === null ? undefined : series.points[at];
  return (
    <section class="card chart" ref={box}>
      <div class="card-head">
        <h2>{series.key}</h2>
        <span class="chart-value num">
          {point ? `${x === 'step' ? `step ${point.step}` : duration(point.time - (series.points[0]?.time ?? 0))}: ${number(point.last)}` : number(series.points.at(-1)?.last)}
        </span>
      </div>
      {table ? <DataTable series={series} /> : near ? <Canvas series={series} x={x} log={log} onPoint={setAt} /> : <div class="chart-canvas" />}
      <p class="chart-foot">
        <span>{summary(series)}</span>
        <button type="button" class="ghost small" aria-pressed={table} onClick={() => setTable(!table)}>
          {table ? 'Chart' : 'Data'}
        </button>
      </p>
    </section>
  );
}
