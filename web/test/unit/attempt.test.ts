import { expect, test } from 'vitest';
import { attemptAt, attemptEvidence, causeOf, choices, logMatches, logQuery } from '../../src/lib/attempt';
import type { Attempt } from '../../src/api/types';

const bare = { exit_code: null, signal: null, reason: undefined, evidence: null };

test('the end of an attempt is told in words', () => {
  const { facts, tail, rest } = attemptEvidence({
    ...bare, signal: 9, reason: 'oom_killed',
    evidence: { signal: 9, peak_memory: 1073741824, user_us: 61500000, system_us: 500000, stdout_bytes: 10, stderr_bytes: 2048, lost_bytes: 1024, log_tail: ['a', 'b'], from_later: 1 },
  });
  expect(Object.fromEntries(facts.map((f) => [f.name, f.value]))).toEqual({
    Reason: 'oom_killed', Signal: 'SIGKILL (9)', 'Out of memory': 'killed by the kernel', 'Peak memory': '1 GiB', 'Processor time': '1 m 02 s',
    Output: '10 B, errors 2 KiB', 'Not in the log': '1 KiB',
  });
  expect(tail).toEqual(['a', 'b']);
  expect(rest).toEqual({ from_later: 1 });
});

test('what is not known is not told', () => {
  expect(attemptEvidence({ ...bare, exit_code: 0 })).toEqual({ facts: [{ name: 'Exit code', value: '0' }], tail: [], rest: {} });
  expect(attemptEvidence({ ...bare, signal: 64 }).facts).toEqual([{ name: 'Signal', value: '64' }]);
});

test('what log policies found has a name, whether it has a label or not', () => {
  expect(logMatches(undefined)).toEqual([]);
  expect(logMatches([{ policy: 0, match: 'a+', action: 'label', count: 2, line: 7, text: 'aa' }, { policy: 1, match: 'b', label: 'oom', action: 'notify', count: 1, line: 9 }])).toEqual([
    { name: 'a+', action: 'label', count: 2, line: 7, text: 'aa' },
    { name: 'oom', action: 'notify', count: 1, line: 9, text: '' },
  ]);
});

const row = (id: string, number: number, rank: number, state: Attempt['state'], reason?: string, ended_at: string | null = null) => ({ id, number, rank, ranks: 2, state, reason, ended_at });
const gang = [
  row('a', 1, 0, 'failed', 'exit_code', '2026-01-01T00:00:01Z'), row('b', 1, 1, 'cancelled', 'gang_stopped', '2026-01-01T00:00:02Z'),
  row('c', 2, 0, 'failed', 'exit_code', '2026-01-01T00:00:05Z'), row('d', 2, 1, 'failed', 'exit_code', '2026-01-01T00:00:04Z'),
];

test('the rank whose end was that of all is named once the step says why', () => {
  expect(causeOf(gang, { attempts: 2, reason: 'exit_code' })?.id).toBe('d');
  expect(causeOf(gang, { attempts: 2, reason: 'worker_lost' })).toBeUndefined();
  expect(causeOf(gang, { attempts: 2, reason: undefined })).toBeUndefined();
  expect(causeOf(gang.map((a) => ({ ...a, ranks: 0 })), { attempts: 2, reason: 'exit_code' })).toBeUndefined();
});

test('a log is found by attempt and rank, and the newest attempt without its id', () => {
  for (const a of gang) {
    const q = logQuery(a, 2);
    expect(attemptAt(gang, { ...(q.attempt ? { attempt: q.attempt } : {}), ...(q.rank ? { rank: q.rank } : {}) }, 2)?.id).toBe(a.id);
  }
  expect(logQuery(gang[3]!, 2)).toEqual({ attempt: undefined, rank: '1' });
  expect(logQuery(gang[1]!, 2)).toEqual({ attempt: 'b', rank: undefined });
  expect(attemptAt(gang, { rank: '7' }, 2)).toBeUndefined();
  const { numbers, ranks } = choices(gang, gang[3]!);
  expect([numbers.map((a) => a.id), ranks.map((a) => a.id)]).toEqual([['b', 'd'], ['c', 'd']]);
});
