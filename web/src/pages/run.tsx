// A run: what it is made of and how far it is. Its parts (log, metrics, artifacts) are tabs with their own addresses.
import { lazy, useLocation, useRoute } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import type { ApiError } from '../api/client';
import { request } from '../api/client';
import { asError, useList, useResource } from '../api/resource';
import type { Run, ServerEvent, Step } from '../api/types';
import { runCount, shortHash } from '../lib/format';
import { api, choice, paths, versionPath, withQuery } from '../lib/url';
import { waits } from '../lib/waits';
import { project, setProject } from '../project';
import { Confirm, Dialog } from '../ui/dialog';
import { JsonView, isEmpty } from '../ui/json';
import { Card, Copy, ErrorBox, Facts, Glyph, Load, PageHead, State, Tabs, Time, Took, useQuery } from '../ui/parts';
import { LogView } from './run_log';
import { RunArtifacts } from './run_artifacts';
import { RunOverview } from './run_overview';
import { BlockedNote } from './run_wait';
import { isActive, triggerName } from './runs';

const RunMetrics = lazy(() => import('./run_metrics').then((m) => m.RunMetrics));

const TABS = ['overview', 'logs', 'metrics', 'artifacts', 'config'] as const;

/** While something runs, events tell of changes; should they fail, reading every few seconds does. */
const BACKSTOP_MS = 8000;

/** The step that one looks for first: what runs, what failed, else the last that did something. */
export function likelyStep(steps: Step[]): Step | undefined {
  const busy = steps.find((s) => ['running', 'finishing', 'assigned'].includes(s.state));
  const failed = steps.find((s) => s.state === 'failed');
  const done = [...steps].reverse().find((s) => s.attempts > 0);
  return busy ?? failed ?? done ?? steps[0];
}

export function StepPicker({ steps, at }: { steps: Step[]; at: Step }) {
  const { url } = useLocation();
  if (steps.length < 2) return null;
  return (
    <nav class="picker" aria-label="Step">
      {steps.map((s) => (
        <a href={withQuery(url, { step: s.name, attempt: undefined, rank: undefined })} aria-current={s.id === at.id ? 'true' : undefined}>
          <Glyph of={s.state} /> {s.name}
        </a>
      ))}
    </nav>
  );
}

/** From where an ended run is to run again; the new run is shown then. */
function Rerun({ run, onClose }: { run: Run; onClose: () => void }) {
  const { route } = useLocation();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const start = async (from: 'failed' | 'start') => {
    setBusy(true);
    setError(undefined);
    try {
      const made = await request(api(['runs', run.id, 'rerun']), { method: 'POST', body: { from } });
      const { id } = (await made.json()) as Run;
      onClose();
      route(paths.run(id));
    } catch (e) {
      setError(asError(e));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Run ${run.pipeline} ${runCount(run.number)} again?`} onClose={onClose}>
      <p>A new run is made of the same commit, data, models and inputs. From what failed on, the steps that have succeeded are taken over with their outputs.</p>
      {error && <ErrorBox error={error} />}
      <div class="dialog-actions">
        <button type="button" onClick={onClose}>
          Not now
        </button>
        <button type="button" disabled={busy} onClick={() => start('start')}>
          All of it
        </button>
        {run.state !== 'succeeded' && (
          <button type="button" disabled={busy} onClick={() => start('failed')}>
            From what failed
          </button>
        )}
      </div>
    </Dialog>
  );
}

function Head({ run, onCancel, onRerun }: { run: Run; onCancel: () => void; onRerun: () => void }) {
  const active = isActive(run.state);
  const blocked = waits(run);
  return (
    <PageHead
      crumbs={[{ text: 'Runs', href: paths.runs(run.project) }, { text: run.pipeline, href: withQuery(paths.runs(run.project), { pipeline: run.pipeline }) }]}
      title={
        <>
          {run.pipeline} <span class="num">{runCount(run.number)}</span> <State of={run.state} />
        </>
      }
      after={
        active ? (
          <button type="button" onClick={onCancel}>
            Cancel run
          </button>
        ) : (
          <button type="button" onClick={onRerun}>
            Run again
          </button>
        )
      }
    >
      {run.message && (
        <p class={`reason r-${run.state}`}>
          {run.message}
          {run.reason && <code class="reason-code">{run.reason}</code>}
        </p>
      )}
      {blocked && <BlockedNote of={blocked} step={blocked.step} />}
      <Facts
        list={[
          {
            name: 'Started by',
            value: run.decision_id ? (
              <a href={paths.decision(run.project, run.decision_id)}>drift decision</a>
            ) : (
              <span title={run.trigger_key}>{triggerName(run.trigger)}{run.created_by ? `, ${run.created_by}` : ''}</span>
            ),
          },
          !!run.rerun_of && {
            name: 'Runs again',
            value: <a href={paths.run(run.rerun_of)}>{run.rerun_from === 'failed' ? 'another run, from what failed' : 'another run'}</a>,
          },
          !!run.commit && {
            name: 'Commit',
            value: (
              <span class="mono" title={`${run.repository ?? ''} @ ${run.commit}`}>
                {shortHash(run.commit)} <Copy text={run.commit ?? ''} what="the commit" />
              </span>
            ),
          },
          run.datasets.length > 0 && {
            name: 'Data',
            value: run.datasets.map((d) => (
              <a href={paths.dataset(run.project, d.dataset, d.number)} title={`${d.name} in the pipeline`}>
                {d.dataset} v{d.number}{' '}
              </a>
            )),
          },
          !!run.model_version && {
            name: 'Model version',
            value: <a href={versionPath(run.project, run.model_version ?? '')}>{run.model_version?.replace('/', ' v')}</a>,
          },
          { name: run.started_at ? 'Started' : run.ended_at ? 'Submitted' : 'Queued since', value: <Time at={run.started_at ?? run.created_at} seconds /> },
          { name: 'Took', value: <Took from={run.started_at} to={run.ended_at} running={active} /> },
        ]}
      />
    </PageHead>
  );
}

const Config = ({ run, step }: { run: Run; step: Step | undefined }) => (
  <div class="columns">
    <Card title="Inputs">{isEmpty(run.inputs) ? <p class="dim">This run takes none.</p> : <JsonView value={run.inputs} />}</Card>
    <Card title="Run">
      <Facts
        list={[
          { name: 'Id', value: <span class="mono">{run.id} <Copy text={run.id} what="the id" /></span> },
          !!run.repository && { name: 'Repository', value: <span class="mono wrap">{run.repository}</span> },
          !!run.trigger_key && { name: 'Trigger', value: <span class="mono wrap">{run.trigger_key}</span> },
          { name: 'Submitted', value: <Time at={run.created_at} seconds /> },
        ]}
      />
      {!isEmpty(run.labels) && <JsonView value={run.labels} />}
    </Card>
    {step && (
      <Card title={`Step ${step.name}, as it runs`} cls="wide">
        <JsonView value={step.spec} />
      </Card>
    )}
  </div>
);

function Body({ run, steps }: { run: Run; steps: Step[] }) {
  const [query] = useQuery();
  const tab = choice(query.tab, TABS);
  const step = steps.find((s) => s.name === query.step) ?? likelyStep(steps);
  const picker = step && tab !== 'overview' && <StepPicker steps={steps} at={step} />;
  return (
    <>
      <Tabs
        label="Parts of the run"
        at={tab}
        list={[
          { id: 'overview', title: 'Overview' },
          { id: 'logs', title: 'Logs' },
          { id: 'metrics', title: 'Metrics' },
          { id: 'artifacts', title: 'Artifacts' },
          { id: 'config', title: 'Config' },
        ]}
      />
      {picker}
      {tab === 'overview' && <RunOverview run={run} steps={steps} selected={step} />}
      {tab === 'logs' && step && <LogView key={`${step.id}${query.attempt ?? ''}/${query.rank ?? ''}`} step={step} />}
      {tab === 'metrics' && step && <RunMetrics key={step.id} step={step} active={isActive(run.state)} />}
      {tab === 'artifacts' && step && <RunArtifacts key={step.id} step={step} />}
      {tab === 'config' && <Config run={run} step={step} />}
    </>
  );
}

export function RunPage() {
  const id = useRoute().params.run as string;
  const mine = (e: ServerEvent) => e.subject === id || e.parent === id;
  const [every, setEvery] = useState<number>();
  const run = useResource<Run>(api(['runs', id]), { on: mine, every });
  const steps = useList<Step>(api(['runs', id, 'steps'], { limit: 500 }), {
    on: (e) => mine(e) || e.type.startsWith('step.') || e.type.startsWith('attempt.'),
    every,
  });
  const [asking, setAsking] = useState<'cancel' | 'rerun'>();
  const owner = run.data?.project;
  const active = run.data ? isActive(run.data.state) : false;
  useEffect(() => {
    if (owner && owner !== project.value) setProject(owner);
  }, [owner]);
  useEffect(() => setEvery(active ? BACKSTOP_MS : undefined), [active]);
  useEffect(() => {
    if (run.data) document.title = `${run.data.pipeline} ${runCount(run.data.number)} · ${run.data.state} · Tidemill`;
    return () => {
      document.title = 'Tidemill';
    };
  }, [run.data?.state]);
  const cancel = async () => {
    await request(api(['runs', id, 'cancel']), { method: 'POST' });
    run.reload();
    steps.reload();
  };
  return (
    <Load of={run}>
      {(r) => (
        <>
          <Head run={r} onCancel={() => setAsking('cancel')} onRerun={() => setAsking('rerun')} />
          <Load of={steps}>{(s) => <Body run={r} steps={s} />}</Load>
          {asking === 'rerun' && <Rerun run={r} onClose={() => setAsking(undefined)} />}
          {asking === 'cancel' && (
            <Confirm title={`Cancel ${r.pipeline} ${runCount(r.number)}?`} verb="Cancel the run" keep="Let it run" run={cancel} onClose={() => setAsking(undefined)}>
              Its steps are stopped and end as cancelled. What they have logged so far stays; no model is registered.
            </Confirm>
          )}
        </>
      )}
    </Load>
  );
}

