-- name: event_insert :exec
-- params: project_id text, type text, subject text, parent text, actor text, data jsonb
INSERT INTO event (project_id, type, subject, parent, actor, data)
VALUES ($1, $2, $3, $4, $5, $6);

-- Rows of transactions that are still open are held back, with all that come after them.
-- name: event_after :many
-- params: after bigint, count bigint
SELECT e.id, e.at, e.project_id, p.name AS project, e.type, e.subject, e.parent, e.actor, e.data
FROM event e LEFT JOIN project p ON p.id = e.project_id
WHERE e.id > $1 AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.id LIMIT $2;

-- name: event_last :one
SELECT coalesce(max(id), 0) AS id FROM event WHERE xid < pg_snapshot_xmin(pg_current_snapshot());

-- name: event_of_project :many
-- params: project_id text, after bigint, count bigint
SELECT e.id, e.at, e.project_id, p.name AS project, e.type, e.subject, e.parent, e.actor, e.data
FROM event e LEFT JOIN project p ON p.id = e.project_id
WHERE e.project_id = $1 AND e.id > $2 AND e.xid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.id LIMIT $3;
