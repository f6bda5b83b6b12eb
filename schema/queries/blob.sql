-- After the bytes are on the disk. The project may name bytes that it has sent once.
-- name: blob_put :exec
-- params: digest bytea, size bigint
INSERT INTO blob (digest, size) VALUES ($1, $2) ON CONFLICT (digest) DO UPDATE SET touched_at = now();

-- name: blob_project_put :exec
-- params: project_id text, digest bytea
INSERT INTO blob_project (project_id, digest) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: blob_head :one
-- params: project_id text, digest bytea
SELECT encode(b.digest, 'hex') AS digest, b.size FROM blob b JOIN blob_project p ON p.digest = b.digest
WHERE p.project_id = $1 AND b.digest = $2;

-- Bytes that are asked for or referred to stay for another time of grace.
-- name: blob_touch :exec
-- params: digests bytea[]
UPDATE blob b SET touched_at = now()
FROM (SELECT digest FROM blob WHERE digest = ANY ($1) AND touched_at < now() - interval '1 hour'
	ORDER BY digest FOR NO KEY UPDATE) x
WHERE b.digest = x.digest;

-- The first file whose bytes the project has not sent, or not of that size (then size says which).
-- name: blob_missing :one
-- params: project_id text, digests bytea[], sizes bigint[]
SELECT f.ord, h.size FROM unnest($2::bytea[], $3::bigint[]) WITH ORDINALITY AS f (digest, size, ord)
LEFT JOIN (SELECT b.digest, b.size FROM blob b JOIN blob_project p ON p.digest = b.digest AND p.project_id = $1) h
	ON h.digest = f.digest
WHERE h.size IS DISTINCT FROM f.size ORDER BY f.ord LIMIT 1;

-- The collector: rows of one shelf that nothing refers to.
-- name: blob_unreferenced :many
-- params: low bytea, high bytea, before timestamptz
SELECT b.digest, b.size FROM blob b
WHERE b.digest >= $1 AND b.digest <= $2 AND b.touched_at < $3
	AND NOT EXISTS (SELECT 1 FROM dataset_file f WHERE f.digest = b.digest)
	AND NOT EXISTS (SELECT 1 FROM step_output o WHERE o.digest = b.digest)
	AND NOT EXISTS (SELECT 1 FROM checkpoint_file c WHERE c.digest = b.digest)
	AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.digest = b.digest)
	AND NOT EXISTS (SELECT 1 FROM model_file m WHERE m.digest = b.digest);

-- name: blob_collect :many
-- params: low bytea, high bytea, before timestamptz
DELETE FROM blob b
WHERE b.digest >= $1 AND b.digest <= $2 AND b.touched_at < $3
	AND NOT EXISTS (SELECT 1 FROM dataset_file f WHERE f.digest = b.digest)
	AND NOT EXISTS (SELECT 1 FROM step_output o WHERE o.digest = b.digest)
	AND NOT EXISTS (SELECT 1 FROM checkpoint_file c WHERE c.digest = b.digest)
	AND NOT EXISTS (SELECT 1 FROM artifact a WHERE a.digest = b.digest)
	AND NOT EXISTS (SELECT 1 FROM model_file m WHERE m.digest = b.digest)
RETURNING b.digest, b.size;

-- Of files without a known row: those that have one after all.
-- name: blob_known :many
-- params: digests bytea[]
SELECT digest FROM blob WHERE digest = ANY ($1) ORDER BY digest;
