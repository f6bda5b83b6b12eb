import { expect, test } from 'vitest';
import { api, below, choice, formatLines, parseLines, paths, versionPath, withQuery } from '../../src/lib/url';

test('parameters are set, changed and removed; the rest stays', () => {
  expect(withQuery('/runs/r?tab=logs#L3', { step: 'train' })).toBe('/runs/r?tab=logs&step=train#L3');
  expect(withQuery('/runs/r?tab=logs&step=a', { step: 'b' })).toBe('/runs/r?tab=logs&step=b');
  expect(withQuery('/runs/r?tab=logs', { tab: undefined })).toBe('/runs/r');
  expect(withQuery('/x', { find: '' })).toBe('/x');
  expect(withQuery('/x', { find: 'a&b=c' })).toBe('/x?find=a%26b%3Dc');
});

test('lines of a log', () => {
  expect(parseLines('#L12')).toEqual({ first: 12, last: 12 });
  expect(parseLines('#L20-L12')).toEqual({ first: 12, last: 20 });
  expect(parseLines('#L12-20')).toEqual({ first: 12, last: 20 });
  for (const bad of ['', '#', '#L', '#L0', '#Lx', '#L1-', '#L-1', '#L9999999999999999']) expect(parseLines(bad)).toBeUndefined();
  expect(parseLines(formatLines({ first: 3, last: 9 }))).toEqual({ first: 3, last: 9 });
  expect(formatLines({ first: 3, last: 3 })).toBe('#L3');
});

test('addresses encode what they are made of', () => {
  expect(api(['projects', 'a/b', 'runs'], { state: 'running', pipeline: undefined, limit: 5 })).toBe('/api/v1/projects/a%2Fb/runs?state=running&limit=5');
  expect(below('/x', 'a b/c?d')).toBe('/x/a%20b/c%3Fd');
  expect(paths.model('p', 'm', 2)).toBe('/projects/p/models/m?version=2');
  expect(versionPath('p', 'ridership/2')).toBe('/projects/p/models/ridership?version=2');
});

test('a value that is not allowed is the first that is', () => {
  expect(choice('logs', ['overview', 'logs'])).toBe('logs');
  expect(choice('nope', ['overview', 'logs'])).toBe('overview');
  expect(choice(undefined, ['overview', 'logs'])).toBe('overview');
});
