// The table of features by windows: what the server sends, and the colour of a cell. A cell's colour is its value in
// units of the monitor's alert threshold, in five steps; values at or above the threshold also carry a mark, since
// colour alone must not tell.
import type { Json, JsonObject, Real } from '../api/types';

export interface HeatCell {
  value: number | undefined;
  /** "ok", "insufficient", "no_data", …; decides between a pattern and a blank. */
  status: string;
  threshold: number | undefined;
  drifted: boolean;
}

export interface HeatRow {
  name: string;
  cells: HeatCell[];
}

export interface Heat {
  windows: string[];
  rows: HeatRow[];
}

/** Upper ends of the first four steps, in units of the threshold. */
export const STEPS = [0.5, 1, 2, 5] as const;
export const STEP_NAMES = ['below ½', '½ to 1', '1 to 2', '2 to 5', '5 or more'] as const;

export function heatStep(value: number, threshold: number): 0 | 1 | 2 | 3 | 4 {
  const ratio = threshold > 0 ? value / threshold : value > 0 ? Infinity : 0;
  const i = STEPS.findIndex((s) => ratio < s);
  return (i < 0 ? 4 : i) as 0 | 1 | 2 | 3 | 4;
}

const object = (j: Json | undefined): JsonObject => (j && typeof j === 'object' && !Array.isArray(j) ? j : {});
const array = (j: Json | undefined): Json[] => (Array.isArray(j) ? j : []);

export function real(j: Json | Real | undefined): number | undefined {
  if (typeof j === 'number') return j;
  if (j === 'Infinity') return Infinity;
  if (j === '-Infinity') return -Infinity;
  return undefined;
}

/** A value alone, null where there is none, or an object that says more about it. */
function cell(j: Json | undefined): HeatCell {
  const o = object(j);
  const value = real(typeof j === 'object' ? o.value : j);
  return {
    value,
    status: typeof o.status === 'string' ? o.status : value === undefined ? 'no_data' : 'ok',
    threshold: real(o.threshold),
    drifted: o.drifted === true,
  };
}

/** Reads the reply, oldest window first whatever order it came in. */
export function parseHeat(reply: Json): Heat {
  const o = object(reply);
  const windows = array(o.windows).map((w) => (typeof w === 'string' ? { id: w, start: '' } : { id: String(object(w).id ?? ''), start: String(object(w).start ?? '') }));
  const order = windows.map((_, i) => i);
  if (windows.every((w) => w.start)) order.sort((a, b) => (windows[a]!.start < windows[b]!.start ? -1 : 1));
  return {
    windows: order.map((i) => windows[i]!.id),
    rows: array(o.features).map((f) => {
      const values = array(object(f).values);
      return { name: String(object(f).name ?? ''), cells: order.map((i) => cell(values[i])) };
    }),
  };
}

/** Rows with the largest newest value first; those without a value last. */
export function sortRows(rows: HeatRow[], by: 'latest' | 'name'): HeatRow[] {
  const newest = (r: HeatRow) => [...r.cells].reverse().find((c) => c.value !== undefined)?.value ?? -Infinity;
  return [...rows].sort((a, b) => (by === 'latest' && newest(b) - newest(a)) || (a.name < b.name ? -1 : 1));
}
