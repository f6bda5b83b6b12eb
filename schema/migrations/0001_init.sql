-- The truth of Tidemill. Conventions:
--   * ids are prefixed ULIDs in ctext (text that sorts by bytes); hot history uses bigint surrogates;
--   * every mutable object has `version`, which is its ETag and the key of compare-and-set;
--   * a state change and its event row are one transaction;
--   * partitioned tables carry `made`, the first day of the month or week in which their parent was
--     made, so that all rows of one parent share one partition and retention drops partitions.

CREATE DOMAIN ctext AS text COLLATE "C";

-- ---- who ------------------------------------------------------------------------------------------

CREATE TABLE principal (
	id          ctext PRIMARY KEY,                 -- usr_…
	name        ctext NOT NULL UNIQUE,
	admin       boolean NOT NULL DEFAULT false,
	created_at  timestamptz NOT NULL DEFAULT now(),
	disabled_at timestamptz
);

CREATE TABLE project (
	id          ctext PRIMARY KEY,                 -- prj_…
	name        ctext NOT NULL UNIQUE,
	description text NOT NULL DEFAULT '',
	retention   jsonb NOT NULL DEFAULT '{}',       -- {"runs": "1y", "logs": "90d", …}; absent = kept
	created_at  timestamptz NOT NULL DEFAULT now(),
	created_by  ctext REFERENCES principal,
	version     bigint NOT NULL DEFAULT 1
);

CREATE TABLE member (
	project_id   ctext NOT NULL REFERENCES project ON DELETE CASCADE,
	principal_id ctext NOT NULL REFERENCES principal ON DELETE CASCADE,
	role         text NOT NULL CHECK (role IN ('viewer', 'ci', 'operator', 'owner')),
	PRIMARY KEY (project_id, principal_id)
);

-- What a principal may do in a project: the member's role; an administrator is an owner everywhere.
CREATE FUNCTION project_role(principal text, project text) RETURNS text LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN p.admin THEN 'owner' ELSE m.role END FROM principal p
	LEFT JOIN member m ON m.principal_id = p.id AND m.project_id = project
	WHERE p.id = principal
$$;

-- One row per credential. The secret is never stored, only its HMAC under the server's pepper.
CREATE TABLE token (
	id           ctext PRIMARY KEY,                -- the public 12 characters
	kind         text NOT NULL CHECK (kind IN ('pat', 'ci', 'wk', 'jb', 'bs', 'jn')),
	mac          bytea NOT NULL,
	name         text NOT NULL DEFAULT '',
	principal_id ctext REFERENCES principal ON DELETE CASCADE,
	project_id   ctext REFERENCES project ON DELETE CASCADE,  -- limits the token to one project
	role         text CHECK (role IN ('viewer', 'ci', 'operator', 'owner')), -- limits it to a role
	worker_id    ctext,
	attempt_id   ctext,
	epoch        bigint,
	data         jsonb NOT NULL DEFAULT '{}',      -- join tokens: pool and labels
	created_at   timestamptz NOT NULL DEFAULT now(),
	created_by   ctext,
	expires_at   timestamptz NOT NULL,
	last_used_at timestamptz,
	last_used_ip text,
	used_at      timestamptz,                      -- of one-use tokens
	revoked_at   timestamptz
);
CREATE INDEX token_principal ON token (principal_id) WHERE principal_id IS NOT NULL;
CREATE INDEX token_attempt ON token (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX token_worker ON token (worker_id) WHERE worker_id IS NOT NULL;

CREATE TABLE session (                                 -- of the dashboard
	mac          bytea PRIMARY KEY,                -- HMAC of the cookie
	token_id     ctext NOT NULL REFERENCES token ON DELETE CASCADE,
	created_at   timestamptz NOT NULL DEFAULT now(),
	last_seen_at timestamptz NOT NULL DEFAULT now(),
	expires_at   timestamptz NOT NULL
);

-- Written in the transaction of the effect: a second request with the key finds what the first made.
CREATE TABLE idempotency (
	principal_id ctext NOT NULL,                   -- or the worker's id
	key          ctext NOT NULL,
	request_hash bytea NOT NULL,
	object_id    ctext NOT NULL,
	created_at   timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (principal_id, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

-- ---- the outbox --------------------------------------------------------------------------------------

-- xid lets readers skip rows of transactions that are still open, so that nothing is passed over.
CREATE TABLE event (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at         timestamptz NOT NULL DEFAULT now(),
	xid        xid8 NOT NULL DEFAULT pg_current_xact_id(),
	project_id ctext,
	type       text NOT NULL,                      -- "run.succeeded"
	subject    ctext NOT NULL,                     -- the id of the object
	parent     ctext,                              -- e.g. the run of a step
	actor      ctext,
	data       jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX event_subject ON event (subject, id);
CREATE INDEX event_parent ON event (parent, id) WHERE parent IS NOT NULL;
CREATE INDEX event_order ON event (xid, id);
CREATE INDEX event_project ON event (project_id, xid, id);

CREATE TABLE leader (
	role       text PRIMARY KEY,
	holder     ctext NOT NULL,
	epoch      bigint NOT NULL,
	expires_at timestamptz NOT NULL
);

-- ---- bytes -------------------------------------------------------------------------------------------

CREATE TABLE blob (
	digest     bytea PRIMARY KEY,                  -- sha256
	size       bigint NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	touched_at timestamptz NOT NULL DEFAULT now()  -- last upload or new reference: the grace of the collector
);
-- Which projects have sent the bytes: only they may refer to them, so that a digest alone opens nothing.
CREATE TABLE blob_project (
	project_id ctext NOT NULL REFERENCES project ON DELETE CASCADE,
	digest     bytea NOT NULL REFERENCES blob ON DELETE CASCADE,
	PRIMARY KEY (project_id, digest)
);
CREATE INDEX blob_project_digest ON blob_project (digest);

-- ---- data sets -----------------------------------------------------------------------------------------

CREATE TABLE dataset (
	id          ctext PRIMARY KEY,                 -- ds_…
	project_id  ctext NOT NULL REFERENCES project ON DELETE CASCADE,
	name        ctext NOT NULL,
	description text NOT NULL DEFAULT '',
	labels      jsonb NOT NULL DEFAULT '{}',
	created_at  timestamptz NOT NULL DEFAULT now(),
	created_by  ctext,
	versions    bigint NOT NULL DEFAULT 0,         -- the last number given
	version     bigint NOT NULL DEFAULT 1,
	UNIQUE (project_id, name)
);

CREATE TABLE dataset_version (
	id           ctext PRIMARY KEY,                -- dsv_…
	dataset_id   ctext NOT NULL REFERENCES dataset ON DELETE CASCADE,
	number       bigint NOT NULL,
	digest       bytea NOT NULL,                   -- sha256 of the canonical manifest
	files        bigint NOT NULL,
	bytes        bigint NOT NULL,
	description  text NOT NULL DEFAULT '',
	labels       jsonb NOT NULL DEFAULT '{}',
	parent_id    ctext REFERENCES dataset_version ON DELETE SET NULL,
	run_id       ctext,                            -- the run that produced it
	created_at   timestamptz NOT NULL DEFAULT now(),
	created_by   ctext,
	UNIQUE (dataset_id, number)
);
CREATE UNIQUE INDEX dataset_version_digest ON dataset_version (dataset_id, digest);

CREATE TABLE dataset_file (
	version_id ctext NOT NULL REFERENCES dataset_version ON DELETE CASCADE,
	path       ctext NOT NULL,
	size       bigint NOT NULL,
	digest     bytea NOT NULL REFERENCES blob,
	media_type text NOT NULL DEFAULT 'application/octet-stream',
	added      boolean NOT NULL DEFAULT true,      -- not in the parent version
	PRIMARY KEY (version_id, path)
);
CREATE INDEX dataset_file_digest ON dataset_file (digest);

-- ---- pipelines and runs ----------------------------------------------------------------------------------

CREATE TABLE pipeline (
	id          ctext PRIMARY KEY,                 -- pl_…
	project_id  ctext NOT NULL REFERENCES project ON DELETE CASCADE,
	name        ctext NOT NULL,
	repository  text NOT NULL DEFAULT '',          -- '' when the spec came without one
	ref         text NOT NULL DEFAULT '',
	path        text NOT NULL DEFAULT '',
	commit      text NOT NULL DEFAULT '',          -- at which spec was read
	spec        jsonb NOT NULL,
	source      text NOT NULL,                     -- the YAML as written
	paused      boolean NOT NULL DEFAULT false,
	runs        bigint NOT NULL DEFAULT 0,         -- the last run number given
	created_at  timestamptz NOT NULL DEFAULT now(),
	created_by  ctext,
	version     bigint NOT NULL DEFAULT 1,
	UNIQUE (project_id, name)
);
-- "a new version of data set D starts pipelines": the triggers of the current spec, flat.
CREATE TABLE pipeline_trigger (
	pipeline_id ctext NOT NULL REFERENCES pipeline ON DELETE CASCADE,
	position    int NOT NULL,
	kind        text NOT NULL CHECK (kind IN ('push', 'schedule', 'dataset', 'pipeline')),
	subject     ctext NOT NULL,                    -- data set or pipeline name, '' otherwise
	spec        jsonb NOT NULL,
	PRIMARY KEY (pipeline_id, position)
);
CREATE INDEX pipeline_trigger_subject ON pipeline_trigger (kind, subject);

CREATE TABLE run (
	id            ctext PRIMARY KEY,               -- run_…
	project_id    ctext NOT NULL REFERENCES project ON DELETE CASCADE,
	pipeline_id   ctext REFERENCES pipeline ON DELETE SET NULL,
	pipeline      ctext NOT NULL,                  -- its name
	number        bigint NOT NULL,
	state         text NOT NULL DEFAULT 'queued'
		CHECK (state IN ('queued', 'running', 'finishing', 'succeeded', 'failed', 'cancelled')),
	reason        text NOT NULL DEFAULT '',        -- of the table of terminal reasons
	message       text NOT NULL DEFAULT '',
	spec          jsonb NOT NULL,                  -- effective, substituted
	inputs        jsonb NOT NULL DEFAULT '{}',
	models        jsonb NOT NULL DEFAULT '{}',     -- name in the pipeline -> model version id, pinned
	labels        jsonb NOT NULL DEFAULT '{}',
	repository    text NOT NULL DEFAULT '',
	commit        text NOT NULL DEFAULT '',
	trigger       text NOT NULL CHECK (trigger IN ('api', 'push', 'schedule', 'dataset', 'pipeline', 'decision')),
	trigger_key   ctext,                           -- what fired it, once
	decision_id   ctext,
	experiment_id bigint,
	concurrency_group  ctext,
	concurrency_policy text CHECK (concurrency_policy IN ('queue', 'cancel_running', 'refuse')),
	cancel_requested_at timestamptz,
	created_at    timestamptz NOT NULL DEFAULT now(),
	started_at    timestamptz,
	ended_at      timestamptz,
	created_by    ctext,
	version       bigint NOT NULL DEFAULT 1
);
CREATE INDEX run_project ON run (project_id, created_at DESC, id DESC);
CREATE INDEX run_pipeline ON run (pipeline_id, created_at DESC);
CREATE INDEX run_open ON run (state, created_at) WHERE state IN ('queued', 'running', 'finishing');
CREATE INDEX run_group ON run (project_id, concurrency_group, created_at)
	WHERE concurrency_group IS NOT NULL AND state IN ('queued', 'running', 'finishing');
CREATE UNIQUE INDEX run_trigger ON run (pipeline_id, trigger, trigger_key) WHERE trigger_key IS NOT NULL;

-- What a run reads, pinned when it is made.
CREATE TABLE run_dataset (
	run_id     ctext NOT NULL REFERENCES run ON DELETE CASCADE,
	name       ctext NOT NULL,
	version_id ctext NOT NULL REFERENCES dataset_version,
	PRIMARY KEY (run_id, name)
);
CREATE INDEX run_dataset_version ON run_dataset (version_id);

CREATE TABLE step (
	id          ctext PRIMARY KEY,                 -- st_…
	run_id      ctext NOT NULL REFERENCES run ON DELETE CASCADE,
	project_id  ctext NOT NULL,
	name        ctext NOT NULL,
	position    int NOT NULL,
	needs       text[] NOT NULL DEFAULT '{}',
	spec        jsonb NOT NULL,
	state       text NOT NULL DEFAULT 'waiting'
		CHECK (state IN ('waiting', 'queued', 'assigned', 'running', 'finishing', 'succeeded', 'failed', 'cancelled', 'skipped')),
	reason      text NOT NULL DEFAULT '',
	message     text NOT NULL DEFAULT '',
	attempts    int NOT NULL DEFAULT 0,
	user_failures  int NOT NULL DEFAULT 0,
	infra_failures int NOT NULL DEFAULT 0,
	tracking_run ctext,                            -- MLflow run id, shared by its attempts
	outputs     jsonb NOT NULL DEFAULT '{}',
	created_at  timestamptz NOT NULL DEFAULT now(),
	queued_at   timestamptz,
	started_at  timestamptz,
	ended_at    timestamptz,
	version     bigint NOT NULL DEFAULT 1,
	UNIQUE (run_id, name)
);
CREATE INDEX step_open ON step (state) WHERE state IN ('queued', 'assigned', 'running', 'finishing');

-- Steps that want a worker: narrow, apart from history, mirrored by the leader in memory.
CREATE TABLE queue (
	step_id    ctext PRIMARY KEY REFERENCES step ON DELETE CASCADE,
	run_id     ctext NOT NULL,
	project_id ctext NOT NULL,
	priority   int NOT NULL DEFAULT 0,
	cpus       float8 NOT NULL,
	memory     bigint NOT NULL,
	gpus       int NOT NULL,
	pool       ctext NOT NULL,
	request    jsonb NOT NULL,                     -- runtimes, GPUs, labels to require and avoid
	disk       bigint NOT NULL DEFAULT 0,
	queued_at  timestamptz NOT NULL DEFAULT now(),
	not_before timestamptz,
	deadline   timestamptz                         -- timeouts.queue
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

CREATE SEQUENCE attempt_epoch;

CREATE TABLE attempt (
	id          ctext PRIMARY KEY,                 -- at_…
	step_id     ctext NOT NULL REFERENCES step ON DELETE CASCADE,
	run_id      ctext NOT NULL,
	project_id  ctext NOT NULL,
	number      int NOT NULL,
	epoch       bigint NOT NULL,                   -- fences every durable effect of the attempt
	worker_id   ctext NOT NULL,
	runtime     text NOT NULL DEFAULT '',
	devices     text[] NOT NULL DEFAULT '{}',
	cpus        float8 NOT NULL DEFAULT 0,
	memory      bigint NOT NULL DEFAULT 0,
	state       text NOT NULL DEFAULT 'assigned'
		CHECK (state IN ('assigned', 'preparing', 'running', 'finishing', 'succeeded', 'failed', 'cancelled', 'lost')),
	reason      text NOT NULL DEFAULT '',
	message     text NOT NULL DEFAULT '',
	exit_code   int,
	signal      int,
	evidence    jsonb NOT NULL DEFAULT '{}',
	lost_after  bigint NOT NULL,                   -- microseconds of silence before the server gives it up
	delivered   boolean NOT NULL DEFAULT false,    -- its worker has been told
	cancel_requested_at timestamptz,
	created_at  timestamptz NOT NULL DEFAULT now(),
	started_at  timestamptz,
	ended_at    timestamptz,
	UNIQUE (step_id, number)
) WITH (fillfactor = 80);
CREATE INDEX attempt_worker ON attempt (worker_id) WHERE state IN ('assigned', 'preparing', 'running', 'finishing');
CREATE INDEX attempt_run ON attempt (run_id);

-- Files a step has put out: what later steps, models and monitors read.
CREATE TABLE step_output (
	step_id    ctext NOT NULL REFERENCES step ON DELETE CASCADE,
	name       ctext NOT NULL,
	path       ctext NOT NULL,                     -- relative to the output
	size       bigint NOT NULL,
	digest     bytea NOT NULL REFERENCES blob,
	PRIMARY KEY (step_id, name, path)
);
CREATE INDEX step_output_digest ON step_output (digest);

-- ---- workers -----------------------------------------------------------------------------------------------

CREATE TABLE worker (
	id          ctext PRIMARY KEY,                 -- wk_…
	name        ctext NOT NULL UNIQUE,
	pool        ctext NOT NULL,
	labels      jsonb NOT NULL DEFAULT '{}',
	state       text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'draining', 'disabled')),
	boot_id     text NOT NULL DEFAULT '',
	release     text NOT NULL DEFAULT '',
	runtimes    text[] NOT NULL DEFAULT '{}',
	cpus        float8 NOT NULL DEFAULT 0,
	memory      bigint NOT NULL DEFAULT 0,
	disk_free   bigint NOT NULL DEFAULT 0,
	devices     jsonb NOT NULL DEFAULT '[]',
	warnings    jsonb NOT NULL DEFAULT '[]',
	created_at  timestamptz NOT NULL DEFAULT now(),
	version     bigint NOT NULL DEFAULT 1
);
-- Kept in memory by the servers and flushed in batches; no index, so that updates stay in place.
CREATE TABLE worker_seen (
	worker_id ctext PRIMARY KEY REFERENCES worker ON DELETE CASCADE,
	seen_at   timestamptz NOT NULL
) WITH (fillfactor = 50);

-- ---- logs ------------------------------------------------------------------------------------------------------

CREATE TABLE log (
	attempt_id  ctext PRIMARY KEY REFERENCES attempt ON DELETE CASCADE,
	made        date NOT NULL,                     -- Monday of the week of its first chunk
	length      bigint NOT NULL DEFAULT 0,         -- bytes of the spool that are stored
	lines       bigint NOT NULL DEFAULT 0,         -- that have started
	open        bigint[] NOT NULL DEFAULT '{0,0,0}', -- per stream: number of the line that has not ended, or 0
	final       boolean NOT NULL DEFAULT false,    -- length and digest were agreed with the worker
	digest      bytea,
	dropped     bigint NOT NULL DEFAULT 0,         -- bytes that the worker says it could not keep
	removed_at  timestamptz                        -- by retention
) WITH (fillfactor = 70);

CREATE TABLE log_chunk (
	made       date NOT NULL,
	attempt_id ctext NOT NULL,
	start      bigint NOT NULL,                    -- offset in the spool
	length     int NOT NULL,
	line       bigint NOT NULL,                    -- number of the first line that starts here or later
	open_stdout bigint NOT NULL,                   -- lines that are open at its start, 0: none
	open_stderr bigint NOT NULL,
	open_system bigint NOT NULL,
	time_from  timestamptz NOT NULL,
	data       bytea NOT NULL,                     -- zstd of whole frames
	PRIMARY KEY (made, attempt_id, start)
) PARTITION BY RANGE (made);
ALTER TABLE log_chunk ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE log_chunk_default PARTITION OF log_chunk DEFAULT;
CREATE INDEX log_chunk_line ON log_chunk (attempt_id, line, start);

-- ---- tracking: MLflow's words and semantics -----------------------------------------------------------------------

CREATE TABLE experiment (
	id          bigint GENERATED BY DEFAULT AS IDENTITY (MINVALUE 0 START WITH 1) PRIMARY KEY,
	project_id  ctext NOT NULL REFERENCES project ON DELETE CASCADE,
	name        ctext NOT NULL,
	artifact_location text NOT NULL,
	lifecycle   text NOT NULL DEFAULT 'active' CHECK (lifecycle IN ('active', 'deleted')),
	created_at  timestamptz NOT NULL DEFAULT now(),
	updated_at  timestamptz NOT NULL DEFAULT now(),
	UNIQUE (project_id, name)
);

CREATE TABLE experiment_tag (
	experiment_id bigint NOT NULL REFERENCES experiment ON DELETE CASCADE,
	key           ctext NOT NULL,
	value         text NOT NULL,
	PRIMARY KEY (experiment_id, key)
);

CREATE TABLE tracking_run (
	id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	run_id        ctext NOT NULL UNIQUE,           -- 32 hex digits
	experiment_id bigint NOT NULL REFERENCES experiment ON DELETE CASCADE,
	project_id    ctext NOT NULL,
	made          date NOT NULL,                   -- first of the month, the partition of its metrics
	step_id       ctext,                           -- of the pipeline step that it belongs to
	parent_run    ctext,
	name          text NOT NULL,
	user_name     text NOT NULL DEFAULT '',
	status        text NOT NULL DEFAULT 'RUNNING'
		CHECK (status IN ('RUNNING', 'SCHEDULED', 'FINISHED', 'FAILED', 'KILLED')),
	start_time    bigint,                          -- milliseconds, as the client gave them
	end_time      bigint,
	lifecycle     text NOT NULL DEFAULT 'active' CHECK (lifecycle IN ('active', 'deleted')),
	artifact_uri  text NOT NULL,
	created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX tracking_run_experiment ON tracking_run (experiment_id, lifecycle, start_time DESC, run_id);
CREATE INDEX tracking_run_step ON tracking_run (step_id) WHERE step_id IS NOT NULL;

CREATE TABLE param (
	tracking_id bigint NOT NULL REFERENCES tracking_run ON DELETE CASCADE,
	key         ctext NOT NULL,
	value       text NOT NULL,
	PRIMARY KEY (tracking_id, key)
);

CREATE TABLE tag (
	tracking_id bigint NOT NULL REFERENCES tracking_run ON DELETE CASCADE,
	key         ctext NOT NULL,
	value       text NOT NULL,
	PRIMARY KEY (tracking_id, key)
);

CREATE TABLE metric_key (
	id  int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key ctext NOT NULL UNIQUE
);

-- A point is identified by all of its columns; an exact duplicate is a retry. NaN is value 0 and the flag.
CREATE TABLE metric (
	made        date NOT NULL,
	tracking_id bigint NOT NULL,
	key_id      int NOT NULL,
	step        bigint NOT NULL,
	time        bigint NOT NULL,                   -- milliseconds
	value       float8 NOT NULL,
	is_nan      boolean NOT NULL,
	PRIMARY KEY (made, tracking_id, key_id, step, time, value, is_nan)
) PARTITION BY RANGE (made);
CREATE TABLE metric_default PARTITION OF metric DEFAULT;

-- Greatest (step, time, value) per key.
CREATE TABLE metric_latest (
	tracking_id bigint NOT NULL REFERENCES tracking_run ON DELETE CASCADE,
	key_id      int NOT NULL REFERENCES metric_key,
	step        bigint NOT NULL,
	time        bigint NOT NULL,
	value       float8 NOT NULL,
	is_nan      boolean NOT NULL,
	PRIMARY KEY (tracking_id, key_id)
) WITH (fillfactor = 70);

CREATE TABLE artifact (
	tracking_id bigint NOT NULL REFERENCES tracking_run ON DELETE CASCADE,
	path        ctext NOT NULL,
	size        bigint NOT NULL,
	digest      bytea NOT NULL REFERENCES blob,
	media_type  text NOT NULL DEFAULT 'application/octet-stream',
	created_at  timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (tracking_id, path)
);
CREATE INDEX artifact_digest ON artifact (digest);

-- ---- models --------------------------------------------------------------------------------------------------

CREATE TABLE model (
	id          ctext PRIMARY KEY,                 -- mdl_…
	project_id  ctext NOT NULL REFERENCES project ON DELETE CASCADE,
	name        ctext NOT NULL,
	description text NOT NULL DEFAULT '',
	labels      jsonb NOT NULL DEFAULT '{}',
	versions    bigint NOT NULL DEFAULT 0,         -- the last number given; never used again
	created_at  timestamptz NOT NULL DEFAULT now(),
	version     bigint NOT NULL DEFAULT 1,
	UNIQUE (project_id, name)
);

CREATE TABLE model_version (
	id            ctext PRIMARY KEY,               -- mv_…
	model_id      ctext NOT NULL REFERENCES model ON DELETE CASCADE,
	number        bigint NOT NULL,
	description   text NOT NULL DEFAULT '',
	labels        jsonb NOT NULL DEFAULT '{}',
	run_id        ctext REFERENCES run ON DELETE SET NULL,
	step_id       ctext,
	tracking_run  ctext,
	repository    text NOT NULL DEFAULT '',
	commit        text NOT NULL DEFAULT '',
	image_digest  text NOT NULL DEFAULT '',
	training_data jsonb NOT NULL DEFAULT '{}',     -- {dataset_version, column, from, to}
	datasets      jsonb NOT NULL DEFAULT '[]',     -- versions that the run read
	metrics       jsonb NOT NULL DEFAULT '{}',
	gate          jsonb NOT NULL DEFAULT '{}',     -- spec, items with numbers and verdicts
	verdict       text NOT NULL DEFAULT 'none' CHECK (verdict IN ('none', 'promoted', 'refused', 'needs_approval')),
	verdict_reason text NOT NULL DEFAULT '',
	metric        text NOT NULL DEFAULT '',        -- the gate's metric, and
	level         float8,                          -- its value on the holdout: what monitors compare with
	created_at    timestamptz NOT NULL DEFAULT now(),
	created_by    ctext,
	UNIQUE (model_id, number)
);
CREATE INDEX model_version_run ON model_version (run_id);

CREATE TABLE model_file (
	version_id ctext NOT NULL REFERENCES model_version ON DELETE CASCADE,
	path       ctext NOT NULL,
	size       bigint NOT NULL,
	digest     bytea NOT NULL REFERENCES blob,
	PRIMARY KEY (version_id, path)
);
CREATE INDEX model_file_digest ON model_file (digest);

CREATE TABLE model_alias (
	model_id   ctext NOT NULL REFERENCES model ON DELETE CASCADE,
	alias      ctext NOT NULL,
	version_id ctext NOT NULL REFERENCES model_version,
	changed_at timestamptz NOT NULL DEFAULT now(),
	version    bigint NOT NULL DEFAULT 1,
	PRIMARY KEY (model_id, alias)
);

-- Append-only: which version had which alias at any time, who moved it and why.
CREATE TABLE model_alias_history (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	model_id    ctext NOT NULL REFERENCES model ON DELETE CASCADE,
	alias       ctext NOT NULL,
	version_id  ctext,                             -- null: removed
	previous_id ctext,
	cause       text NOT NULL CHECK (cause IN ('api', 'gate', 'rollback')),
	note        text NOT NULL DEFAULT '',
	actor       ctext,
	at          timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX model_alias_history_alias ON model_alias_history (model_id, alias, id);

-- ---- monitors ----------------------------------------------------------------------------------------------------

CREATE TABLE monitor (
	id          ctext PRIMARY KEY,                 -- mon_…
	project_id  ctext NOT NULL REFERENCES project ON DELETE CASCADE,
	name        ctext NOT NULL,
	spec        jsonb NOT NULL,
	source      text NOT NULL,                     -- the YAML as written
	model_id    ctext NOT NULL REFERENCES model,
	alias       ctext NOT NULL,
	policy_state jsonb NOT NULL DEFAULT '{}',
	mutes       jsonb NOT NULL DEFAULT '[]',
	newest_at   timestamptz,                       -- time of the newest row: the monitor's clock
	rows_taken  bigint NOT NULL DEFAULT 0,
	created_at  timestamptz NOT NULL DEFAULT now(),
	created_by  ctext,
	version     bigint NOT NULL DEFAULT 1,         -- moves with every decision: the compare-and-set key
	spec_version bigint NOT NULL DEFAULT 1,
	UNIQUE (project_id, name)
);
CREATE INDEX monitor_model ON monitor (model_id);

-- The profile of a model version's training data under one monitor's columns; immutable. Observations
-- name the layout that their cells were written in.
CREATE TABLE reference (
	id               ctext PRIMARY KEY,            -- ref_…
	layout           bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
	monitor_id       ctext NOT NULL REFERENCES monitor ON DELETE CASCADE,
	model_version_id ctext NOT NULL REFERENCES model_version ON DELETE CASCADE,
	spec_version     bigint NOT NULL,
	rows             bigint NOT NULL,
	profile          bytea NOT NULL,               -- server/sched/reference.h
	created_at       timestamptz NOT NULL DEFAULT now(),
	UNIQUE (monitor_id, model_version_id, spec_version)
);

CREATE TABLE monitor_window (
	id           ctext PRIMARY KEY,                -- win_…
	monitor_id   ctext NOT NULL REFERENCES monitor ON DELETE CASCADE,
	made         date NOT NULL,
	ordinal      bigint NOT NULL,                  -- of windows by rows, from 1; 0: by time
	start_at     timestamptz NOT NULL,             -- in the data's time
	end_at       timestamptz NOT NULL,             -- exclusive
	state        text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed')),
	revision     int NOT NULL DEFAULT 0,           -- counts closings
	rows         bigint NOT NULL DEFAULT 0,
	labelled     bigint NOT NULL DEFAULT 0,
	reference_id ctext REFERENCES reference ON DELETE SET NULL,
	model_version_id ctext,
	performance  float8,
	level        float8,                           -- what performance was held against
	drift_share  float8,
	severity     text NOT NULL DEFAULT 'none' CHECK (severity IN ('none', 'ok', 'warn', 'alert', 'insufficient')),
	policy_before jsonb,                           -- the monitor's policy state before the first closing
	closed_at    timestamptz,
	created_at   timestamptz NOT NULL DEFAULT now(),
	version      bigint NOT NULL DEFAULT 1,        -- moves with every row, label and closing
	UNIQUE (monitor_id, start_at, ordinal)
);
CREATE INDEX monitor_window_open ON monitor_window (monitor_id, start_at) WHERE state = 'open';

-- One row per predicted row: late labels find their prediction here; features feed the profiles.
CREATE TABLE observation (
	made       date NOT NULL,
	window_id  ctext NOT NULL,
	row_id     ctext NOT NULL,
	time       timestamptz NOT NULL,
	prediction float8 NOT NULL,
	label      float8,
	layout     bigint NOT NULL,                    -- of the reference in whose order the cells stand
	cells      bytea NOT NULL,                     -- features, as server/sched/reference.h says
	PRIMARY KEY (made, window_id, row_id)
) PARTITION BY RANGE (made);
CREATE TABLE observation_default PARTITION OF observation DEFAULT;

-- Rows of a request that is still being read. Lost with a crash, as is the request.
CREATE UNLOGGED TABLE observation_stage (
	stage_id   ctext NOT NULL,
	ord        bigint NOT NULL,                    -- order in the request
	row_id     ctext NOT NULL,
	time       timestamptz,
	ordinal    bigint NOT NULL DEFAULT 0,
	start_at   timestamptz,                        -- of its window
	end_at     timestamptz,
	prediction float8,
	label      float8,
	cells      bytea,
	made_at    timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (stage_id, ord)
);

CREATE TABLE observation_batch (
	monitor_id   ctext NOT NULL REFERENCES monitor ON DELETE CASCADE,
	batch_id     ctext NOT NULL,
	request_hash bytea NOT NULL,
	result       jsonb NOT NULL,
	received_at  timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (monitor_id, batch_id)
);

CREATE TABLE drift_metric (
	made       date NOT NULL,
	window_id  ctext NOT NULL,
	revision   int NOT NULL,
	feature    ctext NOT NULL,                     -- '' for the window as a whole
	baseline   text NOT NULL,                      -- training | previous | seasonal | anchor
	metric     text NOT NULL,                      -- psi, ks, wasserstein, jensen_shannon, missing_rate, row_count, mae, …
	value      float8,
	critical   float8,
	p          float8,
	threshold  float8,
	status     text NOT NULL,                      -- ok | no_data | insufficient | all_missing | constant | type_changed
	drifted    boolean NOT NULL DEFAULT false,
	PRIMARY KEY (made, window_id, revision, feature, baseline, metric)
) PARTITION BY RANGE (made);
CREATE TABLE drift_metric_default PARTITION OF drift_metric DEFAULT;

CREATE TABLE decision (
	id           ctext PRIMARY KEY,                -- dec_…
	monitor_id   ctext NOT NULL REFERENCES monitor ON DELETE CASCADE,
	window_id    ctext NOT NULL,
	revision     int NOT NULL,
	spec_version bigint NOT NULL,
	cause        text NOT NULL,                    -- performance | drift | data_quality
	action       text NOT NULL CHECK (action IN ('record', 'warn', 'alert', 'retrain', 'block', 'rollback')),
	fired        boolean NOT NULL,
	suppressed_by text NOT NULL DEFAULT '',        -- cooldown | budget | open_retraining | muted | …
	reason       text NOT NULL,
	inputs       jsonb NOT NULL,                   -- values, thresholds, history
	run_id       ctext,                            -- of the retraining
	outcome      jsonb NOT NULL DEFAULT '{}',
	supersedes   ctext,
	created_at   timestamptz NOT NULL DEFAULT now(),
	UNIQUE (window_id, revision, cause)
);
CREATE INDEX decision_monitor ON decision (monitor_id, created_at DESC, id DESC);

-- One open retraining per model.
CREATE TABLE retraining (
	model_id    ctext PRIMARY KEY REFERENCES model ON DELETE CASCADE,
	decision_id ctext NOT NULL,
	run_id      ctext NOT NULL,
	opened_at   timestamptz NOT NULL DEFAULT now()
);

-- ---- durations ------------------------------------------------------------------------------------------------------

-- Microseconds of a span as users write it ("30m", "1d12h"); a month counts 30 days here.
CREATE FUNCTION span_us(span text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
	SELECT sum(m[1]::bigint * CASE m[2] WHEN 's' THEN 1 WHEN 'm' THEN 60 WHEN 'h' THEN 3600 WHEN 'd' THEN 86400
		WHEN 'w' THEN 604800 WHEN 'mo' THEN 2592000 WHEN 'q' THEN 7776000 WHEN 'y' THEN 31536000 END * 1000000)::bigint
	FROM regexp_matches(span, '([0-9]+)(mo|s|m|h|d|w|q|y)', 'g') AS m
$$;

-- ---- concurrency groups -------------------------------------------------------------------------------------------

-- policy refuse: fails with TM002 when a run of the group is open; holds the group until the end of the transaction.
CREATE FUNCTION run_group_refuse(project text, name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext(project || '/' || name));
	IF EXISTS (SELECT 1 FROM run WHERE project_id = project AND concurrency_group = name
		AND state IN ('queued', 'running', 'finishing')) THEN
		RAISE EXCEPTION 'a run of the group is open' USING ERRCODE = 'TM002';
	END IF;
END $$;

-- ---- compare and set ----------------------------------------------------------------------------------------------

-- Moves a run on when it is still at the version that was read; else the whole unit fails with TM001
-- and whoever wanted to change it reads again.
CREATE FUNCTION run_advance(run_id text, expected bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	UPDATE run SET version = expected + 1 WHERE id = run_id AND version = expected;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'run has changed' USING ERRCODE = 'TM001';
	END IF;
	RETURN expected + 1;
END $$;

CREATE FUNCTION monitor_advance(monitor_id text, expected bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	UPDATE monitor SET version = expected + 1 WHERE id = monitor_id AND version = expected;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'monitor has changed' USING ERRCODE = 'TM001';
	END IF;
	RETURN expected + 1;
END $$;

-- ---- observations --------------------------------------------------------------------------------------------

-- An identity as lib/base/id.h makes them, for rows that a statement makes by itself.
CREATE FUNCTION make_id(prefix text) RETURNS text LANGUAGE sql VOLATILE AS $$
	SELECT prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + digit, 1), '' ORDER BY place)
	FROM (
		SELECT place, ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint >> (5 * (9 - place))) & 31)::int AS digit
		FROM generate_series(0, 9) AS place
		UNION ALL
		SELECT 10 + i, get_byte(bytes, i) & 31
		FROM (SELECT uuid_send(gen_random_uuid()) AS bytes OFFSET 0) AS random, generate_series(0, 15) AS i
	) AS digits
$$;

-- A window that is still as it was read; else the whole unit fails with TM001 and is worked out again.
CREATE FUNCTION window_advance(window_id text, expected bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	UPDATE monitor_window SET version = expected + 1 WHERE id = window_id AND version = expected;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'window has changed' USING ERRCODE = 'TM001';
	END IF;
	RETURN expected + 1;
END $$;

-- What a batch did when it came for the first time; NULL: it is new. TM003: other bytes under its name.
CREATE FUNCTION observation_replay(mon text, batch text, hash bytea) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	old observation_batch;
BEGIN
	SELECT * INTO old FROM observation_batch WHERE monitor_id = mon AND batch_id = batch;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	IF old.request_hash <> hash THEN
		RAISE EXCEPTION 'the batch has other bytes' USING ERRCODE = 'TM003';
	END IF;
	RETURN old.result || '{"replayed": true}';
END $$;

-- Puts staged rows into their windows: those by time, or by rows (per_window > 0) in the order they came.
-- A closed window takes rows until the monitor's clock has passed its end by `grace`, and is open again then.
CREATE FUNCTION observation_commit(mon text, spec_at bigint, stage text, lay bigint, batch text, hash bytea,
	grace interval, per_window bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	m monitor;
	result jsonb;
	staged bigint;
	too_late bigint := 0;
	added bigint;
	touched bigint;
	newest timestamptz;
BEGIN
	SELECT * INTO m FROM monitor WHERE id = mon AND spec_version = spec_at FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'monitor has changed' USING ERRCODE = 'TM001';
	END IF;
	result := observation_replay(mon, batch, hash);
	IF result IS NOT NULL THEN
		DELETE FROM observation_stage WHERE stage_id = stage;
		RETURN result;
	END IF;
	SELECT count(*), max(time) INTO staged, newest FROM observation_stage WHERE stage_id = stage;
	IF per_window = 0 THEN
		DELETE FROM observation_stage s WHERE s.stage_id = stage AND s.end_at + grace < m.newest_at
			AND NOT EXISTS (SELECT FROM monitor_window w WHERE w.monitor_id = mon
				AND w.start_at = s.start_at AND w.ordinal = 0 AND w.state = 'open');
		GET DIAGNOSTICS too_late = ROW_COUNT;
	ELSE
		DELETE FROM observation_stage s USING monitor_window w, observation o
			WHERE s.stage_id = stage AND w.monitor_id = mon AND o.made = w.made AND o.window_id = w.id
				AND o.row_id = s.row_id;
		DELETE FROM observation_stage s USING observation_stage earlier
			WHERE s.stage_id = stage AND earlier.stage_id = stage AND earlier.row_id = s.row_id AND earlier.ord < s.ord;
		UPDATE observation_stage s SET ordinal = x.ordinal,
			start_at = coalesce(w.start_at, x.start_at), end_at = x.end_at
		FROM (SELECT ord, n.ordinal, min(time) OVER same AS start_at,
				max(time) OVER same + interval '1 microsecond' AS end_at
			FROM (SELECT ord, time, (m.rows_taken + row_number() OVER (ORDER BY ord) - 1) / per_window + 1 AS ordinal
				FROM observation_stage WHERE stage_id = stage) n
			WINDOW same AS (PARTITION BY n.ordinal)) x
		LEFT JOIN monitor_window w ON w.monitor_id = mon AND w.ordinal = x.ordinal
		WHERE s.stage_id = stage AND s.ord = x.ord;
	END IF;
	INSERT INTO monitor_window (id, monitor_id, made, ordinal, start_at, end_at)
	SELECT make_id('win'), mon, date_trunc('month', now())::date, s.ordinal, s.start_at, max(s.end_at)
	FROM observation_stage s WHERE s.stage_id = stage GROUP BY s.ordinal, s.start_at
	ON CONFLICT (monitor_id, start_at, ordinal) DO UPDATE SET end_at = greatest(monitor_window.end_at, excluded.end_at)
		WHERE monitor_window.ordinal > 0;
	WITH taken AS (
		INSERT INTO observation (made, window_id, row_id, time, prediction, label, layout, cells)
		SELECT w.made, w.id, s.row_id, s.time, s.prediction, s.label, lay, s.cells
		FROM observation_stage s JOIN monitor_window w
			ON w.monitor_id = mon AND w.start_at = s.start_at AND w.ordinal = s.ordinal
		WHERE s.stage_id = stage ORDER BY s.ord
		ON CONFLICT DO NOTHING RETURNING window_id, label
	), changed AS (
		UPDATE monitor_window w SET rows = w.rows + t.n, labelled = w.labelled + t.labels, state = 'open',
			version = w.version + 1
		FROM (SELECT window_id, count(*) AS n, count(label) AS labels FROM taken GROUP BY window_id) t
		WHERE w.id = t.window_id RETURNING t.n
	)
	SELECT coalesce(sum(n), 0), count(*) INTO added, touched FROM changed;
	UPDATE monitor SET newest_at = greatest(newest_at, newest), rows_taken = rows_taken + added WHERE id = mon;
	result := jsonb_build_object('rows', added, 'duplicates', staged - too_late - added, 'late', too_late,
		'unknown', 0, 'windows', touched, 'replayed', false);
	INSERT INTO observation_batch (monitor_id, batch_id, request_hash, result)
	SELECT mon, batch, hash, result WHERE batch IS NOT NULL;
	DELETE FROM observation_stage WHERE stage_id = stage;
	RETURN result;
END $$;

-- Puts staged labels to the rows that wait for them; the first label of a row stays.
CREATE FUNCTION label_commit(mon text, spec_at bigint, stage text, batch text, hash bytea, grace interval)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	m monitor;
	result jsonb;
	staged bigint;
	known bigint;
	too_late bigint;
	added bigint;
	touched bigint;
BEGIN
	SELECT * INTO m FROM monitor WHERE id = mon AND spec_version = spec_at FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'monitor has changed' USING ERRCODE = 'TM001';
	END IF;
	result := observation_replay(mon, batch, hash);
	IF result IS NOT NULL THEN
		DELETE FROM observation_stage WHERE stage_id = stage;
		RETURN result;
	END IF;
	SELECT count(*) INTO staged FROM observation_stage WHERE stage_id = stage;
	WITH found AS MATERIALIZED (
		SELECT DISTINCT ON (w.id, s.row_id) w.made, w.id AS window_id, s.row_id, s.label, o.label IS NULL AS wanted,
			w.state = 'closed' AND w.end_at + grace < m.newest_at AS late
		FROM observation_stage s JOIN monitor_window w
			ON w.monitor_id = mon AND (s.start_at IS NULL OR w.ordinal > 0 OR w.start_at = s.start_at)
		JOIN observation o ON o.made = w.made AND o.window_id = w.id AND o.row_id = s.row_id
		WHERE s.stage_id = stage ORDER BY w.id, s.row_id, s.ord
	), taken AS (
		UPDATE observation o SET label = f.label FROM found f
		WHERE f.wanted AND NOT f.late AND o.made = f.made AND o.window_id = f.window_id AND o.row_id = f.row_id
		RETURNING o.window_id
	), changed AS (
		UPDATE monitor_window w SET labelled = w.labelled + t.n, state = 'open', version = w.version + 1
		FROM (SELECT window_id, count(*) AS n FROM taken GROUP BY window_id) t WHERE w.id = t.window_id RETURNING t.n
	)
	SELECT (SELECT count(*) FROM found), (SELECT count(*) FROM found f WHERE f.late AND f.wanted),
		(SELECT coalesce(sum(n), 0) FROM changed), (SELECT count(*) FROM changed)
	INTO known, too_late, added, touched;
	result := jsonb_build_object('rows', added, 'duplicates', known - too_late - added, 'late', too_late,
		'unknown', greatest(staged - known, 0), 'windows', touched, 'replayed', false);
	INSERT INTO observation_batch (monitor_id, batch_id, request_hash, result)
	SELECT mon, batch, hash, result WHERE batch IS NOT NULL;
	DELETE FROM observation_stage WHERE stage_id = stage;
	RETURN result;
END $$;

-- Moves an alias if it is where it was read (expected: NULL when it was not there), with its history.
CREATE FUNCTION alias_move(model text, name text, target text, expected text, why text, words text, who text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF expected IS NULL THEN
		INSERT INTO model_alias (model_id, alias, version_id) VALUES (model, name, target) ON CONFLICT DO NOTHING;
	ELSE
		UPDATE model_alias SET version_id = target, changed_at = now(), version = version + 1
		WHERE model_id = model AND alias = name AND version_id = expected;
	END IF;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'alias has changed' USING ERRCODE = 'TM001';
	END IF;
	INSERT INTO model_alias_history (model_id, alias, version_id, previous_id, cause, note, actor)
	VALUES (model, name, target, expected, why, words, who);
END $$;

-- ---- fencing ---------------------------------------------------------------------------------------------------

-- Fails unless the attempt is the current one of its step, and keeps it so until the transaction ends: the last
-- statement of every write that an attempt asks for.
CREATE FUNCTION attempt_fence(attempt_id text, attempt_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM attempt a WHERE a.id = attempt_id AND a.epoch = attempt_epoch
		AND a.state IN ('assigned', 'preparing', 'running', 'finishing') FOR SHARE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the attempt is not current' USING ERRCODE = 'check_violation', CONSTRAINT = 'attempt_fence';
	END IF;
END $$;

-- ---- partitions ------------------------------------------------------------------------------------------------

-- Makes the partition of `parent` that holds `day` (a week or a month), unless it is there.
CREATE FUNCTION partition_ensure(parent text, period text, day date) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	lower date := date_trunc(period, day)::date;
	upper date := (date_trunc(period, day) + ('1 ' || period)::interval)::date;
	child text := parent || '_' || to_char(lower, 'YYYYMMDD');
BEGIN
	IF to_regclass(child) IS NULL THEN
		PERFORM pg_advisory_xact_lock(hashtext('partition_ensure'));
		IF to_regclass(child) IS NULL THEN
			EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)', child, parent);
			EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child, lower, upper);
		END IF;
	END IF;
END $$;

-- The current period and the next three of every partitioned table. Called at start and every day.
CREATE FUNCTION partition_ensure_all(day date) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 0..3 LOOP
		PERFORM partition_ensure('log_chunk', 'week', (day + i * 7));
		PERFORM partition_ensure('metric', 'month', (day + make_interval(months => i))::date);
		PERFORM partition_ensure('observation', 'month', (day + make_interval(months => i))::date);
		PERFORM partition_ensure('drift_metric', 'month', (day + make_interval(months => i))::date);
	END LOOP;
END $$;

-- Drops the partitions of `parent` that end on or before `day`; returns their names. Gives up rather than holding
-- writers back behind a long reader.
CREATE FUNCTION partition_drop(parent text, day date) RETURNS SETOF text LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
	child record;
BEGIN
	FOR child IN
		SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bound
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = parent::regclass AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
	LOOP
		IF substring(child.bound FROM 'TO \(''([0-9-]+)''\)')::date <= day THEN
			EXECUTE format('DROP TABLE %I', child.name);
			RETURN NEXT child.name;
		END IF;
	END LOOP;
END $$;

-- ---- what goes with a row that has no foreign key to it ------------------------------------------------------------

CREATE FUNCTION log_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM log_chunk WHERE made = OLD.made AND attempt_id = OLD.attempt_id;
	RETURN NULL;
END $$;
CREATE TRIGGER log_deleted AFTER DELETE ON log FOR EACH ROW EXECUTE FUNCTION log_deleted();

CREATE FUNCTION step_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM tracking_run WHERE run_id = OLD.tracking_run;
	RETURN NULL;
END $$;
CREATE TRIGGER step_deleted AFTER DELETE ON step FOR EACH ROW WHEN (OLD.tracking_run IS NOT NULL)
	EXECUTE FUNCTION step_deleted();

CREATE FUNCTION tracking_run_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM metric WHERE made = OLD.made AND tracking_id = OLD.id;
	RETURN NULL;
END $$;
CREATE TRIGGER tracking_run_deleted AFTER DELETE ON tracking_run FOR EACH ROW EXECUTE FUNCTION tracking_run_deleted();

SELECT partition_ensure_all(current_date);
