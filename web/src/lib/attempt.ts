// What the end of an attempt rests on, in the words of people: its evidence beside exit code or signal. What later
// versions add is kept as it came.
import type { Attempt, Json, JsonObject, Step } from '../api/types';
import { isObject } from '../ui/json';
import { bytes, duration } from './format';

const SIGNALS: Record<number, string> = {
  1: 'SIGHUP', 2: 'SIGINT', 3: 'SIGQUIT', 4: 'SIGILL', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL', 11: 'SIGSEGV', 13: 'SIGPIPE', 15: 'SIGTERM', 24: 'SIGXCPU',
};
const IMAGE_FAULTS: Record<string, string> = {
  not_found: 'is not in its registry', denied: 'is refused to this worker', unreachable: 'has a registry that does not answer', damaged: 'has other bytes than its digest says',
  elsewhere: 'is known by its id alone, and not on this worker', no_space: 'does not fit on the disk', other: 'could not be pulled',
};
const KILLERS: Record<string, string> = {
  tidemill: 'Tidemill', kernel: 'the kernel, for want of memory', client: 'somebody who asked the container daemon', daemon: 'the container daemon, as it restarted', host: 'a process of the host',
};
const KNOWN = new Set(['oom_kills', 'container_memory_peak', 'container_memory_limit', 'read_bytes', 'written_bytes', 'throttled_us', 'killed_by', 'signal', 'peak_memory', 'user_us', 'system_us', 'stdout_bytes', 'stderr_bytes', 'dropped_bytes', 'lost_bytes', 'image', 'image_id', 'image_ref', 'image_digest', 'image_fault', 'resumed', 'checkpoint', 'log_tail', 'exit_code']);

export interface AttemptEvidence {
  facts: { name: string; value: string }[];
  /** The last lines of its log. */
  tail: string[];
  /** What this version does not know. */
  rest: JsonObject;
}

/** A log policy that lines of the attempt's log have matched. */
export interface LogMatch {
  name: string;
  action: string;
  count: number;
  line: number;
  text: string;
}

export function logMatches(value: Json | undefined): LogMatch[] {
  return (Array.isArray(value) ? value : []).filter(isObject).map((m) => ({
    name: String(m.label ?? m.match ?? ''), action: String(m.action ?? ''), count: whole(m.count), line: whole(m.line), text: String(m.text ?? ''),
  }));
}

const whole = (j: Json | undefined) => (typeof j === 'number' ? j : 0);

export function attemptEvidence(a: Pick<Attempt, 'exit_code' | 'signal' | 'reason' | 'evidence'>): AttemptEvidence {
  const e = isObject(a.evidence) ? a.evidence : {};
  const signal = a.signal ?? whole(e.signal);
  const cpu = whole(e.user_us) + whole(e.system_us);
  const missing = whole(e.dropped_bytes) + whole(e.lost_bytes);
  const facts = [
    a.reason && { name: 'Reason', value: a.reason },
    typeof a.exit_code === 'number' && { name: 'Exit code', value: String(a.exit_code) },
    signal > 0 && { name: 'Signal', value: SIGNALS[signal] ? `${SIGNALS[signal]} (${signal})` : String(signal) },
    a.reason === 'oom_killed' && { name: 'Out of memory', value: 'killed by the kernel' },
    whole(e.peak_memory) > 0 && { name: 'Peak memory', value: bytes(whole(e.peak_memory)) },
    whole(e.container_memory_peak) > 0 && { name: 'Of the container', value: `${bytes(whole(e.container_memory_peak))}${whole(e.container_memory_limit) > 0 ? ` of ${bytes(whole(e.container_memory_limit))}` : ''}` },
    typeof e.killed_by === 'string' && { name: 'Killed by', value: KILLERS[e.killed_by] ?? e.killed_by },
    (whole(e.read_bytes) > 0 || whole(e.written_bytes) > 0) && { name: 'Disk', value: `${bytes(whole(e.read_bytes))} read, ${bytes(whole(e.written_bytes))} written` },
    whole(e.throttled_us) > 0 && { name: 'Held back for its limit of CPUs', value: duration(whole(e.throttled_us) / 1000) },
    cpu > 0 && { name: 'Processor time', value: duration(cpu / 1000) },
    (e.stdout_bytes !== undefined || e.stderr_bytes !== undefined) && { name: 'Output', value: `${bytes(whole(e.stdout_bytes))}, errors ${bytes(whole(e.stderr_bytes))}` },
    missing > 0 && { name: 'Not in the log', value: bytes(missing) },
    typeof (e.image_ref ?? e.image_id) === 'string' && { name: 'Image', value: String(e.image_ref ?? e.image_id) },
    typeof e.image_fault === 'string' && { name: 'The image', value: IMAGE_FAULTS[e.image_fault] ?? e.image_fault },
    typeof e.checkpoint === 'string' && { name: 'Its checkpoint', value: e.checkpoint },
    e.resumed === true && { name: 'Went on from', value: 'a checkpoint' },
  ].filter((f): f is { name: string; value: string } => !!f);
  const tail = Array.isArray(e.log_tail) ? e.log_tail.map(String) : [];
  return { facts, tail, rest: Object.fromEntries(Object.entries(e).filter(([k]) => !KNOWN.has(k))) };
}

type Ranked = Pick<Attempt, 'id' | 'number' | 'rank' | 'ranks' | 'state' | 'reason' | 'ended_at'>;

/** Whether its step runs on several workers, each of which is a row of its own. */
export const isGang = (a: Pick<Attempt, 'ranks'>) => a.ranks > 1;

/** Of a step that has ended on several workers: the rank whose end was that of all, as the step's own reason says. */
export function causeOf<A extends Ranked>(attempts: A[], step: Pick<Step, 'attempts' | 'reason'>): A | undefined {
  const all = attempts.filter((a) => isGang(a) && a.number === step.attempts && !!step.reason && a.reason === step.reason && (a.state === 'failed' || a.state === 'lost'));
  return all.sort((a, b) => (a.ended_at ?? '').localeCompare(b.ended_at ?? ''))[0];
}

/** What of a log's address says whose log it is: the newest attempt's needs no id, and goes on with the next attempt. */
export function logQuery(a: Ranked, newest: number): { attempt: string | undefined; rank: string | undefined } {
  return a.number === newest ? { attempt: undefined, rank: a.rank > 0 ? String(a.rank) : undefined } : { attempt: a.id, rank: undefined };
}

/** The attempt that an address means. */
export function attemptAt<A extends Ranked>(attempts: A[], query: { attempt?: string; rank?: string }, newest: number): A | undefined {
  if (query.attempt) return attempts.find((a) => a.id === query.attempt);
  return attempts.find((a) => a.number === newest && a.rank === Number(query.rank ?? 0));
}

/** One for each number, of the rank that is looked at, and all ranks of the number that is looked at. */
export function choices<A extends Ranked>(attempts: A[], at: A): { numbers: A[]; ranks: A[] } {
  return { numbers: attempts.filter((a) => a.rank === at.rank), ranks: attempts.filter((a) => a.number === at.number) };
}
