-- Statements of the program db_exercise.

-- name: item_insert :exec
-- params: id bigint, name text
INSERT INTO item (id, name) VALUES ($1, $2);

-- name: item_put :exec
-- params: id bigint, name text, n int, data jsonb, at timestamptz, day date, ok bool, f float8, b bytea, tags text[], nums bigint[]
INSERT INTO item (id, name, n, data, at, day, ok, f, b, tags, nums)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: item_get :one
-- params: id bigint
SELECT id, name, n, data, data AS raw, at, day, ok, f, b, tags, nums, kind FROM item WHERE id = $1;

-- name: item_star :one
-- params: id bigint
SELECT * FROM item WHERE id = $1;

-- name: item_count :one
-- params: from bigint, to bigint
SELECT count(*) FROM item WHERE id BETWEEN $1 AND $2;

-- name: item_delete :exec
-- params: id bigint
DELETE FROM item WHERE id = $1;

-- name: item_set_n :exec
-- params: id bigint, n int
UPDATE item SET n = $2 WHERE id = $1;

-- name: item_lock :one
-- params: id bigint
SELECT n FROM item WHERE id = $1 FOR UPDATE;

-- name: item_cas :one
-- params: id bigint, was int
UPDATE item SET n = $2 + 1 WHERE id = $1 AND n = $2 RETURNING n;

-- name: kid_insert :exec
-- params: id bigint, parent bigint
INSERT INTO kid (id, parent) VALUES ($1, $2);

-- name: late_insert :exec
-- params: id bigint, parent bigint
INSERT INTO late_kid (id, parent) VALUES ($1, $2);

-- name: items_insert :many
-- params: ids bigint[], names text[]
WITH input AS (SELECT * FROM unnest($1, $2) WITH ORDINALITY AS t (id, name, ord)),
     made AS (INSERT INTO item (id, name) SELECT id, name FROM input ON CONFLICT (id) DO NOTHING RETURNING id)
SELECT ord, made.id FROM input JOIN made USING (id);

-- name: echo :one
-- params: v bigint
SELECT $1 AS v;

-- name: nap :one
-- params: seconds float8
SELECT pg_sleep($1);

-- name: my_pid :one
SELECT pg_backend_pid();

-- name: kill_others :many
-- params: like text
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid();

-- name: broken :one
SELECT * FROM no_such_table;

-- name: item_widen :exec
ALTER TABLE item ADD COLUMN IF NOT EXISTS extra text;

-- name: arrays :one
-- params: b bool[], i bigint[], f float8[], t text[], y bytea[], z timestamptz[], j jsonb[], d date[], s int[]
SELECT $1 AS b, $2 AS i, $3 AS f, $4 AS t, $5 AS y, $6 AS z, $7 AS j, $8 AS d, $9 AS s, $4[2] IS NULL AS hole;

-- name: big :one
-- params: n int
SELECT repeat('x', $1);

-- name: isolation :one
SELECT (current_setting('transaction_isolation') = 'repeatable read'
        AND current_setting('transaction_read_only') = 'on')::int;
