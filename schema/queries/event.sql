-- name: event_insert :exec
-- params: project_id text, type text, subject text, parent text, actor text, data jsonb
INSERT INTO event (project_id, type, subject, parent, actor, data)
VALUES ($1, $2, $3, $4, $5, $6);

-- The order of events is (xid, id): rows of transactions that are still open are held back, with all of later
-- transactions, and none comes before one that has been read, as it would by id alone.
-- name: event_after :many
-- params: after bigint, count bigint
SELECT e.id, e.at, e.project_id, p.name AS project, e.type, e.subject, e.parent, e.actor, e.data
FROM event e LEFT JOIN project p ON p.id = e.project_id
WHERE (e.xid, e.id) > (coalesce((SELECT x.xid FROM event x WHERE x.id = $1), '0'::xid8), $1)
	AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.xid, e.id LIMIT $2;

-- name: event_last :one
SELECT coalesce((SELECT id FROM event WHERE xid < pg_snapshot_xmin(pg_current_snapshot())
	ORDER BY xid DESC, id DESC LIMIT 1), 0) AS id;

-- Transactions below low are over; none has begun that is not below high.
-- name: event_horizon :one
SELECT pg_snapshot_xmin(s)::text::bigint AS low, pg_snapshot_xmax(s)::text::bigint AS high FROM pg_current_snapshot() AS s;

-- Whether an event that is still kept comes no later than another.
-- name: event_known :one
-- params: id bigint, until bigint
SELECT (e.xid, e.id) <= (coalesce((SELECT x.xid FROM event x WHERE x.id = $2), '0'::xid8), $2) AS told
FROM event e WHERE e.id = $1;

-- Events of a project after one and up to another.
-- name: event_of_project :many
-- params: project_id text, after bigint, until bigint, count bigint
SELECT e.id, e.at, e.project_id, p.name AS project, e.type, e.subject, e.parent, e.actor, e.data
FROM event e LEFT JOIN project p ON p.id = e.project_id
WHERE e.project_id = $1 AND (e.xid, e.id) > (coalesce((SELECT x.xid FROM event x WHERE x.id = $2), '0'::xid8), $2)
	AND (e.xid, e.id) <= (coalesce((SELECT x.xid FROM event x WHERE x.id = $3), '0'::xid8), $3)
ORDER BY e.xid, e.id LIMIT $4;
