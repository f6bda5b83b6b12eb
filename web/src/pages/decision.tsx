// One decision with all that it rests on: the sentence, the numbers, what it started and what came of that.
import { useRoute } from 'preact-iso';
import { about, useResource } from '../api/resource';
import type { Decision, Json, Run } from '../api/types';
import { evidence } from '../lib/evidence';
import { number, percent, plural, span } from '../lib/format';
import { real } from '../lib/heat';
import { api, paths, versionPath, withQuery } from '../lib/url';
import { project as open } from '../project';
import { JsonView, isEmpty, isObject, words } from '../ui/json';
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

/** The score and the limit that it was held against, on one scale. */
function Gauge({ inputs }: { inputs: Json }) {
  const score = isObject(inputs) ? real(inputs.score) : undefined;
  const limit = isObject(inputs) ? real(inputs.limit) : undefined;
  if (score === undefined || !limit || !Number.isFinite(score)) return null;
  const most = Math.max(score, limit) * 1.1;
  const at = (v: number) => `${Math.min(100, (v / most) * 100).toFixed(2)}%`;
  return (
    <div class="gauge" role="img" aria-label={`score ${number(score)}, limit ${number(limit)}`}>
      <span class={`gauge-fill ${score >= limit ? 'hot' : ''}`} style={{ width: at(score) }} />
      <span class="gauge-limit" style={{ left: at(limit) }} />
      <span class="gauge-text">
        {number(score)} <span class="dim">limit {number(limit)}</span>
      </span>
    </div>
  );
}

/** Did the metric get better in the windows since? */
function Outcome({ d }: { d: Decision }) {
  const o = isObject(d.outcome) ? d.outcome : {};
  const before = real(o.before);
  const after = real(o.after);
  const windows = real(o.windows);
  return (
    <Card title="What came of it">
      {before !== undefined && after !== undefined && before !== 0 ? (
        <>
          <p class="outcome">
            <strong class="num">{number(before)}</strong> → <strong class="num">{number(after)}</strong>{' '}
            <span class="dim">
              {String(o.metric ?? '')}, {after < before ? 'lower' : 'higher'} by {percent(Math.abs(after / before - 1))}
            </span>
          </p>
          <p class="sub">
            In the window that was judged, and on average in the {plural(windows ?? 0, 'window')} that the new version has served since.
          </p>
        </>
      ) : isEmpty(d.outcome) ? (
        <p class="dim">{d.run_id ? 'The windows after the retraining have not closed yet.' : 'It started nothing, so there is nothing to follow.'}</p>
      ) : (
        <JsonView value={d.outcome} />
      )}
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
            <Card title="What it rests on">
              <Gauge inputs={d.inputs} />
              {isEmpty(d.inputs) ? <p class="dim">Nothing was recorded.</p> : <JsonView value={isObject(d.inputs) ? evidence(d.inputs) : d.inputs} />}
            </Card>
            <Outcome d={d} />
          </div>
        </>
      )}
    </Load>
  );
}
