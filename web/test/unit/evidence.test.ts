import { expect, test } from 'vitest';
import { evidence } from '../../src/lib/evidence';

test('known members are named and brought together, new ones are kept', () => {
  expect(
    evidence({
      window: { start: '2008-01-01T00:00:00Z', end: '2008-04-01T00:00:00Z', rows: 91, labelled: 90 },
      score: 2.5, limit: 1.5, hot: 2, k: 2, n: 3, before: 'warn', after: 'alert', min_samples: 60, metric: 'mae', value: 3.2, champion: 1.3, brand_new: [1, 2],
    }),
  ).toEqual({
    metric: 'mae',
    'in this window': 3.2,
    'of the champion on its holdout': 1.3,
    'hot windows': '2 of the last 3; 2 are needed',
    'state of the policy': 'warn → alert',
    rows: '91, 90 with a label; 60 are needed',
    brand_new: [1, 2],
  });
});

test('what is missing or of another kind hides nothing', () => {
  expect(evidence({})).toEqual({});
  expect(evidence({ window: 'w', hot: null, before: 'ok', after: 'ok' })).toEqual({ 'state of the policy': 'ok' });
});
