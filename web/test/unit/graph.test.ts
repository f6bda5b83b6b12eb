import { expect, test } from 'vitest';
import { placeSteps } from '../../src/lib/graph';

const at = (steps: { name: string; needs: string[] }[]) => Object.fromEntries(placeSteps(steps).map((p) => [p.step.name, [p.column, p.row]]));

test('each step stands right of what it needs', () => {
  expect(
    at([
      { name: 'prepare', needs: [] },
      { name: 'train', needs: ['prepare'] },
      { name: 'check', needs: ['prepare'] },
      { name: 'report', needs: ['prepare', 'train'] },
    ]),
  ).toEqual({ prepare: [0, 0], train: [1, 0], check: [1, 1], report: [2, 0] });
});

test('needs that are not there and circles do not hang', () => {
  expect(at([{ name: 'a', needs: ['gone'] }])).toEqual({ a: [0, 0] });
  expect(Object.keys(at([{ name: 'a', needs: ['b'] }, { name: 'b', needs: ['a'] }]))).toEqual(['a', 'b']);
});
