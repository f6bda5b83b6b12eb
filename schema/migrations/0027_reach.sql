-- Runtimes in which others do not reach the ranks of a step on several workers.
ALTER TABLE worker ADD COLUMN isolated text[] NOT NULL DEFAULT '{}';

-- As it was, and of a combination that waits for others of its matrix: how many may be on their way, and which are.
CREATE OR REPLACE VIEW step_wait AS
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
		JOIN dataset_version v ON v.id = d.version_id WHERE s.state = 'assigned' AND d.run_id = s.run_id) AS data_bytes,
	s.slots, coalesce(s.matrix_of, '') AS matrix_of,
	coalesce((SELECT jsonb_agg(jsonb_build_object('name', n.name, 'state', n.state, 'why', coalesce(m.blocked ->> 'message', ''))
			ORDER BY n.position)
		FROM step n LEFT JOIN queue m ON m.step_id = n.id
		WHERE s.state = 'waiting' AND s.slots > 0 AND n.run_id = s.run_id AND n.matrix_of = s.matrix_of
			AND n.state IN ('queued', 'assigned', 'running', 'finishing')), '[]') AS mates
FROM step s JOIN run r ON r.id = s.run_id
LEFT JOIN queue q ON q.step_id = s.id
LEFT JOIN LATERAL (SELECT * FROM attempt a WHERE a.step_id = s.id ORDER BY a.number DESC, a.rank LIMIT 1) a ON true
LEFT JOIN worker w ON w.id = a.worker_id;
