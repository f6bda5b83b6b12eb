-- name: pipeline_for_launch :one
-- params: project_id text, name text
SELECT id, name, repository, ref, path, source, paused FROM pipeline WHERE project_id = $1 AND name = $2;

-- name: launch_dataset :one
-- params: project_id text, name text, number bigint
SELECT v.id, v.number FROM dataset d JOIN dataset_version v ON v.dataset_id = d.id
WHERE d.project_id = $1 AND d.name = $2 AND v.number = coalesce($3, d.versions);

-- name: launch_model :one
-- params: project_id text, name text, alias text
SELECT v.id, v.number FROM model m JOIN model_alias a ON a.model_id = m.id JOIN model_version v ON v.id = a.version_id
WHERE m.project_id = $1 AND m.name = $2 AND a.alias = $3;

-- name: run_group_alone :exec
-- params: project_id text, name text, run_id text
SELECT run_group_alone($1, $2, $3);

-- name: run_group_cancel :exec
-- params: project_id text, name text, except_id text
WITH gone AS (
	UPDATE run SET cancel_requested_at = now()
	WHERE project_id = $1 AND concurrency_group = $2 AND id <> $3 AND state IN ('queued', 'running', 'finishing')
		AND cancel_requested_at IS NULL
	RETURNING id, project_id
)
INSERT INTO event (project_id, type, subject) SELECT project_id, 'run.cancel_requested', id FROM gone;

-- The experiment of a pipeline's tracking runs has its name.
-- name: run_experiments :exec
-- params: project_ids text[], names text[]
INSERT INTO experiment (id, project_id, name, artifact_location)
SELECT n.id, n.project_id, n.name, 'mlflow-artifacts:/' || n.id
FROM (SELECT nextval(pg_get_serial_sequence('experiment', 'id')) AS id, x.project_id, x.name
	FROM (SELECT DISTINCT p, n FROM unnest($1::text[], $2::text[]) AS u(p, n)) AS x(project_id, name)
	WHERE NOT EXISTS (SELECT 1 FROM experiment e WHERE e.project_id = x.project_id AND e.name = x.name)) AS n
ON CONFLICT (project_id, name) DO NOTHING;

-- Many runs at once. Each registered pipeline counts its own.
-- name: run_insert :many
-- params: ids text[], project_ids text[], pipeline_ids text[], pipelines text[], specs jsonb[], inputs jsonb[], labels jsonb[], repositories text[], commits text[], triggers text[], trigger_keys text[], decision_ids text[], groups text[], policies text[], actors text[], models jsonb[], looks bool[], no_caches bool[]
WITH x AS (
	SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::jsonb[], $6::jsonb[], $7::jsonb[], $8::text[],
		$9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::jsonb[], $17::bool[], $18::bool[]) WITH ORDINALITY
		AS x(id, project_id, pipeline_id, pipeline, spec, inputs, labels, repository, commit, trigger, trigger_key,
			decision_id, group_name, group_policy, actor, models, look, no_cache, ord)
), counts AS (
	SELECT pipeline_id, count(*) AS n FROM x WHERE pipeline_id <> '' GROUP BY pipeline_id ORDER BY pipeline_id
), counted AS (
	UPDATE pipeline p SET runs = p.runs + c.n FROM counts c WHERE p.id = c.pipeline_id RETURNING p.id, p.runs - c.n AS base
), made AS (
	INSERT INTO run (id, project_id, pipeline_id, pipeline, number, admitted_at, spec, inputs, labels, repository, commit, trigger,
		trigger_key, decision_id, experiment_id, concurrency_group, concurrency_policy, created_by, models, look, no_cache)
	SELECT x.id, x.project_id, nullif(x.pipeline_id, ''), x.pipeline,
		coalesce(c.base + row_number() OVER (PARTITION BY x.pipeline_id ORDER BY x.ord), 0), CASE WHEN x.group_name = '' THEN now() END, x.spec, x.inputs, x.labels,
		x.repository, x.commit, x.trigger, nullif(x.trigger_key, ''), nullif(x.decision_id, ''), e.id, nullif(x.group_name, ''),
		nullif(x.group_policy, ''), nullif(x.actor, ''), x.models, x.look, x.no_cache
	FROM x JOIN experiment e ON e.project_id = x.project_id AND e.name = x.pipeline LEFT JOIN counted c ON c.id = x.pipeline_id
	RETURNING id, number, experiment_id, created_at, version
)
SELECT x.ord, made.number, made.experiment_id, made.created_at, made.version FROM made JOIN x ON x.id = made.id;

-- name: run_dataset_insert :exec
-- params: run_ids text[], names text[], version_ids text[]
INSERT INTO run_dataset (run_id, name, version_id)
SELECT r, n, v FROM unnest($1::text[], $2::text[], $3::text[]) AS t(r, n, v);

-- more: what most steps do not have: late, joins, and of combinations matrix, matrix_of, slots, metric.
-- name: step_insert :exec
-- params: ids text[], run_ids text[], project_ids text[], names text[], positions bigint[], needs jsonb[], specs jsonb[], states text[], tracking_runs text[], more jsonb[]
INSERT INTO step (id, run_id, project_id, name, position, needs, spec, state, tracking_run, queued_at, late, joins, matrix,
	matrix_of, slots, metric)
SELECT x.id, x.run_id, x.project_id, x.name, x.position::int, ARRAY(SELECT jsonb_array_elements_text(x.needs)), x.spec, x.state,
	x.tracking_run, CASE WHEN x.state = 'queued' THEN now() END, x.more ? 'late', x.more ? 'joins', x.more -> 'matrix',
	x.more ->> 'matrix_of', coalesce((x.more ->> 'slots')::int, 0), x.more ->> 'metric'
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::jsonb[], $7::jsonb[], $8::text[], $9::text[],
	$10::jsonb[]) AS x(id, run_id, project_id, name, position, needs, spec, state, tracking_run, more);

-- name: step_tracking_insert :exec
-- params: tracking_runs text[], step_ids text[], names text[], project_ids text[], pipelines text[], start_time bigint
INSERT INTO tracking_run (run_id, experiment_id, project_id, made, step_id, name, status, start_time, artifact_uri)
SELECT x.t, e.id, x.p, date_trunc('month', now())::date, x.s, x.n, 'SCHEDULED', $6, e.artifact_location || '/' || x.t || '/artifacts'
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS x(t, s, n, p, e)
JOIN experiment e ON e.project_id = x.p AND e.name = x.e;

-- Tracking runs of combinations stand below the one of the step that joins them, with their values as params.
-- name: step_matrix_tracking :exec
-- params: run_ids text[]
WITH c AS (
	SELECT t.id, g.tracking_run AS parent, s.matrix FROM step s JOIN step g ON g.run_id = s.run_id AND g.name = s.matrix_of
	JOIN tracking_run t ON t.run_id = s.tracking_run WHERE s.run_id = ANY ($1)
), parents AS (
	UPDATE tracking_run t SET parent_run = c.parent FROM c WHERE t.id = c.id
), tags AS (
	INSERT INTO tag (tracking_id, key, value) SELECT id, 'mlflow.parentRunId', parent FROM c
)
INSERT INTO param (tracking_id, key, value) SELECT c.id, 'matrix.' || m.key, m.value FROM c CROSS JOIN LATERAL jsonb_each_text(c.matrix) m;

-- name: run_get :one
-- params: id text
SELECT r.id, j.name AS project, r.pipeline, r.number, r.state, r.reason, r.message, r.inputs, r.labels, r.repository, r.commit,
	r.trigger, r.trigger_key, r.rerun_of, r.rerun_from, nullif(r.no_cache, false) AS no_cache, r.decision_id, r.experiment_id, r.created_at, r.started_at, r.ended_at, r.version, r.cancel_requested_at,
	coalesce(p.name, r.created_by) AS created_by, run_blocked(r) AS blocked,
	(SELECT m.name || '/' || v.number FROM model_version v JOIN model m ON m.id = v.model_id WHERE v.run_id = r.id) AS model_version,
	coalesce((SELECT jsonb_agg(jsonb_build_object('name', d.name, 'dataset', s.name, 'number', v.number, 'version_id', v.id)
			ORDER BY d.name)
		FROM run_dataset d JOIN dataset_version v ON v.id = d.version_id JOIN dataset s ON s.id = v.dataset_id
		WHERE d.run_id = r.id), '[]') AS datasets
FROM run r JOIN project j ON j.id = r.project_id LEFT JOIN principal p ON p.id = r.created_by
WHERE r.id = $1;

-- Found by one of three ways, each with an index in the order of the page: where few runs are what is asked for, not all of the
-- project's are looked through. What is equal is said as an order, which only that index has: a plan that is kept for any state
-- would else rather look through all, hoping that many match.
-- name: run_list :many
-- params: project_id text, pipeline text, state text, before text, count bigint
WITH page AS MATERIALIZED (
	(SELECT id FROM run WHERE $2::text IS NULL AND $3::text IS NULL AND project_id = $1 AND id < $4 ORDER BY id DESC LIMIT $5)
	UNION ALL
	(SELECT id FROM run WHERE $2 IS NULL AND $3 IS NOT NULL AND project_id = $1 AND (state, id) < ($3, $4) AND state >= $3
		ORDER BY state DESC, id DESC LIMIT $5)
	UNION ALL
	(SELECT i.id FROM unnest(CASE WHEN $2 IS NULL THEN '{}' WHEN $3 IS NOT NULL THEN ARRAY[$3]
			ELSE ARRAY['queued', 'running', 'finishing', 'succeeded', 'failed', 'cancelled'] END) AS s(state)
		CROSS JOIN LATERAL (SELECT id FROM run WHERE project_id = $1 AND (pipeline, state, id) < ($2, s.state, $4)
			AND (pipeline, state) >= ($2, s.state) ORDER BY pipeline DESC, state DESC, id DESC LIMIT $5) i
		ORDER BY i.id DESC LIMIT $5)
)
SELECT r.id, j.name AS project, r.pipeline, r.number, r.state, r.reason, r.message, r.inputs, r.labels, r.repository, r.commit,
	r.trigger, r.trigger_key, r.rerun_of, r.rerun_from, nullif(r.no_cache, false) AS no_cache, r.decision_id, r.experiment_id, r.created_at, r.started_at, r.ended_at, r.version, r.cancel_requested_at,
	coalesce(p.name, r.created_by) AS created_by, run_blocked(r) AS blocked,
	(SELECT m.name || '/' || v.number FROM model_version v JOIN model m ON m.id = v.model_id WHERE v.run_id = r.id) AS model_version,
	coalesce((SELECT jsonb_agg(jsonb_build_object('name', d.name, 'dataset', s.name, 'number', v.number, 'version_id', v.id)
			ORDER BY d.name)
		FROM run_dataset d JOIN dataset_version v ON v.id = d.version_id JOIN dataset s ON s.id = v.dataset_id
		WHERE d.run_id = r.id), '[]') AS datasets,
	r.id AS page_key
FROM page CROSS JOIN LATERAL (SELECT * FROM run r WHERE r.id = page.id OFFSET 0) r JOIN project j ON j.id = r.project_id LEFT JOIN principal p ON p.id = r.created_by
ORDER BY r.id DESC;

-- name: run_cancel :one
-- params: id text
UPDATE run SET cancel_requested_at = coalesce(cancel_requested_at, now()) WHERE id = $1 RETURNING id;

-- name: run_delete :one
-- params: id text, actor text
WITH gone AS (
	DELETE FROM run WHERE id = $1 AND state IN ('succeeded', 'failed', 'cancelled') RETURNING id, project_id
), told AS (
	INSERT INTO event (project_id, type, subject, actor) SELECT project_id, 'run.deleted', id, $2 FROM gone
)
SELECT id FROM gone;

-- name: step_list :many
-- params: run_id text, after text, count bigint
SELECT s.id, s.run_id, s.name, s.position, s.needs, s.state, s.reason, s.message, s.attempts, s.tracking_run, s.outputs, s.spec,
	s.created_at, s.queued_at, s.started_at, s.ended_at, s.checkpoint_attempt, s.checkpoint_at, s.user_failures, s.infra_failures,
	s.matrix, s.matrix_of, s.selected, s.reused, s.metric, CASE WHEN s.metric IS NOT NULL THEN step_metric(s) END AS metric_value,
	coalesce((SELECT i.ref FROM run_image i WHERE i.run_id = s.run_id AND i.image = s.spec ->> 'image'), '') AS image_ref,
	(SELECT a.id FROM attempt a WHERE a.step_id = s.id ORDER BY a.number DESC, a.rank LIMIT 1) AS attempt_id,
	coalesce((s.spec #>> '{placement,nodes}')::int, 1) AS nodes, step_blocked(s) AS blocked,
	lpad(s.position::text, 8, '0') AS page_key
FROM step s WHERE s.run_id = $1 AND lpad(s.position::text, 8, '0') > $2 ORDER BY s.position LIMIT $3;

-- name: step_get :one
-- params: id text
SELECT s.id, s.run_id, s.name, s.position, s.needs, s.state, s.reason, s.message, s.attempts, s.tracking_run, s.outputs, s.spec,
	s.created_at, s.queued_at, s.started_at, s.ended_at, s.checkpoint_attempt, s.checkpoint_at, s.user_failures, s.infra_failures,
	s.matrix, s.matrix_of, s.selected, s.reused, s.metric, CASE WHEN s.metric IS NOT NULL THEN step_metric(s) END AS metric_value,
	coalesce((SELECT i.ref FROM run_image i WHERE i.run_id = s.run_id AND i.image = s.spec ->> 'image'), '') AS image_ref,
	(SELECT a.id FROM attempt a WHERE a.step_id = s.id ORDER BY a.number DESC, a.rank LIMIT 1) AS attempt_id,
	coalesce((s.spec #>> '{placement,nodes}')::int, 1) AS nodes, step_blocked(s) AS blocked
FROM step s WHERE s.id = $1;

-- name: attempt_list :many
-- params: step_id text, after text, count bigint
SELECT a.id, a.step_id, a.run_id, a.number, a.rank, a.ranks, a.ready_at, a.address, a.epoch, a.worker_id, coalesce(w.name, '') AS worker, a.runtime, a.devices, a.state,
	a.reason, a.message, a.exit_code, a.signal, a.evidence, a.created_at, a.started_at, a.ended_at,
	coalesce(l.length, 0) AS log_bytes, coalesce(l.lines, 0) AS log_lines, coalesce(l.final, false) AS log_complete,
	coalesce(a.log_matches, '[]') AS log_matches, coalesce(a.warning, '') AS warning, lpad(a.number::text, 8, '0') || '.' || lpad(a.rank::text, 4, '0') AS page_key
FROM attempt a LEFT JOIN worker w ON w.id = a.worker_id LEFT JOIN log l ON l.attempt_id = a.id
WHERE a.step_id = $1 AND lpad(a.number::text, 8, '0') || '.' || lpad(a.rank::text, 4, '0') > $2 ORDER BY a.number, a.rank LIMIT $3;
