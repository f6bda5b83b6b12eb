-- ---- monitors, as the API shows them ----

-- name: monitor_list :many
-- params: project_id text, after text, count bigint
SELECT o.id, o.name, m.name AS model, o.alias, o.spec, o.source, o.policy_state, o.mutes, o.late_rows, o.created_at, o.version,
	coalesce(m.name || '/' || v.number, '') AS champion, o.name AS page_key
FROM monitor o JOIN model m ON m.id = o.model_id
LEFT JOIN model_alias a ON a.model_id = o.model_id AND a.alias = o.alias LEFT JOIN model_version v ON v.id = a.version_id
WHERE o.project_id = $1 AND o.name > $2 ORDER BY o.name LIMIT $3;

-- name: monitor_get :one
-- params: project_id text, name text
SELECT o.id, o.name, m.name AS model, o.alias, o.spec, o.source, o.policy_state, o.mutes, o.late_rows, o.created_at, o.version,
	coalesce(m.name || '/' || v.number, '') AS champion, o.project_id
FROM monitor o JOIN model m ON m.id = o.model_id
LEFT JOIN model_alias a ON a.model_id = o.model_id AND a.alias = o.alias LEFT JOIN model_version v ON v.id = a.version_id
WHERE o.project_id = $1 AND o.name = $2;

-- What a new spec is held against.
-- name: monitor_put_look :one
-- params: project_id text, model text, pipeline text, name text, spec jsonb, source text, alias text
SELECT (SELECT m.id FROM model m WHERE m.project_id = $1 AND m.name = $2) AS model_id,
	(SELECT p.spec FROM pipeline p WHERE p.project_id = $1 AND p.name = $3) AS pipeline,
	o.id, o.version, o.spec -> 'window' AS window, o.model_id AS old_model_id, coalesce(o.spec = $5 AND o.source = $6, false) AS same,
	EXISTS (SELECT 1 FROM monitor_window w WHERE w.monitor_id = o.id) AS has_windows,
	coalesce((SELECT m.name || '/' || v.number FROM model m JOIN model_alias a ON a.model_id = m.id AND a.alias = $7
		JOIN model_version v ON v.id = a.version_id WHERE m.project_id = $1 AND m.name = $2), '') AS champion
FROM (SELECT 1) one LEFT JOIN monitor o ON o.project_id = $1 AND o.name = $4;

-- name: monitor_insert :exec
-- params: id text, project_id text, name text, spec jsonb, source text, model_id text, alias text, created_by text
INSERT INTO monitor (id, project_id, name, spec, source, model_id, alias, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: monitor_update :exec
-- params: id text, spec jsonb, source text, model_id text, alias text
UPDATE monitor SET spec = $2, source = $3, model_id = $4, alias = $5, spec_version = spec_version + 1 WHERE id = $1;

-- name: monitor_advance :one
-- params: id text, version bigint
SELECT monitor_advance($1, $2);

-- name: monitor_delete :one
-- params: project_id text, name text, actor text
WITH gone AS (
	DELETE FROM monitor WHERE project_id = $1 AND name = $2 RETURNING id
), told AS (
	INSERT INTO event (project_id, type, subject, actor) SELECT $1, 'monitor.deleted', id, $3 FROM gone
)
SELECT id FROM gone;

-- name: monitor_mute :one
-- params: project_id text, name text, mutes jsonb, policy_state jsonb, version bigint
UPDATE monitor SET mutes = $3, policy_state = $4, version = version + 1
WHERE project_id = $1 AND name = $2 AND version = $5 RETURNING id;

-- ---- observations ----

-- What reading rows needs: the monitor, its champion, and the profile of the champion's training data.
-- name: monitor_champion :one
-- params: project_id text, name text
SELECT o.id, o.project_id, o.name, o.spec, o.spec_version, v.id AS model_version_id, v.training_data, r.id AS reference_id,
	r.layout, r.profile, r.rows
FROM monitor o LEFT JOIN model_alias a ON a.model_id = o.model_id AND a.alias = o.alias
LEFT JOIN model_version v ON v.id = a.version_id
LEFT JOIN reference r ON r.monitor_id = o.id AND r.model_version_id = v.id AND r.spec_version = o.spec_version
WHERE o.project_id = $1 AND o.name = $2;

-- name: reference_files :many
-- params: dataset_version_id text
SELECT path, size, digest FROM dataset_file WHERE version_id = $1 ORDER BY path;

-- name: reference_insert :exec
-- params: id text, monitor_id text, model_version_id text, spec_version bigint, rows bigint, profile bytea
INSERT INTO reference (id, monitor_id, model_version_id, spec_version, rows, profile) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (monitor_id, model_version_id, spec_version) DO NOTHING;

-- name: reference_get :one
-- params: monitor_id text, model_version_id text, spec_version bigint
SELECT id, layout, profile, rows FROM reference WHERE monitor_id = $1 AND model_version_id = $2 AND spec_version = $3;

-- name: observation_stage_insert :exec
-- params: stage_id text, first bigint, row_ids text[], times timestamptz[], starts timestamptz[], ends timestamptz[], predictions float8[], labels float8[], cells bytea[]
INSERT INTO observation_stage (stage_id, ord, row_id, time, start_at, end_at, prediction, label, cells)
SELECT $1, $2 + n - 1, r, t, s, e, p, l, c
FROM unnest($3::text[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::float8[], $8::float8[], $9::bytea[])
	WITH ORDINALITY AS x(r, t, s, e, p, l, c, n);

-- name: observation_commit :one
-- params: monitor_id text, spec_version bigint, stage_id text, layout bigint, batch_id text, hash bytea, late_months bigint, late_us bigint, per_window bigint
SELECT observation_commit($1, $2, $3, $4, $5, $6,
	make_interval(months => $7::int, secs => $8::float8 / 1000000), $9) AS result;

-- name: label_commit :one
-- params: monitor_id text, spec_version bigint, stage_id text, batch_id text, hash bytea, late_months bigint, late_us bigint
SELECT label_commit($1, $2, $3, $4, $5, make_interval(months => $6::int, secs => $7::float8 / 1000000)) AS result;

-- name: observation_unstage :exec
-- params: stage_id text
DELETE FROM observation_stage WHERE stage_id = $1;

-- name: observation_stage_sweep :exec
DELETE FROM observation_stage WHERE made_at < now() - interval '1 day';

-- ---- windows ----

-- name: window_list :many
-- params: project_id text, monitor text, before text, count bigint
SELECT w.id, w.monitor_id, w.start_at AS start, w.end_at AS "end", w.state, w.revision, w.rows, w.labelled, w.left_out, w.severity,
	w.performance, w.level, w.drift_share, w.closed_at, coalesce(m.name || '/' || v.number, '') AS model_version,
	coalesce((SELECT d.reason FROM decision d WHERE d.window_id = w.id AND d.revision = w.revision
		ORDER BY d.fired DESC, d.action <> 'record' DESC, d.inputs ->> 'after' = w.severity DESC, d.cause = 'performance' DESC, d.cause
		LIMIT 1), '') AS reason,
	to_char(w.start_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '/' || lpad(w.ordinal::text, 20, '0') AS page_key
FROM monitor o JOIN monitor_window w ON w.monitor_id = o.id
LEFT JOIN model_version v ON v.id = w.model_version_id LEFT JOIN model m ON m.id = v.model_id
WHERE o.project_id = $1 AND o.name = $2
	AND to_char(w.start_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '/' || lpad(w.ordinal::text, 20, '0') < $3
ORDER BY w.start_at DESC, w.ordinal DESC LIMIT $4;

-- name: window_metrics :many
-- params: project_id text, monitor text, window_id text
SELECT d.feature, d.baseline, d.metric, d.status, d.value, d.critical, d.p, d.threshold, d.drifted
FROM monitor o JOIN monitor_window w ON w.monitor_id = o.id
JOIN drift_metric d ON d.made = w.made AND d.window_id = w.id AND d.revision = w.revision
WHERE o.project_id = $1 AND o.name = $2 AND w.id = $3 ORDER BY d.feature, d.baseline, d.metric;

-- name: window_exists :one
-- params: project_id text, monitor text, window_id text
SELECT w.id FROM monitor o JOIN monitor_window w ON w.monitor_id = o.id WHERE o.project_id = $1 AND o.name = $2 AND w.id = $3;

-- name: heat_windows :many
-- params: project_id text, monitor text, count bigint
SELECT w.id, w.start_at, w.end_at FROM monitor o JOIN monitor_window w ON w.monitor_id = o.id
WHERE o.project_id = $1 AND o.name = $2 AND w.revision > 0 ORDER BY w.start_at DESC, w.ordinal DESC LIMIT $3;

-- name: heat_values :many
-- params: project_id text, monitor text, count bigint, metric text
SELECT d.feature, w.id AS window_id, d.value, d.threshold, d.drifted
FROM (SELECT w.* FROM monitor o JOIN monitor_window w ON w.monitor_id = o.id
	WHERE o.project_id = $1 AND o.name = $2 AND w.revision > 0 ORDER BY w.start_at DESC, w.ordinal DESC LIMIT $3) w
JOIN drift_metric d ON d.made = w.made AND d.window_id = w.id AND d.revision = w.revision
WHERE d.metric = $4 AND d.baseline = 'training' AND d.feature <> '' ORDER BY d.feature, w.start_at, w.ordinal;

-- The oldest window that is to be closed: the one that starts at a time, those that end until a time, or those
-- that are complete: the monitor's time has passed their end, or they are full.
-- name: window_next :one
-- params: monitor_id text, start timestamptz, before timestamptz, complete bool, skip text[]
SELECT w.id FROM monitor o JOIN monitor_window w ON w.monitor_id = o.id
WHERE o.id = $1 AND w.state = 'open' AND w.id <> ALL ($5)
	AND ($2::timestamptz IS NULL OR w.start_at = $2) AND ($3::timestamptz IS NULL OR w.end_at <= $3)
	AND (NOT $4 OR CASE WHEN w.ordinal = 0 THEN w.end_at <= until_now(o.newest_at)
		ELSE w.rows >= (o.spec -> 'window' ->> 'rows')::bigint END)
ORDER BY w.start_at, w.ordinal LIMIT 1;

-- Monitors with a window that is complete and still open: a server went away, or a closing failed.
-- name: window_sweep :many
-- params: count bigint
SELECT DISTINCT o.id, o.project_id, o.name FROM monitor o JOIN monitor_window w ON w.monitor_id = o.id
WHERE w.state = 'open' AND CASE WHEN w.ordinal = 0 THEN w.end_at <= until_now(o.newest_at)
	ELSE w.rows >= (o.spec -> 'window' ->> 'rows')::bigint END
ORDER BY o.id LIMIT $1;

-- name: windows_delete :one
-- params: monitor_id text, start timestamptz, from timestamptz, to timestamptz, actor text, dry_run bool
SELECT windows_delete($1, $2, $3, $4, $5, $6) AS result;

-- name: close_monitor :one
-- params: monitor_id text
SELECT o.id, o.project_id, o.name, o.spec, o.version, o.spec_version, o.policy_state, o.mutes, o.model_id, o.alias,
	m.name AS model, j.name AS project
FROM monitor o JOIN model m ON m.id = o.model_id JOIN project j ON j.id = o.project_id WHERE o.id = $1;

-- name: close_window :one
-- params: window_id text
SELECT w.id, w.made, w.ordinal, w.start_at, w.end_at, w.state, w.revision, w.rows, w.labelled, w.version, w.policy_before,
	coalesce(w.model_version_id, a.version_id) AS model_version_id, w.model_version_id AS closed_with,
	NOT EXISTS (SELECT 1 FROM monitor_window n WHERE n.monitor_id = w.monitor_id AND n.revision > 0
		AND (n.start_at, n.ordinal) > (w.start_at, w.ordinal)) AS newest
FROM monitor_window w JOIN monitor o ON o.id = w.monitor_id
LEFT JOIN model_alias a ON a.model_id = o.model_id AND a.alias = o.alias
WHERE w.id = $1;

-- name: close_version :one
-- params: window_id text
SELECT v.id, v.number, v.training_data, v.metric, v.level, v.gate, v.run_id
FROM monitor_window w JOIN monitor o ON o.id = w.monitor_id
LEFT JOIN model_alias a ON a.model_id = o.model_id AND a.alias = o.alias
JOIN model_version v ON v.id = coalesce(w.model_version_id, a.version_id) WHERE w.id = $1;

-- name: close_reference :one
-- params: window_id text
SELECT r.id, r.layout, r.profile, r.rows
FROM monitor_window w JOIN monitor o ON o.id = w.monitor_id
LEFT JOIN model_alias a ON a.model_id = o.model_id AND a.alias = o.alias
JOIN reference r ON r.monitor_id = o.id AND r.model_version_id = coalesce(w.model_version_id, a.version_id)
	AND r.spec_version = o.spec_version
WHERE w.id = $1;

-- name: close_layouts :many
-- params: window_id text
SELECT r.layout, r.profile FROM reference r
WHERE r.layout IN (SELECT DISTINCT o.layout FROM monitor_window w JOIN observation o ON o.made = w.made AND o.window_id = w.id
	WHERE w.id = $1);

-- What was decided on the window before it was opened again, and whether the model has a retraining that is open.
-- name: close_earlier :many
-- params: window_id text
SELECT d.id, d.cause, d.run_id FROM decision d JOIN monitor_window w ON w.id = d.window_id
WHERE d.window_id = $1 AND d.revision = w.revision;

-- name: close_open :one
-- params: window_id text
SELECT EXISTS (SELECT 1 FROM retraining t WHERE t.model_id = o.model_id) AS open,
	EXISTS (SELECT 1 FROM decision d WHERE d.window_id = $1 AND d.run_id IS NOT NULL) AS started,
	a.version_id AS current_id,
	(SELECT h.previous_id FROM model_alias_history h WHERE h.model_id = o.model_id AND h.alias = o.alias
		AND h.version_id = a.version_id ORDER BY h.id DESC LIMIT 1) AS previous_id
FROM monitor_window w JOIN monitor o ON o.id = w.monitor_id
LEFT JOIN model_alias a ON a.model_id = o.model_id AND a.alias = o.alias
WHERE w.id = $1;

-- name: close_rows :many
-- params: made date, window_id text, after text, count bigint
SELECT row_id, prediction, label, layout, cells FROM observation
WHERE made = $1 AND window_id = $2 AND row_id > $3 ORDER BY row_id LIMIT $4;

-- name: window_advance :one
-- params: window_id text, version bigint
SELECT window_advance($1, $2);

-- name: window_closed :exec
-- params: window_id text, revision bigint, reference_id text, model_version_id text, performance float8, level float8, drift_share float8, severity text, policy_before jsonb, left_out bigint
UPDATE monitor_window SET state = 'closed', revision = $2, reference_id = $3, model_version_id = $4, performance = $5, level = $6,
	drift_share = $7, severity = $8, policy_before = coalesce(policy_before, $9), closed_at = now(), left_out = $10
WHERE id = $1;

-- name: drift_metric_insert :exec
-- params: made date, window_id text, revision bigint, features text[], baselines text[], metrics text[], numbers float8[], criticals float8[], ps float8[], thresholds float8[], statuses text[], drifted bool[]
INSERT INTO drift_metric (made, window_id, revision, feature, baseline, metric, value, critical, p, threshold, status, drifted)
SELECT $1, $2, $3, f, b, m, v, c, p, t, s, d
FROM unnest($4::text[], $5::text[], $6::text[], $7::float8[], $8::float8[], $9::float8[], $10::float8[], $11::text[], $12::bool[])
	AS x(f, b, m, v, c, p, t, s, d);

-- name: decision_insert :exec
-- params: id text, monitor_id text, window_id text, revision bigint, spec_version bigint, cause text, action text, fired bool, suppressed_by text, reason text, inputs jsonb, run_id text, supersedes text
INSERT INTO decision (id, monitor_id, window_id, revision, spec_version, cause, action, fired, suppressed_by, reason, inputs, run_id,
	supersedes)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- name: retraining_insert :exec
-- params: model_id text, decision_id text, run_id text
INSERT INTO retraining (model_id, decision_id, run_id) VALUES ($1, $2, $3);

-- name: monitor_policy_set :exec
-- params: id text, policy_state jsonb
UPDATE monitor SET policy_state = $2 WHERE id = $1;

-- What came of the decision that the window's version was trained for: its own window's performance, and the mean of
-- the windows since.
-- name: decision_outcome :exec
-- params: window_id text
UPDATE decision d SET outcome = jsonb_build_object('before', b.performance, 'after', x.performance, 'windows', x.windows,
	'metric', v.metric)
FROM monitor_window w JOIN model_version v ON v.id = w.model_version_id, monitor_window b,
	LATERAL (SELECT avg(n.performance) AS performance, count(*) AS windows FROM monitor_window n
		WHERE n.monitor_id = w.monitor_id AND n.model_version_id = v.id AND n.performance IS NOT NULL) x
WHERE w.id = $1 AND v.run_id IS NOT NULL AND d.run_id = v.run_id AND b.id = d.window_id AND x.windows > 0;

-- ---- decisions ----

-- name: decision_list :many
-- params: project_id text, monitor text, before text, count bigint
SELECT d.id, j.name AS project, d.monitor_id, o.name AS monitor, d.window_id, w.start_at AS window_start, w.end_at AS window_end, d.revision, d.cause,
	d.action, d.fired, d.suppressed_by, d.reason, d.inputs, d.run_id, d.outcome, d.supersedes, d.created_at,
	r.state AS run_state, coalesce(m.name || '/' || v.number, '') AS model_version, v.verdict, d.id AS page_key
FROM decision d JOIN monitor o ON o.id = d.monitor_id JOIN project j ON j.id = o.project_id
JOIN monitor_window w ON w.id = d.window_id
LEFT JOIN run r ON r.id = d.run_id
LEFT JOIN model_version v ON v.run_id = d.run_id LEFT JOIN model m ON m.id = v.model_id
WHERE o.project_id = $1 AND o.name = $2 AND d.id < $3 ORDER BY d.id DESC LIMIT $4;

-- name: decision_get :one
-- params: id text
SELECT d.id, j.name AS project, d.monitor_id, o.name AS monitor, d.window_id, w.start_at AS window_start, w.end_at AS window_end, d.revision, d.cause,
	d.action, d.fired, d.suppressed_by, d.reason, d.inputs, d.run_id, d.outcome, d.supersedes, d.created_at,
	r.state AS run_state, coalesce(m.name || '/' || v.number, '') AS model_version, v.verdict
FROM decision d JOIN monitor o ON o.id = d.monitor_id JOIN project j ON j.id = o.project_id
JOIN monitor_window w ON w.id = d.window_id
LEFT JOIN run r ON r.id = d.run_id
LEFT JOIN model_version v ON v.run_id = d.run_id LEFT JOIN model m ON m.id = v.model_id
WHERE d.id = $1;
