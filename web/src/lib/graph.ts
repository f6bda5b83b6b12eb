// Columns of a pipeline's steps: each step stands right of all that it needs. Specs are checked to be free of
// circles; a circle that came all the same would only be cut, not loop.

export interface GraphStep {
  name: string;
  needs: readonly string[];
}

export interface Placed<T> {
  step: T;
  column: number;
  row: number;
}

export function placeSteps<T extends GraphStep>(steps: readonly T[]): Placed<T>[] {
  const byName = new Map(steps.map((s) => [s.name, s]));
  const columns = new Map<string, number>();
  const visiting = new Set<string>();
  const column = (name: string): number => {
    const known = columns.get(name);
    if (known !== undefined) return known;
    if (visiting.has(name)) return 0;
    visiting.add(name);
    const needs = byName.get(name)?.needs.filter((n) => byName.has(n)) ?? [];
    const c = needs.length === 0 ? 0 : 1 + Math.max(...needs.map(column));
    columns.set(name, c);
    return c;
  };
  const used: number[] = [];
  return steps.map((step) => {
    const c = column(step.name);
    const row = used[c] ?? 0;
    used[c] = row + 1;
    return { step, column: c, row };
  });
}
