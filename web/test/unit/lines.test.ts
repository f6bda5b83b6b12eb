import { expect, test } from 'vitest';
import { CHUNK, CHUNKS_KEPT, Lines } from '../../src/lib/lines';

const line = (n: number) => ({ line: n, time: '2026-01-01T00:00:00Z', stream: 'stdout' as const, text: `line ${n}` });
const range = (a: number, b: number) => Array.from({ length: b - a + 1 }, (_, i) => line(a + i));

test('lines are found by number, across pieces', () => {
  const l = new Lines();
  expect(l.add(range(499, 502))).toBe(502);
  expect(l.get(500)?.text).toBe('line 500');
  expect(l.get(501)?.text).toBe('line 501');
  expect(l.get(498)).toBeUndefined();
});

test('what came twice counts once', () => {
  const l = new Lines();
  l.add(range(1, 10));
  expect(l.add(range(8, 12))).toBe(2);
  expect(l.add(range(8, 12))).toBe(0);
  expect(l.total).toBe(12);
});

test('missing lines are named by the start of their piece', () => {
  const l = new Lines();
  l.add(range(1501, 2000));
  expect(l.missing(1600, 1700)).toBeUndefined();
  expect(l.missing(1490, 1520)).toBe(1001);
  expect(l.missing(1, 10)).toBe(1);
  expect(l.missing(1900, 9999)).toBeUndefined();
});

test('what is far away is let go', () => {
  const l = new Lines();
  const all = CHUNK * (CHUNKS_KEPT + 20);
  l.add(range(1, all));
  l.trim(all);
  expect(l.get(1)).toBeUndefined();
  expect(l.get(all)).toBeDefined();
  expect(l.missing(1, 1)).toBe(1);
  expect(l.total).toBe(all);
});
