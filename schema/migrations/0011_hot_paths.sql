-- Nothing looks events up by their object or its parent, and every change of state writes some.
DROP INDEX event_subject;
DROP INDEX event_parent;

-- Pages of a project's runs go by id.
CREATE INDEX run_project_id ON run (project_id, id);
DROP INDEX run_project;

-- Many runs go on at once, each by one version, or none when one of them has changed meanwhile (TM001). States and starts that
-- are null stay as they are.
CREATE FUNCTION runs_advance(ids text[], versions bigint[], states text[], reasons text[], messages text[], starts timestamptz[])
	RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	moved bigint;
BEGIN
	UPDATE run r SET version = r.version + 1, state = coalesce(x.state, r.state),
		reason = CASE WHEN x.state IS NULL THEN r.reason ELSE x.reason END,
		message = CASE WHEN x.state IS NULL THEN r.message ELSE x.message END,
		started_at = coalesce(r.started_at, x.started_at),
		ended_at = CASE WHEN x.state IS NULL THEN r.ended_at WHEN x.state IN ('succeeded', 'failed', 'cancelled') THEN now() END
	FROM unnest(ids, versions, states, reasons, messages, starts) AS x(id, version, state, reason, message, started_at)
	WHERE r.id = x.id AND r.version = x.version;
	GET DIAGNOSTICS moved = ROW_COUNT;
	IF moved <> cardinality(ids) THEN
		RAISE EXCEPTION 'a run has changed' USING ERRCODE = 'TM001';
	END IF;
END $$;
