// One decision with all that it rests on: the sentence, the numbers, what it started and what came of that.
import { useRoute } from 'preact-iso';
import { about, useResource } from '../api/resource';
import type { Decision, Run } from '../api/types';
import { span } from '../lib/format';
import { api, paths, versionPath, withQuery } from '../lib/url';
import { project as open } from '../project';
import { JsonView, isEmpty, words } from '../ui/json';
import { Card, Facts, Load, PageHead, State, Time } from '../ui/parts';
import { Action } from './decision_parts';

function Chain({ project, d }: { project: string; d: Decision }) {
  return (
    <Card title="What it led to">
      <ol class="chain">
        <li>
          <span class="chain-kind">Window</span>
          <a href={withQuery(paths.monitor(project, d.monitor), { window: d.window_id })}>{span(d.window_start, d.window_end)}</a>
          <span class="sub">{d.revision > 1 ? `closing ${d.revision}` : d.monitor}</span>
        </li>
        <li class="here">
          <span class="chain-kind">Decision</span>
          <strong>{d.fired ? words(d.action) : 'nothing was done'}</strong>
          <span class="sub">by {words(d.cause)}</span>
        </li>
        {d.run_id && (
          <li>
            <span class="chain-kind">Retraining</span>
            <a href={paths.run(d.run_id)}>run</a>
            {d.run_state && <State of={d.run_state} />}
          </li>
        )}
        {d.model_version && (
          <li>
            <span class="chain-kind">Challenger</span>
            <a href={versionPath(project, d.model_version)}>{d.model_version.replace('/', ' v')}</a>
            {d.verdict && <State of={d.verdict} />}
          </li>
        )}
      </ol>
    </Card>
  );
}

export function DecisionPage() {
  const { decision: id, project: named } = useRoute().params as { decision: string; project?: string };
  const decision = useResource<Decision>(api(['decisions', id]), { on: about('decision', 'run', 'model_version', 'window') });
  // A decision does not say its project; the run that it started does.
  const run = useResource<Run>(!named && decision.data?.run_id ? api(['runs', decision.data.run_id]) : undefined);
  const project = named ?? run.data?.project ?? open.value;
  return (
    <Load of={decision}>
      {(d) => (
        <>
          <PageHead
            crumbs={[{ text: 'Monitors', href: paths.monitors(project) }, { text: d.monitor, href: paths.monitor(project, d.monitor) }]}
            title={<>{span(d.window_start, d.window_end)} <Action decision={d} /></>}
          >
            <p class={`reason big ${d.fired ? `r-${d.action}` : ''}`}>{d.reason}</p>
            <Facts
              list={[
                { name: 'Cause', value: words(d.cause) },
                { name: 'Window', value: `${d.window_start.slice(0, 10)} to ${new Date(Date.parse(d.window_end) - 1).toISOString().slice(0, 10)}` },
                { name: 'Taken', value: <Time at={d.created_at} seconds /> },
                !!d.supersedes && { name: 'Replaces', value: <a href={paths.decision(project, d.supersedes ?? '')}>the decision before late rows came</a> },
              ]}
            />
          </PageHead>
          <Chain project={project} d={d} />
          <div class="columns">
            <Card title="What it rests on">{isEmpty(d.inputs) ? <p class="dim">Nothing was recorded.</p> : <JsonView value={d.inputs} />}</Card>
            <Card title="What came of it">
              {isEmpty(d.outcome) ? <p class="dim">{d.run_id ? 'The windows after the retraining have not closed yet.' : 'It started nothing, so there is nothing to follow.'}</p> : <JsonView value={d.outcome} />}
            </Card>
          </div>
        </>
      )}
    </Load>
  );
}
