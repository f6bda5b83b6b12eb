import type { Decision } from '../api/types';
import { span } from '../lib/format';
import { paths, versionPath } from '../lib/url';
import { words } from '../ui/json';
import { State } from '../ui/parts';

const DONE: Record<string, string> = {
  record: 'recorded', warn: 'warned', alert: 'alerted', retrain: 'retrained', block: 'blocked', rollback: 'rolled back',
};
const DUE: Record<string, string> = { record: 'record', warn: 'warning', alert: 'alert', retrain: 'retraining', block: 'block', rollback: 'rollback' };
const STOPS: Record<string, string> = {
  muted: 'muted', data_quality: 'the data is broken', open: 'a retraining is open', cooldown: 'cooldown', budget: 'the budget is used up', no_pipeline: 'no pipeline is named',
};

/** What was done, or what was not and why. */
export function Action({ decision: d }: { decision: Decision }) {
  if (d.fired) return <span class={`action a-${d.action}`}>{DONE[d.action] ?? d.action}</span>;
  if (d.suppressed_by) return <span class="action held">{DUE[d.action] ?? d.action} held back: {STOPS[d.suppressed_by] ?? words(d.suppressed_by)}</span>;
  return <span class="action">recorded</span>;
}

export const DecisionCard = ({ project, decision: d }: { project: string; decision: Decision }) => (
  <li class={`decision ${d.fired ? `d-${d.action}` : 'd-held'}`}>
    <div class="decision-head">
      <a class="strong" data-row href={paths.decision(project, d.id)}>{span(d.window_start, d.window_end)}</a>
      <span class="dim">{words(d.cause)}</span>
      <Action decision={d} />
    </div>
    <p class="decision-reason">{d.reason}</p>
    {(d.run_id || d.model_version) && (
      <p class="decision-led">
        {d.run_id && (
          <>
            <a href={paths.run(d.run_id)}>Retraining run</a> {d.run_state && <State of={d.run_state} />}
          </>
        )}
        {d.model_version && (
          <>
            {' '}→ <a href={versionPath(project, d.model_version)}>{d.model_version.replace('/', ' v')}</a> {d.verdict && <State of={d.verdict} />}
          </>
        )}
      </p>
    )}
  </li>
);
