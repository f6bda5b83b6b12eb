-- ---- models and versions, as the API shows them ----

-- name: model_list :many
-- params: project_id text, after text, count bigint
SELECT m.id, m.name, m.description, m.versions AS latest, m.created_at, m.version, m.name AS page_key,
	coalesce((SELECT jsonb_object_agg(a.alias, v.number) FROM model_alias a JOIN model_version v ON v.id = a.version_id
		WHERE a.model_id = m.id), '{}') AS aliases
FROM model m WHERE m.project_id = $1 AND m.name > $2 ORDER BY m.name LIMIT $3;

-- name: model_get :one
-- params: project_id text, name text
SELECT m.id, m.name, m.description, m.versions AS latest, m.created_at, m.version,
	coalesce((SELECT jsonb_object_agg(a.alias, v.number) FROM model_alias a JOIN model_version v ON v.id = a.version_id
		WHERE a.model_id = m.id), '{}') AS aliases
FROM model m WHERE m.project_id = $1 AND m.name = $2;

-- Aliases first: they hold the versions.
-- name: model_aliases_delete :exec
-- params: project_id text, name text
DELETE FROM model_alias WHERE model_id = (SELECT id FROM model WHERE project_id = $1 AND name = $2);

-- name: model_delete :one
-- params: project_id text, name text, actor text
WITH gone AS (
	DELETE FROM model WHERE project_id = $1 AND name = $2 RETURNING id
), told AS (
	INSERT INTO event (project_id, type, subject, actor) SELECT $1, 'model.deleted', id, $3 FROM gone
)
SELECT id FROM gone;

-- name: model_version_list :many
-- params: project_id text, model text, before text, count bigint
SELECT v.id, m.name AS model, v.number, v.description, v.labels, v.run_id, v.step_id, v.tracking_run, v.repository, v.commit,
	v.image_digest, v.training_data, v.datasets, v.metrics, v.gate, v.verdict, v.verdict_reason, v.metric, v.level, v.created_at,
	ARRAY(SELECT a.alias::text FROM model_alias a WHERE a.version_id = v.id ORDER BY a.alias) AS aliases, v.id AS page_key
FROM model_version v JOIN model m ON m.id = v.model_id
WHERE m.project_id = $1 AND m.name = $2 AND v.id < $3 ORDER BY v.id DESC LIMIT $4;

-- name: model_version_get :one
-- params: project_id text, model text, number bigint
SELECT v.id, m.name AS model, v.number, v.description, v.labels, v.run_id, v.step_id, v.tracking_run, v.repository, v.commit,
	v.image_digest, v.training_data, v.datasets, v.metrics, v.gate, v.verdict, v.verdict_reason, v.metric, v.level, v.created_at,
	ARRAY(SELECT a.alias::text FROM model_alias a WHERE a.version_id = v.id ORDER BY a.alias) AS aliases
FROM model_version v JOIN model m ON m.id = v.model_id
WHERE m.project_id = $1 AND m.name = $2 AND v.number = coalesce($3, m.versions);

-- name: model_file_list :many
-- params: project_id text, model text, number bigint, after text, count bigint
SELECT f.path, f.size, encode(f.digest, 'hex') AS digest, 'application/octet-stream' AS media_type, f.path AS page_key
FROM model_file f JOIN model_version v ON v.id = f.version_id JOIN model m ON m.id = v.model_id
WHERE m.project_id = $1 AND m.name = $2 AND v.number = coalesce($3, m.versions) AND f.path > $4
ORDER BY f.path LIMIT $5;

-- name: model_file_get :one
-- params: project_id text, model text, number bigint, path text
SELECT f.size, f.digest
FROM model_file f JOIN model_version v ON v.id = f.version_id JOIN model m ON m.id = v.model_id
WHERE m.project_id = $1 AND m.name = $2 AND v.number = coalesce($3, m.versions) AND f.path = $4;

-- ---- aliases ----

-- name: alias_get :one
-- params: project_id text, model text, alias text
SELECT a.alias, v.number, a.changed_at, a.version, m.id AS model_id, a.version_id
FROM model_alias a JOIN model m ON m.id = a.model_id JOIN model_version v ON v.id = a.version_id
WHERE m.project_id = $1 AND m.name = $2 AND a.alias = $3;

-- Which version had the alias at a time: the last change until then.
-- name: alias_as_of :one
-- params: project_id text, model text, alias text, at timestamptz
SELECT h.alias, coalesce(v.number, 0) AS number, h.at AS changed_at, h.id AS change, h.version_id
FROM model_alias_history h JOIN model m ON m.id = h.model_id LEFT JOIN model_version v ON v.id = h.version_id
WHERE m.project_id = $1 AND m.name = $2 AND h.alias = $3 AND h.at <= $4
ORDER BY h.id DESC LIMIT 1;

-- What a change of an alias needs to know. `refused`: the version's gate said no to it, and the alias is the gate's.
-- name: alias_target :one
-- params: project_id text, model text, alias text, number bigint
SELECT m.id AS model_id, v.id AS version_id, a.version_id AS current_id, coalesce(a.version, 0) AS current_version,
	v.verdict = 'refused' AS refused, v.verdict_reason,
	$3 IN ('champion', v.gate ->> 'promote', v.gate ->> 'against') AS gated
FROM model m LEFT JOIN model_version v ON v.model_id = m.id AND v.number = $4
LEFT JOIN model_alias a ON a.model_id = m.id AND a.alias = $3
WHERE m.project_id = $1 AND m.name = $2;

-- name: alias_move :one
-- params: model_id text, alias text, target text, expected text, cause text, note text, actor text
SELECT alias_move($1, $2, $3, $4, $5, $6, $7);

-- Row when there is such an alias; monitor: one that watches it, and so it stays.
-- name: alias_delete :one
-- params: project_id text, model text, alias text, actor text
WITH held AS (
	SELECT a.model_id, a.alias, a.version_id, (SELECT o.name FROM monitor o WHERE o.project_id = $1 AND o.model_id = m.id AND o.alias = $3
		ORDER BY o.name LIMIT 1) AS monitor
	FROM model_alias a JOIN model m ON m.id = a.model_id WHERE m.project_id = $1 AND m.name = $2 AND a.alias = $3 FOR UPDATE OF a
), gone AS (
	DELETE FROM model_alias a USING held h WHERE h.monitor IS NULL AND a.model_id = h.model_id AND a.alias = h.alias
	RETURNING a.model_id, a.alias, a.version_id
), told AS (
	INSERT INTO event (project_id, type, subject, actor) SELECT $1, 'model.alias_removed', model_id, $4 FROM gone
), noted AS (
	INSERT INTO model_alias_history (model_id, alias, version_id, previous_id, cause, note, actor)
	SELECT model_id, alias, NULL, version_id, 'api', '', $4 FROM gone
)
SELECT coalesce(monitor, '') AS monitor FROM held;

-- name: alias_history :many
-- params: project_id text, model text, before text, count bigint
SELECT h.id, h.alias, v.number, p.number AS previous, h.cause, h.note, coalesce(u.name, h.actor) AS actor, h.at,
	lpad(h.id::text, 20, '0') AS page_key
FROM model_alias_history h JOIN model m ON m.id = h.model_id
LEFT JOIN model_version v ON v.id = h.version_id LEFT JOIN model_version p ON p.id = h.previous_id
LEFT JOIN principal u ON u.id = h.actor
WHERE m.project_id = $1 AND m.name = $2 AND lpad(h.id::text, 20, '0') < $3 ORDER BY h.id DESC LIMIT $4;

-- ---- the end of a run ----

-- name: finish_run :one
-- params: run_id text
SELECT r.id, r.project_id, r.state, r.version, r.spec, r.models, r.decision_id, r.repository, r.commit, r.pipeline,
	r.concurrency_group, r.created_by
FROM run r WHERE r.id = $1;

-- What the end of a run looks at: all files of observations; of model and predictions two say whether it is one.
-- name: finish_outputs :many
-- params: run_id text, count bigint
SELECT step_id, step, output, path, size, digest FROM (
	SELECT s.id AS step_id, s.name AS step, s.position, o.name AS output, o.path, o.size, o.digest,
		s.spec #>> ARRAY['outputs', o.name, 'kind'] = 'observations' AS fed,
		s.name || '.' || o.name IN (r.spec #>> '{model,from}', r.spec #>> '{model,gate,predictions}') AS named,
		row_number() OVER (PARTITION BY s.id, o.name ORDER BY o.path) AS n
	FROM run r JOIN step s ON s.run_id = r.id JOIN step_output o ON o.step_id = s.id WHERE r.id = $1
) f WHERE fed OR named AND n <= 2 ORDER BY position, output, path LIMIT $2;

-- The metrics that the step which made the model has logged go with its version: the first thousands, should there be more.
-- name: finish_steps :many
-- params: run_id text
SELECT s.id, s.name, s.tracking_run, s.state, s.message,
	coalesce((SELECT step_reuse(c, '') ->> 'image_digest' FROM step c
		WHERE c.run_id = s.run_id AND c.name = coalesce(s.selected, s.name)), '') AS image_digest,
	coalesce((SELECT jsonb_object_agg(x.key, x.value) FROM (
		SELECT k.key, CASE WHEN l.is_nan THEN 'null'::jsonb ELSE to_jsonb(l.value) END AS value
		FROM tracking_run t JOIN metric_latest l ON l.tracking_id = t.id JOIN metric_key k ON k.id = l.key_id
		WHERE t.run_id = s.tracking_run AND starts_with(r.spec #>> '{model,from}', s.name || '.') AND NOT starts_with(k.key, 'system/')
		ORDER BY l.key_id LIMIT 4000) x), '{}') AS metrics
FROM step s JOIN run r ON r.id = s.run_id WHERE s.run_id = $1 ORDER BY s.position;

-- name: finish_datasets :many
-- params: run_id text
SELECT d.name, s.name AS dataset, v.id AS version_id, v.number
FROM run_dataset d JOIN dataset_version v ON v.id = d.version_id JOIN dataset s ON s.id = v.dataset_id
WHERE d.run_id = $1 ORDER BY d.name;

-- name: finish_model :one
-- params: project_id text, model text, against text, promote text
SELECT m.id, g.version_id AS against_id, p.version_id AS promote_id
FROM model m LEFT JOIN model_alias g ON g.model_id = m.id AND g.alias = $3
LEFT JOIN model_alias p ON p.model_id = m.id AND p.alias = $4
WHERE m.project_id = $1 AND m.name = $2;

-- Monitors that the end of a run moves: those of the alias, and the one whose decision started it.
-- name: finish_monitors :many
-- params: project_id text, model text, alias text, decision_id text
SELECT o.id, o.version, o.spec, o.policy_state, o.alias = $3 AND m.name = $2 AS watches,
	coalesce(o.id = d.monitor_id, false) AS asked
FROM monitor o JOIN model m ON m.id = o.model_id LEFT JOIN decision d ON d.id = $4
WHERE o.project_id = $1 AND ((m.name = $2 AND o.alias = $3) OR o.id = d.monitor_id) ORDER BY o.id;

-- name: finish_advance :one
-- params: run_id text, version bigint
SELECT run_advance($1, $2);

-- name: finish_state :exec
-- params: run_id text, state text, reason text, message text
UPDATE run SET state = $2, reason = $3, message = $4, ended_at = now() WHERE id = $1;

-- name: model_ensure :exec
-- params: id text, project_id text, name text
INSERT INTO model (id, project_id, name) VALUES ($1, $2, $3) ON CONFLICT (project_id, name) DO NOTHING;

-- Numbers are given under the model's row lock and never again.
-- name: model_version_insert :one
-- params: id text, project_id text, model text, run_id text, step_id text, tracking_run text, repository text, commit text, image_digest text, training_data jsonb, datasets jsonb, metrics jsonb, gate jsonb, verdict text, verdict_reason text, metric text, level float8, created_by text
WITH m AS (UPDATE model SET versions = versions + 1, version = version + 1 WHERE project_id = $2 AND name = $3 RETURNING id, versions)
INSERT INTO model_version (id, model_id, number, run_id, step_id, tracking_run, repository, commit, image_digest, training_data,
	datasets, metrics, gate, verdict, verdict_reason, metric, level, created_by)
SELECT $1, m.id, m.versions, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18 FROM m RETURNING number;

-- A model's files are named below the output's declared path; a declared file by its own name.
-- name: model_files_copy :exec
-- params: version_id text, step_id text, output text
INSERT INTO model_file (version_id, path, size, digest)
SELECT $1, CASE WHEN o.path = d.path THEN regexp_replace(o.path, '^.*/', '') ELSE substr(o.path, length(d.path) + 2) END,
	o.size, o.digest
FROM step_output o JOIN step s ON s.id = o.step_id
CROSS JOIN LATERAL (SELECT s.spec->'outputs'->o.name->>'path' AS path) d
WHERE o.step_id = $2 AND o.name = $3;

-- name: alias_promote :one
-- params: project_id text, model text, alias text, target text, expected text, cause text, note text, actor text
SELECT alias_move(m.id, $3, $4, $5, $6, $7, $8) FROM model m WHERE m.project_id = $1 AND m.name = $2;

-- name: finish_monitor_state :exec
-- params: id text, policy_state jsonb
UPDATE monitor SET policy_state = $2 WHERE id = $1;

-- name: retraining_close :exec
-- params: run_id text
DELETE FROM retraining WHERE run_id = $1;

-- Retrainings whose run has ended without us, or is gone, and runs that wait for their end.
-- name: finish_sweep :many
-- params: count bigint
SELECT id FROM (
	SELECT r.id FROM run r WHERE r.state = 'finishing'
	UNION
	SELECT t.run_id FROM retraining t LEFT JOIN run r ON r.id = t.run_id
	WHERE r.id IS NULL OR r.state IN ('succeeded', 'failed', 'cancelled')
) x ORDER BY id LIMIT $1;

-- name: finish_retraining :one
-- params: run_id text
SELECT t.decision_id, coalesce(r.state, 'failed') AS state, o.id, o.version, o.spec, o.policy_state
FROM retraining t LEFT JOIN run r ON r.id = t.run_id
LEFT JOIN decision d ON d.id = t.decision_id LEFT JOIN monitor o ON o.id = d.monitor_id
WHERE t.run_id = $1 AND (r.id IS NULL OR r.state IN ('succeeded', 'failed', 'cancelled'));
