-- Makes the rows of attempts' logs, unless they are there.
-- name: log_ensure :exec
-- params: attempt_ids text[]
INSERT INTO log (attempt_id, made) SELECT id, date_trunc('week', now())::date FROM attempt WHERE id = ANY ($1) ORDER BY id
ON CONFLICT DO NOTHING;

-- The same columns as log_get has.
-- name: log_get_many :many
-- params: attempt_ids text[]
SELECT i.ord::bigint AS ord, a.id AS attempt_id, a.project_id, a.run_id, a.step_id, a.worker_id, a.epoch, a.state = 'lost' AS lost,
	a.state IN ('succeeded', 'failed', 'cancelled', 'lost') AS ended,
	l.made, coalesce(l.length, 0) AS length, coalesce(l.lines, 0) AS lines, coalesce(l.open, '{0,0,0}') AS open,
	coalesce(l.final, false) AS final, l.digest, coalesce(l.dropped, 0) AS dropped, l.removed_at IS NOT NULL AS removed
FROM unnest($1::text[]) WITH ORDINALITY AS i(id, ord) JOIN attempt a ON a.id = ANY ($1) AND a.id = i.id
LEFT JOIN log l ON l.attempt_id = a.id;

-- name: log_get :one
-- params: attempt_id text
SELECT a.id AS attempt_id, a.project_id, a.run_id, a.step_id, a.worker_id, a.epoch, a.state = 'lost' AS lost,
	a.state IN ('succeeded', 'failed', 'cancelled', 'lost') AS ended,
	l.made, coalesce(l.length, 0) AS length, coalesce(l.lines, 0) AS lines, coalesce(l.open, '{0,0,0}') AS open,
	coalesce(l.final, false) AS final, l.digest, coalesce(l.dropped, 0) AS dropped, l.removed_at IS NOT NULL AS removed
FROM attempt a LEFT JOIN log l ON l.attempt_id = a.id WHERE a.id = $1;

-- The newest attempt of a step, of a rank of its gang, and whether the step has ended.
-- name: log_of_step :one
-- params: step_id text, rank bigint
SELECT s.state IN ('succeeded', 'failed', 'cancelled', 'skipped') AS ended,
	(SELECT a.id FROM attempt a WHERE a.step_id = s.id AND a.rank = $2 ORDER BY a.number DESC LIMIT 1) AS attempt_id,
	coalesce((s.spec #>> '{placement,nodes}')::int, 1) AS nodes
FROM step s WHERE s.id = $1;

-- What others have written to logs that are followed here.
-- name: log_lengths :many
-- params: attempt_ids text[]
SELECT i.ord::bigint AS ord, coalesce(l.length, 0) AS length, coalesce(l.final, false)
	OR a.state IN ('succeeded', 'failed', 'cancelled', 'lost') AS complete, coalesce(l.dropped, 0) AS dropped, l.made
FROM unnest($1::text[]) WITH ORDINALITY AS i(id, ord) JOIN attempt a ON a.id = i.id
LEFT JOIN log l ON l.attempt_id = a.id;

-- Appends to many logs at once: each item only when its log still ends where the item starts, belongs to this worker
-- and epoch, and is neither final nor given up. Rows: the items that were stored. Chunks name their item by its number.
-- name: log_append :many
-- params: attempt_ids text[], worker_ids text[], epochs bigint[], befores bigint[], lengths bigint[], lines bigint[], stdouts bigint[], stderrs bigint[], systems bigint[], owners bigint[], starts bigint[], sizes bigint[], firsts bigint[], open_stdouts bigint[], open_stderrs bigint[], open_systems bigint[], times timestamptz[], datas bytea[]
WITH item AS (
	SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
		$8::bigint[], $9::bigint[]) WITH ORDINALITY
		AS i(attempt_id, worker_id, epoch, before, length, lines, open_stdout, open_stderr, open_system, ord)
), stored AS (
	UPDATE log l SET length = i.length, lines = i.lines, open = ARRAY[i.open_stdout, i.open_stderr, i.open_system]
	FROM item i JOIN attempt a ON a.id = ANY ($1) AND a.id = i.attempt_id AND a.worker_id = i.worker_id AND a.epoch = i.epoch
		AND a.state <> 'lost'
	WHERE l.attempt_id = a.id AND l.length = i.before AND NOT l.final AND l.removed_at IS NULL
	RETURNING i.ord, l.made, l.attempt_id
), chunk AS (
	INSERT INTO log_chunk (made, attempt_id, start, length, line, open_stdout, open_stderr, open_system, time_from, data)
	SELECT s.made, s.attempt_id, c.start, c.size, c.line, c.open_stdout, c.open_stderr, c.open_system, c.time_from, c.data
	FROM unnest($10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[],
		$17::timestamptz[], $18::bytea[])
		AS c(owner, start, size, line, open_stdout, open_stderr, open_system, time_from, data)
	JOIN stored s ON s.ord = c.owner
)
SELECT ord::bigint AS ord FROM stored;

-- Chunks from the one that holds an offset on.
-- name: log_chunks :many
-- params: made date, attempt_id text, offset_from bigint, count bigint
SELECT c.start, c.length, c.line, c.open_stdout, c.open_stderr, c.open_system, c.data FROM log_chunk c
WHERE c.made = $1 AND c.attempt_id = $2 AND c.start >= coalesce((SELECT max(b.start) FROM log_chunk b
	WHERE b.made = $1 AND b.attempt_id = $2 AND b.start <= $3), 0)
ORDER BY c.start LIMIT $4;

-- name: log_chunk_of_time :one
-- params: made date, attempt_id text, before timestamptz
SELECT c.start FROM log_chunk c WHERE c.made = $1 AND c.attempt_id = $2 AND c.time_from < $3 ORDER BY c.start DESC LIMIT 1;

-- Where the chunk starts in which a line starts; no row when there is no chunk.
-- name: log_chunk_of_line :one
-- params: made date, attempt_id text, line bigint
SELECT c.start FROM log_chunk c WHERE c.made = $1 AND c.attempt_id = $2 AND c.line <= $3
ORDER BY c.line DESC, c.start DESC LIMIT 1;

-- Logs that end at these lengths, of attempts that their worker and epoch still hold, will not grow any more. Rows: those.
-- name: log_finish :many
-- params: attempt_ids text[], worker_ids text[], epochs bigint[], lengths bigint[], digests bytea[], dropped bigint[]
WITH done AS (
	UPDATE log l SET final = true, digest = i.digest, dropped = i.dropped
	FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bigint[]) WITH ORDINALITY
		AS i(attempt_id, worker_id, epoch, length, digest, dropped, ord)
	JOIN attempt a ON a.id = ANY ($1) AND a.id = i.attempt_id AND a.worker_id = i.worker_id AND a.epoch = i.epoch
		AND a.state <> 'lost'
	WHERE l.attempt_id = a.id AND l.length = i.length AND NOT l.final
	RETURNING i.ord, a.project_id, a.id, a.run_id, a.worker_id, l.length, l.lines, l.dropped
), told AS (
	INSERT INTO event (project_id, type, subject, parent, actor, data)
	SELECT project_id, 'attempt.log_final', id, run_id, worker_id,
		jsonb_build_object('length', length, 'lines', lines, 'dropped', dropped) FROM done
)
SELECT ord::bigint AS ord FROM done;

-- Forgets the bytes of a log whose digest did not agree, so that it is sent anew.
-- name: log_restart :one
-- params: attempt_id text, worker_id text, epoch bigint, length bigint
WITH gone AS (
	UPDATE log l SET length = 0, lines = 0, open = '{0,0,0}' FROM attempt a
	WHERE l.attempt_id = $1 AND a.id = $1 AND a.worker_id = $2 AND a.epoch = $3 AND a.state <> 'lost'
		AND l.length = $4 AND NOT l.final
	RETURNING l.made
), dropped AS (
	DELETE FROM log_chunk c USING gone g WHERE c.made = g.made AND c.attempt_id = $1
)
SELECT made FROM gone;

-- Puts chunks that lie side by side in the place of smaller ones that hold the same bytes.
-- name: log_merge_remove :exec
-- params: made date, attempt_id text, start bigint, until bigint
DELETE FROM log_chunk WHERE made = $1 AND attempt_id = $2 AND start >= $3 AND start < $4;

-- name: log_merge_add :exec
-- params: made date, attempt_id text, start bigint, length bigint, line bigint, open_stdout bigint, open_stderr bigint, open_system bigint, time_from timestamptz, data bytea
INSERT INTO log_chunk (made, attempt_id, start, length, line, open_stdout, open_stderr, open_system, time_from, data)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);
