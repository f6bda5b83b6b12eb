import { expect, test } from 'vitest';
import { ago, bytes, clock, count, duration, number, percent, plural, span, time } from '../../src/lib/format';

test('numbers keep four digits and say what is not one', () => {
  expect(number(1.23456)).toBe('1.235');
  expect(number(0.000123)).toBe('0.000123');
  expect(number(0.00001)).toBe('1.00e-5');
  expect(number(12345678.5)).toBe('1.23e7');
  expect(number(1234)).toBe('1\u202f234');
  expect(number(1073741824)).toBe('1\u202f073\u202f741\u202f824');
  expect(number(1e15)).toBe('1.00e15');
  expect(number(1.5)).toBe('1.5');
  expect(number(2.0001)).toBe('2');
  expect(number(-0.5)).toBe('−0.5');
  expect(number(0)).toBe('0');
  expect(number('NaN')).toBe('NaN');
  expect(number(Number.NaN)).toBe('NaN');
  expect(number('-Infinity')).toBe('−∞');
  expect(number(null)).toBe('–');
});

test('counts, shares, sizes', () => {
  expect(count(1234567)).toBe('1\u202f234\u202f567');
  expect(plural(1, 'line')).toBe('1 line');
  expect(plural(2, 'line')).toBe('2 lines');
  expect(percent(0.456)).toBe('46\u202f%');
  expect(bytes(0)).toBe('0 B');
  expect(bytes(1023)).toBe('1023 B');
  expect(bytes(1536)).toBe('1.5 KiB');
  expect(bytes(1024 ** 3)).toBe('1 GiB');
});

test('durations', () => {
  expect(duration(12)).toBe('12 ms');
  expect(duration(4200)).toBe('4.2 s');
  expect(duration(42000)).toBe('42 s');
  expect(duration(185000)).toBe('3 m 05 s');
  expect(duration(2 * 3600e3 + 10 * 60e3)).toBe('2 h 10 m');
  expect(duration(100 * 3600e3)).toBe('4 d 4 h');
});

test('times in UTC, to the minute, the second, the millisecond', () => {
  const t = '2008-04-01T23:59:58.123456Z';
  expect(time(t, false, 'utc')).toBe('2008-04-01 23:59');
  expect(time(t, true, 'utc')).toBe('2008-04-01 23:59:58');
  expect(clock(t, 'utc')).toBe('23:59:58.123');
  expect(time(null)).toBe('–');
  expect(time('not a time')).toBe('not a time');
});

test('ages', () => {
  const now = Date.parse('2026-01-01T01:00:00Z');
  expect(ago('2026-01-01T00:59:59Z', now)).toBe('now');
  expect(ago('2026-01-01T00:59:20Z', now)).toBe('40 s ago');
  expect(ago('2026-01-01T00:10:00Z', now)).toBe('50 m ago');
  expect(ago(null)).toBe('never');
});

test('windows by what they span', () => {
  expect(span('2008-01-01T00:00:00Z', '2008-04-01T00:00:00Z')).toBe('2008 Q1');
  expect(span('2008-02-01T00:00:00Z', '2008-03-01T00:00:00Z')).toBe('Feb 2008');
  expect(span('2008-01-01T00:00:00Z', '2009-01-01T00:00:00Z')).toBe('2008');
  expect(span('2008-01-05T00:00:00Z', '2008-01-06T00:00:00Z')).toBe('2008-01-05');
  expect(span('2008-01-05T00:00:00Z', '2008-01-12T00:00:00Z')).toBe('2008-01-05 – 2008-01-11');
  expect(span('2008-01-05T07:00:00Z', '2008-01-05T08:00:00Z')).toBe('2008-01-05 07:00');
});
