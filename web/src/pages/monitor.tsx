// A monitor: error and drift over its windows, what was decided, and the features behind it.
import { useRoute } from 'preact-iso';
import { about, useList, useResource } from '../api/resource';
import type { Decision, Json, Monitor, Window } from '../api/types';
import { number, percent, plural, span } from '../lib/format';
import { nothingDone } from '../lib/decisions';
import { real } from '../lib/heat';
import { api, paths, versionPath } from '../lib/url';
import { isObject } from '../ui/json';
import { Card, Empty, Facts, Load, More, PageHead, State, useQuery } from '../ui/parts';
import { DecisionCard } from './decision_parts';
import { HeatTable } from './monitor_heat';
import { PerformanceChart } from './monitor_chart';
import { WindowPanel } from './monitor_window';

const WINDOWS = 200;

/** A member deep inside the monitor's spec. */
export function inside(j: Json, ...path: string[]): Json | undefined {
  let at: Json | undefined = j;
  for (const key of path) at = isObject(at) ? at[key] : undefined;
  return at;
}

/** The spec may be the whole file or its `spec` alone. */
export const specOf = (m: Monitor): Json => (isObject(m.spec) && isObject(m.spec.spec) ? m.spec.spec : m.spec);

function Head({ project, monitor, windows }: { project: string; monitor: Monitor; windows: Window[] }) {
  const spec = specOf(monitor);
  const newest = windows.find((w) => w.state === 'closed');
  const rule = inside(spec, 'policy', 'performance');
  const ratio = real(inside(rule ?? null, 'max_ratio'));
  return (
    <PageHead
      crumbs={[{ text: 'Monitors', href: paths.monitors(project) }]}
      title={
        <>
          {monitor.name} {newest && <State of={newest.severity} label={newest.severity === 'ok' ? 'all is well' : newest.severity === 'insufficient' ? 'too few rows to judge' : undefined} />}
        </>
      }
    >
      {newest?.reason && <p class={`reason r-${newest.severity}`}>{newest.reason}</p>}
      <Facts
        list={[
          {
            name: 'Watches',
            value: (
              <>
                {monitor.champion ? <a href={versionPath(project, monitor.champion)}>{monitor.champion.replace('/', ' v')}</a> : <a href={paths.model(project, monitor.model)}>{monitor.model}</a>}{' '}
                <span class="dim">{monitor.alias}</span>
              </>
            ),
          },
          !!newest && { name: 'Newest closed window', value: span(newest.start, newest.end) },
          newest?.performance !== null && newest?.performance !== undefined && {
            name: `Its ${String(inside(spec, 'performance', 'metric') ?? 'error')}`,
            value: (
              <>
                <strong class="num">{number(newest.performance)}</strong>
                {newest.level !== null && <span class="dim"> against {number(newest.level)} on the holdout</span>}
              </>
            ),
          },
          !!newest && newest.drift_share !== null && { name: 'Features that drifted', value: <strong class="num">{percent(newest.drift_share)}</strong> },
          monitor.late_rows > 0 && { name: 'Came too late', value: `${plural(monitor.late_rows, 'row')}, left out` },
          ratio !== undefined && { name: 'Policy', value: `${String(inside(rule ?? null, 'action') ?? '')} at ${number(ratio)}× in ${String(inside(rule ?? null, 'k') ?? '')} of ${String(inside(rule ?? null, 'n') ?? '')} windows` },
        ]}
      />
    </PageHead>
  );
}

function Decisions({ project, name }: { project: string; name: string }) {
  const [query, setQuery] = useQuery();
  const decisions = useList<Decision>(api(['projects', project, 'monitors', name, 'decisions'], { limit: 50 }), { on: about('decision', 'window', 'run', 'model_version') });
  const all = query.decisions === 'all';
  return (
    <Card
      title="Decisions"
      after={
        <div class="segments" role="group" aria-label="Which decisions">
          <button type="button" aria-pressed={!all} onClick={() => setQuery({ decisions: undefined }, true)}>
            what mattered
          </button>
          <button type="button" aria-pressed={all} onClick={() => setQuery({ decisions: 'all' }, true)}>
            all
          </button>
        </div>
      }
    >
      <Load of={decisions}>
        {(list) => {
          // Every closed window leaves a decision for each cause; most only record that all is well.
          const shown = all ? list : list.filter((d) => (d.action !== 'record' && d.fired) || d.suppressed_by || d.run_id);
          if (list.length === 0) return <p class="dim">No window has closed yet; each that does leaves its decisions here.</p>;
          return (
            <>
              {shown.length === 0 && <p class="dim">{nothingDone(list)}</p>}
              <ol class="decisions">
                {shown.map((d) => (
                  <DecisionCard key={d.id} project={project} decision={d} />
                ))}
              </ol>
            </>
          );
        }}
      </Load>
      <More more={decisions.more} />
    </Card>
  );
}

export function MonitorPage() {
  const { project, monitor: name } = useRoute().params as { project: string; monitor: string };
  const [query] = useQuery();
  const base = ['projects', project, 'monitors', name];
  const monitor = useResource<Monitor>(api(base), { on: about('monitor', 'alias', 'decision') });
  const windows = useList<Window>(api([...base, 'windows'], { limit: WINDOWS }), { on: about('window', 'decision') });
  const decisions = useList<Decision>(api([...base, 'decisions'], { limit: 200 }), { on: about('decision', 'run') });
  return (
    <Load of={monitor}>
      {(m) => (
        <Load of={windows}>
          {(ws) =>
            ws.length === 0 ? (
              <>
                <Head project={project} monitor={m} windows={ws} />
                <Empty title="No rows have arrived yet" command={`tidemill monitor observe ${name} rows.csv`}>
                  Windows appear with the first rows: from a step's <code>observations</code> output, or sent by hand.
                </Empty>
              </>
            ) : (
              <>
                <Head project={project} monitor={m} windows={ws} />
                <PerformanceChart project={project} monitor={m} windows={ws} decisions={decisions.data ?? []} />
                {query.window && <WindowPanel project={project} monitor={m} windows={ws} id={query.window} />}
                <HeatTable project={project} monitor={m} windows={ws} decisions={decisions.data ?? []} />
                <Decisions project={project} name={name} />
              </>
            )
          }
        </Load>
      )}
    </Load>
  );
}
