// What the fake knows: the story of the example, with identities that are easy to name in tests.
import { createHash } from 'node:crypto';
import { heat } from './drift.mjs';

const hash = (s) => createHash('sha256').update(s).digest('hex');
const at = (minutes) => new Date(Date.UTC(2026, 10, 2, 9, 0, 0) + minutes * 60000).toISOString().replace('Z', '000Z');
const COMMIT = hash('commit').slice(0, 40);
const LEVELS = [1.31, 1.62];
const MAE = [
  1.22, 1.31, 1.27, 1.44, 1.38, 1.35, 1.52, 1.49, 1.58, 1.66, 1.71, 1.69, 1.82, 1.88, 1.79, 2.31, 3.24, 1.94, 1.83,
  2.02, 2.11, 1.98, 2.06, 2.14, 1.88, 1.92, 1.86, 1.97, 1.84, 1.95, 2.2, 2.31,
];
const RETRAINED = 16; // index of 2008 Q1

export const quarters = MAE.map((_, i) => {
  const q = (n) => `${2004 + Math.floor(n / 4)}-${String((n % 4) * 3 + 1).padStart(2, '0')}-01T00:00:00Z`;
  return { id: `win_${q(i).slice(0, 4)}q${(i % 4) + 1}`, start: q(i), end: q(i + 1) };
});
const drift = heat(quarters, ['2001-01-01', '2003-10-01']);
export const features = Object.keys(drift.values);
const drifted = (i) => features.filter((f) => drift.values[f][i] >= 0.2).length;

export const projects = [
  { id: 'prj_1', name: 'transit', description: 'Ridership at Clark/Lake', created_at: at(-2000), version: 1 },
  { id: 'prj_2', name: 'empty', description: '', created_at: at(-1000), version: 1 },
];

const level = (i) => LEVELS[i > RETRAINED ? 1 : 0];
const ratioText = (i) => `The error (mae) of window ${quarters[i].start.slice(0, 10)} to ${quarters[i].end.slice(0, 10)} was ${MAE[i]}, ${(MAE[i] / level(i)).toFixed(2)} times the champion's ${level(i)}; the limit is 1.5 times`;
const REASONS = {
  15: `${ratioText(15)}; hot in 1 of the last 3 windows: this is a warning; with 1 more, retraining is due.`,
  16: `${ratioText(16)}; hot in 2 of the last 3 windows: retraining is started.`,
};

/** A window with too few rows. */
const FEW = 28;
export const windows = quarters.map((q, i) => ({
  ...q, monitor_id: 'mon_1', state: 'closed', revision: i === 12 ? 2 : 1, rows: i === FEW ? 12 : drift.rows[i], labelled: i === FEW ? 12 : drift.rows[i],
  model_version: `ridership/${i > RETRAINED ? 2 : 1}`, severity: i === 16 ? 'alert' : i === 15 ? 'warn' : i === FEW ? 'insufficient' : 'ok',
  performance: MAE[i], level: level(i), drift_share: Number((drifted(i) / features.length).toFixed(3)),
  closed_at: at(i * 2), reason: REASONS[i] ?? `${ratioText(i)}: all is well.`,
}));
windows.push({
  id: 'win_2012q1', start: '2012-01-01T00:00:00Z', end: '2012-04-01T00:00:00Z', monitor_id: 'mon_1', state: 'open', revision: 0,
  rows: 41, labelled: 27, severity: 'none', performance: null, level: null, drift_share: null, closed_at: null,
});

const decision = (i, cause, action, fired, more = {}) => ({
  id: `dec_${quarters[i].id.slice(4)}_${cause}`, monitor_id: 'mon_1', monitor: 'ridership', window_id: quarters[i].id,
  window_start: quarters[i].start, window_end: quarters[i].end, revision: 1, cause, action, fired,
  reason: REASONS[i] ?? `${ratioText(i)}: all is well.`, outcome: {}, created_at: at(i * 2),
  inputs: {
    window: { start: quarters[i].start, end: quarters[i].end, rows: drift.rows[i], labelled: drift.rows[i] }, model_version: `ridership/${i > RETRAINED ? 2 : 1}`,
    verdict: MAE[i] > 1.5 * level(i) ? 'hot' : 'calm', score: Number((MAE[i] / level(i)).toFixed(3)), limit: 1.5, hot: fired ? 2 : 0, k: 2, n: 3, before: 'warn', after: 'alert',
    metric: 'mae', value: MAE[i], champion: level(i), min_samples: 60, cooldown: 0, refused: 0, open_retraining: false,
  },
  ...more,
});
const driftReason = (i) => {
  const worst = features.map((f) => [f, drift.values[f][i]]).sort((a, b) => b[1] - a[1]).slice(0, 3);
  return `${drifted(i)} of ${features.length} features drifted in window ${quarters[i].start.slice(0, 10)} to ${quarters[i].end.slice(0, 10)}, a weighted share of ${(drifted(i) / features.length).toFixed(2)}; the limit is 0.2; most of all ${worst.map(([f, v]) => `${f} ${v.toPrecision(3)} (limit 0.2)`).join(', ')}; hot in 2 of the last 3 windows: an alert is raised.`;
};
export const decisions = quarters.map((_, i) => {
  if (i === 16)
    return decision(i, 'performance', 'retrain', true, {
      run_id: 'run_2', run_state: 'succeeded', model_version: 'ridership/2', verdict: 'promoted',
      outcome: { before: 3.24, after: 1.989, windows: 15, metric: 'mae' },
    });
  if (i === 15) return decision(i, 'performance', 'warn', true);
  return decision(i, 'performance', 'record', false);
});
decisions.push(decision(1, 'drift', 'alert', true, { reason: driftReason(1) }));
decisions.push(
  decision(17, 'drift', 'alert', false, { suppressed_by: 'muted', reason: driftReason(17).replace('an alert is raised', 'an alert is due, but the monitor is muted until 2008-07-01') }),
);
decisions.sort((a, b) => (a.window_start < b.window_start ? 1 : -1));

export const monitor = {
  id: 'mon_1', name: 'ridership', model: 'ridership', alias: 'champion', champion: 'ridership/2', source: '', policy_state: {}, mutes: [], late_rows: 0,
  spec: {
    subject: { model: 'ridership', alias: 'champion' }, window: { size: '1q' }, tests: { numeric: 'psi', categorical: 'psi', warn: 0.1, alert: 0.2, alpha: 0.01 },
    performance: { metric: 'mae' }, policy: { performance: { action: 'retrain', max_ratio: 1.5, k: 2, n: 3 }, drift: { action: 'alert', share: 0.2, k: 2, n: 3 } },
  },
  created_at: at(-100), version: 34,
};

export const heatReply = (metric) => ({
  windows: quarters.map((q) => ({ id: q.id, start: q.start, end: q.end })),
  features: features.map((name) => ({
    name,
    threshold: 0.2,
    values: drift.values[name].map((v, i) => (name === 'temp' && i < 2 ? null : metric === 'psi' ? v : Number((v / 2 + 0.02).toFixed(4)))),
    drifted: drift.values[name].map((v) => v >= 0.2),
  })),
});

export const windowMetrics = (id) => {
  const i = quarters.findIndex((q) => q.id === id);
  if (i < 0) return [];
  return [
    { feature: '', baseline: 'training', metric: 'mae', status: 'ok', value: MAE[i], critical: null, p: null, threshold: level(i) * 1.5, drifted: false },
    ...features.flatMap((feature) => {
      const value = drift.values[feature][i];
      const one = (metric, v, baseline = 'training') => ({ feature, baseline, metric, status: 'ok', value: v, critical: 0.11, p: v > 0.2 ? 0.0004 : 0.31, threshold: 0.2, drifted: v >= 0.2 });
      return [one('psi', value), one('psi', value / 3, 'seasonal'), one('ks', Number((value / 2 + 0.02).toFixed(4)))];
    }),
  ];
};

const run = (n, more) => ({
  id: `run_${n}`, project: 'transit', pipeline: 'ridership', number: n, state: 'succeeded', labels: { team: 'transit' },
  inputs: { from: '2001-01-01', to: '2003-09-30', holdout_from: '2003-10-01', holdout_to: '2003-12-31', alpha: 1 },
  repository: 'https://git.example/transit/ridership.git', commit: COMMIT, trigger: 'api', experiment_id: 1, created_by: 'ada',
  datasets: [{ name: 'history', dataset: 'ridership', number: n, version_id: `dsv_${n}` }],
  created_at: at(n * 20 - 20), started_at: at(n * 20 - 19.9), ended_at: at(n * 20 - 19.1), version: 5, ...more,
});
export const blocked = { kind: 'gpus', message: 'needs 8 GPUs free on one worker of pool default', unsatisfiable: false, since: at(99) };
export const stepWait = (s) => ({
  step_id: s.id, run_id: s.run_id, name: s.name, pipeline: 'ridership-score', number: 32, state: s.state, unsatisfiable: false, as_of: at(100), queued_at: at(99), deadline: null,
  ...(s.state === 'queued'
    ? {
        pool: 'default', priority: 0, position: 2, of: 5, cpus: 1, memory: 1073741824, gpus: 8, earliest_start: at(104),
        blockers: [{ kind: 'gpus', message: 'needs 8 GPUs on one worker; the largest free block is 5, on gpu-01', unsatisfiable: false, unit: 'gpus', need: 8, free: 5, most: 8, worker: 'gpu-01', worker_id: 'wrk_1', workers: 2, steps: [], until: null }],
        start_now: { message: 'it would start at once on gpu-01, if it asked for 5 GPUs instead of 8', worker: 'gpu-01', worker_id: 'wrk_1', edits: [{ kind: 'gpus', from: 8, to: 5 }] },
      }
    : { earliest_start: null, blockers: s.state === 'waiting' ? [{ kind: 'needs', message: `waits for step ${s.needs.join(', ')} (running)`, unsatisfiable: false, workers: 0, steps: s.needs, until: null }] : [] }),
});
export const runs = [
  run(1, { model_version: 'ridership/1' }),
  run(2, {
    trigger: 'decision', trigger_key: 'dec_2008q1_performance', decision_id: 'dec_2008q1_performance', created_by: undefined, model_version: 'ridership/2',
    inputs: { from: '2005-01-01', to: '2007-12-31', holdout_from: '2008-01-01', holdout_to: '2008-03-31', alpha: 1 },
  }),
  run(3, { state: 'failed', reason: 'exit_code', message: 'train: the command ended with exit code 1. Last line: “--alpha must be 0 or more, got -1”', inputs: { alpha: -1 } }),
  run(4, { pipeline: 'ridership-score', number: 31, trigger: 'dataset', trigger_key: 'ridership/31', created_by: undefined }),
  run(5, { pipeline: 'ridership-score', number: 32, state: 'queued', trigger: 'dataset', trigger_key: 'ridership/32', created_by: undefined, started_at: null, ended_at: null, blocked: { ...blocked, step: 'score' } }),
  run(6, { number: 6, state: 'running', started_at: null, ended_at: null, inputs: { from: '2008-01-01', to: '2010-12-31', alpha: 0.3 } }),
  run(7, { number: 5, state: 'cancelled', reason: 'cancelled', message: 'Cancelled by ada' }),
];

export const log = (text) => text.map((t, i) => ({ line: i + 1, time: at(i / 60), stream: typeof t === 'string' ? 'stdout' : t[0], text: typeof t === 'string' ? t : t[1] }));

export const trainLine = (i) => {
  const n = 180 + i * 30;
  const seen = 0.9 + 0.6 * Math.exp(-i / 12) + 0.05 * Math.sin(i);
  const ahead = seen + 0.5 + 0.3 * Math.cos(i / 2);
  const mark = i % 9 === 4 ? `\u001b[33mMAE ${ahead.toFixed(3)}\u001b[0m` : `\u001b[32mMAE ${ahead.toFixed(3)}\u001b[0m`;
  return `${String(n).padStart(5)} days until 2001-07-${String((i % 28) + 1).padStart(2, '0')}: MAE ${seen.toFixed(3)} on them, ${mark} on the next 30`;
};
export const trainLog = (n) => log([
  ['system', 'checked out 3f9c2ab10d, staged ridership v2 (1.1 MiB, 2 files from the cache)'],
  'training on 1003 of 2737 days, 2001-01-01 to 2003-09-30, 48 features, alpha 1',
  ['stderr', '\u001b[1;33mwarning\u001b[0m: dropped 0 rows without a label, 3 with missing features'],
  ...Array.from({ length: n }, (_, i) => trainLine(i)),
]);

export const step = (runId, name, position, more) => ({
  id: `stp_${runId.slice(4)}_${name}`, run_id: runId, name, position, needs: [], state: 'succeeded', attempts: 1, nodes: 1, attempt_id: `att_${runId.slice(4)}_${name}`,
  tracking_run: hash(`${runId}${name}`).slice(0, 32), outputs: name === 'train' ? { model: { kind: 'model', files: 2, bytes: 8123 } } : { predictions: { kind: 'predictions', files: 1, bytes: 5120 } },
  spec: { run: ['python3', `${name}.py`, '--from', '2001-01-01'], image: 'tidemill/python-sklearn:1', runtimes: ['docker', 'process'], resources: { cpus: 1, memory: 1073741824 }, time_limit: '10m' },
  created_at: at(0), queued_at: at(0), started_at: at(0.1), ended_at: at(0.8), ...more,
});

export const attemptOf = (s, more = {}) => ({
  id: s.attempt_id, step_id: s.id, run_id: s.run_id, number: s.attempts, rank: 0, ranks: s.nodes > 1 ? s.nodes : 0, epoch: 1, worker_id: 'wrk_1', worker: 'gpu-01', runtime: 'docker', devices: ['GPU-1'],
  state: s.state, exit_code: s.state === 'succeeded' ? 0 : s.state === 'failed' ? 1 : null, signal: null, evidence: s.state === 'failed' ? { peak_memory: 88080384, user_us: 812000, system_us: 94000, stdout_bytes: 412, stderr_bytes: 96, image_id: `sha256:${hash('image')}`, log_tail: ['training on 1003 of 2737 days, 2001-01-01 to 2003-09-30, 48 features, alpha -1', '--alpha must be 0 or more, got -1'] } : null,
  created_at: s.created_at, started_at: s.started_at, ended_at: s.ended_at, log_bytes: 4096, log_lines: 31, log_complete: s.ended_at !== null, message: s.message, reason: s.reason, ...more,
});

/** The attempts of a step on two workers: the first lost one, the second failed on rank 1. */
export const gangOf = (s) => {
  const stopped = { state: 'cancelled', exit_code: null, signal: 15, reason: 'gang_stopped', message: 'It was stopped because another rank ended', evidence: null };
  const lost = { state: 'lost', exit_code: null, reason: 'worker_lost', message: 'The worker was not heard of for too long', evidence: { last_heard: s.started_at } };
  const second = { worker_id: 'wrk_2', worker: 'gpu-02', rank: 1 };
  return [
    attemptOf(s, { id: 'att_first', number: 1, ...lost }),
    attemptOf(s, { id: 'att_first_1', number: 1, ...second, ...stopped }),
    attemptOf(s, stopped),
    attemptOf(s, { id: `${s.attempt_id}_1`, ...second, message: 'the command ended with exit code 1' }),
  ];
};

export const points = (n, f) => Array.from({ length: n }, (_, i) => {
  const v = Number(f(i).toFixed(4));
  return { step: 180 + i * 30, time: Date.UTC(2026, 10, 2, 9, 0, i), count: 1, last: v, min: v, max: v };
});
export const series = (n) => [
  { key: 'train_mae', total: n, points: points(n, (i) => 0.9 + 0.6 * Math.exp(-i / 12) + 0.05 * Math.sin(i)) },
  { key: 'valid_mae', total: n, points: points(n, (i) => 1.4 + 0.6 * Math.exp(-i / 12) + 0.3 * Math.cos(i / 2)) },
  ...(n > 25 ? [{ key: 'final_train_mae', total: 1, points: points(1, () => 1.043) }] : []),
];
export const tracking = (id, n) => ({
  run_id: id, experiment_id: '1', name: 'train', status: 'RUNNING', lifecycle: 'active', artifact_uri: '', start_time: Date.UTC(2026, 10, 2), params: [
    { key: 'alpha', value: '1' }, { key: 'from', value: '2001-01-01' }, { key: 'to', value: '2003-09-30' }, { key: 'rows', value: '1003' }, { key: 'features', value: '48' }, { key: 'estimator', value: 'Ridge' },
  ], tags: [], metrics: series(n).map((s) => ({ key: s.key, value: s.points.at(-1)?.last ?? 0, time: 0, step: s.points.at(-1)?.step ?? 0 })),
});
export const artifacts = [
  { path: 'coefficients.csv', is_dir: false, size: 2801, digest: hash('c') },
  { path: 'model-card.md', is_dir: false, size: 912, digest: hash('m') },
  { path: 'plots', is_dir: true, size: 40960 },
];

export const dataset = { id: 'dts_1', name: 'ridership', description: 'Daily entries at Clark/Lake with lagged counts of 20 stations, weather and games.', latest: 32, created_at: at(-60), version: 33 };
export const datasetVersions = Array.from({ length: 32 }, (_, i) => ({
  id: `dsv_${i + 1}`, dataset: 'ridership', number: i + 1, digest: hash(`v${i}`), files: i + 1, bytes: 385000 + i * 31200,
  description: i === 0 ? 'January 2001 to December 2003' : `${quarters[i - 1].start.slice(0, 4)} Q${((i - 1) % 4) + 1}`, parent_id: i > 0 ? `dsv_${i}` : undefined, created_at: at(i * 3 - 50),
})).reverse();
export const files = [
  { path: 'chicago.csv', digest: hash('f1'), size: 385000, media_type: 'text/csv' },
  { path: 'append/2004q1.csv', digest: hash('f2'), size: 31200, media_type: 'text/csv' },
];

const gate = (items) => ({ metric: 'mae', rows: 91, items });
const item = (kind, name, verdict, sentence, more = {}) => ({ kind, name, verdict, sentence, rows: 91, ...more });
export const model = { id: 'mdl_1', name: 'ridership', description: 'Entries at Clark/Lake, in thousands a day', latest: 3, aliases: { champion: 2 }, created_at: at(1), version: 4 };
const version = (number, more) => ({
  id: `mdv_${number}`, model: 'ridership', number, description: '', labels: {}, aliases: [], run_id: `run_${number}`, step_id: `stp_${number}_train`, tracking_run: hash(`run_${number}train`).slice(0, 32),
  repository: runs[0].repository, commit: COMMIT, training_data: { dataset: 'ridership', dataset_version: number, column: 'date', from: '2001-01-01', to: '2003-09-30' },
  datasets: [{ name: 'history', dataset: 'ridership', number }], metrics: { final_train_mae: 1.043, rows: 1003 }, metric: 'mae', created_at: at(number * 20), ...more,
});
export const modelVersions = [
  version(3, {
    verdict: 'refused', level: 1.93, verdict_reason: 'Refused: on 91 rows its mae of 1.93 is not better than the champion’s 1.88, and weekend=1 is worse by 31 %.',
    gate: gate([item('require', 'mae max', 'pass', 'mae 1.93 is at most 5', { value: 1.93, limit: 5 }), item('better', 'mae', 'fail', 'mae 1.93 against the champion’s 1.88', { value: 1.93, limit: 1.88 }), item('slice', 'weekend=1', 'fail', 'worse by 31 %, more than 20 %', { value: 0.31, limit: 0.2, rows: 26 })]),
    training_data: { dataset: 'ridership', dataset_version: 26, column: 'date', from: '2008-01-01', to: '2010-12-31' },
  }),
  version(2, {
    aliases: ['champion'], verdict: 'promoted', level: 1.62, verdict_reason: 'Promoted: on 91 rows its mae of 1.62 is better than the champion’s 3.24, and every other rule holds.',
    gate: gate([
      item('rows', 'rows', 'pass', '91 rows were scored by both, at least 80 are needed', { value: 91, limit: 80 }),
      item('require', 'mae max', 'pass', 'mae 1.62 is at most 5', { value: 1.62, limit: 5 }),
      item('better', 'mae', 'pass', 'mae 1.62 against the champion’s 3.24', { value: 1.62, limit: 3.24 }),
      item('test', 'paired bootstrap', 'pass', 'the improvement is 1.62, with 95 % confidence between 1.21 and 2.05, above −0.065', { value: 1.62, low: 1.21, high: 2.05, limit: -0.065 }),
      item('slice', 'weekend=0', 'pass', 'better by 54 %', { value: -0.54, limit: 0.2, rows: 65 }),
      item('slice', 'weekend=1', 'pass', 'better by 38 %', { value: -0.38, limit: 0.2, rows: 26 }),
    ]),
    training_data: { dataset: 'ridership', dataset_version: 17, column: 'date', from: '2005-01-01', to: '2007-12-31' },
  }),
  version(1, {
    verdict: 'promoted', level: 1.31, verdict_reason: 'Promoted: there is no champion yet, and every requirement holds.',
    gate: gate([item('require', 'mae max', 'pass', 'mae 1.31 is at most 5', { value: 1.31, limit: 5 }), item('better', 'mae', 'skipped', 'there is no champion to compare with')]),
  }),
];
export const aliasHistory = [
  { id: 2, alias: 'champion', number: 2, previous: 1, cause: 'gate', note: 'Better on 2008 Q1 (mae 1.62 against 3.24)', at: at(41) },
  { id: 1, alias: 'champion', number: 1, previous: null, cause: 'gate', note: 'The first version', actor: 'ada', at: at(1) },
];

export const workers = [
  { id: 'wrk_1', name: 'gpu-01', pool: 'default', labels: { site: 'onprem' }, state: 'active', online: true, release: '0.1.0', boot_id: 'b1', runtimes: ['docker', 'process'], cpus: 64, memory: 540e9, disk_free: 3.1e12, devices: Array.from({ length: 8 }, (_, i) => ({ uuid: `GPU-${i}`, model: 'NVIDIA H200', memory: 150754820096, health: i === 5 ? 'XID 79' : '' })), warnings: [], running: 2, seen_at: at(0), created_at: at(-900), version: 3 },
  { id: 'wrk_2', name: 'cpu-02', pool: 'default', labels: {}, state: 'draining', online: true, release: '0.1.0', boot_id: 'b2', runtimes: ['process'], cpus: 8, memory: 34359738368, disk_free: 2.2e11, devices: [], warnings: ['live-restore is off: containers end when dockerd restarts'], running: 0, seen_at: at(0), created_at: at(-900), version: 3 },
  { id: 'wrk_3', name: 'cpu-03', pool: 'batch', labels: {}, state: 'active', online: false, release: '0.1.0', boot_id: 'b3', runtimes: ['docker'], cpus: 16, memory: 68719476736, disk_free: 9e11, devices: [], warnings: [], running: 0, seen_at: at(-200), created_at: at(-900), version: 3 },
];
