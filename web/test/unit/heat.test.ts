import { expect, test } from 'vitest';
import { heatStep, parseHeat, sortRows } from '../../src/lib/heat';
import { ticks } from '../../src/pages/monitor_chart';

test('five steps around the threshold', () => {
  expect([0, 0.09, 0.1, 0.19, 0.2, 0.39, 0.4, 0.99, 1, 50].map((v) => heatStep(v, 0.2))).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
  expect(heatStep(Infinity, 0.2)).toBe(4);
  expect(heatStep(0, 0)).toBe(0);
  expect(heatStep(0.1, 0)).toBe(4);
});

test('values and marks stand by window; what is missing is no value', () => {
  const h = parseHeat({
    windows: [{ id: 'a', start: '2004-01-01T00:00:00Z' }, { id: 'b' }, { id: 'c' }],
    features: [
      { name: 'temp', threshold: 0.2, values: [null, 0.3, 'Infinity'], drifted: [false, true, true] },
      { name: 'dew', threshold: null, values: [0.1] },
    ],
  });
  expect(h.windows).toEqual(['a', 'b', 'c']);
  expect(h.rows[0]).toEqual({
    name: 'temp',
    threshold: 0.2,
    cells: [
      { value: undefined, drifted: false },
      { value: 0.3, drifted: true },
      { value: Infinity, drifted: true },
    ],
  });
  expect(h.rows[1]?.threshold).toBeUndefined();
  expect(h.rows[1]?.cells.map((c) => c.value)).toEqual([0.1, undefined, undefined]);
  expect(parseHeat(null)).toEqual({ windows: [], rows: [] });
});

test('rows by their newest value, or by name', () => {
  const row = (name: string, ...values: (number | undefined)[]) => ({ name, threshold: 0.2, cells: values.map((value) => ({ value, drifted: false })) });
  const rows = [row('a', 1, 0.1), row('b', 0, 0.5), row('c', 9, undefined), row('d', undefined)];
  expect(sortRows(rows, 'latest').map((r) => r.name)).toEqual(['c', 'b', 'a', 'd']);
  expect(sortRows(rows, 'name').map((r) => r.name)).toEqual(['a', 'b', 'c', 'd']);
});

test('ticks are round and cover the values', () => {
  expect(ticks(3.3)).toEqual([0, 1, 2, 3, 4]);
  expect(ticks(0.7)).toEqual([0, 0.2, 0.4, 0.6, 0.8]);
  expect(ticks(0)).toEqual([0, 1]);
});
