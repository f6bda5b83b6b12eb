import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError, get, login, logout, recall, request, self } from '../../src/api/client';

const calls: { path: string; init: RequestInit }[] = [];
const answers: Response[] = [];
const reply = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  answers.push(new Response(status === 204 ? null : typeof body === 'string' ? body : JSON.stringify(body), { status, headers }));
const header = (i: number, name: string) => (calls[i]?.init.headers as Record<string, string>)[name];
const ADA = { principal: 'usr_1', name: 'ada', kind: 'session', admin: false, expires_at: '2026-01-01T00:00:00Z' };

beforeEach(() => {
  calls.length = answers.length = 0;
  vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
    calls.push({ path, init });
    const answer = answers.shift();
    if (!answer) throw new TypeError('connection refused');
    return answer;
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
  sessionStorage.clear();
  localStorage.clear();
  self.value = undefined;
});

async function failure(p: Promise<unknown>): Promise<ApiError> {
  const e = await p.then(() => null, (x: unknown) => x);
  expect(e).toBeInstanceOf(ApiError);
  return e as ApiError;
}

test('a login keeps the CSRF token, not the token; unsafe requests carry it, safe ones do not', async () => {
  reply(201, { csrf: 'c1', expires_at: ADA.expires_at });
  reply(200, ADA);
  await login('tdm_pat_secret');
  expect(self.value?.name).toBe('ada');
  expect(JSON.stringify({ ...sessionStorage, ...localStorage })).not.toContain('secret');
  expect(header(1, 'X-CSRF')).toBeUndefined();
  reply(200, {});
  await request('/api/v1/runs/r/cancel', { method: 'POST' });
  expect(header(2, 'X-CSRF')).toBe('c1');
  reply(204, null);
  await logout();
  expect(self.value).toBeNull();
  expect(sessionStorage.length + localStorage.length).toBe(0);
});

test('401 ends the session; a first visit asks nothing', async () => {
  self.value = ADA;
  reply(401, { title: 'Log in first', status: 401 });
  expect((await failure(get('/api/v1/projects'))).status).toBe(401);
  expect(self.value).toBeNull();
  calls.length = 0;
  await recall();
  expect(calls).toHaveLength(0);
});

test('a refusal keeps its title, detail, pointers and request id', async () => {
  reply(422, { title: 'Not valid', detail: 'alpha must be 0 or more', status: 422, errors: [{ pointer: '/inputs/alpha', detail: 'least 0' }] }, { 'X-Request-Id': 'req_1' });
  const e = await failure(get('/x'));
  expect(e.message).toBe('alpha must be 0 or more');
  expect(e.requestId).toBe('req_1');
  expect(e.problem.errors?.[0]?.pointer).toBe('/inputs/alpha');
});

test('what is no problem document is told by its status; no answer at all is told too', async () => {
  reply(502, '<html>bad gateway</html>');
  expect((await failure(get('/x'))).message).toContain('502');
  const e = await failure(get('/x'));
  expect(e.status).toBe(0);
  expect(e.message).toBe('The server cannot be reached');
});
