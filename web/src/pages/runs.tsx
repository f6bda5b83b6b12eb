import { useRoute } from 'preact-iso';
import { about, useList } from '../api/resource';
import { type Pipeline, RUN_STATES, type Run } from '../api/types';
import { plural, runCount, shortHash } from '../lib/format';
import { api, paths, versionPath } from '../lib/url';
import { blockedText, inVain, waits } from '../lib/waits';
import { Empty, Load, More, PageHead, State, Time, Took, ZoneNote, useQuery } from '../ui/parts';

const TRIGGERS: Record<string, string> = {
  api: 'by hand', push: 'git push', schedule: 'schedule', dataset: 'new data', pipeline: 'pipeline', decision: 'drift decision', rerun: 'run again',
};

export const triggerName = (trigger: string) => TRIGGERS[trigger] ?? trigger;

export const isActive = (state: string) => state === 'queued' || state === 'running' || state === 'finishing';

const Why = ({ run }: { run: Run }) =>
  run.decision_id ? (
    <a href={paths.decision(run.project, run.decision_id)}>drift decision</a>
  ) : (
    <span title={run.trigger_key}>{triggerName(run.trigger)}</span>
  );

const Row = ({ run, blocked = waits(run) }: { run: Run; blocked?: Run['blocked'] }) => (
  <tr>
    <td>
      <State of={run.state} />
    </td>
    <td>
      <a class="strong" data-row href={paths.run(run.id)}>
        {run.pipeline} <span class="num">{runCount(run.number)}</span>
      </a>
      {run.message && run.state !== 'succeeded' && <div class="sub clip" title={run.message}>{run.message}</div>}
      {blocked && <div class={`sub clip ${inVain(blocked) ? 's-warn' : ''}`} title={blocked.message}>{blockedText(blocked)}</div>}
    </td>
    <td class="nowrap">
      <Why run={run} />
      {run.created_by && <div class="sub">{run.created_by}</div>}
    </td>
    <td>
      {run.datasets.map((d) => (
        <div class="nowrap">
          <a href={paths.dataset(run.project, d.dataset, d.number)}>
            {d.dataset} v{d.number}
          </a>
        </div>
      ))}
    </td>
    <td class="nowrap">{run.model_version ? <a href={versionPath(run.project, run.model_version)}>{run.model_version.replace('/', ' v')}</a> : <span class="dim">–</span>}</td>
    <td class="mono" title={run.commit}>{shortHash(run.commit)}</td>
    <td class="nowrap">
      <Time at={run.started_at} seconds />
      {!run.started_at && !run.ended_at && (
        <div class="sub" title="queued, not started">
          since <Time at={run.created_at} />
        </div>
      )}
    </td>
    <td class="num nowrap">
      <Took from={run.started_at} to={run.ended_at} running={isActive(run.state)} />
    </td>
  </tr>
);

function Filters({ project }: { project: string }) {
  const [query, setQuery] = useQuery();
  const pipelines = useList<Pick<Pipeline, 'name'>>(api(['projects', project, 'pipelines'], { limit: 500 }));
  const names = (pipelines.data ?? []).map((p) => p.name);
  if (query.pipeline && !names.includes(query.pipeline)) names.push(query.pipeline);
  return (
    <div class="filters">
      <label>
        Pipeline
        <select data-filter value={query.pipeline ?? ''} onChange={(e) => setQuery({ pipeline: e.currentTarget.value })}>
          <option value="">all</option>
          {names.map((n) => (
            <option value={n} selected={n === query.pipeline}>{n}</option>
          ))}
        </select>
      </label>
      <div class="segments" role="group" aria-label="State">
        <button type="button" aria-pressed={!query.state} onClick={() => setQuery({ state: undefined })}>
          all
        </button>
        {RUN_STATES.map((s) => (
          <button type="button" aria-pressed={query.state === s} onClick={() => setQuery({ state: query.state === s ? undefined : s })}>
            {s}
          </button>
        ))}
      </div>
    </div>
  );
}

function None({ project }: { project: string }) {
  const [query, setQuery] = useQuery();
  const filter = [query.pipeline && `pipeline ${query.pipeline}`, query.state && `state ${query.state}`].filter(Boolean).join(', ');
  if (filter)
    return (
      <Empty title="No run matches the filter">
        Shown are only runs with {filter}.{' '}
        <button type="button" class="small" onClick={() => setQuery({ pipeline: undefined, state: undefined })}>
          Clear the filter
        </button>
      </Empty>
    );
  return (
    <Empty title={`${project} has no runs yet`} command="tidemill run submit PIPELINE --follow">
      A run is one execution of a pipeline at an exact commit, on pinned data. Register a pipeline, then submit a run.
    </Empty>
  );
}

export function Runs() {
  const { params } = useRoute();
  const project = params.project as string;
  const [query] = useQuery();
  const runs = useList<Run>(api(['projects', project, 'runs'], { limit: 50, pipeline: query.pipeline, state: query.state }), {
    on: about('run'),
    every: 15000,
  });
  const active = (runs.data ?? []).filter((r) => isActive(r.state)).length;
  return (
    <>
      <PageHead title="Runs" after={active > 0 && <span class="note">{plural(active, 'run')} under way</span>} />
      <Filters project={project} />
      <Load of={runs} rows={8}>
        {(items) =>
          items.length === 0 ? (
            <None project={project} />
          ) : (
            <div class="table-wrap card flush">
              <table class="data">
                <thead>
                  <tr>
                    <th scope="col">State</th>
                    <th scope="col">Run</th>
                    <th scope="col">Started by</th>
                    <th scope="col">Data</th>
                    <th scope="col">Made</th>
                    <th scope="col">Commit</th>
                    <th scope="col">Started <ZoneNote /></th>
                    <th scope="col" class="num">Took</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((r) => (
                    <Row key={r.id} run={r} />
                  ))}
                </tbody>
              </table>
              <More more={runs.more} />
            </div>
          )
        }
      </Load>
    </>
  );
}
