-- name: dataset_insert :exec
-- params: id text, project_id text, name text, description text, labels jsonb, created_by text
INSERT INTO dataset (id, project_id, name, description, labels, created_by) VALUES ($1, $2, $3, $4, $5, $6);

-- name: dataset_get :one
-- params: project_id text, name text
SELECT id, name, description, labels, versions AS latest, created_at, version FROM dataset
WHERE project_id = $1 AND name = $2;

-- name: dataset_get_id :one
-- params: id text
SELECT id, name, description, labels, versions AS latest, created_at, version FROM dataset WHERE id = $1;

-- name: dataset_list :many
-- params: project_id text, after text, count bigint
SELECT id, name, description, labels, versions AS latest, created_at, version, name AS page_key FROM dataset
WHERE project_id = $1 AND name > $2 ORDER BY name LIMIT $3;

-- Who needs a data set: runs that read it, models that were trained on it.
-- name: dataset_needed :one
-- params: project_id text, name text
SELECT d.id,
	(SELECT count(*) FROM run_dataset r JOIN dataset_version v ON v.id = r.version_id WHERE v.dataset_id = d.id) AS runs,
	(SELECT count(*) FROM model_version m JOIN dataset_version v ON v.id IN (m.training_data->>'dataset_version', m.training_data->>'dataset_version_id')
		WHERE v.dataset_id = d.id) AS models
FROM dataset d WHERE d.project_id = $1 AND d.name = $2;

-- name: dataset_delete :one
-- params: id text
DELETE FROM dataset WHERE id = $1 RETURNING id;

-- Takes the number; whoever comes second waits here and then meets dataset_version_dataset_id_number_key.
-- name: dataset_take_number :exec
-- params: id text, number bigint
UPDATE dataset SET versions = $2, version = version + 1 WHERE id = $1 AND versions = $2 - 1;

-- name: dataset_version_insert :exec
-- params: id text, dataset_id text, number bigint, digest bytea, files bigint, bytes bigint, description text, labels jsonb, parent_id text, run_id text, created_by text
INSERT INTO dataset_version (id, dataset_id, number, digest, files, bytes, description, labels, parent_id, run_id, created_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: dataset_file_insert :exec
-- params: version_id text, paths text[], sizes bigint[], digests bytea[], types text[]
INSERT INTO dataset_file (version_id, path, size, digest, media_type)
SELECT $1, f.path, f.size, f.digest, f.type
FROM unnest($2::text[], $3::bigint[], $4::bytea[], $5::text[]) AS f (path, size, digest, type);

-- name: dataset_file_inherit :exec
-- params: version_id text, parent_id text
INSERT INTO dataset_file (version_id, path, size, digest, media_type, added)
SELECT $1, path, size, digest, media_type, false FROM dataset_file WHERE version_id = $2;

-- A version by its number; 0: the newest.
-- name: dataset_version_get :one
-- params: project_id text, name text, number bigint
SELECT v.id, d.name AS dataset, v.number, encode(v.digest, 'hex') AS digest, v.files, v.bytes, v.description, v.labels,
	v.parent_id, v.run_id, v.created_at
FROM dataset d JOIN dataset_version v ON v.dataset_id = d.id AND v.number = CASE WHEN $3 = 0 THEN d.versions ELSE $3 END
WHERE d.project_id = $1 AND d.name = $2;

-- name: dataset_version_get_id :one
-- params: id text
SELECT v.id, d.name AS dataset, v.number, encode(v.digest, 'hex') AS digest, v.files, v.bytes, v.description, v.labels,
	v.parent_id, v.run_id, v.created_at
FROM dataset_version v JOIN dataset d ON d.id = v.dataset_id WHERE v.id = $1;

-- name: dataset_version_list :many
-- params: project_id text, name text, before bigint, count bigint
SELECT v.id, d.name AS dataset, v.number, encode(v.digest, 'hex') AS digest, v.files, v.bytes, v.description, v.labels,
	v.parent_id, v.run_id, v.created_at, v.number::text AS page_key
FROM dataset d JOIN dataset_version v ON v.dataset_id = d.id
WHERE d.project_id = $1 AND d.name = $2 AND v.number < $3 ORDER BY v.number DESC LIMIT $4;

-- name: dataset_file_list :many
-- params: project_id text, name text, number bigint, after text, count bigint
SELECT f.path, encode(f.digest, 'hex') AS digest, f.size, f.media_type, f.path AS page_key
FROM dataset d JOIN dataset_version v ON v.dataset_id = d.id AND v.number = CASE WHEN $3 = 0 THEN d.versions ELSE $3 END
JOIN dataset_file f ON f.version_id = v.id
WHERE d.project_id = $1 AND d.name = $2 AND f.path > $4 ORDER BY f.path LIMIT $5;

-- name: dataset_file_of_version :many
-- params: version_id text
SELECT path, encode(digest, 'hex') AS digest, size, media_type FROM dataset_file WHERE version_id = $1 ORDER BY path;

-- name: dataset_file_get :one
-- params: project_id text, name text, number bigint, path text
SELECT f.path, f.digest, f.size, f.media_type
FROM dataset d JOIN dataset_version v ON v.dataset_id = d.id AND v.number = CASE WHEN $3 = 0 THEN d.versions ELSE $3 END
JOIN dataset_file f ON f.version_id = v.id
WHERE d.project_id = $1 AND d.name = $2 AND f.path = $4;
