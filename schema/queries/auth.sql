-- A credential with all that its check needs. A job token lives as long as its attempt is current.
-- name: auth_token :one
-- params: id text
SELECT t.id, t.kind, t.mac, t.principal_id, coalesce(p.name, w.name, '') AS name,
	coalesce(p.admin, false) AND t.project_id IS NULL AND t.role IS NULL AS admin,
	p.disabled_at IS NOT NULL AS disabled, t.project_id, j.name AS project, t.role, t.worker_id, t.attempt_id, t.epoch,
	t.data, t.expires_at, t.revoked_at IS NOT NULL OR t.used_at IS NOT NULL AS dead,
	t.kind <> 'jb' OR coalesce(a.epoch = t.epoch AND a.state IN ('assigned', 'preparing', 'running', 'finishing'), false)
		AS alive,
	t.last_used_at
FROM token t
LEFT JOIN principal p ON p.id = t.principal_id
LEFT JOIN project j ON j.id = t.project_id
LEFT JOIN worker w ON w.id = t.worker_id
LEFT JOIN attempt a ON a.id = t.attempt_id
WHERE t.id = $1;

-- name: auth_session :one
-- params: mac bytea
SELECT s.token_id, s.expires_at, s.last_seen_at FROM session s
WHERE s.mac = $1 AND s.expires_at > now() AND s.last_seen_at > now() - interval '8 hours';

-- name: auth_tokens_used :exec
-- params: ids text[], ips text[]
UPDATE token t SET last_used_at = now(), last_used_ip = x.ip
FROM unnest($1::text[], $2::text[]) AS x(id, ip)
WHERE t.id = x.id AND (t.last_used_at IS NULL OR t.last_used_at < now() - interval '1 minute');

-- name: auth_session_seen :exec
-- params: mac bytea
UPDATE session SET last_seen_at = now() WHERE mac = $1 AND last_seen_at < now() - interval '1 minute';

-- The project that a path names, with the caller's role in it (null: none). An administrator's token that is limited
-- to a project or a role is an owner's there, up to its limit.
-- name: access_project :one
-- params: principal_id text, name text
SELECT j.id, j.name, CASE WHEN p.admin THEN 'owner' ELSE m.role END AS role FROM project j
LEFT JOIN principal p ON p.id = $1 LEFT JOIN member m ON m.principal_id = $1 AND m.project_id = j.id
WHERE j.name = $2;

-- The project that owns an object.
-- name: access_object :one
-- params: principal_id text, kind text, id text
SELECT j.id, j.name, CASE WHEN p.admin THEN 'owner' ELSE m.role END AS role FROM (
	SELECT project_id FROM run WHERE $2 = 'run' AND id = $3
	UNION ALL SELECT project_id FROM step WHERE $2 = 'step' AND id = $3
	UNION ALL SELECT project_id FROM attempt WHERE $2 = 'attempt' AND id = $3
	UNION ALL SELECT project_id FROM tracking_run WHERE $2 = 'tracking' AND run_id = $3
	UNION ALL SELECT d.project_id FROM decision c JOIN monitor d ON d.id = c.monitor_id WHERE $2 = 'decision' AND c.id = $3
) o
JOIN project j ON j.id = o.project_id
LEFT JOIN principal p ON p.id = $1 LEFT JOIN member m ON m.principal_id = $1 AND m.project_id = j.id;

-- name: idempotency_insert :exec
-- params: principal_id text, key text, request_hash bytea, object_id text
INSERT INTO idempotency (principal_id, key, request_hash, object_id) VALUES ($1, $2, $3, $4);

-- name: idempotency_get :one
-- params: principal_id text, key text
SELECT request_hash, object_id FROM idempotency WHERE principal_id = $1 AND key = $2;

-- name: idempotency_expire :exec
DELETE FROM idempotency WHERE created_at < now() - interval '48 hours';

-- name: admin_count :one
SELECT count(*) AS n FROM principal WHERE admin AND disabled_at IS NULL;

-- name: token_insert :exec
-- params: id text, kind text, mac bytea, name text, principal_id text, project_id text, role text, worker_id text, attempt_id text, epoch bigint, data jsonb, created_by text, expires_at timestamptz
INSERT INTO token (id, kind, mac, name, principal_id, project_id, role, worker_id, attempt_id, epoch, data, created_by, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13);

-- One use: the row is marked by whoever is first.
-- name: token_use :one
-- params: id text
UPDATE token SET used_at = now() WHERE id = $1 AND used_at IS NULL AND revoked_at IS NULL AND expires_at > now() RETURNING id;

-- name: token_get :one
-- params: id text
SELECT t.id, t.kind, t.name, p.name AS principal, j.name AS project, t.role, t.created_at, t.expires_at, t.last_used_at,
	t.revoked_at, t.principal_id
FROM token t LEFT JOIN principal p ON p.id = t.principal_id LEFT JOIN project j ON j.id = t.project_id
WHERE t.id = $1 AND t.kind IN ('pat', 'ci', 'jn');

-- name: token_list :many
-- params: principal_id text, after text, count bigint
SELECT t.id, t.kind, t.name, p.name AS principal, j.name AS project, t.role, t.created_at, t.expires_at, t.last_used_at,
	t.revoked_at, t.id AS page_key
FROM token t LEFT JOIN principal p ON p.id = t.principal_id LEFT JOIN project j ON j.id = t.project_id
WHERE t.principal_id = $1 AND t.kind IN ('pat', 'ci') AND t.id > $2
ORDER BY t.id LIMIT $3;

-- name: token_revoke :one
-- params: id text, principal_id text, admin bool, actor text
WITH gone AS (UPDATE token SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 AND (principal_id = $2 OR $3) RETURNING id),
told AS (INSERT INTO event (type, subject, actor) SELECT 'token.revoked', id, $4 FROM gone)
SELECT id FROM gone;

-- name: session_insert :exec
-- params: mac bytea, token_id text, expires_at timestamptz
INSERT INTO session (mac, token_id, expires_at) VALUES ($1, $2, $3);

-- name: session_delete :exec
-- params: mac bytea
DELETE FROM session WHERE mac = $1;

-- name: session_expire :exec
DELETE FROM session WHERE expires_at < now() OR last_seen_at < now() - interval '8 hours';

-- name: principal_insert :exec
-- params: id text, name text, admin bool
INSERT INTO principal (id, name, admin) VALUES ($1, $2, $3);

-- name: principal_get :one
-- params: id_or_name text
SELECT id, name, admin, created_at, disabled_at FROM principal WHERE id = $1 OR name = $1;

-- name: principal_list :many
-- params: after text, count bigint
SELECT id, name, admin, created_at, disabled_at, name AS page_key FROM principal WHERE name > $1 ORDER BY name LIMIT $2;

-- name: principal_disable :one
-- params: id_or_name text, actor text
WITH gone AS (UPDATE principal SET disabled_at = coalesce(disabled_at, now()) WHERE id = $1 OR name = $1 RETURNING id),
told AS (INSERT INTO event (type, subject, actor) SELECT 'principal.disabled', id, $2 FROM gone)
SELECT id FROM gone;

-- Which of these callers may still read in their projects, by the rules that let them in; macs are of sessions, null for
-- tokens.
-- name: auth_still :many
-- params: token_ids text[], project_ids text[], macs bytea[]
SELECT i.ord::bigint AS ord FROM unnest($1::text[], $2::text[], $3::bytea[]) WITH ORDINALITY AS i(token_id, project_id, mac, ord)
JOIN token t ON t.id = i.token_id AND t.revoked_at IS NULL AND t.expires_at > now()
JOIN principal p ON p.id = t.principal_id AND p.disabled_at IS NULL
WHERE (t.project_id IS NULL OR t.project_id = i.project_id) AND project_role(p.id, i.project_id) IS NOT NULL
	AND (i.mac IS NULL OR EXISTS (SELECT FROM session s WHERE s.mac = i.mac AND s.expires_at > now()));
