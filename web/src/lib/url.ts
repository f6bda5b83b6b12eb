// The state of a view lives in its address, so that a link shows what its sender saw and the back button goes back.

export type Query = Record<string, string | undefined>;

/** The address with these parameters changed; undefined and "" remove one. Order is kept, new ones come last. */
export function withQuery(url: string, change: Query): string {
  const [beforeHash = '', hash] = split(url, '#');
  const [path = '', search = ''] = split(beforeHash, '?');
  const params = new URLSearchParams(search);
  for (const [key, value] of Object.entries(change)) {
    if (value === undefined || value === '') params.delete(key);
    else params.set(key, value);
  }
  const text = params.toString();
  return `${path}${text ? `?${text}` : ''}${hash ? `#${hash}` : ''}`;
}

function split(text: string, at: string): [string, string?] {
  const i = text.indexOf(at);
  return i < 0 ? [text] : [text.slice(0, i), text.slice(i + 1)];
}

/** An address of the API: each part of the path encoded, parameters that are undefined left out. */
export function api(parts: (string | number)[], query: Record<string, string | number | boolean | undefined> = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined && value !== '') params.set(key, String(value));
  const text = params.toString();
  return `/api/v1/${parts.map((p) => encodeURIComponent(String(p))).join('/')}${text ? `?${text}` : ''}`;
}

/** A path below an address: its slashes stay. */
export const below = (base: string, path: string) => `${base}/${path.split('/').map(encodeURIComponent).join('/')}`;

export interface LineRange {
  first: number;
  last: number;
}

/** "#L12" and "#L12-L20", in either order. */
export function parseLines(hash: string): LineRange | undefined {
  const m = /^#?L(\d{1,15})(?:-L?(\d{1,15}))?$/.exec(hash);
  if (!m) return undefined;
  const a = Number(m[1]);
  const b = m[2] === undefined ? a : Number(m[2]);
  if (a < 1 || b < 1) return undefined;
  return { first: Math.min(a, b), last: Math.max(a, b) };
}

export const formatLines = (r: LineRange) => (r.first === r.last ? `#L${r.first}` : `#L${r.first}-L${r.last}`);

/** One of the allowed values, or the first of them. */
export function choice<T extends string>(value: string | undefined, allowed: readonly T[]): T {
  return allowed.includes(value as T) ? (value as T) : (allowed[0] as T);
}

export const paths = {
  runs: (project: string) => `/projects/${encodeURIComponent(project)}/runs`,
  run: (id: string) => `/runs/${encodeURIComponent(id)}`,
  datasets: (project: string) => `/projects/${encodeURIComponent(project)}/datasets`,
  dataset: (project: string, name: string, version?: number) =>
    withQuery(`/projects/${encodeURIComponent(project)}/datasets/${encodeURIComponent(name)}`, { version: version?.toString() }),
  models: (project: string) => `/projects/${encodeURIComponent(project)}/models`,
  model: (project: string, name: string, version?: number) =>
    withQuery(`/projects/${encodeURIComponent(project)}/models/${encodeURIComponent(name)}`, { version: version?.toString() }),
  monitors: (project: string) => `/projects/${encodeURIComponent(project)}/monitors`,
  monitor: (project: string, name: string) => `/projects/${encodeURIComponent(project)}/monitors/${encodeURIComponent(name)}`,
  decision: (project: string, id: string) => `/projects/${encodeURIComponent(project)}/decisions/${encodeURIComponent(id)}`,
};

/** The page of "ridership/2". */
export function versionPath(project: string, nameAndNumber: string): string {
  const i = nameAndNumber.lastIndexOf('/');
  return i < 0 ? paths.model(project, nameAndNumber) : paths.model(project, nameAndNumber.slice(0, i), Number(nameAndNumber.slice(i + 1)));
}
