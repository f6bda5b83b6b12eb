import { expect, test } from 'vitest';
import { attemptEvidence, logMatches } from '../../src/lib/attempt';

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
