// What a decision rests on, in the words of people: the members that the server is known to send are named and brought
// together, those that the page shows elsewhere are left out, and what is new is kept as it came.
import type { Json, JsonObject } from '../api/types';

const NAMES: Record<string, string> = {
  metric: 'metric',
  value: 'in this window',
  champion: 'of the champion on its holdout',
  model_version: 'compared with',
  verdict: 'this window is',
  features: 'features tested',
  drifted: 'features that drifted',
  cooldown: 'windows of cooldown left',
  refused: 'challengers refused in a row',
  open_retraining: 'a retraining is open',
  most: 'what drifted most',
  defects: 'defects',
};
/** In the head of the page, in the gauge, or part of a phrase below. */
const ELSEWHERE = new Set(['window', 'score', 'limit', 'hot', 'k', 'n', 'before', 'after', 'min_samples']);

export function evidence(inputs: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const [key, name] of Object.entries(NAMES)) if (inputs[key] !== undefined) out[name] = inputs[key];
  const { hot, k, n, before, after, min_samples: least } = inputs;
  if (typeof hot === 'number' && typeof n === 'number') out['hot windows'] = `${hot} of the last ${n}${typeof k === 'number' ? `; ${k} are needed` : ''}`;
  if (typeof before === 'string' && typeof after === 'string') out['state of the policy'] = before === after ? after : `${before} → ${after}`;
  const rows = rowsOf(inputs.window, least);
  if (rows) out['rows'] = rows;
  for (const [key, value] of Object.entries(inputs)) if (!(key in NAMES) && !ELSEWHERE.has(key)) out[key] = value;
  return out;
}

function rowsOf(window: Json | undefined, least: Json | undefined): string | undefined {
  if (typeof window !== 'object' || window === null || Array.isArray(window) || typeof window.rows !== 'number') return undefined;
  const labelled = typeof window.labelled === 'number' ? `, ${window.labelled} with a label` : '';
  return `${window.rows}${labelled}${typeof least === 'number' ? `; ${least} are needed` : ''}`;
}
