-- A run that runs another one, which may be gone, again: what it takes over of that one, and what it runs anew.
ALTER TABLE run ADD COLUMN rerun_of ctext;
ALTER TABLE run ADD COLUMN rerun_from text CHECK (rerun_from IN ('failed', 'start'));
ALTER TABLE run DROP CONSTRAINT run_trigger_check, ADD CONSTRAINT run_trigger_check
	CHECK (trigger IN ('api', 'push', 'schedule', 'dataset', 'pipeline', 'decision', 'rerun'));

ALTER TABLE step ADD COLUMN written jsonb;             -- of a late step that has been filled in: its spec before that
-- Nothing was run for it: it stands for a step of another run, which may be gone by now. By what ("rerun"), run_id and step_id
-- of the one that did run, when that ended, and in which image it ran (image_ref, image_digest; "" when in none).
ALTER TABLE step ADD COLUMN reused jsonb;

-- What a step says of the one that it stands for.
CREATE FUNCTION step_reuse(s step, by text) RETURNS jsonb LANGUAGE sql STABLE AS $$
	SELECT coalesce(s.reused, jsonb_build_object('run_id', s.run_id, 'step_id', s.id, 'ended_at', s.ended_at)
		|| coalesce((SELECT jsonb_build_object('image_ref', coalesce(a.evidence ->> 'image_ref', ''),
			'image_digest', coalesce(a.evidence ->> 'image_digest', ''))
			FROM attempt a WHERE a.step_id = s.id ORDER BY a.number DESC, a.rank LIMIT 1), '{}'))
		|| jsonb_build_object('by', by)
$$;

-- Fails with TM001 unless the run has ended and is there; it stays so until the end of the transaction.
CREATE FUNCTION run_hold(run_id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM run WHERE id = run_id AND state IN ('succeeded', 'failed', 'cancelled') FOR KEY SHARE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the run is not there' USING ERRCODE = 'TM001';
	END IF;
END $$;

-- As before, and a run stems from what the one that it runs again does.
CREATE OR REPLACE FUNCTION run_stems_from(run_id text, pipeline text) RETURNS boolean LANGUAGE sql STABLE AS $$
	WITH RECURSIVE line AS (
		SELECT r.id, r.pipeline_id, CASE WHEN r.trigger = 'pipeline' THEN r.trigger_key ELSE r.rerun_of END AS before
		FROM run r WHERE r.id = $1
		UNION
		SELECT r.id, r.pipeline_id, CASE WHEN r.trigger = 'pipeline' THEN r.trigger_key ELSE r.rerun_of END
		FROM line l JOIN run r ON r.id = l.before
	)
	SELECT EXISTS (SELECT 1 FROM line WHERE pipeline_id = $2)
$$;
