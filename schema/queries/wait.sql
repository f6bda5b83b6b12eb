-- name: wait_step :one
-- params: step_id text
SELECT * FROM step_wait WHERE step_id = $1;

-- Steps of a run that are not on their way yet.
-- name: wait_run :many
-- params: run_id text, after text, count bigint
SELECT *, lpad(position::text, 8, '0') AS page_key FROM step_wait
WHERE run_id = $1 AND state IN ('waiting', 'queued', 'assigned') AND lpad(position::text, 8, '0') > $2
ORDER BY position LIMIT $3;

-- name: wait_some :many
-- params: step_ids text[]
SELECT * FROM step_wait WHERE step_id = ANY ($1) AND state = 'queued';
