-- One row when something has changed; then what could not be started is tried at once.
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
), again AS (
	UPDATE trigger_due d SET try_at = now() FROM put WHERE d.pipeline_id = put.id AND d.over_at IS NULL
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
SELECT p.id, p.name, p.repository, p.ref, p.path, p.commit, p.spec, p.source, p.paused, p.created_at, p.version,
	coalesce((SELECT jsonb_agg(jsonb_build_object('cron', s.cron, 'timezone', s.timezone,
			'next_at', CASE WHEN isfinite(s.next_at) THEN s.next_at END) ORDER BY s.next_at, s.cron, s.timezone)
		FROM pipeline_schedule s WHERE s.pipeline_id = p.id), '[]') AS schedules,
	coalesce((SELECT jsonb_agg(jsonb_build_object('trigger', d.trigger, 'key', d.key, 'tries', d.tries, 'try_at', d.try_at,
			'error', d.error) ORDER BY d.due_at)
		FROM (SELECT * FROM trigger_due WHERE pipeline_id = p.id AND over_at IS NULL ORDER BY due_at LIMIT 100) d), '[]') AS owed
FROM pipeline p WHERE p.project_id = $1 AND p.name = $2;

-- name: pipeline_list :many
-- params: project_id text, after text, count bigint
SELECT id, name, repository, ref, path, commit, paused, created_at, version, name AS page_key FROM pipeline
WHERE project_id = $1 AND name > $2 ORDER BY name LIMIT $3;

-- Runs that triggers owe are passed over with the rest, and so is what happens until the pipeline is resumed.
-- name: pipeline_pause :exec
-- params: project_id text, name text, paused bool, actor text
WITH moved AS (
	UPDATE pipeline SET paused = $3, resumed_at = CASE WHEN $3 THEN resumed_at ELSE now() END, version = version + 1
	WHERE project_id = $1 AND name = $2 AND paused <> $3 RETURNING id
), over AS (
	UPDATE trigger_due d SET over_at = now(), error = 'the pipeline was paused' FROM moved m
	WHERE $3 AND d.pipeline_id = m.id AND d.over_at IS NULL
)
INSERT INTO event (project_id, type, subject, actor)
SELECT $1, CASE WHEN $3 THEN 'pipeline.paused' ELSE 'pipeline.resumed' END, id, $4 FROM moved;

-- name: pipeline_delete :one
-- params: project_id text, name text, actor text
WITH gone AS (
	DELETE FROM pipeline WHERE project_id = $1 AND name = $2 RETURNING id
), told AS (
	INSERT INTO event (project_id, type, subject, actor) SELECT $1, 'pipeline.deleted', id, $3 FROM gone
)
SELECT id FROM gone;
