-- What a project keeps no longer. Ages are in project.retention; one that is absent compares as null: nothing goes.
-- Each *_old counts, each *_remove takes a batch and says how much it has taken.

-- name: retention_projects :many
SELECT id FROM project WHERE retention <> '{}' ORDER BY id;

-- name: retention_runs_old :one
-- params: project_id text
SELECT count(*) AS n FROM run r JOIN project p ON p.id = r.project_id
WHERE p.id = $1 AND r.state IN ('succeeded', 'failed', 'cancelled')
	AND r.ended_at < now() - span_us(p.retention->>'runs') * interval '1 microsecond';

-- name: retention_runs_remove :one
-- params: project_id text, count bigint
WITH gone AS (
	DELETE FROM run WHERE id IN (
		SELECT r.id FROM run r JOIN project p ON p.id = r.project_id
		WHERE p.id = $1 AND r.state IN ('succeeded', 'failed', 'cancelled')
			AND r.ended_at < now() - span_us(p.retention->>'runs') * interval '1 microsecond'
		LIMIT $2) RETURNING id
)
SELECT count(*) AS n FROM gone;

-- Logs are found by the week in which they began, which is not after their end; one that came late waits for its week to pass.
-- name: retention_logs_old :one
-- params: project_id text
SELECT count(*) AS n FROM log l JOIN attempt a ON a.id = l.attempt_id JOIN project p ON p.id = a.project_id
WHERE p.id = $1 AND l.removed_at IS NULL AND l.made <= (SELECT (now() - span_us(q.retention->>'logs')
		* interval '1 microsecond')::date FROM project q WHERE q.id = $1)
	AND a.ended_at < now() - span_us(p.retention->>'logs') * interval '1 microsecond';

-- name: retention_logs_remove :one
-- params: project_id text, count bigint
WITH old AS (
	SELECT l.attempt_id, l.made FROM log l JOIN attempt a ON a.id = l.attempt_id JOIN project p ON p.id = a.project_id
	WHERE p.id = $1 AND l.removed_at IS NULL AND l.made <= (SELECT (now() - span_us(q.retention->>'logs')
			* interval '1 microsecond')::date FROM project q WHERE q.id = $1)
		AND a.ended_at < now() - span_us(p.retention->>'logs') * interval '1 microsecond'
	LIMIT $2
), chunk AS (
	DELETE FROM log_chunk c USING old o WHERE c.made = o.made AND c.attempt_id = o.attempt_id
), gone AS (
	UPDATE log l SET removed_at = now() FROM old o WHERE l.attempt_id = o.attempt_id RETURNING l.attempt_id
)
SELECT count(*) AS n FROM gone;

-- name: retention_artifacts_old :one
-- params: project_id text
SELECT count(*) AS n FROM artifact a JOIN tracking_run t ON t.id = a.tracking_id JOIN project p ON p.id = t.project_id
WHERE p.id = $1 AND t.status IN ('FINISHED', 'FAILED', 'KILLED')
	AND to_timestamp(t.end_time / 1000.0) < now() - span_us(p.retention->>'artifacts') * interval '1 microsecond';

-- name: retention_artifacts_remove :one
-- params: project_id text, count bigint
WITH gone AS (
	DELETE FROM artifact WHERE (tracking_id, path) IN (
		SELECT a.tracking_id, a.path FROM artifact a JOIN tracking_run t ON t.id = a.tracking_id
		JOIN project p ON p.id = t.project_id
		WHERE p.id = $1 AND t.status IN ('FINISHED', 'FAILED', 'KILLED')
			AND to_timestamp(t.end_time / 1000.0) < now() - span_us(p.retention->>'artifacts') * interval '1 microsecond'
		LIMIT $2) RETURNING path
)
SELECT count(*) AS n FROM gone;

-- name: retention_windows_old :one
-- params: project_id text
SELECT count(*) AS n FROM monitor_window w JOIN monitor m ON m.id = w.monitor_id JOIN project p ON p.id = m.project_id
WHERE p.id = $1 AND w.state = 'closed'
	AND w.closed_at < now() - span_us(p.retention->>'windows') * interval '1 microsecond'
	AND EXISTS (SELECT FROM observation o WHERE o.made = w.made AND o.window_id = w.id);

-- name: retention_windows_remove :one
-- params: project_id text, count bigint
WITH old AS (
	SELECT w.id, w.made FROM monitor_window w JOIN monitor m ON m.id = w.monitor_id JOIN project p ON p.id = m.project_id
	WHERE p.id = $1 AND w.state = 'closed'
		AND w.closed_at < now() - span_us(p.retention->>'windows') * interval '1 microsecond'
		AND EXISTS (SELECT FROM observation o WHERE o.made = w.made AND o.window_id = w.id)
	LIMIT $2
), gone AS (
	DELETE FROM observation o USING old w WHERE o.made = w.made AND o.window_id = w.id
)
SELECT count(*) AS n FROM old;

-- What the instance keeps no longer.
-- name: retention_events_remove :one
-- params: count bigint
-- Of the oldest: their ids have the order of their times, so that nothing younger is looked at.
WITH gone AS (
	DELETE FROM event WHERE id IN (SELECT id FROM (SELECT id, at FROM event ORDER BY id LIMIT $1) oldest
		WHERE at < now() - interval '30 days')
	RETURNING id
)
SELECT count(*) AS n FROM gone;

-- name: partition_make :one
SELECT partition_ensure_all(current_date) IS NULL AS ok;

-- Weeks of which every log is removed.
-- name: partition_drop_logs :many
SELECT partition_drop('log_chunk', coalesce((SELECT min(made) FROM log WHERE removed_at IS NULL), '-infinity'::date)) AS name;
