// The table of features by windows: what the server sends, and the colour of a cell. A cell's colour is its value in
// units of the feature's threshold, in five steps; what has drifted also carries a mark, since colour alone must not
// tell.
import type { Json, JsonObject, Real } from '../api/types';

export interface HeatCell {
  /** Absent: there was no data, or too little. */
  value: number | undefined;
  drifted: boolean;
}

export interface HeatRow {
  name: string;
  /** What the feature is held against; absent: the monitor's own threshold. */
  threshold: number | undefined;
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

/** {windows: [{id, …}], features: [{name, threshold, values: […], drifted: […]}]}, oldest window first. */
export function parseHeat(reply: Json): Heat {
  const o = object(reply);
  const windows = array(o.windows).map((w) => String(object(w).id ?? ''));
  return {
    windows,
    rows: array(o.features).map((f) => {
      const { name, threshold, values, drifted } = object(f);
      return {
        name: String(name ?? ''),
        threshold: real(threshold),
        cells: windows.map((_, i) => ({ value: real(array(values)[i]), drifted: array(drifted)[i] === true })),
      };
    }),
  };
}

/** Rows with the largest newest value first; those without a value last. */
export function sortRows(rows: HeatRow[], by: 'latest' | 'name'): HeatRow[] {
  const newest = (r: HeatRow) => [...r.cells].reverse().find((c) => c.value !== undefined)?.value ?? -Infinity;
  return [...rows].sort((a, b) => (by === 'latest' && newest(b) - newest(a)) || (a.name < b.name ? -1 : 1));
}
