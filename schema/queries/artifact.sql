-- Gives no row when a part of the path is a file, or the path is a folder.
-- name: artifact_put :one
-- params: tracking_id bigint, path text, parents text[], size bigint, digest bytea, media_type text
INSERT INTO artifact (tracking_id, path, size, digest, media_type)
SELECT $1, $2, $4, $5, $6
WHERE NOT EXISTS (SELECT 1 FROM artifact a WHERE a.tracking_id = $1 AND a.path = ANY ($3))
	AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.tracking_id = $1 AND a.path > $2 || '/' AND a.path < $2 || '0')
ON CONFLICT (tracking_id, path) DO UPDATE
	SET size = excluded.size, digest = excluded.digest, media_type = excluded.media_type, created_at = now()
RETURNING path;

-- name: artifact_get :one
-- params: run_id text, path text
SELECT a.path, a.size, a.digest, a.media_type FROM tracking_run t JOIN artifact a ON a.tracking_id = t.id
WHERE t.run_id = $1 AND a.path = $2;

-- What is in a folder ('' or one that ends with '/'): files, and folders with the sizes of all below them.
-- name: artifact_list :many
-- params: run_id text, folder text
SELECT name, $2 || name AS path, bool_or(deep) AS is_dir, sum(size)::bigint AS size,
	CASE WHEN bool_or(deep) THEN '' ELSE min(encode(digest, 'hex')) END AS digest
FROM (
	SELECT split_part(substr(a.path, length($2) + 1), '/', 1)::ctext AS name,
		strpos(substr(a.path, length($2) + 1), '/') > 0 AS deep, a.size, a.digest
	FROM tracking_run t JOIN artifact a ON a.tracking_id = t.id
	WHERE t.run_id = $1 AND ($2 = '' OR (a.path > $2 AND a.path < rtrim($2, '/') || '0'))
) f
GROUP BY name ORDER BY name LIMIT 10000;
