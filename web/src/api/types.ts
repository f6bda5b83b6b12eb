// The messages of /api/v1 as the dashboard reads them: the field tables of api/*.c in TypeScript. Members that the
// server leaves out when they are empty are optional; JSON that passes through as it was written is `Json`.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };
/** RFC 3339 in UTC. */
export type Time = string;
/** JSON has no NaN and no infinity: the API spells them. */
export type Real = number | 'NaN' | 'Infinity' | '-Infinity';

export interface Page<T> {
  items: T[];
  next_cursor?: string;
}

export interface Problem {
  type?: string;
  title: string;
  status: number;
  detail?: string;
  code?: string;
  instance?: string;
  errors?: { pointer: string; detail: string }[];
}

export interface Self {
  principal: string;
  name: string;
  kind: string;
  project?: string;
  admin: boolean;
  expires_at: Time;
}

export interface Session {
  csrf: string;
  expires_at: Time;
}

export interface Project {
  id: string;
  name: string;
  description: string;
  created_at: Time;
  version: number;
}

export interface Dataset {
  id: string;
  name: string;
  description: string;
  labels?: Record<string, string>;
  latest: number;
  created_at: Time;
  version: number;
}

export interface DatasetVersion {
  id: string;
  dataset: string;
  number: number;
  digest: string;
  files: number;
  bytes: number;
  description: string;
  labels?: Record<string, string>;
  parent_id?: string;
  run_id?: string;
  created_at: Time;
}

export interface FileEntry {
  path: string;
  digest: string;
  size: number;
  media_type?: string;
}

export interface Pipeline {
  id: string;
  name: string;
  repository: string;
  ref: string;
  path: string;
  commit: string;
  paused: boolean;
  created_at: Time;
}

export const RUN_STATES = ['queued', 'running', 'finishing', 'succeeded', 'failed', 'cancelled'] as const;
export type RunState = (typeof RUN_STATES)[number];
export type StepState = RunState | 'waiting' | 'assigned' | 'skipped';
export type AttemptState = 'assigned' | 'preparing' | 'running' | 'finishing' | 'succeeded' | 'failed' | 'cancelled' | 'lost';

export interface RunDataset {
  name: string;
  dataset: string;
  number: number;
  version_id: string;
}

export interface Run {
  id: string;
  project: string;
  pipeline: string;
  number: number;
  state: RunState;
  reason?: string;
  message?: string;
  inputs: JsonObject;
  labels: JsonObject;
  repository?: string;
  commit?: string;
  trigger: string;
  trigger_key?: string;
  decision_id?: string;
  datasets: RunDataset[];
  model_version?: string;
  created_at: Time;
  created_by?: string;
  started_at: Time | null;
  ended_at: Time | null;
  version: number;
}

export interface Step {
  id: string;
  run_id: string;
  name: string;
  position: number;
  needs: string[];
  state: StepState;
  reason?: string;
  message?: string;
  attempts: number;
  attempt_id?: string;
  tracking_run?: string;
  outputs: JsonObject;
  spec: JsonObject;
  created_at: Time;
  queued_at: Time | null;
  started_at: Time | null;
  ended_at: Time | null;
}

export interface Attempt {
  id: string;
  step_id: string;
  run_id: string;
  number: number;
  epoch: number;
  worker_id: string;
  worker: string;
  runtime?: string;
  devices: string[];
  state: AttemptState;
  reason?: string;
  message?: string;
  exit_code: number | null;
  signal: number | null;
  evidence: Json;
  created_at: Time;
  started_at: Time | null;
  ended_at: Time | null;
  log_bytes: number;
  log_lines: number;
  log_complete: boolean;
}

export interface LogLine {
  line: number;
  time: Time;
  stream: 'stdout' | 'stderr' | 'system';
  text: string;
}

export interface LogPage {
  lines: LogLine[];
  first: number;
  last: number;
  total: number;
  complete: boolean;
  dropped: number;
}

export interface KeyValue {
  key: string;
  value: string;
}

export interface MetricPoint {
  key: string;
  value: Real;
  time: number;
  step: number;
}

export interface TrackingRun {
  run_id: string;
  experiment_id: string;
  name: string;
  status: string;
  step_id?: string;
  start_time: number;
  end_time?: number;
  params: KeyValue[];
  tags: KeyValue[];
  metrics: MetricPoint[];
}

export interface SeriesPoint {
  step: number;
  time: number;
  count: number;
  last: Real;
  min: Real;
  max: Real;
}

export interface Series {
  key: string;
  points: SeriesPoint[];
  total: number;
}

export interface Artifact {
  path: string;
  is_dir: boolean;
  size: number;
  digest?: string;
}

export interface Model {
  id: string;
  name: string;
  description: string;
  latest: number;
  aliases: Record<string, number>;
  created_at: Time;
  version: number;
}

export interface ModelVersion {
  id: string;
  model: string;
  number: number;
  description: string;
  labels: JsonObject;
  aliases: string[];
  run_id?: string;
  step_id?: string;
  tracking_run?: string;
  repository?: string;
  commit?: string;
  image_digest?: string;
  training_data: Json;
  datasets: Json;
  metrics: Json;
  gate: Json;
  verdict: 'none' | 'promoted' | 'refused' | 'needs_approval';
  verdict_reason: string;
  metric?: string;
  level: number | null;
  created_at: Time;
}

export interface AliasChange {
  id: number;
  alias: string;
  number: number | null;
  previous: number | null;
  cause: string;
  note: string;
  actor?: string;
  at: Time;
}

export interface Monitor {
  id: string;
  name: string;
  model: string;
  alias: string;
  champion?: string;
  spec: Json;
  source: string;
  policy_state: Json;
  mutes: Json;
  created_at: Time;
  version: number;
}

export interface Window {
  id: string;
  monitor_id: string;
  start: Time;
  end: Time;
  state: string;
  revision: number;
  rows: number;
  labelled: number;
  model_version?: string;
  severity: string;
  performance: number | null;
  level: number | null;
  drift_share: number | null;
  closed_at: Time | null;
  reason?: string;
}

export interface DriftValue {
  feature: string;
  baseline: string;
  metric: string;
  status: string;
  value: Real | null;
  critical: Real | null;
  p: number | null;
  threshold: number | null;
  drifted: boolean;
}

export interface Decision {
  id: string;
  monitor_id: string;
  monitor: string;
  window_id: string;
  window_start: Time;
  window_end: Time;
  revision: number;
  cause: string;
  action: string;
  fired: boolean;
  suppressed_by?: string;
  reason: string;
  inputs: Json;
  run_id?: string;
  run_state?: string;
  model_version?: string;
  verdict?: string;
  outcome: Json;
  supersedes?: string;
  created_at: Time;
}

export interface Device {
  uuid: string;
  model: string;
  memory: number;
  health?: string;
  mig?: string;
}

export interface Worker {
  id: string;
  name: string;
  pool: string;
  labels: JsonObject;
  state: 'active' | 'draining' | 'disabled';
  online: boolean;
  release: string;
  boot_id: string;
  runtimes: string[];
  cpus: number;
  memory: number;
  disk_free: number;
  devices: Device[];
  warnings: string[];
  running: number;
  seen_at: Time | null;
  created_at: Time;
  version: number;
}

export interface ServerEvent {
  id: number;
  at: Time;
  project?: string;
  type: string;
  subject: string;
  parent?: string;
  actor?: string;
  data: Json;
}
