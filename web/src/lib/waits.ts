// What a run or a step waits for, as it was noted.
import type { Run } from '../api/types';

export type Blocked = NonNullable<Run['blocked']>;

export const inVain = (b: Blocked | undefined) => b?.unsatisfiable === true;

/** What is worth a line of a run: nothing of it runs, or waiting does not help. */
export const waits = (run: Pick<Run, 'state' | 'blocked'>): Blocked | undefined =>
  run.blocked && (run.state === 'queued' || inVain(run.blocked)) ? run.blocked : undefined;

export const blockedText = (b: Blocked) => (b.unsatisfiable ? `▲ waits in vain: ${b.message}` : b.message);
