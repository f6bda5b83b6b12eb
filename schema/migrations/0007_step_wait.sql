-- All that tells why a step waits, but for the workers: those are the scheduler's to look at.
CREATE VIEW step_wait AS
SELECT s.id AS step_id, s.run_id, s.project_id, s.name, s.position, s.state, s.queued_at, r.pipeline, r.number,
	q.pool, q.priority, q.cpus, q.memory, q.gpus, q.not_before, q.deadline,
	a.state AS attempt_state, a.number AS attempt, a.reason AS attempt_reason, a.worker_id, coalesce(w.name, '') AS worker,
	coalesce((SELECT jsonb_agg(jsonb_build_object('name', n.name, 'state', n.state, 'why', coalesce(m.blocked ->> 'message', ''))
			ORDER BY n.position)
		FROM step n LEFT JOIN queue m ON m.step_id = n.id
		WHERE s.state = 'waiting' AND n.run_id = s.run_id AND n.name = ANY (s.needs) AND n.state <> 'succeeded'), '[]') AS needs,
	CASE WHEN r.state = 'queued' AND r.admitted_at IS NULL THEN r.concurrency_group END AS held_by,
	(SELECT o.id FROM run o WHERE r.state = 'queued' AND r.admitted_at IS NULL AND o.project_id = r.project_id
		AND o.concurrency_group = r.concurrency_group AND o.state IN ('queued', 'running', 'finishing') AND o.id < r.id
		ORDER BY o.id LIMIT 1) AS holder,
	(SELECT string_agg(d.name || ' v' || v.number, ', ' ORDER BY d.name) FROM run_dataset d
		JOIN dataset_version v ON v.id = d.version_id WHERE s.state = 'assigned' AND d.run_id = s.run_id) AS data,
	(SELECT sum(v.bytes)::bigint FROM run_dataset d
		JOIN dataset_version v ON v.id = d.version_id WHERE s.state = 'assigned' AND d.run_id = s.run_id) AS data_bytes
FROM step s JOIN run r ON r.id = s.run_id
LEFT JOIN queue q ON q.step_id = s.id
LEFT JOIN LATERAL (SELECT * FROM attempt a WHERE a.step_id = s.id ORDER BY a.number DESC LIMIT 1) a ON true
LEFT JOIN worker w ON w.id = a.worker_id;

-- The short form for lists: what was noted of a step in the queue, or the steps that it needs.
CREATE FUNCTION step_blocked(s step) RETURNS jsonb LANGUAGE sql STABLE AS $$
	SELECT CASE s.state
		WHEN 'queued' THEN (SELECT q.blocked FROM queue q WHERE q.step_id = s.id)
		WHEN 'waiting' THEN (SELECT jsonb_build_object('kind', 'needs', 'unsatisfiable', false,
				'message', 'waits for ' || string_agg(n.name, ', ' ORDER BY n.position))
			FROM step n WHERE n.run_id = s.run_id AND n.name = ANY (s.needs) AND n.state <> 'succeeded'
			HAVING count(*) > 0)
	END
$$;

-- Of a run that has not ended: the group that holds it back, or the first of its steps that stands in the queue, those that
-- wait in vain before others.
CREATE FUNCTION run_blocked(r run) RETURNS jsonb LANGUAGE sql STABLE AS $$
	SELECT CASE
		WHEN r.state = 'queued' AND r.admitted_at IS NULL AND r.concurrency_group IS NOT NULL THEN
			jsonb_build_object('kind', 'group', 'unsatisfiable', false, 'since', r.created_at,
				'message', 'waits for its turn in the concurrency group ' || r.concurrency_group)
		WHEN r.state IN ('queued', 'running') THEN (SELECT q.blocked || jsonb_build_object('step', s.name)
			FROM step s JOIN queue q ON q.step_id = s.id WHERE s.run_id = r.id AND s.state = 'queued' AND q.blocked IS NOT NULL
			ORDER BY (q.blocked ->> 'unsatisfiable')::boolean DESC, s.position LIMIT 1)
	END
$$;
