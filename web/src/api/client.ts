// Requests to /api/v1. The session is a cookie that scripts cannot read; unsafe requests carry the CSRF token that
// the login gave. The token lives in sessionStorage, which a new tab does not share: such a tab asks its siblings.
import { signal } from '@preact/signals';
import type { Page, Problem, Self, Session } from './types';

const CSRF = 'tidemill.csrf';
/** Set while a session may exist, so that a first visit need not ask the server for what it cannot have. */
const KNOWN = 'tidemill.known';
const ASK_MS = 300;

export class ApiError extends Error {
  constructor(
    readonly problem: Problem,
    readonly requestId: string,
  ) {
    super(problem.detail || problem.title);
  }
  get status() {
    return this.problem.status;
  }
}

/** Who is logged in; undefined while that is not known, null when nobody is. */
export const self = signal<Self | null | undefined>(undefined);

const siblings = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('tidemill.session');
siblings?.addEventListener('message', (e: MessageEvent<{ ask?: true; csrf?: string }>) => {
  const csrf = sessionStorage.getItem(CSRF);
  if (e.data.ask && csrf) siblings.postMessage({ csrf });
});

function askSiblings(): Promise<string> {
  return new Promise((resolve) => {
    if (!siblings) return resolve('');
    const done = (csrf: string) => {
      clearTimeout(timer);
      siblings.removeEventListener('message', heard);
      resolve(csrf);
    };
    const heard = (e: MessageEvent<{ csrf?: string }>) => {
      if (!e.data.csrf) return;
      sessionStorage.setItem(CSRF, e.data.csrf);
      done(e.data.csrf);
    };
    const timer = setTimeout(() => done(''), ASK_MS);
    siblings.addEventListener('message', heard);
    siblings.postMessage({ ask: true });
  });
}

async function problemOf(res: Response): Promise<ApiError> {
  const id = res.headers.get('X-Request-Id') ?? '';
  try {
    const body = (await res.json()) as Partial<Problem>;
    if (typeof body.title === 'string') return new ApiError({ ...body, title: body.title, status: res.status }, id);
  } catch {
    // Not JSON: a proxy answered in the server's place; its status says all there is.
  }
  return new ApiError({ title: `The server answered ${res.status} ${res.statusText}`.trim(), status: res.status }, id);
}

export interface RequestOptions {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

async function send(path: string, o: RequestOptions): Promise<Response> {
  const method = o.method ?? 'GET';
  const headers: Record<string, string> = { ...o.headers };
  if (method !== 'GET' && self.value) headers['X-CSRF'] = sessionStorage.getItem(CSRF) || (await askSiblings());
  if (o.body !== undefined) headers['Content-Type'] = 'application/json';
  try {
    return await fetch(path, {
      method,
      headers,
      credentials: 'same-origin',
      ...(o.body === undefined ? {} : { body: JSON.stringify(o.body) }),
      ...(o.signal ? { signal: o.signal } : {}),
    });
  } catch (e) {
    if (o.signal?.aborted) throw e;
    throw new ApiError({ title: 'The server cannot be reached', status: 0 }, '');
  }
}

function forget() {
  localStorage.removeItem(KNOWN);
  sessionStorage.removeItem(CSRF);
  self.value = null;
}

/** The response of a successful request; throws ApiError otherwise. 401 ends the session. */
export async function request(path: string, o: RequestOptions = {}): Promise<Response> {
  const res = await send(path, o);
  if (res.ok) return res;
  const e = await problemOf(res);
  if (e.status === 401) forget();
  throw e;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const res = await request(path, signal ? { signal } : {});
  return (await res.json()) as T;
}

export const list = get as <T>(path: string, signal?: AbortSignal) => Promise<Page<T>>;

export async function login(token: string): Promise<void> {
  const res = await send('/api/v1/auth/session', { method: 'POST', body: { token } });
  if (!res.ok) throw await problemOf(res);
  sessionStorage.setItem(CSRF, ((await res.json()) as Session).csrf);
  localStorage.setItem(KNOWN, '1');
  self.value = await get<Self>('/api/v1/auth/self');
}

export async function logout(): Promise<void> {
  await request('/api/v1/auth/session', { method: 'DELETE' });
  forget();
}

/** Asks once, at the start, whether the cookie still opens a session. */
export async function recall(): Promise<void> {
  if (!localStorage.getItem(KNOWN)) return forget();
  try {
    self.value = await get<Self>('/api/v1/auth/self');
  } catch (e) {
    if (!(e instanceof ApiError && e.status === 401)) throw e;
  }
}
