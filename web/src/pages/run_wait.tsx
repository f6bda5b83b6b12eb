// Why a run or a step waits: what was noted of it, and, of one step, the whole answer as it is now.
import { useResource } from '../api/resource';
import type { Step, StepWait } from '../api/types';
import { plural } from '../lib/format';
import { api } from '../lib/url';
import { type Blocked, blockedText } from '../lib/waits';
import { Facts, Load, Time } from '../ui/parts';

/** Numbers change as work comes and goes, which no event tells. */
const EVERY_MS = 5000;

export const BlockedNote = ({ of, step }: { of: Blocked; step?: string | undefined }) => (
  <p class={`reason ${of.unsatisfiable ? 'r-alert' : ''}`} role={of.unsatisfiable ? 'alert' : undefined}>
    {step && <b>{step} </b>}
    {blockedText(of)}
    {of.unsatisfiable && <span>. No waiting helps: the fleet or the step must change.</span>}
    <code class="reason-code">{of.kind}</code>
  </p>
);

function Answer({ wait }: { wait: StepWait }) {
  if (wait.blockers.length === 0) return <p class="dim">It waits for nothing.</p>;
  return (
    <>
      <ul class={`reason waits ${wait.unsatisfiable ? 'r-alert' : ''}`}>
        {wait.blockers.map((b) => (
          <li>
            {b.unsatisfiable && '▲ '}
            {b.message}
            <code class="reason-code">{b.kind}</code>
          </li>
        ))}
        {wait.unsatisfiable && <li>No waiting helps: the fleet or the step must change.</li>}
      </ul>
      <Facts
        list={[
          wait.position !== undefined && { name: 'Place', value: `${wait.position} of ${wait.of} for pool ${wait.pool}` },
          wait.priority !== undefined && { name: 'Priority', value: wait.priority },
          !!wait.queued_at && { name: 'Queued', value: <Time at={wait.queued_at} seconds /> },
          wait.gpus !== undefined && wait.gpus > 0 && { name: 'Asks for', value: plural(wait.gpus, 'GPU') },
          !!wait.earliest_start && { name: 'May start', value: <span title="When the time limits of what runs allow it, if nothing new comes before it"><Time at={wait.earliest_start} /></span> },
          !!wait.deadline && { name: 'Fails at', value: <Time at={wait.deadline} seconds /> },
        ]}
      />
      {wait.start_now && <p class="helps">What would help: {wait.start_now.message}.</p>}
    </>
  );
}

const PENDING = ['waiting', 'queued', 'assigned'];

export const isPending = (step: Step) => PENDING.includes(step.state);

export function Waiting({ step }: { step: Step }) {
  const wait = useResource<StepWait>(api(['steps', step.id, 'blockers']), { on: (e) => e.subject === step.id || e.parent === step.run_id, every: EVERY_MS });
  return <Load of={wait} rows={2}>{(w) => <Answer wait={w} />}</Load>;
}
