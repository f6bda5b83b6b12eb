-- The schedules of a pipeline that is put: those that stay keep what they have decided.
-- name: schedule_put :exec
-- params: project_id text, name text, crons text[], timezones text[], dsts text[], misseds text[], maxes bigint[], nexts timestamptz[], now timestamptz
WITH p AS (
	SELECT id FROM pipeline WHERE project_id = $1 AND name = $2
), x AS (
	SELECT * FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[])
		AS x(cron, timezone, dst, missed, max, next_at)
), gone AS (
	DELETE FROM pipeline_schedule s USING p WHERE s.pipeline_id = p.id
		AND NOT EXISTS (SELECT 1 FROM x WHERE x.cron = s.cron AND x.timezone = s.timezone)
)
INSERT INTO pipeline_schedule AS s (pipeline_id, cron, timezone, dst, missed, max, settled_at, next_at)
SELECT p.id, x.cron, x.timezone, x.dst, x.missed, x.max::int, $9, x.next_at FROM p, x
ON CONFLICT (pipeline_id, cron, timezone) DO UPDATE
	SET dst = excluded.dst, missed = excluded.missed, max = excluded.max, next_at = least(s.next_at, excluded.next_at);

-- Another pipeline of the project that this one would start, over any number of runs, and that would start this one.
-- name: pipeline_circle :one
-- params: project_id text, name text, upstream text[]
WITH RECURSIVE before AS (
	SELECT u.name::ctext AS name, u.name::ctext AS first FROM unnest($3::text[]) AS u(name)
	UNION
	SELECT t.subject, b.first FROM before b JOIN pipeline p ON p.project_id = $1 AND p.name = b.name
	JOIN pipeline_trigger t ON t.pipeline_id = p.id AND t.kind = 'pipeline'
)
SELECT first FROM before WHERE name = $2 LIMIT 1;

-- Instants up to `passed` are settled or were passed over while the pipeline was paused.
-- name: schedule_reached :many
-- params: now timestamptz
SELECT s.pipeline_id, s.cron, s.timezone, s.dst, s.missed, s.max, s.settled_at, greatest(s.settled_at, p.resumed_at) AS passed, p.paused
FROM pipeline_schedule s JOIN pipeline p ON p.id = s.pipeline_id WHERE s.next_at <= $1 ORDER BY s.next_at LIMIT 100;

-- One that cannot be read any more, as when its time zone has gone, is looked at later.
-- name: schedule_later :exec
-- params: pipeline_id text, cron text, timezone text, next timestamptz
UPDATE pipeline_schedule SET next_at = $4 WHERE pipeline_id = $1 AND cron = $2 AND timezone = $3;

-- Unless another server was faster. A row: done.
-- name: schedule_settle :one
-- params: pipeline_id text, cron text, timezone text, was timestamptz, settled timestamptz, next timestamptz, keys text[], instants timestamptz[], missed bigint, late bigint, now timestamptz
WITH moved AS (
	UPDATE pipeline_schedule SET settled_at = $5, next_at = $6
	WHERE pipeline_id = $1 AND cron = $2 AND timezone = $3 AND settled_at = $4 RETURNING pipeline_id
), owed AS (
	INSERT INTO trigger_due (pipeline_id, trigger, key, due_at, try_at)
	SELECT m.pipeline_id, 'schedule', x.key, x.at, $11 FROM moved m, unnest($7::text[], $8::timestamptz[]) AS x(key, at)
	ON CONFLICT DO NOTHING
), told AS (
	INSERT INTO event (project_id, type, subject, data)
	SELECT p.project_id, 'pipeline.schedule_missed', p.id,
		jsonb_build_object('cron', $2::text, 'timezone', $3::text, 'missed', $9::bigint, 'started', $10::bigint)
	FROM moved m JOIN pipeline p ON p.id = m.pipeline_id WHERE $9 > 0
)
SELECT pipeline_id FROM moved;

-- What the end of a run starts; and those that ended lately, because a server may have gone away in between.
-- name: trigger_upstream :exec
-- params: run_id text, now timestamptz
INSERT INTO trigger_due (pipeline_id, trigger, key, due_at, try_at)
SELECT pipeline_id, 'pipeline', key, $2, $2 FROM upstream_owed WHERE key = $1 ON CONFLICT DO NOTHING;

-- name: trigger_upstream_missed :exec
-- params: now timestamptz
INSERT INTO trigger_due (pipeline_id, trigger, key, due_at, try_at)
SELECT pipeline_id, 'pipeline', key, $1, $1 FROM upstream_owed WHERE at > $1 - interval '1 hour' ON CONFLICT DO NOTHING;

-- The same of new versions of data sets.
-- name: trigger_dataset :exec
-- params: version_id text, now timestamptz
INSERT INTO trigger_due (pipeline_id, trigger, key, due_at, try_at)
SELECT pipeline_id, 'dataset', key, $2, $2 FROM dataset_owed WHERE key = $1 ON CONFLICT DO NOTHING;

-- name: trigger_dataset_missed :exec
-- params: now timestamptz
INSERT INTO trigger_due (pipeline_id, trigger, key, due_at, try_at)
SELECT pipeline_id, 'dataset', key, $1, $1 FROM dataset_owed WHERE at > $1 - interval '1 hour' ON CONFLICT DO NOTHING;

-- What there is to do: how many runs are owed now, and whether ends of runs or new data
-- start any.
-- name: trigger_due_look :one
-- params: now timestamptz
SELECT (SELECT count(*) FROM (SELECT 1 FROM trigger_due WHERE over_at IS NULL AND try_at <= $1 LIMIT 20) d) AS owed,
	EXISTS (SELECT 1 FROM pipeline_trigger WHERE kind = 'pipeline') AS upstream,
	EXISTS (SELECT 1 FROM pipeline_trigger WHERE kind = 'dataset') AS datasets;

-- Takes owed runs up, those that came first: nobody else does before `until`, and they come again when this server goes away.
-- name: trigger_due_take :many
-- params: now timestamptz, until timestamptz, count bigint
WITH due AS (
	SELECT d.pipeline_id, d.trigger, d.key FROM trigger_due d JOIN pipeline p ON p.id = d.pipeline_id
	WHERE d.over_at IS NULL AND d.try_at <= $1 AND NOT p.paused ORDER BY d.try_at, d.due_at LIMIT $3 FOR UPDATE OF d SKIP LOCKED
), taken AS (
	UPDATE trigger_due d SET try_at = $2 FROM due
	WHERE d.pipeline_id = due.pipeline_id AND d.trigger = due.trigger AND d.key = due.key
	RETURNING d.pipeline_id, d.trigger, d.key, d.due_at, d.tries
)
SELECT t.pipeline_id, t.trigger, t.key, t.due_at, t.tries, p.project_id, p.name
FROM taken t JOIN pipeline p ON p.id = t.pipeline_id ORDER BY t.due_at;

-- name: trigger_due_made :exec
-- params: pipeline_id text, trigger text, key text
UPDATE trigger_due SET over_at = now(), error = '' WHERE pipeline_id = $1 AND trigger = $2 AND key = $3;

-- Told when the reason is a new one.
-- name: trigger_due_failed :exec
-- params: pipeline_id text, trigger text, key text, try_at timestamptz, error text
WITH was AS (
	SELECT error FROM trigger_due WHERE pipeline_id = $1 AND trigger = $2 AND key = $3 AND over_at IS NULL FOR UPDATE
), again AS (
	UPDATE trigger_due d SET tries = d.tries + 1, try_at = $4, error = $5 FROM was
	WHERE d.pipeline_id = $1 AND d.trigger = $2 AND d.key = $3 RETURNING was.error
)
INSERT INTO event (project_id, type, subject, data)
SELECT p.project_id, 'pipeline.trigger_failed', p.id,
	jsonb_build_object('trigger', $2::text, 'key', $3::text, 'error', $5::text, 'try_at', $4::timestamptz)
FROM again a JOIN pipeline p ON p.id = $1 WHERE a.error <> $5;

-- name: trigger_due_refused :exec
-- params: pipeline_id text, trigger text, key text, error text
WITH over AS (
	UPDATE trigger_due SET over_at = now(), tries = tries + 1, error = $4
	WHERE pipeline_id = $1 AND trigger = $2 AND key = $3 AND over_at IS NULL RETURNING pipeline_id, trigger, key
)
INSERT INTO event (project_id, type, subject, data)
SELECT p.project_id, 'pipeline.trigger_refused', p.id, jsonb_build_object('trigger', o.trigger, 'key', o.key, 'error', $4::text)
FROM over o JOIN pipeline p ON p.id = o.pipeline_id;

-- name: trigger_due_forget :exec
-- params: before timestamptz
DELETE FROM trigger_due WHERE over_at < $1;
