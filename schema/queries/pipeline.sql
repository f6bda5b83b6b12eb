-- One row when something has changed.
-- name: pipeline_put :one
-- params: id text, project_id text, name text, repository text, ref text, path text, commit text, spec jsonb, source text, actor text
WITH put AS (
	INSERT INTO pipeline (id, project_id, name, repository, ref, path, commit, spec, source, created_by)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
	ON CONFLICT (project_id, name) DO UPDATE SET repository = $4, ref = $5, path = $6, commit = $7, spec = $8, source = $9,
		version = pipeline.version + 1
	WHERE (pipeline.repository, pipeline.ref, pipeline.path, pipeline.commit, pipeline.spec, pipeline.source)
		IS DISTINCT FROM ($4, $5, $6, $7, $8, $9)
	RETURNING id
), told AS (
	INSERT INTO event (project_id, type, subject, actor) SELECT $2, 'pipeline.updated', id, $10 FROM put
)
SELECT id FROM put;

-- name: pipeline_triggers_clear :exec
-- params: project_id text, name text
DELETE FROM pipeline_trigger t USING pipeline p WHERE p.id = t.pipeline_id AND p.project_id = $1 AND p.name = $2;

-- name: pipeline_trigger_add :exec
-- params: project_id text, name text, position bigint, kind text, subject text, spec jsonb
INSERT INTO pipeline_trigger (pipeline_id, position, kind, subject, spec)
SELECT id, $3::int, $4, $5, $6 FROM pipeline WHERE project_id = $1 AND name = $2;

-- name: pipeline_get :one
-- params: project_id text, name text
SELECT id, name, repository, ref, path, commit, spec, source, paused, created_at, version FROM pipeline
WHERE project_id = $1 AND name = $2;

-- name: pipeline_list :many
-- params: project_id text, after text, count bigint
SELECT id, name, repository, ref, path, commit, paused, created_at, version, name AS page_key FROM pipeline
WHERE project_id = $1 AND name > $2 ORDER BY name LIMIT $3;

-- name: pipeline_delete :one
-- params: project_id text, name text, actor text
WITH gone AS (
	DELETE FROM pipeline WHERE project_id = $1 AND name = $2 RETURNING id
), told AS (
	INSERT INTO event (project_id, type, subject, actor) SELECT $1, 'pipeline.deleted', id, $3 FROM gone
)
SELECT id FROM gone;

-- Pipelines that a new version of a data set starts.
-- name: pipeline_dataset_triggered :many
-- params: project_id text, dataset text
SELECT DISTINCT p.name FROM pipeline p JOIN pipeline_trigger t ON t.pipeline_id = p.id
WHERE p.project_id = $1 AND t.kind = 'dataset' AND t.subject = $2 AND NOT p.paused;

-- Versions made lately whose pipelines may not have been started, because a server went away in between.
-- name: pipeline_dataset_missed :many
SELECT d.project_id, d.name AS dataset, v.id AS version_id, p.name AS pipeline
FROM dataset_version v JOIN dataset d ON d.id = v.dataset_id
JOIN pipeline_trigger t ON t.kind = 'dataset' AND t.subject = d.name
JOIN pipeline p ON p.id = t.pipeline_id AND p.project_id = d.project_id AND NOT p.paused
WHERE v.created_at > now() - interval '1 hour' AND v.created_at > p.created_at
	AND NOT EXISTS (SELECT 1 FROM run r WHERE r.pipeline_id = p.id AND r.trigger = 'dataset' AND r.trigger_key = v.id)
ORDER BY v.created_at LIMIT 100;
