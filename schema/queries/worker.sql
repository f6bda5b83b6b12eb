-- Burns the join token and makes the worker, or nothing.
-- name: worker_enroll :one
-- params: token_id text, id text, name text
WITH used AS (
	UPDATE token SET used_at = now()
	WHERE id = $1 AND kind = 'jn' AND used_at IS NULL AND revoked_at IS NULL AND expires_at > now()
	RETURNING data
), made AS (
	INSERT INTO worker (id, name, pool, labels)
	SELECT $2, $3, coalesce(data ->> 'pool', 'default'), coalesce(data -> 'labels', '{}') FROM used
	RETURNING id, pool
), seen AS (
	INSERT INTO worker_seen (worker_id, seen_at) SELECT id, now() FROM made
)
SELECT id, pool FROM made;

-- name: worker_token_insert :exec
-- params: id text, mac bytea, worker_id text, expires_at timestamptz
INSERT INTO token (id, kind, mac, name, worker_id, expires_at) SELECT $1, 'wk', $2, 'worker', w.id, $4 FROM worker w WHERE w.id = $3;

-- name: worker_get :one
-- params: id_or_name text, offline_after_us bigint
SELECT w.id, w.name, w.pool, w.labels, w.state, w.boot_id, w.release, w.runtimes, w.isolated, w.cpus, w.memory, w.disk_free, w.devices,
	w.warnings, coalesce((SELECT h.holds FROM worker_holds h WHERE h.worker_id = w.id), '[]') AS holds,
	w.created_at, w.version, w.faults, w.fault_at, s.seen_at,
	coalesce(s.seen_at > clock_timestamp() - make_interval(secs => $2 / 1000000.0), false) AS online,
	(SELECT count(*) FROM attempt a WHERE a.worker_id = w.id AND a.state IN ('assigned', 'preparing', 'running', 'finishing')) AS running
FROM worker w LEFT JOIN worker_seen s ON s.worker_id = w.id WHERE w.id = $1 OR w.name = $1;

-- name: worker_list :many
-- params: after text, count bigint, offline_after_us bigint
SELECT w.id, w.name, w.pool, w.labels, w.state, w.boot_id, w.release, w.runtimes, w.isolated, w.cpus, w.memory, w.disk_free, w.devices,
	w.warnings, coalesce((SELECT h.holds FROM worker_holds h WHERE h.worker_id = w.id), '[]') AS holds,
	w.created_at, w.version, w.faults, w.fault_at, s.seen_at,
	coalesce(s.seen_at > clock_timestamp() - make_interval(secs => $3 / 1000000.0), false) AS online,
	(SELECT count(*) FROM attempt a WHERE a.worker_id = w.id AND a.state IN ('assigned', 'preparing', 'running', 'finishing')) AS running,
	w.name AS page_key
FROM worker w LEFT JOIN worker_seen s ON s.worker_id = w.id WHERE w.name > $1 ORDER BY w.name LIMIT $2;

-- name: worker_set_state :one
-- params: id_or_name text, state text, actor text
WITH moved AS (
	UPDATE worker SET state = $2, version = version + 1, faults = CASE WHEN $2 = 'active' THEN 0 ELSE faults END
	WHERE id = $1 OR name = $1 RETURNING id
), told AS (
	INSERT INTO event (type, subject, actor, data) SELECT 'worker.' || $2, id, $3, jsonb_build_object('worker_id', id) FROM moved
)
SELECT id FROM moved;

-- name: worker_delete :one
-- params: id_or_name text, actor text
WITH gone AS (
	DELETE FROM worker w WHERE (w.id = $1 OR w.name = $1) AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.worker_id = w.id
		AND a.state IN ('assigned', 'preparing', 'running', 'finishing'))
	RETURNING w.id
), shut AS (
	UPDATE token SET revoked_at = now() FROM gone WHERE token.worker_id = gone.id
), told AS (
	INSERT INTO event (type, subject, actor, data) SELECT 'worker.deleted', id, $2, jsonb_build_object('worker_id', id) FROM gone
)
SELECT id FROM gone;

-- How long ago each was seen, in microseconds: by the database's clock, which all servers share. A worker may be named twice.
-- name: worker_seen :exec
-- params: ids text[], ago bigint[]
INSERT INTO worker_seen (worker_id, seen_at)
SELECT w.id, clock_timestamp() - make_interval(secs => min(x.ago) / 1000000.0)
FROM unnest($1::text[], $2::bigint[]) AS x(id, ago) JOIN worker w ON w.id = x.id
GROUP BY w.id ORDER BY w.id
ON CONFLICT (worker_id) DO UPDATE SET seen_at = greatest(worker_seen.seen_at, excluded.seen_at);

-- What the worker says of itself; an event only when something but free disk has changed.
-- name: worker_inventory :exec
-- params: id text, boot_id text, release text, runtimes text[], cpus float8, memory bigint, disk_free bigint, devices jsonb, warnings jsonb, isolated text[]
WITH changed AS (
	UPDATE worker w SET boot_id = $2, release = $3, runtimes = $4, cpus = $5, memory = $6, disk_free = $7, devices = $8,
		warnings = $9, isolated = $10, version = w.version + 1
	FROM (SELECT * FROM worker WHERE id = $1) o
	WHERE w.id = o.id AND (o.boot_id, o.release, o.runtimes, o.cpus, o.memory, o.devices, o.warnings, o.isolated)
		IS DISTINCT FROM ($2, $3, $4, $5, $6, $8, $9, $10)
	RETURNING w.id
)
INSERT INTO event (type, subject, data) SELECT 'worker.updated', id, jsonb_build_object('worker_id', id) FROM changed;

-- keys: of each, its hash and its bytes, eight bytes each, for the scheduler.
-- name: worker_holds_put :exec
-- params: id text, holds jsonb, keys bytea
INSERT INTO worker_holds (worker_id, holds, keys) SELECT w.id, $2::jsonb -> 'items', $3 FROM worker w WHERE w.id = $1
ON CONFLICT (worker_id) DO UPDATE SET holds = excluded.holds, keys = excluded.keys WHERE worker_holds.holds IS DISTINCT FROM excluded.holds;

-- name: worker_disk :exec
-- params: id text, disk_free bigint
UPDATE worker SET disk_free = $2 WHERE id = $1 AND abs(disk_free - $2) > 1073741824;

-- ---- sync ----

-- Reports of many workers at once; ord tells whose each is. States only move forward, and only for the holder of the
-- epoch. A success must have its log complete. Who is told to make room, and knows no better than that it was cancelled, was
-- preempted.
-- name: sync_report :many
-- params: ords bigint[], worker_ids text[], ids text[], epochs bigint[], states text[], reasons text[], messages text[], runtimes text[], exit_codes bigint[], signals bigint[], started_at timestamptz[], ended_at timestamptz[], evidence jsonb[], host_faults text[], addresses text[], ports bigint[]
WITH rank (state, n) AS (
	VALUES ('assigned', 0), ('preparing', 1), ('running', 2), ('finishing', 3), ('succeeded', 4), ('failed', 4), ('cancelled', 4)
), r AS ( -- a worker may have two requests in one batch: the furthest state counts, else one that is older could
	SELECT DISTINCT ON (x.worker_id, x.id, x.epoch) x.*, n.n
	FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
		$9::bigint[], $10::bigint[], $11::timestamptz[], $12::timestamptz[], $13::jsonb[], $15::text[], $16::bigint[])
		AS x(ord, worker_id, id, epoch, state, reason, message, runtime, exit_code, signal, started_at, ended_at, evidence, address, port)
	JOIN rank n ON n.state = x.state
	ORDER BY x.worker_id, x.id, x.epoch, n.n DESC, x.port DESC, x.ord DESC
), changed AS (
	UPDATE attempt a SET runtime = r.runtime, exit_code = r.exit_code,
		state = CASE WHEN a.preempted_by IS NOT NULL AND r.state = 'cancelled' THEN 'failed' ELSE r.state END,
		reason = CASE WHEN a.preempted_by IS NOT NULL AND r.state = 'cancelled' THEN 'preempted' ELSE r.reason END,
		message = CASE WHEN a.preempted_by IS NOT NULL AND (r.state = 'cancelled' OR r.reason = 'preempted') THEN a.preempted_why
			ELSE r.message END,
		signal = r.signal, started_at = coalesce(a.started_at, r.started_at), evidence = r.evidence,
		ended_at = CASE WHEN r.n = 4 THEN coalesce(r.ended_at, now()) END,
		ready_at = CASE WHEN r.port > 0 THEN now() ELSE a.ready_at END, address = CASE WHEN r.port > 0 THEN r.address ELSE a.address END,
		port = CASE WHEN r.port > 0 THEN r.port ELSE a.port END
	FROM r
	WHERE a.id = ANY ($3) AND a.id = r.id AND a.worker_id = r.worker_id AND a.epoch = r.epoch
		AND (r.n > (SELECT o.n FROM rank o WHERE o.state = a.state) -- not of one that has ended, or is lost
			OR r.port > 0 AND r.n = 1 AND a.state = 'preparing' AND a.ready_at IS NULL)
		AND (r.state <> 'succeeded' OR EXISTS (SELECT 1 FROM log l WHERE l.attempt_id = a.id AND l.final))
	RETURNING a.id, a.run_id, a.step_id, a.project_id, a.state, a.reason, a.worker_id, r.n, r.ord, r.evidence, r.port > 0 AS ready
), resolved AS ( -- whoever is first says which image its step's is, for the whole run: one of the same repository, or one of no registry
	INSERT INTO run_image (run_id, image, ref, attempt_id)
	SELECT DISTINCT ON (c.run_id, i.image) c.run_id, i.image, i.ref, c.id
	FROM changed c JOIN step s ON s.id = c.step_id
	CROSS JOIN LATERAL (SELECT s.spec ->> 'image' AS image, c.evidence ->> 'image_ref' AS ref) i
	WHERE c.evidence ? 'image_ref' AND c.evidence ->> 'image' = i.image AND length(i.ref) <= 511 AND CASE
		WHEN i.image LIKE '%@%' THEN i.ref = i.image
		WHEN i.ref LIKE '%@%' THEN i.ref ~ '^[^@]+@sha(256:[0-9a-f]{64}|512:[0-9a-f]{128})$' AND regexp_replace(split_part(i.ref, '@', 1),
			'^(docker[.]io/)?(library/)?', '') = regexp_replace(regexp_replace(i.image, ':[^:/]*$', ''), '^(docker[.]io/)?(library/)?', '')
		ELSE i.ref ~ '^sha256:[0-9a-f]{64}$' END
	ORDER BY c.run_id, i.image, c.id
	ON CONFLICT (run_id, image) DO NOTHING
), ends AS (
	SELECT worker_id, count(*) FILTER (WHERE state = 'failed' AND reason = ANY ($14)) AS faults,
		count(*) FILTER (WHERE state = 'succeeded') AS well
	FROM changed WHERE n = 4 GROUP BY worker_id
), judged AS (
	UPDATE worker w SET faults = CASE WHEN e.well > 0 THEN 0 ELSE w.faults + e.faults END, version = w.version + 1,
		fault_at = CASE WHEN e.well > 0 THEN NULL ELSE now() END
	FROM ends e WHERE w.id = e.worker_id AND (e.faults > 0 OR w.faults > 0 AND e.well > 0)
	RETURNING w.id
), judged_told AS (
	INSERT INTO event (type, subject, data) SELECT 'worker.updated', id, jsonb_build_object('worker_id', id) FROM judged
), told AS (
	INSERT INTO event (project_id, type, subject, parent, data)
	SELECT project_id, CASE WHEN n = 4 THEN 'attempt.ended' WHEN ready THEN 'attempt.ready' ELSE 'attempt.' || state END, id, step_id,
		jsonb_build_object('worker_id', worker_id, 'state', state) FROM changed
)
SELECT ord, id, run_id, CASE WHEN ready THEN 'ready' ELSE state END AS state FROM changed;

-- Of a worker: what it has named, and what is open with it; one row with id null when there is neither. unheard: cancelled
-- before the worker was told.
-- name: sync_compare :many
-- params: worker_id text, named text[]
SELECT w.state AS worker_state, a.id, a.epoch, a.state, a.worker_id = $1 AS mine, a.cancel_requested_at IS NOT NULL AS cancelling,
	a.state = 'assigned' AND a.cancel_requested_at IS NOT NULL AND NOT a.delivered AS unheard, a.preempted_by IS NOT NULL AS preempted,
	a.stop_reason,
	CASE WHEN a.released_at IS NOT NULL AND a.state = 'preparing' THEN (SELECT jsonb_agg(jsonb_build_object('address', b.address,
		'port', b.port) ORDER BY b.rank) FROM attempt b WHERE b.step_id = a.step_id AND b.number = a.number) END AS release
FROM worker w LEFT JOIN attempt a
	ON (a.worker_id = $1 AND a.state IN ('assigned', 'preparing', 'running', 'finishing')) OR a.id = ANY ($2)
WHERE w.id = $1;

-- name: sync_delivered :exec
-- params: ids text[]
UPDATE attempt SET delivered = true WHERE id = ANY ($1) AND NOT delivered;

-- Attempts that were cancelled before their worker was told of them end here.
-- name: sync_cancel_unheard :many
-- params: worker_id text, known text[]
WITH ended AS (
	UPDATE attempt a SET ended_at = now(), state = CASE WHEN a.preempted_by IS NULL THEN 'cancelled' ELSE 'failed' END,
		reason = CASE WHEN a.preempted_by IS NULL THEN a.stop_reason ELSE 'preempted' END,
		message = coalesce(a.preempted_why, CASE WHEN a.stop_reason = 'cancelled' THEN 'It was cancelled'
			ELSE 'It was stopped before its worker heard of it' END)
	WHERE a.worker_id = $1 AND a.state = 'assigned' AND a.cancel_requested_at IS NOT NULL AND NOT a.delivered
		AND a.id <> ALL ($2)
	RETURNING a.id, a.run_id, a.step_id, a.project_id, a.state
), told AS (
	INSERT INTO event (project_id, type, subject, parent, data)
	SELECT project_id, 'attempt.ended', id, step_id, jsonb_build_object('worker_id', $1, 'state', state) FROM ended
)
SELECT id, run_id FROM ended;

-- name: sync_refuse :one
-- params: worker_id text, id text, message text
WITH ended AS (
	UPDATE attempt a SET state = 'failed', reason = 'bad_assignment', message = $3, ended_at = now()
	WHERE a.worker_id = $1 AND a.id = $2 AND a.state = 'assigned'
	RETURNING a.id, a.run_id, a.step_id, a.project_id
), told AS (
	INSERT INTO event (project_id, type, subject, parent, data)
	SELECT project_id, 'attempt.ended', id, step_id, jsonb_build_object('worker_id', $1, 'state', 'failed') FROM ended
)
SELECT id, run_id FROM ended;

-- All that a worker needs to run an attempt, but what follows from the step's spec. Files are listed as text: they may be many.
-- name: sync_assignment :one
-- params: attempt_id text
SELECT a.id AS attempt, s.id AS step, r.id AS run, j.name AS project, r.pipeline, s.name AS step_name, a.number, a.rank, a.ranks, a.epoch,
	r.repository, r.commit, a.cpus, a.memory, a.devices, s.tracking_run, r.experiment_id::text AS experiment_id, s.spec, a.runtime,
	s.user_failures, s.checkpoint_attempt,
	coalesce((SELECT i.ref FROM run_image i WHERE i.run_id = r.id AND i.image = s.spec ->> 'image'), '') AS image_ref,
	coalesce((SELECT jsonb_agg(jsonb_build_object('path', f.path, 'digest', encode(f.digest, 'hex'), 'size', f.size) ORDER BY f.path)
		FROM checkpoint_file f WHERE f.step_id = s.id), '[]') AS checkpoint,
	coalesce((SELECT jsonb_agg(jsonb_build_object('name', d.name, 'ref', t.name || '/' || v.number, 'version', v.id, 'listing',
			coalesce((SELECT string_agg(encode(f.digest, 'hex') || ' ' || f.size || ' ' || f.path, E'\n' ORDER BY f.path)
			FROM dataset_file f WHERE f.version_id = v.id), '')) ORDER BY d.name)
		FROM run_dataset d JOIN dataset_version v ON v.id = d.version_id JOIN dataset t ON t.id = v.dataset_id
		WHERE d.run_id = r.id), '[]') AS datasets,
	coalesce((SELECT jsonb_agg(jsonb_build_object('name', m.key, 'ref', o.name || '/' || v.number, 'listing',
			coalesce((SELECT string_agg(encode(f.digest, 'hex') || ' ' || f.size || ' ' || f.path, E'\n' ORDER BY f.path)
			FROM model_file f WHERE f.version_id = v.id), '')) ORDER BY m.key)
		FROM jsonb_each_text(r.models) m JOIN model_version v ON v.id = m.value JOIN model o ON o.id = v.model_id), '[]') AS models,
	coalesce((SELECT jsonb_agg(jsonb_build_object('name', n.name, 'ref', n.id, 'listing',
			coalesce((SELECT string_agg(encode(f.digest, 'hex') || ' ' || f.size || ' ' || f.path, E'\n' ORDER BY f.path)
			FROM step_output f WHERE f.step_id = n.id), '')) ORDER BY n.position)
		FROM step n WHERE n.run_id = r.id AND n.name = ANY (s.needs)), '[]') AS inputs
FROM attempt a JOIN step s ON s.id = a.step_id JOIN run r ON r.id = a.run_id JOIN project j ON j.id = a.project_id
WHERE a.id = $1 AND a.state IN ('assigned', 'preparing', 'running', 'finishing');

-- The attempt, when the caller's worker holds it under this epoch.
-- name: attempt_held :one
-- params: attempt_id text, worker_id text, epoch bigint
SELECT a.id, a.step_id, a.run_id, a.project_id, s.spec FROM attempt a JOIN step s ON s.id = a.step_id
WHERE a.id = $1 AND a.worker_id = $2 AND a.epoch = $3 AND a.state IN ('assigned', 'preparing', 'running', 'finishing');

-- Bytes of the values that the other steps of its run have put out; what stands for another one is not counted twice.
-- name: attempt_other_values :one
-- params: attempt_id text
SELECT coalesce(sum(octet_length(o.value ->> 'value')), 0)::bigint AS bytes
FROM attempt a JOIN step s ON s.run_id = a.run_id AND s.id <> a.step_id AND NOT s.joins
CROSS JOIN LATERAL jsonb_each(s.outputs) o WHERE a.id = $1 AND o.value ? 'value';

-- The tracking run of an attempt, when the caller's worker holds it under this epoch.
-- name: attempt_tracking :one
-- params: attempt_id text, worker_id text, epoch bigint
SELECT t.id, t.made, coalesce(t.start_time, (extract(epoch FROM t.created_at) * 1000)::bigint) AS start_time
FROM attempt a JOIN step s ON s.id = a.step_id LEFT JOIN tracking_run t ON t.run_id = s.tracking_run
WHERE a.id = $1 AND a.worker_id = $2 AND a.epoch = $3 AND a.state IN ('assigned', 'preparing', 'running', 'finishing');

-- What lines of the log have matched so far; a worker that reads the log again begins to count anew. The event of a policy that
-- wants one comes with its first match.
-- name: log_matches_put :one
-- params: attempt_id text, worker_id text, epoch bigint, matches jsonb
WITH held AS (
	SELECT a.id, a.step_id, a.run_id, a.project_id, coalesce(a.log_matches, '[]') AS old FROM attempt a
	WHERE a.id = $1 AND a.worker_id = $2 AND a.epoch = $3 AND a.state IN ('assigned', 'preparing', 'running', 'finishing') FOR UPDATE
), told AS (
	INSERT INTO event (project_id, type, subject, parent, data)
	SELECT h.project_id, 'step.log_matched', h.step_id, h.run_id, jsonb_build_object('name', s.name, 'attempt_id', h.id,
		'worker_id', $2, 'label', coalesce(m ->> 'label', ''), 'match', m ->> 'match', 'line', m -> 'line', 'text', m ->> 'text')
	FROM held h JOIN step s ON s.id = h.step_id, jsonb_array_elements($4) AS m
	WHERE m ->> 'action' = 'notify' AND NOT EXISTS (SELECT FROM jsonb_array_elements(h.old) o WHERE o -> 'policy' = m -> 'policy')
)
UPDATE attempt a SET log_matches = (
	SELECT jsonb_agg(x.m ORDER BY x.m -> 'policy') FROM (
		SELECT m FROM jsonb_array_elements($4) AS m
		UNION ALL
		SELECT o FROM jsonb_array_elements(h.old) AS o
		WHERE NOT EXISTS (SELECT FROM jsonb_array_elements($4) m WHERE m -> 'policy' = o -> 'policy')) x)
FROM held h WHERE a.id = h.id
RETURNING a.id;

-- A warning that is sent again is no event.
-- name: attempt_warning_put :one
-- params: attempt_id text, worker_id text, epoch bigint, kind text, message text
WITH held AS (
	SELECT a.id, a.step_id, a.run_id, a.project_id, a.warning FROM attempt a
	WHERE a.id = $1 AND a.worker_id = $2 AND a.epoch = $3 AND a.state IN ('assigned', 'preparing', 'running', 'finishing') FOR UPDATE
), told AS (
	INSERT INTO event (project_id, type, subject, parent, data)
	SELECT h.project_id, 'step.warning', h.step_id, h.run_id,
		jsonb_build_object('name', s.name, 'attempt_id', h.id, 'worker_id', $2, 'kind', $4, 'message', $5)
	FROM held h JOIN step s ON s.id = h.step_id WHERE h.warning IS DISTINCT FROM $5
)
UPDATE attempt a SET warning = $5 FROM held h WHERE a.id = h.id RETURNING a.id;

-- The blob, when it is among what the attempt reads.
-- name: attempt_reads_blob :one
-- params: attempt_id text, digest bytea
SELECT b.digest, b.size FROM blob b, attempt a JOIN step s ON s.id = a.step_id JOIN run r ON r.id = a.run_id
WHERE a.id = $1 AND b.digest = $2 AND (
	EXISTS (SELECT 1 FROM run_dataset d JOIN dataset_file f ON f.version_id = d.version_id WHERE d.run_id = r.id AND f.digest = $2)
	OR EXISTS (SELECT 1 FROM jsonb_each_text(r.models) m JOIN model_file f ON f.version_id = m.value WHERE f.digest = $2)
	OR EXISTS (SELECT 1 FROM step n JOIN step_output f ON f.step_id = n.id WHERE n.run_id = r.id AND n.name = ANY (s.needs) AND f.digest = $2)
	OR EXISTS (SELECT 1 FROM checkpoint_file f WHERE f.step_id = s.id AND f.digest = $2));

-- name: outputs_put :one
-- params: attempt_id text, worker_id text, epoch bigint, names text[], paths text[], sizes bigint[], digests bytea[], summary jsonb
WITH held AS (
	SELECT a.step_id FROM attempt a WHERE a.id = $1 AND a.worker_id = $2 AND a.epoch = $3
		AND a.state IN ('assigned', 'preparing', 'running', 'finishing') FOR UPDATE
), cleared AS (
	DELETE FROM step_output o USING held WHERE o.step_id = held.step_id
		AND NOT EXISTS (SELECT 1 FROM unnest($4::text[], $5::text[]) AS x(n, p) WHERE x.n = o.name AND x.p = o.path)
), put AS (
	INSERT INTO step_output (step_id, name, path, size, digest)
	SELECT held.step_id, x.n, x.p, x.s, x.d FROM held, unnest($4::text[], $5::text[], $6::bigint[], $7::bytea[]) AS x(n, p, s, d)
	ON CONFLICT (step_id, name, path) DO UPDATE SET size = excluded.size, digest = excluded.digest
), told AS (
	UPDATE step SET outputs = $8 FROM held WHERE step.id = held.step_id
)
SELECT step_id FROM held;

-- Takes the place of the checkpoint that the step had.
-- name: checkpoint_put :one
-- params: attempt_id text, worker_id text, epoch bigint, paths text[], sizes bigint[], digests bytea[]
WITH held AS (
	SELECT a.step_id, a.number FROM attempt a WHERE a.id = $1 AND a.worker_id = $2 AND a.epoch = $3
		AND a.state IN ('assigned', 'preparing', 'running', 'finishing') FOR UPDATE
), cleared AS (
	DELETE FROM checkpoint_file c USING held WHERE c.step_id = held.step_id AND c.path <> ALL ($4)
), put AS (
	INSERT INTO checkpoint_file (step_id, path, size, digest)
	SELECT held.step_id, x.p, x.s, x.d FROM held, unnest($4::text[], $5::bigint[], $6::bytea[]) AS x(p, s, d)
	ON CONFLICT (step_id, path) DO UPDATE SET size = excluded.size, digest = excluded.digest
), told AS (
	UPDATE step SET checkpoint_attempt = held.number, checkpoint_at = now() FROM held WHERE step.id = held.step_id
)
SELECT step_id FROM held;

-- Of steps whose checkpoints a worker keeps: those that need none any more.
-- name: checkpoint_useless :many
-- params: step_ids text[]
SELECT x.id FROM unnest($1::text[]) AS x(id) LEFT JOIN step s ON s.id = x.id
WHERE s.id IS NULL OR s.state IN ('succeeded', 'failed', 'cancelled', 'skipped');

-- name: step_output_file :one
-- params: step_id text, name text, path text
SELECT digest, size FROM step_output WHERE step_id = $1 AND name = $2 AND path = $3;
