-- Two runs of a concurrency group at the same moment: whoever comes second finds out.

-- Lets a run of a concurrency group in, unless another one has been let in since it was looked at: then TM001.
CREATE FUNCTION run_admit(run_id text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	r run;
BEGIN
	SELECT * INTO r FROM run WHERE id = run_id AND admitted_at IS NULL AND cancel_requested_at IS NULL;
	IF NOT FOUND THEN
		RETURN;
	END IF;
	PERFORM pg_advisory_xact_lock(hashtext(r.project_id || '/' || r.concurrency_group));
	IF EXISTS (SELECT 1 FROM run o WHERE o.project_id = r.project_id AND o.concurrency_group = r.concurrency_group
		AND o.state IN ('queued', 'running', 'finishing') AND o.admitted_at IS NOT NULL AND o.id <> r.id) THEN
		RAISE EXCEPTION 'another run of the group was let in' USING ERRCODE = 'TM001';
	END IF;
	UPDATE run SET admitted_at = now() WHERE id = run_id;
END $$;

-- policy refuse, after the run was written: fails with TM002 when another run of the group is open. So of two that are
-- written in one transaction neither is missed; who comes later waits here for who came first.
CREATE FUNCTION run_group_alone(project text, name text, run_id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(hashtext(project || '/' || name));
	IF EXISTS (SELECT 1 FROM run WHERE project_id = project AND concurrency_group = name AND id <> run_id
		AND state IN ('queued', 'running', 'finishing')) THEN
		RAISE EXCEPTION 'a run of the group is open' USING ERRCODE = 'TM002';
	END IF;
END $$;
