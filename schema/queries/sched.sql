-- Row: the new epoch, or null and for how long somebody else leads at most, unless the lease is renewed; newer: the schema, of
-- which the holder knows less, and so does not lead.
-- name: lease_acquire :one
-- params: role text, holder text, schema bigint
WITH newer AS (
	SELECT max(version) AS version FROM schema_migration WHERE version > $3
), taken AS (
	INSERT INTO leader (role, holder, epoch, expires_at)
	SELECT $1, $2, 1, clock_timestamp() + interval '5 seconds' FROM newer WHERE version IS NULL
	ON CONFLICT (role) DO UPDATE SET holder = $2, epoch = leader.epoch + 1, expires_at = clock_timestamp() + interval '5 seconds'
		WHERE leader.expires_at < clock_timestamp()
	RETURNING epoch
)
SELECT t.epoch, (extract(epoch FROM l.expires_at - clock_timestamp()) * 1000000)::bigint AS left_us, n.version AS newer
FROM newer n LEFT JOIN taken t ON true LEFT JOIN leader l ON t.epoch IS NULL AND l.role = $1;

-- name: lease_renew :one
-- params: role text, holder text, epoch bigint, schema bigint
UPDATE leader SET expires_at = clock_timestamp() + interval '5 seconds'
WHERE role = $1 AND holder = $2 AND epoch = $3 AND expires_at > clock_timestamp()
	AND NOT EXISTS (SELECT FROM schema_migration WHERE version > $4) RETURNING epoch;

-- Tells the other servers at once: it happens once in a server's life, unlike other notifications, which no write carries.
-- name: lease_release :exec
-- params: role text, holder text, epoch bigint
WITH freed AS (
	UPDATE leader SET expires_at = clock_timestamp() WHERE role = $1 AND holder = $2 AND epoch = $3 RETURNING role
)
SELECT pg_notify('tidemill_lead', role) FROM freed;

-- name: sched_queue_all :many
SELECT step_id, run_id, project_id, priority, cpus, memory, disk, pool, request, queued_at, not_before, deadline, blocked, cleared_on FROM queue;

-- name: sched_queue_some :many
-- params: step_ids text[]
SELECT step_id, run_id, project_id, priority, cpus, memory, disk, pool, request, queued_at, not_before, deadline, blocked, cleared_on FROM queue
WHERE step_id = ANY ($1);

-- name: sched_workers :many
SELECT w.id, w.name, w.pool, w.labels, w.state, w.runtimes, w.isolated, w.cpus, w.memory, w.disk_free, w.devices, w.faults, w.fault_at,
	w.lost_at, s.seen_at, h.keys AS holds
FROM worker w LEFT JOIN worker_seen s ON s.worker_id = w.id LEFT JOIN worker_holds h ON h.worker_id = w.id WHERE w.state <> 'disabled';

-- name: sched_workers_some :many
-- params: ids text[]
SELECT w.id, w.name, w.pool, w.labels, w.state, w.runtimes, w.isolated, w.cpus, w.memory, w.disk_free, w.devices, w.faults, w.fault_at,
	w.lost_at, s.seen_at, h.keys AS holds
FROM worker w LEFT JOIN worker_seen s ON s.worker_id = w.id LEFT JOIN worker_holds h ON h.worker_id = w.id WHERE w.id = ANY ($1) AND w.state <> 'disabled';

-- name: sched_projects :many
SELECT id, name, quota_weight AS weight, quota_gpus AS gpus, quota_gpus_borrow AS gpus_borrow, quota_steps AS steps,
	quota_steps_borrow AS steps_borrow
FROM project;

-- name: sched_pools :many
SELECT name, policy, sensitivity, preemption FROM pool;

-- name: sched_attempts :many
SELECT a.id, a.worker_id, a.project_id, a.cpus, a.memory, a.devices, a.time_limit, a.started_at, a.step_id,
	coalesce((s.spec #>> '{placement,priority}')::int, 0) AS priority, s.checkpoint_at, s.preempted_by AS spared,
	a.preempted_by, a.cancel_requested_at,
	NOT coalesce((s.spec #>> '{placement,preemptible}')::boolean, true) OR a.state = 'finishing'
		OR a.cancel_requested_at IS NOT NULL AS fixed
FROM attempt a JOIN step s ON s.id = a.step_id
WHERE a.state IN ('assigned', 'preparing', 'running', 'finishing');

-- The leader hands steps out: each is taken from the queue once, by whoever still leads. delivered: the worker waits at
-- this server, which tells it. plain: what follows, with the spec, is all that the worker needs.
-- name: sched_assign :many
-- params: holder text, epoch bigint, step_ids text[], attempt_ids text[], worker_ids text[], runtimes text[], devices jsonb[], token_ids text[], token_macs bytea[], delivered bool[], ranks bigint[]
WITH lead AS (
	SELECT 1 FROM leader WHERE role = 'scheduler' AND holder = $1 AND epoch = $2 FOR SHARE
), asked AS (
	SELECT * FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::jsonb[], $8::text[], $9::bytea[], $10::bool[], $11::bigint[])
		WITH ORDINALITY AS x(step_id, attempt_id, worker_id, runtime, devices, token_id, token_mac, delivered, rank, ord)
), taken AS (
	DELETE FROM queue q WHERE q.step_id = ANY ($3) AND EXISTS (SELECT 1 FROM lead)
	RETURNING q.step_id, q.run_id, q.project_id, q.cpus, q.memory, (q.request ->> 'time_limit')::bigint AS time_limit,
		(q.request ->> 'lost_after')::bigint AS lost_after, coalesce((q.request ->> 'ranks')::int, 0) AS ranks
), stepped AS (
	UPDATE step s SET state = 'assigned', attempts = s.attempts + 1, version = s.version + 1
	FROM taken t WHERE s.id = ANY ($3) AND s.id = t.step_id
	RETURNING t.*, s.attempts AS number, s.name, s.spec, s.needs, s.tracking_run, s.user_failures, s.checkpoint_attempt,
		s.preempted_by AS spared
), moved AS (
	SELECT s.*, a.ord, a.rank, a.attempt_id, nextval('attempt_epoch') AS epoch, a.worker_id, a.runtime,
		ARRAY(SELECT jsonb_array_elements_text(a.devices)) AS devices, a.delivered, a.token_id, a.token_mac
	FROM stepped s JOIN asked a ON a.step_id = s.step_id
), made AS (
	INSERT INTO attempt (id, step_id, run_id, project_id, number, rank, ranks, epoch, worker_id, runtime, devices, cpus, memory,
		time_limit, delivered, lost_after)
	SELECT m.attempt_id, m.step_id, m.run_id, m.project_id, m.number, m.rank, m.ranks, m.epoch, m.worker_id, m.runtime, m.devices, m.cpus, m.memory,
		nullif(m.time_limit, 0), m.delivered,
		CASE WHEN m.lost_after IS NOT NULL THEN m.lost_after -- null: queued by an older server
			WHEN m.spec #>> '{on_lost,policy}' = 'stop' THEN span_us(m.spec #>> '{on_lost,self_stop_after}') + 30000000
			ELSE span_us(m.spec #>> '{on_lost,lost_after}') END
	FROM moved m
), tokened AS (
	INSERT INTO token (id, kind, mac, name, project_id, attempt_id, epoch, expires_at)
	SELECT m.token_id, 'jb', m.token_mac, 'job', m.project_id, m.attempt_id, m.epoch, now() + interval '400 days' FROM moved m
), told AS (
	INSERT INTO event (project_id, type, subject, parent, data)
	SELECT m.project_id, 'step.assigned', m.step_id, m.run_id,
		jsonb_build_object('worker_id', m.worker_id, 'attempt_id', m.attempt_id, 'server', $1::text) FROM moved m
)
SELECT m.ord, m.attempt_id AS attempt, m.step_id AS step, m.run_id AS run, j.name AS project, r.pipeline, m.name AS step_name,
	m.number, m.rank, m.ranks, m.epoch, r.repository, r.commit, m.cpus, m.memory, m.devices, m.tracking_run,
	r.experiment_id::text AS experiment_id, m.user_failures, m.runtime, m.spared, plain.yes AS plain,
	CASE WHEN plain.yes THEN m.spec END AS spec
FROM moved m JOIN run r ON r.id = m.run_id JOIN project j ON j.id = m.project_id
CROSS JOIN LATERAL (SELECT r.models = '{}' AND cardinality(m.needs) = 0 AND m.checkpoint_attempt = 0
	AND pg_column_size(m.spec) <= 2048 AND NOT EXISTS (SELECT 1 FROM run_dataset d WHERE d.run_id = r.id) AS yes OFFSET 0) AS plain;

-- Attempts are asked to end for steps that go first, which keep what is freed; rows: those that are, now.
-- name: sched_preempt :many
-- params: holder text, epoch bigint, attempt_ids text[], by_steps text[], whys text[], step_ids text[], workers text[]
WITH lead AS (
	SELECT 1 FROM leader WHERE role = 'scheduler' AND holder = $1 AND epoch = $2 FOR SHARE
), f AS (
	SELECT q.step_id, q.run_id, q.project_id, s.name, j.name AS project, string_to_array(x.workers, ',') AS workers
	FROM unnest($6::text[], $7::text[]) AS x(step_id, workers) JOIN queue q ON q.step_id = x.step_id
	JOIN step s ON s.id = q.step_id JOIN project j ON j.id = q.project_id
), asked AS (
	UPDATE attempt a SET cancel_requested_at = now(), preempted_by = f.step_id,
		preempted_why = 'preempted by step ' || f.name || ' of project ' || f.project || ' (' || x.why || ')'
	FROM unnest($3::text[], $4::text[], $5::text[]) AS x(attempt_id, by_step, why) JOIN f ON f.step_id = x.by_step
	WHERE a.id = ANY ($3) AND a.id = x.attempt_id AND a.cancel_requested_at IS NULL AND a.state IN ('assigned', 'preparing', 'running')
		AND EXISTS (SELECT 1 FROM lead) AND NOT EXISTS (SELECT 1 FROM step v WHERE v.id = a.step_id AND f.step_id = ANY (v.preempted_by))
	RETURNING a.id, a.step_id, a.run_id, a.project_id, a.worker_id, a.preempted_by, a.preempted_why
), cleared AS (
	UPDATE queue q SET cleared_on = f.workers FROM f
	WHERE q.step_id = f.step_id AND EXISTS (SELECT 1 FROM asked a WHERE a.preempted_by = f.step_id)
), spared AS (
	UPDATE step s SET preempted_by = s.preempted_by || a.preempted_by::text
	FROM (SELECT DISTINCT step_id, preempted_by FROM asked) a WHERE s.id = a.step_id
), told AS (
	INSERT INTO event (project_id, type, subject, parent, data)
	SELECT a.project_id, 'attempt.preempted', a.id, a.step_id, jsonb_build_object('worker_id', a.worker_id, 'step_id', a.step_id,
		'by_step', a.preempted_by, 'message', a.preempted_why) FROM asked a
	UNION ALL
	SELECT f.project_id, 'step.preempting', f.step_id, f.run_id, jsonb_build_object('name', f.name, 'workers', to_jsonb(f.workers),
		'attempts', (SELECT jsonb_agg(a.id ORDER BY a.id) FROM asked a WHERE a.preempted_by = f.step_id))
	FROM f WHERE EXISTS (SELECT 1 FROM asked a WHERE a.preempted_by = f.step_id)
)
SELECT id, worker_id, preempted_by FROM asked;

-- Attempts whose worker has been silent for too long, counted from when this leader took over at the earliest. Of those
-- that were never delivered nobody can know: they go as soon as the worker counts as offline.
-- name: sched_lose :many
-- params: holder text, epoch bigint, led_us bigint, offline_us bigint
WITH lead AS (
	SELECT 1 FROM leader WHERE role = 'scheduler' AND holder = $1 AND epoch = $2 FOR SHARE
), lost AS (
	UPDATE attempt a SET state = 'lost', reason = 'worker_lost', ended_at = now(),
		message = CASE WHEN a.delivered THEN 'the worker was not heard of for ' || (a.lost_after / 1000000) || ' seconds'
			ELSE 'the worker was not heard of, and had not been told' END
	FROM worker_seen s
	WHERE s.worker_id = a.worker_id AND a.state IN ('assigned', 'preparing', 'running', 'finishing')
		AND greatest(s.seen_at, a.created_at, clock_timestamp() - make_interval(secs => $3 / 1000000.0))
			+ make_interval(secs => CASE WHEN a.delivered THEN a.lost_after ELSE least(a.lost_after, $4) END / 1000000.0) < clock_timestamp()
		AND EXISTS (SELECT 1 FROM lead)
	RETURNING a.id, a.run_id, a.worker_id, a.step_id, a.project_id
), told AS (
	INSERT INTO event (project_id, type, subject, parent, data)
	SELECT project_id, 'attempt.ended', id, step_id, jsonb_build_object('worker_id', worker_id, 'state', 'lost') FROM lost
), judged AS (
	UPDATE worker w SET faults = w.faults + 1, fault_at = now(), lost_at = now(), version = w.version + 1
	WHERE w.id IN (SELECT worker_id FROM lost) RETURNING w.id
), judged_told AS (
	INSERT INTO event (type, subject, data) SELECT 'worker.updated', id, jsonb_build_object('worker_id', id) FROM judged
)
SELECT id, run_id, worker_id, step_id, project_id FROM lost;

-- How many workers that hold attempts are silent, of how many: many at once are rather our own fault.
-- name: sched_silent :one
-- params: silent_for_us bigint
SELECT count(*) FILTER (WHERE s.seen_at < clock_timestamp() - make_interval(secs => $1 / 1000000.0)) AS silent, count(*) AS workers
FROM worker_seen s WHERE EXISTS (SELECT 1 FROM attempt a WHERE a.worker_id = s.worker_id
	AND a.state IN ('assigned', 'preparing', 'running', 'finishing'));

-- Why steps wait, as the leader sees it.
-- name: sched_block :exec
-- params: holder text, epoch bigint, step_ids text[], kinds text[], messages text[], unsatisfiable bool[]
WITH lead AS (
	SELECT 1 FROM leader WHERE role = 'scheduler' AND holder = $1 AND epoch = $2 FOR SHARE
), x AS (
	SELECT * FROM unnest($3::text[], $4::text[], $5::text[], $6::bool[]) AS x(step_id, kind, message, unsatisfiable)
), old AS (
	SELECT q.step_id, coalesce(q.blocked ->> 'kind' = x.kind AND (q.blocked ->> 'unsatisfiable')::boolean = x.unsatisfiable, false)
		AS same FROM queue q JOIN x ON x.step_id = q.step_id
), noted AS (
	UPDATE queue q SET blocked = jsonb_build_object('kind', x.kind, 'message', x.message, 'unsatisfiable', x.unsatisfiable,
		'since', CASE WHEN o.same THEN q.blocked -> 'since' ELSE to_jsonb(now()) END)
	FROM x JOIN old o ON o.step_id = x.step_id WHERE q.step_id = x.step_id AND EXISTS (SELECT 1 FROM lead)
	RETURNING q.step_id, q.run_id, q.project_id, q.blocked, o.same
)
INSERT INTO event (project_id, type, subject, parent, data)
SELECT n.project_id, 'step.blocked', n.step_id, n.run_id, n.blocked - 'since' || jsonb_build_object('name', s.name)
FROM noted n JOIN step s ON s.id = n.step_id WHERE NOT n.same;

-- Runs with a step whose time in the queue is over.
-- name: sched_queue_late :many
SELECT DISTINCT run_id FROM queue WHERE deadline < clock_timestamp() LIMIT 1000;
