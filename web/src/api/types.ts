// The messages of /api/v1. Most are made from the contract (schema.ts); here is what an OpenAPI document does not hold:
// streams, problems, and JSON that passes through as it was written.
import type { Run, Series } from './schema';

export type {
  AliasChange, Artifact, Attempt, Dataset, DatasetVersion, Decision, DriftValue, FileEntry, Model, ModelVersion, Monitor,
  Pipeline, Project, Run, Self, Series, Session, Step, StepWait, TrackingRun, Window, Worker,
} from './schema';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };
/** RFC 3339 in UTC. */
export type Time = string;
/** JSON has no NaN and no infinity: the API spells them. */
export type Real = Series['points'][number]['last'];

export interface Page<T> {
  items: T[];
  next_cursor?: string;
}

export interface Problem {
  title: string;
  status: number;
  detail?: string;
  code?: string;
  errors?: { pointer: string; detail: string }[];
}

export type RunState = Run['state'];
/** In the order in which a run goes through them. */
export const RUN_STATES: readonly RunState[] = ['queued', 'running', 'finishing', 'succeeded', 'failed', 'cancelled'];

export interface LogLine {
  line: number;
  time: Time;
  stream: 'stdout' | 'stderr' | 'system';
  text: string;
}

/** A part of a log; the same lines come as the `lines` events of a stream that follows it. */
export interface LogPage {
  lines: LogLine[];
  first: number;
  last: number;
  total: number;
  /** Nothing more will come. */
  complete: boolean;
  /** Bytes that could not be kept. */
  dropped: number;
}

/** What the project's stream of events sends, under the event's type as its name. */
export interface ServerEvent {
  id: number;
  at: Time;
  type: string;
  subject: string;
  parent?: string;
}

/** An entry of a worker's `devices`. */
export interface Device {
  uuid: string;
  model: string;
  memory: number;
  health?: string;
  mig?: string;
  numa?: number;
  links?: string[];
}
