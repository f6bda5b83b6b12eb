-- A step with a matrix joins its combinations, which are steps themselves.
ALTER TABLE step ADD COLUMN joins boolean NOT NULL DEFAULT false;
ALTER TABLE step ADD COLUMN matrix jsonb;              -- of a combination: its values, as texts
ALTER TABLE step ADD COLUMN matrix_of ctext;           -- the step that it is a combination of
ALTER TABLE step ADD COLUMN slots int NOT NULL DEFAULT 0; -- how many of its like may be on their way; 0: all
ALTER TABLE step ADD COLUMN metric ctext;              -- what they are compared by
ALTER TABLE step ADD COLUMN selected ctext;            -- the combination that was chosen

-- The last value of the metric that a combination is compared by.
CREATE FUNCTION step_metric(s step) RETURNS float8 LANGUAGE sql STABLE AS $$
	SELECT CASE WHEN l.is_nan THEN 'NaN'::float8 ELSE l.value END
	FROM tracking_run t JOIN metric_latest l ON l.tracking_id = t.id JOIN metric_key k ON k.id = l.key_id
	WHERE t.run_id = s.tracking_run AND k.key = s.metric
$$;

-- As before, and what waits for others of its matrix says so.
CREATE OR REPLACE FUNCTION step_blocked(s step) RETURNS jsonb LANGUAGE sql STABLE AS $$
	SELECT CASE s.state
		WHEN 'queued' THEN (SELECT q.blocked FROM queue q WHERE q.step_id = s.id)
		WHEN 'waiting' THEN coalesce((SELECT jsonb_build_object('kind', 'needs', 'unsatisfiable', false,
				'message', 'waits for ' || string_agg(n.name, ', ' ORDER BY n.position))
			FROM step n WHERE n.run_id = s.run_id AND n.name = ANY (s.needs) AND n.state <> 'succeeded'
			HAVING count(*) > 0),
			CASE WHEN s.slots > 0 AND s.matrix_of IS NOT NULL THEN jsonb_build_object('kind', 'parallel', 'unsatisfiable', false,
				'message', format('waits for its turn: %s of %s may run at a time', s.slots, s.matrix_of)) END)
	END
$$;
