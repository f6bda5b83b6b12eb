-- Here and below, what a statement is about is named twice, by its array and by the row that goes with it: plans are kept, and
-- one that was made while the table was small would rather read all of it.

-- Runs with their steps, in order; every row has the columns of its run. What has ended is looked at again with each step of
-- the run that moves: of those steps only what the graph asks for is read, of the others the newest attempt, too.
-- name: engine_looks :many
-- params: ids text[]
WITH r AS MATERIALIZED (
	SELECT x.ord, r.id, r.project_id, r.pipeline, r.state, r.version, r.cancel_requested_at IS NOT NULL AS cancelling,
		r.admitted_at IS NOT NULL OR r.state <> 'queued' OR r.concurrency_group IS NULL AS admitted,
		r.concurrency_group IS NOT NULL AND EXISTS (SELECT 1 FROM run o WHERE o.project_id = r.project_id
			AND o.concurrency_group = r.concurrency_group AND o.state IN ('queued', 'running', 'finishing')
			AND o.id <> r.id AND (o.admitted_at IS NOT NULL OR o.id < r.id)) AS blocked,
		r.concurrency_group, r.look, ARRAY(SELECT d.version_id FROM run_dataset d WHERE d.run_id = r.id)::text[] AS data,
		r.spec ? 'model' OR jsonb_path_exists(r.spec, '$.steps.*.outputs.* ? (@.kind == "observations")') AS finishing_work
	FROM unnest($1::text[]) WITH ORDINALITY AS x(id, ord) JOIN run r ON r.id = x.id AND r.id = ANY ($1)
)
SELECT r.ord, r.project_id, r.pipeline, r.state AS run_state, r.version, r.cancelling, r.admitted, r.blocked, r.concurrency_group,
	r.finishing_work, r.look, r.data,
	s.id, s.name, s.needs, s.late, s.joins, s.reused IS NOT NULL AS reused, s.matrix, s.matrix_of, s.slots,
	CASE WHEN s.metric IS NOT NULL AND s.state <> 'waiting' THEN step_metric(s) END AS metric_value,
	s.state, s.reason, s.message,
	CASE WHEN s.ended_at IS NULL THEN s.spec END AS spec, s.user_failures, s.infra_failures, s.attempts, s.tracking_run,
	CASE WHEN a.reason = 'preempted' OR a.ranks > 0 THEN (SELECT count(DISTINCT o.number) FROM attempt o WHERE o.step_id = s.id AND o.reason = 'preempted')
		ELSE 0 END AS preempted,
	a.id AS attempt_id, a.state AS attempt_state, a.reason AS attempt_reason, a.message AS attempt_message,
	CASE WHEN s.ended_at IS NULL THEN a.started_at ELSE s.started_at END AS attempt_started_at,
	a.cancel_requested_at IS NOT NULL AS attempt_cancelling, a.worker_id,
	CASE WHEN a.ranks > 0 THEN (SELECT jsonb_agg(m || jsonb_build_object('rank', b.rank) ORDER BY b.rank) FROM attempt b CROSS JOIN LATERAL jsonb_array_elements(b.log_matches) m
		WHERE b.step_id = s.id AND b.number = a.number) ELSE a.log_matches END AS log_matches,
	CASE WHEN a.state IN ('failed', 'lost') OR a.ranks > 0 THEN ARRAY(SELECT DISTINCT w.name FROM attempt o JOIN worker w ON w.id = o.worker_id
		WHERE o.step_id = s.id AND o.log_matches @> '[{"action": "avoid_node"}]') ELSE '{}' END AS avoid_workers, q.deadline, q.blocked ->> 'message' AS waits_for,
	CASE WHEN a.ranks > 0 THEN (SELECT jsonb_agg(jsonb_build_object('id', b.id, 'worker_id', b.worker_id, 'worker', coalesce(w.name, b.worker_id),
			'state', b.state, 'reason', b.reason, 'message', b.message,
			'started_at', coalesce((extract(epoch FROM b.started_at) * 1000000)::bigint, 0),
			'ended_at', coalesce((extract(epoch FROM b.ended_at) * 1000000)::bigint, 0), 'ready', b.ready_at IS NOT NULL,
			'released', b.released_at IS NOT NULL, 'stopping', b.cancel_requested_at IS NOT NULL) ORDER BY b.rank)
		FROM attempt b LEFT JOIN worker w ON w.id = b.worker_id WHERE b.step_id = s.id AND b.number = a.number) END AS gang,
	CASE WHEN a.ranks > 0 THEN coalesce(s.spec #>> '{placement,launcher}' IN ('ray', 'mpi'), false) ELSE false END AS led
FROM r JOIN step s ON s.run_id = r.id
LEFT JOIN LATERAL (SELECT * FROM queue q WHERE s.state = 'queued' AND q.step_id = s.id OFFSET 0) q ON true
LEFT JOIN LATERAL (SELECT * FROM attempt a WHERE s.ended_at IS NULL AND s.attempts > 0 AND a.step_id = s.id ORDER BY a.number DESC, a.rank LIMIT 1) a ON true
ORDER BY r.ord, s.position;

-- name: engine_advance :exec
-- params: ids text[], versions bigint[], states text[], reasons text[], messages text[], starts timestamptz[]
SELECT runs_advance($1, $2, $3, $4, $5, $6);

-- name: engine_step_update :exec
-- params: ids text[], states text[], reasons text[], messages text[], user_failures bigint[], infra_failures bigint[], started_at timestamptz[]
UPDATE step s SET state = x.state, reason = x.reason, message = x.message, user_failures = x.user_failures,
	infra_failures = x.infra_failures, version = s.version + 1,
	queued_at = CASE WHEN x.state = 'queued' THEN now() ELSE s.queued_at END,
	started_at = coalesce(s.started_at, x.started_at),
	ended_at = CASE WHEN x.state IN ('succeeded', 'failed', 'cancelled', 'skipped') THEN now() END
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::timestamptz[])
	AS x(id, state, reason, message, user_failures, infra_failures, started_at)
WHERE s.id = ANY ($1) AND s.id = x.id;

-- name: engine_step_spec :exec
-- params: ids text[], specs jsonb[]
UPDATE step s SET spec = x.spec, written = s.spec, late = false FROM unnest($1::text[], $2::jsonb[]) AS x(id, spec)
WHERE s.id = ANY ($1) AND s.id = x.id;

-- What a step is that stands for another one: its outputs, params, tags and artifacts, none of them copied byte by byte, and
-- the last of its metrics, but for those of the host that it ran on unless it is compared by one.
-- name: engine_take :exec
-- params: ids text[], sources text[]
WITH x AS (
	SELECT x.id, s.metric, f.id AS source, CASE WHEN f.joins THEN f.selected ELSE f.name END AS selected, f.outputs, t.id AS tracking_id, t.made, o.id AS source_tracking
	FROM unnest($1::text[], $2::text[]) AS x(id, source) JOIN step s ON s.id = x.id JOIN step f ON f.id = x.source
	LEFT JOIN tracking_run t ON t.run_id = s.tracking_run LEFT JOIN tracking_run o ON o.run_id = f.tracking_run
), files AS (
	INSERT INTO step_output (step_id, name, path, size, digest)
	SELECT x.id, o.name, o.path, o.size, o.digest FROM x JOIN step_output o ON o.step_id = x.source ON CONFLICT DO NOTHING
), own AS MATERIALIZED (
	SELECT x.tracking_id, x.made, l.key_id, l.step, l.time, l.value, l.is_nan
	FROM x JOIN metric_latest l ON l.tracking_id = x.source_tracking JOIN metric_key k ON k.id = l.key_id
	WHERE NOT starts_with(k.key, 'system/') OR k.key = x.metric
), points AS (
	INSERT INTO metric (made, tracking_id, key_id, step, time, value, is_nan)
	SELECT made, tracking_id, key_id, step, time, value, is_nan FROM own ON CONFLICT DO NOTHING
), latest AS (
	INSERT INTO metric_latest (tracking_id, key_id, step, time, value, is_nan)
	SELECT tracking_id, key_id, step, time, value, is_nan FROM own ON CONFLICT DO NOTHING
), params AS (
	INSERT INTO param (tracking_id, key, value) SELECT x.tracking_id, p.key, p.value
	FROM x JOIN param p ON p.tracking_id = x.source_tracking ON CONFLICT DO NOTHING
), tags AS (
	INSERT INTO tag (tracking_id, key, value) SELECT x.tracking_id, g.key, g.value
	FROM x JOIN tag g ON g.tracking_id = x.source_tracking AND g.key <> 'mlflow.parentRunId' ON CONFLICT DO NOTHING
), artifacts AS (
	INSERT INTO artifact (tracking_id, path, size, digest, media_type) SELECT x.tracking_id, a.path, a.size, a.digest, a.media_type
	FROM x JOIN artifact a ON a.tracking_id = x.source_tracking ON CONFLICT DO NOTHING
)
UPDATE step s SET outputs = x.outputs, selected = CASE WHEN s.joins THEN x.selected END FROM x WHERE s.id = x.id;

-- A step that joins combinations without choosing one: their outputs, each in a folder of its own.
-- name: engine_gather :exec
-- params: ids text[]
WITH m AS (
	SELECT g.id, c.id AS source, c.outputs, substr(c.name, length(g.name) + 2) AS folder
	FROM step g JOIN step c ON c.run_id = g.run_id AND c.matrix_of = g.name AND c.state = 'succeeded' WHERE g.id = ANY ($1)
), files AS (
	INSERT INTO step_output (step_id, name, path, size, digest)
	SELECT m.id, o.name, m.folder || '/' || o.path, o.size, o.digest FROM m JOIN step_output o ON o.step_id = m.source
	ON CONFLICT DO NOTHING
), sums AS (
	SELECT m.id, o.key, jsonb_build_object('kind', min(o.value ->> 'kind'), 'path', min(o.value ->> 'path'),
		'files', sum((o.value ->> 'files')::bigint), 'bytes', sum((o.value ->> 'bytes')::bigint)) AS value
	FROM m CROSS JOIN LATERAL jsonb_each(m.outputs) o GROUP BY m.id, o.key
)
UPDATE step s SET outputs = coalesce((SELECT jsonb_object_agg(u.key, u.value) FROM sums u WHERE u.id = s.id), '{}')
WHERE s.id = ANY ($1);

-- name: engine_look_set :exec
-- params: ids text[], looks bool[]
UPDATE run r SET look = x.look FROM unnest($1::text[], $2::bool[]) AS x(id, look) WHERE r.id = ANY ($1) AND r.id = x.id;

-- name: engine_context :one
-- params: run_id text
SELECT spec, inputs FROM run WHERE id = $1;

-- Values that steps have put out, in the order in which they are asked for: those without one have the size -1, and of those
-- that have no room any more only the size is told.
-- name: engine_values :many
-- params: run_id text, steps text[], keys text[], room bigint
SELECT coalesce(octet_length(v.value), -1)::bigint AS size,
	CASE WHEN sum(octet_length(v.value)) OVER (ORDER BY x.ord) <= $4 THEN v.value END AS value
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS x(step, key, ord)
LEFT JOIN step s ON s.run_id = $1 AND s.name = x.step
CROSS JOIN LATERAL (SELECT s.outputs -> x.key ->> 'value' AS value) v
ORDER BY x.ord;

-- name: engine_checkpoint_delete :exec
-- params: step_ids text[]
DELETE FROM checkpoint_file c USING step s WHERE s.id = ANY ($1) AND c.step_id = s.id
	AND s.state IN ('succeeded', 'failed', 'cancelled', 'skipped');

-- name: engine_queue_insert :exec
-- params: run_ids text[], project_ids text[], step_ids text[], priorities bigint[], cpus float8[], memory bigint[], disk bigint[], gpus bigint[], pools text[], requests jsonb[], not_before timestamptz[], deadlines timestamptz[]
INSERT INTO queue (step_id, run_id, project_id, priority, cpus, memory, disk, gpus, pool, request, not_before, deadline)
SELECT i, r, j, p, c, m, d, g, o, q, nullif(n, '-infinity'), nullif(e, '-infinity')
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::float8[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[],
	$10::jsonb[], $11::timestamptz[], $12::timestamptz[]) AS x(r, j, i, p, c, m, d, g, o, q, n, e)
ON CONFLICT (step_id) DO NOTHING;

-- name: engine_queue_delete :exec
-- params: step_ids text[]
SELECT step_unqueue($1);

-- name: engine_attempt_cancel :exec
-- params: ids text[], reasons text[]
UPDATE attempt a SET cancel_requested_at = now(), stop_reason = x.reason
FROM unnest($1::text[], $2::text[]) AS x(id, reason)
WHERE a.id = ANY ($1) AND a.id = x.id AND a.cancel_requested_at IS NULL AND a.state IN ('assigned', 'preparing', 'running', 'finishing');

-- All ranks of a gang are ready: their commands may begin.
-- name: engine_attempt_release :exec
-- params: ids text[]
UPDATE attempt SET released_at = now() WHERE id = ANY ($1) AND released_at IS NULL AND state IN ('assigned', 'preparing');

-- name: engine_tracking_status :exec
-- params: run_ids text[], statuses text[], now_ms bigint
UPDATE tracking_run t SET status = x.status,
	end_time = CASE WHEN x.status IN ('FINISHED', 'FAILED', 'KILLED') THEN $3 ELSE t.end_time END
FROM unnest($1::text[], $2::text[]) AS x(run_id, status) WHERE t.run_id = ANY ($1) AND t.run_id = x.run_id;

-- name: engine_run_admitted :exec
-- params: id text
SELECT run_admit($1);

-- name: engine_events :exec
-- params: project_ids text[], types text[], subjects text[], parents text[], actors text[], data jsonb[]
INSERT INTO event (project_id, type, subject, parent, actor, data)
SELECT j, t, s, nullif(p, ''), nullif(a, ''), d
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[]) AS x(j, t, s, p, a, d);

-- name: engine_group_next :many
-- params: project_id text, name text
SELECT id FROM run WHERE project_id = $1 AND concurrency_group = $2 AND state = 'queued' AND admitted_at IS NULL ORDER BY id LIMIT 1;

-- Open runs that somebody should look at: something has ended that the run has not seen, or nothing was begun. A run that only
-- waits for a worker to stop what it was asked to stop needs no look, nor does one that its concurrency group holds.
-- name: engine_sweep :many
-- params: after text, count bigint
SELECT id FROM (
	SELECT r.id FROM run r WHERE r.state = 'queued' AND r.admitted_at IS NULL AND NOT EXISTS (SELECT FROM run o
		WHERE o.project_id = r.project_id AND o.concurrency_group = r.concurrency_group AND o.state IN ('queued', 'running', 'finishing')
			AND o.id <> r.id AND (o.admitted_at IS NOT NULL OR o.id < r.id))
	UNION
	SELECT r.id FROM run r WHERE r.look AND r.state IN ('queued', 'running')
	UNION
	SELECT r.id FROM run r WHERE r.state = 'finishing'
	UNION
	SELECT r.id FROM run r WHERE r.state IN ('queued', 'running') AND r.cancel_requested_at IS NOT NULL
		AND (EXISTS (SELECT FROM step s WHERE s.run_id = r.id AND s.state IN ('waiting', 'queued'))
			OR NOT EXISTS (SELECT FROM step s WHERE s.run_id = r.id AND s.state IN ('assigned', 'running', 'finishing'))
			OR EXISTS (SELECT FROM attempt a WHERE a.run_id = r.id AND a.cancel_requested_at IS NULL
				AND a.state IN ('assigned', 'preparing', 'running', 'finishing')))
	UNION
	SELECT s.run_id FROM step s JOIN LATERAL (SELECT a.state, a.ranks FROM attempt a WHERE a.step_id = s.id
		ORDER BY a.number DESC, a.rank LIMIT 1) a ON true
	WHERE s.state IN ('assigned', 'running', 'finishing') AND a.ranks = 0 AND a.state IN ('succeeded', 'failed', 'cancelled', 'lost')
	UNION -- of a gang: all ranks have ended, some must be stopped, the one that leads has succeeded, or all wait to be released
	SELECT s.run_id FROM step s JOIN LATERAL (SELECT bool_and(a.state IN ('succeeded', 'failed', 'cancelled', 'lost')) AS over,
			bool_or(a.state IN ('failed', 'cancelled', 'lost')) AS broken,
			bool_or(a.state IN ('assigned', 'preparing', 'running', 'finishing') AND a.cancel_requested_at IS NULL) AS going,
			bool_or(a.rank = 0 AND a.state = 'succeeded') AS led,
			bool_and(a.ready_at IS NOT NULL) AS ready, bool_and(a.released_at IS NULL) AS held
		FROM attempt a WHERE a.step_id = s.id AND a.number = s.attempts AND a.ranks > 0) g ON true
	WHERE s.state IN ('assigned', 'running', 'finishing') AND (g.over OR g.broken AND g.going OR g.ready AND g.held AND g.going
		OR g.led AND g.going AND s.spec #>> '{placement,launcher}' IN ('ray', 'mpi'))
) x WHERE id > $1 ORDER BY id LIMIT $2;
