-- What must hold at any time. Each statement finds what does not: what it is about, and what is wrong with it.

-- name: fsck_runs :many
SELECT r.id AS subject, format('is %s, but its step %s is %s', r.state, s.name, s.state) AS wrong
FROM run r JOIN step s ON s.run_id = r.id
WHERE (r.state IN ('succeeded', 'failed', 'cancelled') AND s.state NOT IN ('succeeded', 'failed', 'cancelled', 'skipped'))
	OR (r.state = 'succeeded' AND s.state IN ('failed', 'cancelled'))
ORDER BY r.id LIMIT 100;

-- name: fsck_steps :many
SELECT s.id AS subject, format('is %s with %s attempts, of which %s are there and %s are open', s.state, s.attempts, n.n, n.open) AS wrong
FROM step s CROSS JOIN LATERAL (
	SELECT count(DISTINCT a.number) AS n, count(DISTINCT a.number) FILTER (WHERE a.state IN ('assigned', 'preparing', 'running', 'finishing')) AS open
	FROM attempt a WHERE a.step_id = s.id) n
WHERE n.n <> s.attempts OR n.open > 1
	OR (n.open = 1) <> (s.state IN ('assigned', 'running', 'finishing'))
ORDER BY s.id LIMIT 100;

-- name: fsck_ends :many
SELECT s.id AS subject, format('is %s, and its newest attempt %s', s.state, a.states) AS wrong
FROM step s CROSS JOIN LATERAL (
	SELECT string_agg(a.state, ', ' ORDER BY a.rank) AS states, bool_or(a.state IN ('failed', 'lost', 'cancelled')) AS failed,
		bool_and(a.state = 'succeeded' OR a.ranks > 0 AND a.rank > 0 AND a.reason = 'gang_stopped') AS succeeded
	FROM attempt a WHERE a.step_id = s.id AND a.number = s.attempts) a
WHERE s.state = 'succeeded' AND NOT a.succeeded OR s.state = 'failed' AND NOT a.failed
ORDER BY s.id LIMIT 100;

-- What stands for a step of another run has run nothing, and has all that it says it has put out.
-- name: fsck_reused :many
SELECT s.id AS subject, CASE
	WHEN s.reused IS NULL THEN 'has succeeded without an attempt'
	WHEN s.state <> 'succeeded' OR s.attempts > 0 THEN format('stands for %s, but is %s with %s attempts', s.reused ->> 'step_id', s.state, s.attempts)
	ELSE format('stands for %s and says %s files, but has %s', s.reused ->> 'step_id', f.said, f.n) END AS wrong
FROM step s CROSS JOIN LATERAL (
	SELECT (SELECT coalesce(sum((o.value ->> 'files')::bigint), 0) FROM jsonb_each(s.outputs) o) AS said,
		(SELECT count(*) FROM step_output o WHERE o.step_id = s.id) AS n) f
WHERE s.reused IS NOT NULL AND (s.state <> 'succeeded' OR s.attempts > 0 OR f.said <> f.n)
	OR s.reused IS NULL AND s.state = 'succeeded' AND s.attempts = 0 AND NOT s.joins
ORDER BY s.id LIMIT 100;

-- name: fsck_gangs :many
SELECT a.step_id AS subject, format('attempt %s has the ranks %s, and should have %s of them', a.number,
	string_agg(a.rank::text, ', ' ORDER BY a.rank), max(a.ranks)) AS wrong
FROM attempt a GROUP BY a.step_id, a.number
HAVING max(a.ranks) <> min(a.ranks) OR count(*) <> greatest(max(a.ranks), 1) OR max(a.rank) <> count(*) - 1
ORDER BY a.step_id LIMIT 100;

-- name: fsck_epochs :many
SELECT b.id AS subject, format('has epoch %s, the attempt before it %s', b.epoch, b.before) AS wrong FROM (
	SELECT a.id, a.epoch, max(a.epoch) OVER (PARTITION BY a.step_id ORDER BY a.number
		GROUPS BETWEEN 1 PRECEDING AND 1 PRECEDING) AS before FROM attempt a) b
WHERE b.before >= b.epoch ORDER BY b.id LIMIT 100;

-- name: fsck_devices :many
SELECT a.worker_id AS subject, format('its device %s is held by %s', d.id, string_agg(a.id, ', ' ORDER BY a.id)) AS wrong
FROM attempt a CROSS JOIN LATERAL unnest(a.devices) AS d(id)
WHERE a.state IN ('assigned', 'preparing', 'running', 'finishing')
GROUP BY a.worker_id, d.id HAVING count(*) > 1 ORDER BY a.worker_id LIMIT 100;

-- name: fsck_needs :many
SELECT s.id AS subject, format('was started although %s, which it needs, %s', d.name,
	CASE WHEN d.state = 'succeeded' THEN 'had not ended' ELSE 'is ' || d.state END) AS wrong
FROM step s CROSS JOIN LATERAL unnest(s.needs) AS n(name) JOIN step d ON d.run_id = s.run_id AND d.name = n.name
WHERE s.attempts > 0 AND (d.state <> 'succeeded'
	OR EXISTS (SELECT 1 FROM attempt a WHERE a.step_id = s.id AND a.created_at < d.ended_at))
ORDER BY s.id LIMIT 100;

-- name: fsck_queue :many
SELECT s.id AS subject, format('is %s and %s', s.state, CASE WHEN q.step_id IS NULL THEN 'not in the queue' ELSE 'in the queue' END) AS wrong
FROM step s LEFT JOIN queue q ON q.step_id = s.id
WHERE (s.state = 'queued') <> (q.step_id IS NOT NULL) ORDER BY s.id LIMIT 100;

-- name: fsck_groups :many
SELECT r.project_id AS subject, format('the group %s holds %s', r.concurrency_group, string_agg(r.id, ', ' ORDER BY r.id)) AS wrong
FROM run r WHERE r.concurrency_group IS NOT NULL AND r.admitted_at IS NOT NULL AND r.cancel_requested_at IS NULL
	AND r.state IN ('queued', 'running', 'finishing')
GROUP BY r.project_id, r.concurrency_group HAVING count(*) > 1 ORDER BY r.project_id LIMIT 100;

-- Chunks of a log follow each other from its start to its end, with the lines that they say.
-- name: fsck_logs :many
WITH c AS (
	SELECT l.attempt_id, c.start, c.length, c.line, lag(c.start + c.length) OVER w AS before, lag(c.line) OVER w AS line_before
	FROM log l JOIN log_chunk c ON c.made = l.made AND c.attempt_id = l.attempt_id WHERE l.removed_at IS NULL
	WINDOW w AS (PARTITION BY l.attempt_id ORDER BY c.start)
), gaps AS (
	SELECT attempt_id, format('its chunk at %s follows one that ends at %s', start, coalesce(before, 0)) AS wrong FROM c
	WHERE start <> coalesce(before, 0) OR line < line_before
), ends AS (
	SELECT l.attempt_id, format('has %s bytes, its chunks %s', l.length, coalesce(e.n, 0)) AS wrong
	FROM log l LEFT JOIN (SELECT attempt_id, sum(length) AS n FROM c GROUP BY attempt_id) e ON e.attempt_id = l.attempt_id
	WHERE l.removed_at IS NULL AND l.length <> coalesce(e.n, 0)
), digests AS (
	SELECT l.attempt_id, 'is final without a digest' AS wrong FROM log l WHERE l.final AND l.digest IS NULL
), open AS (
	SELECT a.id, 'has succeeded without its log being final' AS wrong FROM attempt a LEFT JOIN log l ON l.attempt_id = a.id
	WHERE a.state = 'succeeded' AND NOT coalesce(l.final, false)
)
SELECT attempt_id AS subject, wrong FROM (SELECT * FROM gaps UNION ALL SELECT * FROM ends UNION ALL SELECT * FROM digests
	UNION ALL SELECT * FROM open) f ORDER BY attempt_id LIMIT 100;

-- name: fsck_files :many
SELECT f.subject, format('says %s bytes for %s, the blob has %s', f.size, f.path, b.size) AS wrong FROM (
	SELECT version_id AS subject, path, size, digest FROM dataset_file
	UNION ALL SELECT step_id, name || '/' || path, size, digest FROM step_output
	UNION ALL SELECT version_id, path, size, digest FROM model_file
	UNION ALL SELECT t.run_id, a.path, a.size, a.digest FROM artifact a JOIN tracking_run t ON t.id = a.tracking_id) f
JOIN blob b ON b.digest = f.digest WHERE b.size <> f.size ORDER BY f.subject LIMIT 100;

-- name: fsck_versions :many
SELECT v.id AS subject, format('says %s files of %s bytes, and has %s of %s', v.files, v.bytes, f.n, f.size) AS wrong
FROM dataset_version v CROSS JOIN LATERAL (
	SELECT count(*) AS n, coalesce(sum(d.size), 0) AS size FROM dataset_file d WHERE d.version_id = v.id) f
WHERE (v.files, v.bytes) <> (f.n, f.size) ORDER BY v.id LIMIT 100;

-- name: fsck_aliases :many
SELECT coalesce(a.model_id, h.model_id) AS subject, format('its alias %s has %s, by its history %s', coalesce(a.alias, h.alias),
	coalesce(a.version_id, 'no version'), coalesce(h.version_id, 'none')) AS wrong
FROM model_alias a FULL JOIN (
	SELECT DISTINCT ON (model_id, alias) model_id, alias, version_id FROM model_alias_history ORDER BY model_id, alias, id DESC) h
	ON h.model_id = a.model_id AND h.alias = a.alias
WHERE a.version_id IS DISTINCT FROM h.version_id ORDER BY 1 LIMIT 100;

-- name: fsck_windows :many
SELECT w.id AS subject, format('says %s rows, %s with labels, and has %s, %s', w.rows, w.labelled, o.n, o.labelled) AS wrong
FROM monitor_window w CROSS JOIN LATERAL (
	SELECT count(*) AS n, count(o.label) AS labelled FROM observation o WHERE o.made = w.made AND o.window_id = w.id) o
WHERE (w.rows, w.labelled) <> (o.n, o.labelled) ORDER BY w.id LIMIT 100;

-- name: fsck_retrainings :many
SELECT t.model_id AS subject, format('its retraining is open, and its run %s %s', t.run_id,
	coalesce('is ' || r.state, 'is not there')) AS wrong
FROM retraining t LEFT JOIN run r ON r.id = t.run_id
WHERE r.id IS NULL OR r.state IN ('succeeded', 'failed', 'cancelled') ORDER BY t.model_id LIMIT 100;

-- Rows of tables that cannot refer to what owns them.
-- name: fsck_owners :many
SELECT o.subject, o.wrong FROM (
	SELECT DISTINCT c.attempt_id AS subject, 'has chunks of a log and no log' AS wrong FROM log_chunk c
		WHERE NOT EXISTS (SELECT 1 FROM log l WHERE l.attempt_id = c.attempt_id AND l.made = c.made)
	UNION ALL SELECT DISTINCT m.tracking_id::text, 'has metrics and no tracking run' FROM metric m
		WHERE NOT EXISTS (SELECT 1 FROM tracking_run t WHERE t.id = m.tracking_id)
	UNION ALL SELECT DISTINCT b.window_id, 'has observations and no window' FROM observation b
		WHERE NOT EXISTS (SELECT 1 FROM monitor_window w WHERE w.id = b.window_id)
	UNION ALL SELECT DISTINCT d.window_id, 'has metrics of drift and no window' FROM drift_metric d
		WHERE NOT EXISTS (SELECT 1 FROM monitor_window w WHERE w.id = d.window_id)) o
ORDER BY o.subject LIMIT 100;

-- Blobs behind a digest, in order.
-- name: fsck_blobs :many
-- params: after bytea, count bigint
SELECT digest, size FROM blob WHERE digest > $1 ORDER BY digest LIMIT $2;

-- name: fsck_blob :one
-- params: digest bytea
SELECT size FROM blob WHERE digest = $1;

-- Logs that are final, in order: what their chunks must come to.
-- name: fsck_final_logs :many
-- params: after text, count bigint
SELECT l.attempt_id, l.made, l.length, l.digest FROM log l
WHERE l.attempt_id > $1 AND l.final AND l.removed_at IS NULL AND l.digest IS NOT NULL ORDER BY l.attempt_id LIMIT $2;
