// JSON for people: an object as a list of facts, a list of like objects as a table, the rest as it is. Evidence
// (gates, decisions) comes in this form, and what later versions add to it shows up by itself.
import type { ComponentChildren } from 'preact';
import type { Json, JsonObject } from '../api/types';
import { number, time } from '../lib/format';
import { State } from './parts';

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

export const isObject = (j: Json | undefined): j is JsonObject => typeof j === 'object' && j !== null && !Array.isArray(j);
export const isEmpty = (j: Json | undefined) =>
  j === null || j === undefined || j === '' || (Array.isArray(j) ? j.length === 0 : isObject(j) && Object.keys(j).length === 0);

/** "max_ratio" → "max ratio". */
export const words = (key: string) => key.replace(/_/g, ' ');

const isScalar = (j: Json | undefined) => typeof j !== 'object' || j === null;

function Scalar({ value }: { value: Json }) {
  if (value === null) return <span class="dim">–</span>;
  if (typeof value === 'boolean') return <span class={value ? 's-ok' : 'dim'}>{value ? '✓ yes' : '✕ no'}</span>;
  if (typeof value === 'number') return <span class="num" title={String(value)}>{number(value)}</span>;
  if (typeof value === 'string' && RFC3339.test(value)) {
    // A window's edge is a day of the data; a clock would only distract.
    const text = value.includes('T00:00:00') ? value.slice(0, 10) : time(value);
    return <time dateTime={value}>{text}</time>;
  }
  return <span>{String(value)}</span>;
}

function columnsOf(rows: JsonObject[]): string[] {
  const keys = new Set<string>();
  for (const r of rows) for (const k of Object.keys(r)) keys.add(k);
  return [...keys];
}

const isNumeric = (rows: JsonObject[], column: string) =>
  rows.every((r) => typeof r[column] === 'number' || r[column] === null || r[column] === undefined);

function Rows({ rows }: { rows: JsonObject[] }) {
  const columns = columnsOf(rows);
  return (
    <div class="table-wrap">
      <table class="data compact">
        <thead>
          <tr>
            {columns.map((c) => (
              <th scope="col" class={isNumeric(rows, c) ? 'num' : ''}>{words(c)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr>
              {columns.map((c) => (
                <td class={isNumeric(rows, c) ? 'num' : ''}>{c === 'verdict' && typeof r[c] === 'string' ? <State of={r[c]} /> : <JsonView value={r[c] ?? null} />}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Pairs = ({ value }: { value: JsonObject }) => {
  const scalars = Object.entries(value).filter(([, v]) => isScalar(v) || isEmpty(v));
  const rest = Object.entries(value).filter(([, v]) => !isScalar(v) && !isEmpty(v));
  return (
    <div class="json">
      {scalars.length > 0 && (
        <dl class="pairs">
          {scalars.map(([k, v]) => (
            <>
              <dt>{words(k)}</dt>
              <dd>
                <JsonView value={v} />
              </dd>
            </>
          ))}
        </dl>
      )}
      {rest.map(([k, v]) => (
        <div class="json-part">
          <h3>{words(k)}</h3>
          <JsonView value={v} />
        </div>
      ))}
    </div>
  );
};

export function JsonView({ value }: { value: Json }): ComponentChildren {
  if (isScalar(value)) return <Scalar value={value} />;
  if (isEmpty(value)) return <span class="dim">–</span>;
  if (isObject(value)) return <Pairs value={value} />;
  const items = value as Json[];
  if (items.every(isObject)) return <Rows rows={items} />;
  return (
    <span>
      {items.map((v, i) => (
        <>
          {i > 0 && ', '}
          <JsonView value={v} />
        </>
      ))}
    </span>
  );
}
