import { describe, expect, test } from 'vitest';
import { MAX_HEIGHT, atEnd, scrollTo, visibleRows } from '../../src/lib/rows';

const ROW = 20;
const view = (top: number) => ({ top, height: 600 });

describe('rows on screen', () => {
  test('at the top', () => {
    expect(visibleRows(view(0), 1000, ROW, 0)).toEqual({ first: 0, count: 30, offset: 0, height: 20000 });
  });
  test('in the middle, with some beyond the edges', () => {
    const r = visibleRows(view(10000), 1000, ROW, 5);
    expect(r).toMatchObject({ first: 495, count: 40, offset: 9900 });
  });
  test('few rows, none, and a position beyond the end', () => {
    expect(visibleRows(view(0), 3, ROW)).toEqual({ first: 0, count: 3, offset: 0, height: 60 });
    expect(visibleRows(view(0), 0, ROW)).toEqual({ first: 0, count: 0, offset: 0, height: 0 });
    const r = visibleRows(view(99999), 1000, ROW, 0);
    expect(r.first + r.count).toBe(1000);
  });
  test('the bar is scaled when the rows are taller than a browser allows', () => {
    const rows = 5_000_000;
    expect(visibleRows(view(0), rows, ROW, 0)).toMatchObject({ first: 0, height: MAX_HEIGHT });
    const end = visibleRows(view(MAX_HEIGHT - 600), rows, ROW, 0);
    expect(end.first + end.count).toBe(rows);
    // The last row ends where the scrolled element ends.
    expect(end.offset + end.count * ROW).toBeCloseTo(MAX_HEIGHT, 3);
  });
  test('every row can be reached, and what is drawn covers the view', () => {
    for (const rows of [40, 1000, 750_000, 5_000_000])
      for (const row of [0, 1, Math.floor(rows / 3), rows - 1]) {
        const top = scrollTo(row, view(0), rows, ROW);
        const r = visibleRows(view(top), rows, ROW, 2);
        expect(row).toBeGreaterThanOrEqual(r.first);
        expect(row).toBeLessThan(r.first + r.count);
        expect(r.offset).toBeLessThanOrEqual(top);
        expect(r.offset + r.count * ROW).toBeGreaterThanOrEqual(Math.min(top + 600, r.height) - 0.001);
      }
  });
});

test('the end is within a row of the bottom', () => {
  expect(atEnd(view(1400), 2000, ROW)).toBe(true);
  expect(atEnd(view(1385), 2000, ROW)).toBe(true);
  expect(atEnd(view(1300), 2000, ROW)).toBe(false);
});
