-- name: pool_list :many
-- params: after text, count bigint
SELECT *, name AS page_key FROM pool_all WHERE name > $1 ORDER BY name LIMIT $2;

-- name: pool_get :one
-- params: name text
SELECT * FROM pool_all WHERE name = $1;

-- Nothing when it is not at the version that is expected; any will do for null.
-- name: pool_put :one
-- params: name text, policy text, sensitivity text[], preemption text, expected bigint, actor text
WITH put AS (
	INSERT INTO pool AS p (name, policy, sensitivity, preemption)
	SELECT $1, $2, $3, $4 WHERE coalesce($5, 0) = 0 OR EXISTS (SELECT FROM pool WHERE name = $1)
	ON CONFLICT (name) DO UPDATE SET policy = $2, sensitivity = $3, preemption = $4, version = p.version + 1
		WHERE p.version = coalesce($5, p.version)
	RETURNING p.name
), told AS (
	INSERT INTO event (type, subject, actor, data)
	SELECT 'pool.changed', name, $6, jsonb_build_object('policy', $2, 'sensitivity', $3, 'preemption', $4) FROM put
)
SELECT name FROM put;

-- name: pool_delete :one
-- params: name text, actor text
WITH gone AS (
	DELETE FROM pool WHERE name = $1 RETURNING name
), told AS (
	INSERT INTO event (type, subject, actor, data) SELECT 'pool.changed', name, $2, '{}' FROM gone
)
SELECT name FROM pool_all WHERE name = $1; -- as it was
