import { expect, test } from 'vitest';
import { heatStep, parseHeat, sortRows } from '../../src/lib/heat';
import { ticks } from '../../src/pages/monitor_chart';

test('five steps around the threshold', () => {
  expect([0, 0.09, 0.1, 0.19, 0.2, 0.39, 0.4, 0.99, 1, 50].map((v) => heatStep(v, 0.2))).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
  expect(heatStep(Infinity, 0.2)).toBe(4);
  expect(heatStep(0, 0)).toBe(0);
  expect(heatStep(0.1, 0)).toBe(4);
});

test('cells are numbers, nothing, or objects that say more; windows are turned to the order of time', () => {
  const h = parseHeat({
    windows: [
      { id: 'b', start: '2004-04-01T00:00:00Z' },
      { id: 'a', start: '2004-01-01T00:00:00Z' },
    ],
    features: [{ name: 'temp', values: [0.3, { value: null, status: 'insufficient' }] }, { name: 'dew', values: [{ value: 'Infinity', drifted: true, threshold: 0.1 }] }],
  });
  expect(h.windows).toEqual(['a', 'b']);
  expect(h.rows[0]?.cells).toEqual([
    { value: undefined, status: 'insufficient', threshold: undefined, drifted: false },
    { value: 0.3, status: 'ok', threshold: undefined, drifted: false },
  ]);
  expect(h.rows[1]?.cells[0]?.status).toBe('no_data');
  expect(h.rows[1]?.cells[1]).toEqual({ value: Infinity, status: 'ok', threshold: 0.1, drifted: true });
  expect(parseHeat({ windows: ['w1', 'w2'], features: [] }).windows).toEqual(['w1', 'w2']);
  expect(parseHeat(null)).toEqual({ windows: [], rows: [] });
});

test('rows by their newest value, or by name', () => {
  const row = (name: string, ...values: (number | undefined)[]) => ({ name, cells: values.map((value) => ({ value, status: 'ok', threshold: undefined, drifted: false })) });
  const rows = [row('a', 1, 0.1), row('b', 0, 0.5), row('c', 9, undefined), row('d', undefined)];
  expect(sortRows(rows, 'latest').map((r) => r.name)).toEqual(['c', 'b', 'a', 'd']);
  expect(sortRows(rows, 'name').map((r) => r.name)).toEqual(['a', 'b', 'c', 'd']);
});

test('ticks are round and cover the values', () => {
  expect(ticks(3.3)).toEqual([0, 1, 2, 3, 4]);
  expect(ticks(0.7)).toEqual([0, 0.2, 0.4, 0.6, 0.8]);
  expect(ticks(0)).toEqual([0, 1]);
});
