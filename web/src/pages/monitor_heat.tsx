// Features by windows. A cell's colour is its value in units of the alert threshold, in five steps; a dot says that
// the feature counts as drifted, hatching that there were too few rows.
import { useLocation } from 'preact-iso';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { about, useResource } from '../api/resource';
import type { Decision, Json, Monitor, Window } from '../api/types';
import { count, number, percent, plural, span } from '../lib/format';
import { type HeatCell, type HeatRow, STEP_NAMES, heatStep, parseHeat, real, sortRows } from '../lib/heat';
import { api, choice, paths, withQuery } from '../lib/url';
import { Card, Empty, Load, useQuery } from '../ui/parts';
import { inside, specOf } from './monitor';

const METRICS = ['psi', 'ks', 'wasserstein', 'jensen_shannon'] as const;
const METRIC_NAMES: Record<string, string> = { psi: 'PSI', ks: 'KS', wasserstein: 'Wasserstein', jensen_shannon: 'Jensen–Shannon' };
const ROWS_FIRST = 30;
const WINDOWS = 40;
/** About what the names of the features cover of the box. */
const HEADS_WIDTH = 200;
/** What a feature counts as drifted from, when neither the cell nor the monitor says. */
const ALERT = 0.2;

/** Cells have room for three digits; the exact value is in the title. */
const brief = (v: number) => (Number.isFinite(v) && v < 100 ? v.toFixed(v < 10 ? 2 : 1) : number(v));

const SIGNS: Record<string, string> = { retrain: '⟳', rollback: '↶', alert: '▲', warn: '△', block: '⊘' };

/** Why a window says nothing, or undefined. */
const tooFew = (w: Window | undefined) => (w?.severity === 'insufficient' ? `too few rows to judge (${count(w.rows)})` : undefined);

/** The class and the title of a cell that stands for a whole window. */
function windowCell(w: Window, step: number | undefined, title = '') {
  const few = tooFew(w);
  return { class: `cell ${few ? 'few' : step === undefined ? '' : `h${step}`}`, title: few ?? title };
}

interface CellProps {
  cell: HeatCell;
  threshold: number;
  window: Window | undefined;
  feature: string;
  href: string;
  current: boolean;
}

function Cell({ cell, threshold, window, feature, href, current }: CellProps) {
  const label = `${feature}, ${window ? span(window.start, window.end) : ''}`;
  const few = tooFew(window);
  if (cell.value === undefined) return <td class={`cell ${few ? 'few' : ''} ${current ? 'at' : ''}`} title={`${label}: ${few ?? 'no data'}`} />;
  const value = `${number(cell.value)}, threshold ${number(threshold)}`;
  // Of few rows any value may come: it stands there, and says nothing.
  const look = few ? 'few' : `h${heatStep(cell.value, threshold)}`;
  return (
    <td class={`cell ${look} ${current ? 'at' : ''}`} title={`${label}: ${few ? `${few}; ${value}` : `${value}${cell.drifted ? ', drifted' : ''}`}`}>
      <a href={href} tabIndex={-1}>
        {brief(cell.value)}
        {cell.drifted && !few && <span class="drifted" aria-label="drifted">●</span>}
      </a>
    </td>
  );
}

interface TableProps {
  project: string;
  monitor: Monitor;
  /** Oldest first. */
  windows: (Window | undefined)[];
  rows: HeatRow[];
  decisions: Decision[];
}

/** What stands above the features: error, share of drifted features, what was done. */
function Summary({ project, monitor, windows, decisions }: Omit<TableProps, 'rows'>) {
  const spec = specOf(monitor);
  const metric = String(inside(spec, 'performance', 'metric') ?? 'error');
  const ratio = real(inside(spec, 'policy', 'performance', 'max_ratio')) ?? 1.5;
  const share = real(inside(spec, 'policy', 'drift', 'share')) ?? 0.2;
  return (
    <tbody class="summary">
      <tr>
        <th scope="row">{metric} <span class="dim">vs {number(ratio)}× level</span></th>
        {windows.map((w) =>
          w?.performance === null || w?.performance === undefined ? (
            <td class="cell" />
          ) : (
            <td {...windowCell(w, w.level ? heatStep(w.performance, w.level * ratio) : undefined, w.level === null ? '' : `level ${number(w.level)}`)}>{brief(w.performance)}</td>
          ),
        )}
      </tr>
      <tr>
        <th scope="row">features drifted <span class="dim">vs {percent(share)}</span></th>
        {windows.map((w) =>
          w?.drift_share === null || w?.drift_share === undefined ? <td class="cell" /> : <td {...windowCell(w, heatStep(w.drift_share, share))}>{percent(w.drift_share)}</td>,
        )}
      </tr>
      <tr>
        <th scope="row">decided</th>
        {windows.map((w) => (
          <td class="cell signs">
            {decisions
              .filter((d) => d.window_id === w?.id && d.fired && SIGNS[d.action])
              .map((d) => (
                <a class={`sign a-${d.action}`} href={paths.decision(project, d.id)} title={`${d.action}: ${d.reason}`} aria-label={`${d.action} by ${d.cause}`}>
                  {SIGNS[d.action]}
                </a>
              ))}
          </td>
        ))}
      </tr>
    </tbody>
  );
}

function Table(p: TableProps) {
  const { url, query } = useLocation();
  const alert = real(inside(specOf(p.monitor), 'tests', 'alert')) ?? ALERT;
  // What one looks for is the window that was chosen, else the newest, which stands at the right.
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const b = box.current;
    const chosen = b?.querySelector<HTMLElement>('thead .at');
    if (!b) return;
    if (!chosen) b.scrollLeft = b.scrollWidth;
    else if (chosen.offsetLeft < b.scrollLeft + HEADS_WIDTH || chosen.offsetLeft + chosen.offsetWidth > b.scrollLeft + b.clientWidth)
      b.scrollLeft = chosen.offsetLeft - (b.clientWidth + HEADS_WIDTH) / 2;
  }, [p.windows.length, query.window]);
  return (
    <div class="heat-wrap" ref={box} tabIndex={0} role="region" aria-label="Features by windows">
      <table class="heat">
        <thead>
          <tr>
            <th scope="col" class="corner">Window</th>
            {p.windows.map((w) => (
              <th scope="col" class={w && w.id === query.window ? 'at' : ''}>
                {w ? <a href={withQuery(url, { window: w.id, feature: undefined })}>{span(w.start, w.end)}</a> : ''}
              </th>
            ))}
          </tr>
        </thead>
        <Summary {...p} />
        <tbody>
          {p.rows.map((r) => (
            <tr key={r.name}>
              <th scope="row">
                <a data-row href={withQuery(url, { window: query.window ?? p.windows.at(-1)?.id, feature: r.name })}>{r.name}</a>
              </th>
              {r.cells.map((c, i) => {
                const w = p.windows[i];
                return <Cell cell={c} threshold={r.threshold ?? alert} window={w} feature={r.name} href={withQuery(url, { window: w?.id, feature: r.name })} current={!!w && w.id === query.window} />;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Legend = () => (
  <ul class="legend heat-legend" aria-label="Colours: value in units of the threshold">
    {STEP_NAMES.map((n, i) => (
      <li>
        <span class={`swatch h${i}`} aria-hidden="true" />
        {n}
      </li>
    ))}
    <li><span class="swatch few" aria-hidden="true" />too few rows</li>
    <li><span class="swatch none" aria-hidden="true" />no data</li>
    <li><span class="drifted" aria-hidden="true">●</span> drifted</li>
  </ul>
);

function Bar({ found, all }: { found: number; all: number }) {
  const [query, setQuery] = useQuery();
  const metric = choice(query.metric, METRICS);
  return (
    <div class="filters">
      <label>
        Feature
        <input data-filter type="search" placeholder="name" value={query.find ?? ''} onInput={(e) => setQuery({ find: e.currentTarget.value }, true)} />
      </label>
      <div class="segments" role="group" aria-label="Metric">
        {METRICS.map((m) => (
          <button type="button" aria-pressed={m === metric} onClick={() => setQuery({ metric: m === 'psi' ? undefined : m })}>
            {METRIC_NAMES[m]}
          </button>
        ))}
      </div>
      <div class="segments" role="group" aria-label="Order">
        <button type="button" aria-pressed={query.sort !== 'name'} onClick={() => setQuery({ sort: undefined })}>
          worst first
        </button>
        <button type="button" aria-pressed={query.sort === 'name'} onClick={() => setQuery({ sort: 'name' })}>
          by name
        </button>
      </div>
      <span class="note">{found === all ? plural(all, 'feature') : `${found} of ${plural(all, 'feature')}`}</span>
    </div>
  );
}

export function HeatTable({ project, monitor, windows, decisions }: { project: string; monitor: Monitor; windows: Window[]; decisions: Decision[] }) {
  const [query] = useQuery();
  const [all, setAll] = useState(false);
  const metric = choice(query.metric, METRICS);
  const heat = useResource<Json>(api(['projects', project, 'monitors', monitor.name, 'heat'], { metric, windows: WINDOWS }), { on: about('window', 'decision') });
  const byId = new Map(windows.map((w) => [w.id, w]));
  return (
    <Card title="Drift by feature and window" after={<Legend />}>
      <Load of={heat} rows={10}>
        {(reply) => {
          const h = parseHeat(reply);
          const found = sortRows(h.rows.filter((r) => r.name.toLowerCase().includes((query.find ?? '').toLowerCase())), query.sort === 'name' ? 'name' : 'latest');
          const shown = all || query.find ? found : found.slice(0, ROWS_FIRST);
          if (h.rows.length === 0) return <p class="dim">No window has closed yet: its metrics are computed when it does.</p>;
          return (
            <>
              <Bar found={found.length} all={h.rows.length} />
              <Table project={project} monitor={monitor} windows={h.windows.map((id) => byId.get(id))} rows={shown} decisions={decisions} />
              {found.length === 0 && <Empty title="No feature has that name">{`The filter “${query.find}” hides all ${h.rows.length}.`}</Empty>}
              {shown.length < found.length && (
                <div class="more">
                  <button type="button" onClick={() => setAll(true)}>
                    Show all {plural(found.length, 'feature')}
                  </button>
                </div>
              )}
            </>
          );
        }}
      </Load>
    </Card>
  );
}
