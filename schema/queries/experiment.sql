-- An experiment with what its caller may do there. id 0 is the Default one of the project.
-- name: experiment_access :one
-- params: principal_id text, id bigint, project_id text
SELECT e.id, e.project_id, e.name, e.artifact_location, e.lifecycle, e.created_at, e.updated_at,
	CASE WHEN p.admin THEN 'owner' ELSE m.role END AS role
FROM experiment e
LEFT JOIN principal p ON p.id = $1 LEFT JOIN member m ON m.principal_id = $1 AND m.project_id = e.project_id
WHERE ($2 <> 0 AND e.id = $2) OR ($2 = 0 AND e.project_id = $3 AND e.name = 'Default');

-- name: experiment_by_name :one
-- params: project_id text, name text
SELECT id, project_id, name, artifact_location, lifecycle, created_at, updated_at FROM experiment
WHERE project_id = $1 AND name = $2;

-- name: experiment_tags :many
-- params: id bigint
SELECT key, value FROM experiment_tag WHERE experiment_id = $1 ORDER BY key;

-- The location that is empty becomes the proxy's, which needs the new id.
-- name: experiment_insert :one
-- params: project_id text, name text, artifact_location text, tag_keys text[], tag_values text[]
WITH made AS (
	INSERT INTO experiment (project_id, name, artifact_location) VALUES ($1, $2, $3) RETURNING id
), tags AS (
	INSERT INTO experiment_tag (experiment_id, key, value)
	SELECT made.id, t.key, t.value FROM made, unnest($4::text[], $5::text[]) AS t (key, value)
)
SELECT id FROM made;

-- name: experiment_locate :exec
-- params: project_id text, name text
UPDATE experiment SET artifact_location = 'mlflow-artifacts:/' || id
WHERE project_id = $1 AND name = $2 AND artifact_location = '';
