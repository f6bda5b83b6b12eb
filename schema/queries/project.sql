-- name: project_insert :exec
-- params: id text, name text, description text, retention jsonb, created_by text
INSERT INTO project (id, name, description, retention, created_by) VALUES ($1, $2, $3, $4, $5);

-- name: project_experiment_insert :exec
-- params: project_id text
INSERT INTO experiment (project_id, name, artifact_location)
SELECT $1, 'Default', '' ON CONFLICT DO NOTHING;

-- name: project_experiment_location :exec
-- params: project_id text
UPDATE experiment SET artifact_location = 'mlflow-artifacts:/' || id WHERE project_id = $1 AND artifact_location = '';

-- name: project_get :one
-- params: id text
SELECT id, name, description, retention, created_at, version FROM project WHERE id = $1;

-- name: project_list :many
-- params: principal_id text, admin bool, only text, after text, count bigint
SELECT p.id, p.name, p.description, p.retention, p.created_at, p.version, p.name AS page_key FROM project p
WHERE ($2 OR EXISTS (SELECT 1 FROM member m WHERE m.project_id = p.id AND m.principal_id = $1))
	AND ($3::text IS NULL OR p.id = $3) AND p.name > $4
ORDER BY p.name LIMIT $5;

-- name: project_update :one
-- params: id text, version bigint, description text, retention jsonb, actor text
WITH moved AS (
	UPDATE project SET description = coalesce($3, description), retention = coalesce($4, retention), version = version + 1
	WHERE id = $1 AND version = $2 AND (coalesce($3, description), coalesce($4, retention)) IS DISTINCT FROM (description, retention)
	RETURNING id, name, description, retention, created_at, version
), told AS (
	INSERT INTO event (project_id, type, subject, actor) SELECT id, 'project.updated', id, $5 FROM moved
)
SELECT id, name, description, retention, created_at, version FROM moved
UNION ALL
SELECT id, name, description, retention, created_at, version FROM project
WHERE id = $1 AND version = $2 AND (coalesce($3, description), coalesce($4, retention)) IS NOT DISTINCT FROM (description, retention);

-- name: project_active_runs :one
-- params: id text
SELECT count(*) AS n FROM run WHERE project_id = $1 AND state IN ('queued', 'running', 'finishing');

-- What goes with a project.
-- name: project_content :one
-- params: id text
SELECT true AS dry_run,
	(SELECT count(*) FROM run WHERE project_id = $1) AS runs,
	(SELECT count(*) FROM run WHERE project_id = $1 AND state IN ('queued', 'running', 'finishing')) AS active_runs,
	(SELECT count(*) FROM pipeline WHERE project_id = $1) AS pipelines,
	(SELECT count(*) FROM dataset WHERE project_id = $1) AS datasets,
	(SELECT count(*) FROM dataset_version v JOIN dataset d ON d.id = v.dataset_id WHERE d.project_id = $1) AS dataset_versions,
	(SELECT count(*) FROM model WHERE project_id = $1) AS models,
	(SELECT count(*) FROM model_version v JOIN model m ON m.id = v.model_id WHERE m.project_id = $1) AS model_versions,
	(SELECT count(*) FROM monitor WHERE project_id = $1) AS monitors,
	(SELECT count(*) FROM monitor_window w JOIN monitor o ON o.id = w.monitor_id WHERE o.project_id = $1) AS windows,
	(SELECT count(*) FROM tracking_run WHERE project_id = $1) AS tracking_runs,
	(SELECT count(*) FROM artifact a JOIN tracking_run t ON t.id = a.tracking_id WHERE t.project_id = $1) AS artifacts,
	(SELECT count(*) FROM member WHERE project_id = $1) AS members;

-- name: project_delete :one
-- params: id text, version bigint, actor text
WITH gone AS (
	DELETE FROM project WHERE id = $1 AND version = $2
		AND NOT EXISTS (SELECT FROM run WHERE project_id = $1 AND state IN ('queued', 'running', 'finishing'))
	RETURNING id, name
), told AS (
	INSERT INTO event (project_id, type, subject, actor, data)
	SELECT id, 'project.deleted', id, $3, jsonb_build_object('name', name) FROM gone
)
SELECT id FROM gone;

-- name: quota_get :one
-- params: project_id text
SELECT * FROM project_quota WHERE project_id = $1;

-- name: quota_list :many
-- params: after text, count bigint
SELECT *, project AS page_key FROM project_quota WHERE project > $1 ORDER BY project LIMIT $2;

-- name: quota_put :exec
-- params: project_id text, weight float8, gpus bigint, gpus_borrow bigint, steps bigint, steps_borrow bigint, actor text
WITH put AS (
	UPDATE project SET quota_weight = $2, quota_gpus = $3, quota_gpus_borrow = $4, quota_steps = $5, quota_steps_borrow = $6
	WHERE id = $1 RETURNING id
)
INSERT INTO event (project_id, type, subject, actor, data)
SELECT id, 'project.quota_changed', id, $7, jsonb_build_object('weight', $2, 'gpus', $3, 'gpus_borrow', $4, 'steps', $5,
	'steps_borrow', $6) FROM put;

-- name: member_list :many
-- params: project_id text, after text, count bigint
SELECT p.name AS principal, m.role, p.name AS page_key FROM member m JOIN principal p ON p.id = m.principal_id
WHERE m.project_id = $1 AND p.name > $2 ORDER BY p.name LIMIT $3;

-- name: member_put :one
-- params: project_id text, principal text, role text, actor text
WITH put AS (
	INSERT INTO member (project_id, principal_id, role)
	SELECT $1, p.id, $3 FROM principal p WHERE p.name = $2 AND p.disabled_at IS NULL
	ON CONFLICT (project_id, principal_id) DO UPDATE SET role = excluded.role WHERE member.role <> excluded.role
	RETURNING principal_id
), told AS (INSERT INTO event (project_id, type, subject, actor) SELECT $1, 'project.members_changed', $1, $4 FROM put)
SELECT p.name AS principal, $3 AS role FROM principal p WHERE p.name = $2 AND p.disabled_at IS NULL;

-- name: member_delete :one
-- params: project_id text, principal text, actor text
WITH gone AS (
	DELETE FROM member m USING principal p WHERE m.project_id = $1 AND p.id = m.principal_id AND p.name = $2 RETURNING p.id
), told AS (INSERT INTO event (project_id, type, subject, actor) SELECT $1, 'project.members_changed', $1, $3 FROM gone)
SELECT id FROM gone;
