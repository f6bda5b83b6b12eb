import { expect, test } from 'vitest';
import type { Decision } from '../../src/api/types';
import { nothingDone } from '../../src/lib/decisions';

const of = (...verdicts: string[]) => verdicts.map((verdict) => ({ inputs: { verdict } }) as unknown as Decision);

test('too few rows are not well', () => {
  expect(nothingDone(of('insufficient', 'insufficient'))).toBe('Nothing was done so far: 2 decisions found too few rows to judge.');
  expect(nothingDone(of('calm', 'hot', 'insufficient', 'untested'))).toBe(
    'Nothing was done so far: 2 decisions only recorded that all was well, 1 decision found too few rows to judge, 1 decision had nothing to judge by.',
  );
  expect(nothingDone(of('calm'))).toBe('Nothing was done so far: 1 decision only recorded that all was well.');
});
