-- Fails (constraint attempt_fence) unless the attempt is the current one; holds it so until the commit.
-- name: attempt_fence :exec
-- params: attempt_id text, epoch bigint
SELECT attempt_fence($1, $2);

-- Tracking runs with what their callers may do there, by the place of each question (ord): own says that the run belongs to the
-- caller's attempt.
-- name: tracking_access :many
-- params: principal_ids text[], run_ids text[], attempt_ids text[]
SELECT x.ord, t.id, t.run_id, t.experiment_id, t.made, t.lifecycle, t.artifact_uri, t.project_id,
	CASE WHEN p.admin THEN 'owner' ELSE m.role END AS role,
	coalesce(t.run_id = s.tracking_run OR t.parent_run = s.tracking_run, false) AS own
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS x(principal_id, run_id, attempt_id, ord)
JOIN tracking_run t ON t.run_id = x.run_id
LEFT JOIN principal p ON p.id = x.principal_id LEFT JOIN member m ON m.principal_id = x.principal_id AND m.project_id = t.project_id
LEFT JOIN attempt a ON a.id = x.attempt_id LEFT JOIN step s ON s.id = a.step_id;

-- The tracking run of an attempt's step.
-- name: tracking_of_attempt :one
-- params: attempt_id text
SELECT s.tracking_run FROM attempt a JOIN step s ON s.id = a.step_id WHERE a.id = $1;

-- name: tracking_insert :one
-- params: run_id text, experiment_id bigint, parent_run text, name text, user_name text, start_time bigint
INSERT INTO tracking_run (run_id, experiment_id, project_id, made, parent_run, name, user_name, start_time, artifact_uri)
SELECT $1, e.id, e.project_id, date_trunc('month', now())::date, $3, $4, $5, $6, e.artifact_location || '/' || $1 || '/artifacts'
FROM experiment e WHERE e.id = $2
RETURNING id;

-- name: tracking_tags_by_run :exec
-- params: run_id text, keys text[], values text[]
INSERT INTO tag (tracking_id, key, value)
SELECT r.id, t.key, t.value FROM tracking_run r, unnest($2::text[], $3::text[]) AS t (key, value)
WHERE r.run_id = $1 ORDER BY t.key;

-- name: tracking_get :one
-- params: run_id text
SELECT run_id, experiment_id::text AS experiment_id, name, user_name, status, start_time, end_time, lifecycle, artifact_uri,
	step_id
FROM tracking_run WHERE run_id = $1;

-- name: tracking_params :many
-- params: run_id text
SELECT p.key, p.value FROM tracking_run t JOIN param p ON p.tracking_id = t.id WHERE t.run_id = $1 ORDER BY p.key;

-- name: tracking_tags :many
-- params: run_id text
SELECT g.key, g.value FROM tracking_run t JOIN tag g ON g.tracking_id = t.id WHERE t.run_id = $1 ORDER BY g.key;

-- name: tracking_metrics :many
-- params: run_id text
SELECT k.key, CASE WHEN l.is_nan THEN 'NaN'::float8 ELSE l.value END AS value, l.time, l.step
FROM tracking_run t JOIN metric_latest l ON l.tracking_id = t.id JOIN metric_key k ON k.id = l.key_id
WHERE t.run_id = $1 ORDER BY k.key;

-- name: tracking_update :exec
-- params: id bigint, status text, end_time bigint, name text
UPDATE tracking_run SET status = coalesce($2, status), end_time = coalesce($3, end_time), name = coalesce($4, name)
WHERE id = $1;

-- Params that have another value already.
-- name: param_clash :many
-- params: run_id text, keys text[], values text[]
SELECT p.key, p.value AS old, n.value AS new
FROM tracking_run t JOIN param p ON p.tracking_id = t.id
JOIN unnest($2::text[], $3::text[]) AS n (key, value) ON n.key = p.key
WHERE t.run_id = $1 AND p.value <> n.value ORDER BY p.key;

-- Immutable: another value is not taken but violates NOT NULL, which undoes the whole unit.
-- name: param_put :exec
-- params: tracking_id bigint, keys text[], values text[]
INSERT INTO param (tracking_id, key, value)
SELECT $1, n.key, n.value FROM unnest($2::text[], $3::text[]) AS n (key, value) ORDER BY n.key
ON CONFLICT (tracking_id, key) DO UPDATE SET value = NULL WHERE param.value <> excluded.value;

-- name: tag_put :exec
-- params: tracking_id bigint, keys text[], values text[]
INSERT INTO tag (tracking_id, key, value)
SELECT $1, n.key, n.value FROM unnest($2::text[], $3::text[]) AS n (key, value) ORDER BY n.key
ON CONFLICT (tracking_id, key) DO UPDATE SET value = excluded.value WHERE tag.value <> excluded.value;

-- name: metric_key_put :exec
-- params: keys text[]
INSERT INTO metric_key (key)
SELECT DISTINCT n.key FROM unnest($1::text[]) AS n (key)
WHERE NOT EXISTS (SELECT 1 FROM metric_key k WHERE k.key = n.key) ORDER BY n.key
ON CONFLICT DO NOTHING;

-- Sorted, so that concurrent batches meet in one order.
-- name: metric_put :exec
-- params: made date, tracking_id bigint, keys text[], steps bigint[], times bigint[], values float8[], nans bool[]
INSERT INTO metric (made, tracking_id, key_id, step, time, value, is_nan)
SELECT $1, $2, k.id, p.step, p.time, p.value, p.is_nan
FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::float8[], $7::bool[]) AS p (key, step, time, value, is_nan)
JOIN metric_key k ON k.key = p.key
ORDER BY k.id, p.step, p.time, p.value, p.is_nan
ON CONFLICT DO NOTHING;

-- One row per key: the greatest (step, time, value), whatever came first.
-- name: metric_latest_put :exec
-- params: tracking_id bigint, keys text[], steps bigint[], times bigint[], values float8[], nans bool[]
INSERT INTO metric_latest (tracking_id, key_id, step, time, value, is_nan)
SELECT DISTINCT ON (k.id) $1, k.id, p.step, p.time, p.value, p.is_nan
FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::float8[], $6::bool[]) AS p (key, step, time, value, is_nan)
JOIN metric_key k ON k.key = p.key
ORDER BY k.id, p.step DESC, p.time DESC, p.value DESC, p.is_nan DESC
ON CONFLICT (tracking_id, key_id) DO UPDATE
	SET step = excluded.step, time = excluded.time, value = excluded.value, is_nan = excluded.is_nan
	WHERE (excluded.step, excluded.time, excluded.value, excluded.is_nan)
		> (metric_latest.step, metric_latest.time, metric_latest.value, metric_latest.is_nan);

-- A page of a history, after a point (has_after).
-- name: metric_history :many
-- params: run_id text, key text, has_after bool, time bigint, step bigint, value float8, is_nan bool, count bigint
SELECT p.value, p.is_nan, p.time, p.step
FROM tracking_run t JOIN metric_key k ON k.key = $2
JOIN metric p ON p.made = t.made AND p.tracking_id = t.id AND p.key_id = k.id
WHERE t.run_id = $1 AND (NOT $3 OR (p.time, p.step, p.value, p.is_nan) > ($4, $5, $6, $7))
ORDER BY p.time, p.step, p.value, p.is_nan LIMIT $8;

-- Buckets of equal width along the steps; keys null: the first 64 of those that the step logged, and of what its host tells.
-- name: metric_series :many
-- params: run_id text, keys text[], buckets bigint
WITH wanted AS (
	SELECT made, id, key_id, key FROM (
		SELECT t.made, t.id, l.key_id, k.key, row_number() OVER (PARTITION BY k.key LIKE 'system/%' ORDER BY k.key) AS n
		FROM tracking_run t JOIN metric_latest l ON l.tracking_id = t.id JOIN metric_key k ON k.id = l.key_id
		WHERE t.run_id = $1 AND ($2::text[] IS NULL OR k.key = ANY ($2))) x
	WHERE n <= 64
), span AS (
	SELECT w.*, s.low, s.high FROM wanted w CROSS JOIN LATERAL (
		SELECT min(p.step)::float8 AS low, max(p.step)::float8 AS high FROM metric p
		WHERE p.made = w.made AND p.tracking_id = w.id AND p.key_id = w.key_id) s
), point AS (
	SELECT s.key, p.step, p.time, p.value, p.is_nan, floor((p.step::float8 - s.low) / (s.high - s.low + 1) * $3) AS bucket
	FROM span s JOIN metric p ON p.made = s.made AND p.tracking_id = s.id AND p.key_id = s.key_id
)
SELECT key, count(*) AS count, min(value) FILTER (WHERE NOT is_nan) AS min, max(value) FILTER (WHERE NOT is_nan) AS max,
	max(step) AS step, (array_agg(time ORDER BY step DESC, time DESC, value DESC, is_nan DESC))[1] AS time,
	(array_agg(CASE WHEN is_nan THEN 'NaN'::float8 ELSE value END ORDER BY step DESC, time DESC, value DESC, is_nan DESC))[1]
		AS last
FROM point GROUP BY key, bucket ORDER BY key, bucket;

-- The batch of many callers (metric_store.h). The attempts among them are held as they are until the commit …
-- name: metric_group_hold :many
-- params: attempts text[]
SELECT 1 FROM attempt WHERE id = ANY ($1) ORDER BY id FOR SHARE;

-- … so that what this sees of them stays true. Rows: the callers whose points are written.
-- name: metric_group_put :many
-- params: ords bigint[], trackings bigint[], mades date[], attempts text[], epochs bigint[], of bigint[], keys text[], steps bigint[], times bigint[], values float8[], nans bool[]
WITH taken AS (
	SELECT i.ord, i.tracking_id, i.made
	FROM unnest($1::bigint[], $2::bigint[], $3::date[], $4::text[], $5::bigint[]) AS i (ord, tracking_id, made, attempt_id, epoch)
	WHERE EXISTS (SELECT 1 FROM tracking_run t WHERE t.id = i.tracking_id AND t.lifecycle = 'active')
		AND (i.attempt_id IS NULL OR EXISTS (SELECT 1 FROM attempt a WHERE a.id = i.attempt_id AND a.epoch = i.epoch
			AND a.state IN ('assigned', 'preparing', 'running', 'finishing')))
), point AS (
	SELECT i.made, i.tracking_id, k.id AS key_id, p.step, p.time, p.value, p.is_nan
	FROM unnest($6::bigint[], $7::text[], $8::bigint[], $9::bigint[], $10::float8[], $11::bool[])
		AS p (ord, key, step, time, value, is_nan)
	JOIN taken i ON i.ord = p.ord JOIN metric_key k ON k.key = p.key
), points AS (
	INSERT INTO metric (made, tracking_id, key_id, step, time, value, is_nan)
	SELECT made, tracking_id, key_id, step, time, value, is_nan FROM point
	ORDER BY made, tracking_id, key_id, step, time, value, is_nan
	ON CONFLICT DO NOTHING
), latest AS (
	INSERT INTO metric_latest (tracking_id, key_id, step, time, value, is_nan)
	SELECT DISTINCT ON (tracking_id, key_id) tracking_id, key_id, step, time, value, is_nan FROM point
	ORDER BY tracking_id, key_id, step DESC, time DESC, value DESC, is_nan DESC
	ON CONFLICT (tracking_id, key_id) DO UPDATE
		SET step = excluded.step, time = excluded.time, value = excluded.value, is_nan = excluded.is_nan
		WHERE (excluded.step, excluded.time, excluded.value, excluded.is_nan)
			> (metric_latest.step, metric_latest.time, metric_latest.value, metric_latest.is_nan)
)
SELECT ord FROM taken;
