// Drift of the real rows of examples/chicago, so that the fake's heat table looks like one: PSI of each feature over
// deciles of the training rows, quarter by quarter.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

const FILE = new URL('../../../examples/chicago/chicago.csv.gz', import.meta.url);

export function readRows() {
  const [head, ...lines] = gunzipSync(readFileSync(FILE)).toString().trim().split(/\r?\n/);
  const names = head.split(',').map((n) => n.replace(/"/g, ''));
  const date = names.indexOf('date');
  const rows = lines.map((l) => l.replace(/"/g, '').split(','));
  return { names, date, rows };
}

const share = (values, edges) => {
  const counts = new Array(edges.length + 1).fill(0.5);
  for (const v of values) counts[edges.filter((e) => v > e).length] += 1;
  const total = counts.reduce((a, b) => a + b);
  return counts.map((c) => c / total);
};

function psi(reference, window) {
  const sorted = [...reference].sort((a, b) => a - b);
  const edges = [...new Set(Array.from({ length: 9 }, (_, i) => sorted[Math.floor(((i + 1) * sorted.length) / 10)]))];
  const [p, q] = [share(reference, edges), share(window, edges)];
  return p.reduce((sum, x, i) => sum + (q[i] - x) * Math.log(q[i] / x), 0);
}

/** {feature: [value per quarter]} */
export function heat(quarters, reference) {
  const { names, date, rows } = readRows();
  const between = (from, to) => rows.filter((r) => r[date] >= from && r[date] < to);
  const base = between(...reference);
  const parts = quarters.map((q) => between(q.start.slice(0, 10), q.end.slice(0, 10)));
  const out = {};
  names.forEach((name, i) => {
    if (['date', 'ridership', ''].includes(name)) return;
    const column = (part) => part.map((r) => Number(r[i])).filter(Number.isFinite);
    const from = column(base);
    if (from.length > 0) out[name] = parts.map((p) => Number(psi(from, column(p)).toFixed(4)));
  });
  return { values: out, rows: parts.map((p) => p.length) };
}
