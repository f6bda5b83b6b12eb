// A fake of the server for tests and for work on the looks: made-up data behind the real addresses, one run that goes
// on until somebody cancels it. Never a proof that the dashboard fits the server; the end-to-end test is.
// usage: node serve.mjs [PORT]
import { readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as d from './data.mjs';

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' };
const LIVE = 'run_6';
const LINE_MS = 350;

export const TOKEN = 'tdm_pat_fake';

const big = d.log(Array.from({ length: 250000 }, (_, i) => `line ${i + 1}: ${'·'.repeat(i % 60)} ${i % 97 === 0 ? '\u001b[31merror\u001b[0m' : 'ok'}`));

/** All that changes while the fake runs. */
class World {
  sessions = new Set();
  listeners = new Set();
  tails = new Set();
  eventId = 100;
  lines = d.trainLog(12);
  runs = structuredClone(d.runs);

  constructor() {
    const live = this.runs.find((r) => r.id === LIVE);
    live.started_at = new Date().toISOString();
    live.created_at = live.started_at;
    this.steps = Object.fromEntries(this.runs.map((r) => [r.id, this.stepsOf(r)]));
    this.timer = setInterval(() => this.tick(), LINE_MS);
  }
  stepsOf(r) {
    if (r.pipeline === 'ridership-score') {
      const waiting = r.state === 'queued';
      return [d.step(r.id, 'score', 0, waiting ? { state: 'queued', attempts: 0, attempt_id: undefined, tracking_run: undefined, started_at: null, ended_at: null, blocked: d.blocked } : {})];
    }
    if (r.id === LIVE)
      return [
        d.step(r.id, 'train', 0, { state: 'running', started_at: r.started_at, ended_at: null, outputs: {} }),
        d.step(r.id, 'evaluate', 1, { needs: ['train'], state: 'waiting', attempts: 0, attempt_id: undefined, tracking_run: undefined, started_at: null, ended_at: null, outputs: {} }),
      ];
    const bad = r.state === 'failed';
    return [
      d.step(r.id, 'train', 0, bad ? { state: 'failed', attempts: 2, nodes: 2, reason: 'exit_code', message: 'rank 1 on gpu-02 ended with exit code 1; 1 other rank was stopped', outputs: {} } : {}),
      d.step(r.id, 'evaluate', 1, { needs: ['train'], ...(bad ? { state: 'skipped', attempts: 0, attempt_id: undefined, reason: 'need_failed', message: 'It needs train, which did not succeed', started_at: null, outputs: {} } : {}) }),
    ];
  }
  step(id) {
    return Object.values(this.steps).flat().find((s) => s.id === id || s.attempt_id === id);
  }
  logOf(id, rank = 0) {
    const s = this.step(id);
    if (s && rank > 0) return { lines: d.trainLog(2), complete: true };
    if (!s) return null;
    if (s.run_id === LIVE) return { lines: this.lines, complete: s.state !== 'running' };
    if (s.id === 'stp_1_evaluate') return { lines: big, complete: true };
    return { lines: d.trainLog(28), complete: true };
  }
  tick() {
    const s = this.steps[LIVE][0];
    if (s.state !== 'running') return;
    const line = { line: this.lines.length + 1, time: new Date().toISOString(), stream: 'stdout', text: d.trainLine(this.lines.length - 3) };
    this.lines.push(line);
    for (const t of this.tails) t({ event: 'lines', data: JSON.stringify({ lines: [line] }) });
  }
  finish(state) {
    const live = this.runs.find((r) => r.id === LIVE);
    const now = new Date().toISOString();
    Object.assign(live, { state, ended_at: now, ...(state === 'cancelled' ? { reason: 'cancelled', message: 'Cancelled by ada' } : {}) });
    for (const s of this.steps[LIVE]) Object.assign(s, { state: s.attempts > 0 ? state : 'cancelled', ended_at: now });
    for (const t of this.tails) t({ event: 'end', data: '{}' });
    this.say(`run.${state}`, LIVE);
  }
  rerun(old) {
    const now = new Date().toISOString();
    const id = `run_${this.runs.length + 1}`;
    const run = { ...old, id, state: 'running', trigger: 'rerun', rerun_of: old.id, rerun_from: 'failed', created_at: now, started_at: now, ended_at: null, reason: undefined, message: undefined };
    this.runs.push(run);
    this.steps[id] = [
      d.step(id, 'train', 0, { attempts: 0, attempt_id: undefined, started_at: null, ended_at: now, message: `taken over from ${old.id}`, reused: { by: 'rerun', run_id: old.id, step_id: 'stp_1_train', ended_at: old.ended_at ?? now } }),
      d.step(id, 'evaluate', 1, { needs: ['train'], state: 'running', started_at: now, ended_at: null, outputs: {} }),
    ];
    return run;
  }
  say(type, subject, parent) {
    const e = { id: ++this.eventId, at: new Date().toISOString(), project: 'transit', type, subject, parent, data: {} };
    for (const l of this.listeners) l({ id: e.id, event: type, data: JSON.stringify(e) });
  }
}

function sse(res) {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  res.write('retry: 1000\n\n');
  return (m) => res.write(`${m.id ? `id: ${m.id}\n` : ''}event: ${m.event}\ndata: ${m.data}\n\n`);
}

const json = (res, body, status = 200, headers = {}) => {
  res.writeHead(status, { 'Content-Type': status < 400 ? 'application/json' : 'application/problem+json', 'X-Request-Id': 'req_fake0001', ...headers });
  res.end(JSON.stringify(body));
};
const problem = (res, status, title, detail) => json(res, { type: 'about:blank', title, status, detail, code: 'fake' }, status);

function page(res, items, q) {
  const limit = Number(q.get('limit') ?? 50);
  const from = Number(q.get('cursor') ?? 0);
  const next = from + limit < items.length ? { next_cursor: String(from + limit) } : {};
  json(res, { items: items.slice(from, from + limit), ...next });
}

function sendLog(world, res, id, q) {
  const log = world.logOf(id, Number(q.get('rank') ?? 0));
  if (!log) return problem(res, 404, 'Not found', `There is no log of ${id}`);
  if (q.get('raw')) {
    res.writeHead(200, { 'Content-Type': 'text/plain; charset=utf-8' });
    return res.end(log.lines.map((l) => l.text).join('\n'));
  }
  const total = log.lines.length;
  const limit = Number(q.get('limit') ?? 1000);
  const first = q.get('from') ? Number(q.get('from')) : Math.max(1, total - Number(q.get('tail') ?? limit) + 1);
  if (!q.get('follow')) {
    const lines = log.lines.slice(first - 1, first - 1 + limit);
    return json(res, { lines, first, last: first + lines.length - 1, total, complete: log.complete, dropped: 0 });
  }
  const send = sse(res);
  send({ event: 'lines', data: JSON.stringify({ lines: log.lines.slice(first - 1) }) });
  if (log.complete) send({ event: 'end', data: '{}' });
  world.tails.add(send);
  res.on('close', () => world.tails.delete(send));
}

const filter = (items, q, names) => items.filter((x) => names.every((n) => !q.get(n) || String(x[n]) === q.get(n)));

/** [pattern, answer]; the first that fits answers. */
const ROUTES = [
  ['GET /projects', (w, res, m, q) => page(res, d.projects, q)],
  ['GET /workers', (w, res, m, q) => page(res, d.workers.map((x) => (x.online ? { ...x, seen_at: new Date().toISOString() } : x)), q)],
  ['GET /projects/empty/:any', (w, res) => json(res, { items: [] })],
  ['GET /projects/:p/pipelines', (w, res, m, q) => page(res, ['ridership', 'ridership-score'].map((name) => ({ id: name, name })), q)],
  ['GET /projects/:p/runs', (w, res, m, q) => page(res, filter([...w.runs].sort((a, b) => (a.created_at < b.created_at ? 1 : -1)), q, ['pipeline', 'state']), q)],
  ['GET /projects/:p/events', (w, res) => {
    const send = sse(res);
    w.listeners.add(send);
    res.on('close', () => w.listeners.delete(send));
  }],
  ['GET /projects/:p/datasets', (w, res, m, q) => page(res, [d.dataset], q)],
  ['GET /projects/:p/datasets/:n', (w, res) => json(res, d.dataset)],
  ['GET /projects/:p/datasets/:n/versions', (w, res, m, q) => page(res, d.datasetVersions, q)],
  ['GET /projects/:p/datasets/:n/versions/:v/files', (w, res, m, q) => page(res, d.files, q)],
  ['GET /projects/:p/models', (w, res, m, q) => page(res, [d.model], q)],
  ['GET /projects/:p/models/:n', (w, res) => json(res, d.model)],
  ['GET /projects/:p/models/:n/versions', (w, res, m, q) => page(res, d.modelVersions, q)],
  ['GET /projects/:p/models/:n/versions/:v/files', (w, res, m, q) => page(res, [{ path: 'model.json', digest: d.files[0].digest, size: 7120 }, { path: 'MLmodel', digest: d.files[1].digest, size: 1003 }], q)],
  ['GET /projects/:p/models/:n/aliases', (w, res, m, q) => page(res, d.aliasHistory, q)],
  ['GET /projects/:p/monitors', (w, res, m, q) => page(res, [d.monitor], q)],
  ['GET /projects/:p/monitors/:n', (w, res) => json(res, d.monitor)],
  ['GET /projects/:p/monitors/:n/windows', (w, res, m, q) => page(res, [...d.windows].reverse(), q)],
  ['GET /projects/:p/monitors/:n/windows/:w/metrics', (w, res, m) => json(res, { items: d.windowMetrics(m.w) })],
  ['GET /projects/:p/monitors/:n/heat', (w, res, m, q) => json(res, d.heatReply(q.get('metric') ?? 'psi'))],
  ['GET /projects/:p/monitors/:n/decisions', (w, res, m, q) => page(res, d.decisions, q)],
  ['GET /decisions/:id', (w, res, m) => one(res, d.decisions.find((x) => x.id === m.id), m.id)],
  ['GET /runs/:id', (w, res, m) => one(res, w.runs.find((x) => x.id === m.id), m.id)],
  ['GET /runs/:id/steps', (w, res, m, q) => page(res, w.steps[m.id] ?? [], q)],
  ['POST /runs/:id/cancel', (w, res, m) => {
    const run = w.runs.find((x) => x.id === m.id);
    if (m.id === LIVE) w.finish('cancelled');
    else {
      Object.assign(run, { state: 'cancelled', ended_at: new Date().toISOString() });
      w.say('run.cancelled', m.id);
    }
    json(res, run);
  }],
  ['POST /runs/:id/rerun', (w, res, m) => json(res, w.rerun(w.runs.find((x) => x.id === m.id)), 201)],
  ['GET /steps/:id/blockers', (w, res, m) => one(res, w.step(m.id) && d.stepWait(w.step(m.id)), m.id)],
  ['GET /steps/:id/attempts', (w, res, m, q) => {
    const s = w.step(m.id);
    if (!s?.attempt_id) return page(res, [], q);
    page(res, s.nodes > 1 ? d.gangOf(s) : [d.attemptOf(s, { log_lines: w.logOf(s.id).lines.length })], q);
  }],
  ['GET /steps/:id/log', (w, res, m, q) => sendLog(w, res, m.id, q)],
  ['GET /attempts/:id/log', (w, res, m, q) => sendLog(w, res, m.id.startsWith('att_first') ? 'stp_3_train' : m.id, q)],
  ['GET /tracking-runs/:id', (w, res, m) => json(res, d.tracking(m.id, Math.min(28, w.lines.length)))],
  ['GET /tracking-runs/:id/series', (w, res, m) => json(res, { items: d.series(m.id === w.steps[LIVE][0].tracking_run ? w.lines.length - 3 : 28) })],
  ['GET /tracking-runs/:id/artifacts', (w, res, m, q) => page(res, q.get('path') ? [{ path: `${q.get('path')}/residuals.png`, is_dir: false, size: 40960 }] : d.artifacts, q)],
];
const one = (res, item, id) => (item ? json(res, item) : problem(res, 404, 'Not found', `There is nothing with the identity ${id}, or you may not see it`));

function match(pattern, method, path) {
  const [verb, at] = pattern.split(' ');
  const want = at.split('/');
  const have = path.split('/');
  if (verb !== method || want.length !== have.length) return null;
  const out = {};
  for (let i = 0; i < want.length; i++) {
    if (want[i].startsWith(':')) out[want[i].slice(1)] = decodeURIComponent(have[i]);
    else if (want[i] !== have[i]) return null;
  }
  return out;
}

async function session(world, req, res) {
  if (req.method === 'DELETE') {
    world.sessions.clear();
    res.writeHead(204, { 'Set-Cookie': 'tidemill_session=; Path=/; Max-Age=0' });
    return res.end();
  }
  let body = '';
  for await (const c of req) body += c;
  if (JSON.parse(body).token !== TOKEN) return problem(res, 401, 'The token is not valid', 'It may be mistyped, expired or revoked');
  const id = Math.random().toString(36).slice(2);
  world.sessions.add(id);
  json(res, { csrf: `csrf-${id}`, expires_at: new Date(Date.now() + 3.6e6).toISOString() }, 201, { 'Set-Cookie': `tidemill_session=${id}; Path=/; HttpOnly; SameSite=Strict` });
}

async function answerApi(world, req, res, url) {
  const path = url.pathname.slice('/api/v1'.length);
  if (path === '/auth/session' && req.method === 'POST') return session(world, req, res);
  const id = /tidemill_session=(\w+)/.exec(req.headers.cookie ?? '')?.[1];
  if (!world.sessions.has(id)) return problem(res, 401, 'Log in first');
  if (req.method !== 'GET' && req.headers['x-csrf'] !== `csrf-${id}`) return problem(res, 403, 'X-CSRF is missing or not the session’s');
  if (path === '/auth/session') return session(world, req, res);
  if (path === '/auth/self') return json(res, { principal: 'usr_1', name: 'ada', kind: 'session', admin: true, expires_at: new Date(Date.now() + 3.6e6).toISOString() });
  for (const [pattern, answer] of ROUTES) {
    const m = match(pattern, req.method, path);
    if (m) return answer(world, res, m, url.searchParams);
  }
  problem(res, 404, 'Not found', `The fake does not know ${path}`);
}

function answerFile(res, path) {
  const wanted = join(DIST, normalize(path));
  const isFile = wanted.startsWith(DIST) && statSync(wanted, { throwIfNoEntry: false })?.isFile();
  const file = isFile ? wanted : join(DIST, 'index.html');
  res.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream', 'Content-Security-Policy': CSP, 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'same-origin' });
  res.end(readFileSync(file));
}

export function serve(port) {
  const world = new World();
  const server = createServer((req, res) => {
    const url = new URL(req.url, 'http://fake');
    if (!url.pathname.startsWith('/api/')) return answerFile(res, url.pathname);
    answerApi(world, req, res, url).catch((e) => problem(res, 500, 'The fake has failed', String(e.stack)));
  });
  return new Promise((resolve) => {
    server.listen(port, '127.0.0.1', () =>
      resolve({
        base: `http://127.0.0.1:${server.address().port}`,
        close: () => {
          clearInterval(world.timer);
          server.closeAllConnections();
          server.close();
        },
      }),
    );
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { base } = await serve(Number(process.argv[2] ?? 8123));
  console.log(`${base}  token: ${TOKEN}`);
}
