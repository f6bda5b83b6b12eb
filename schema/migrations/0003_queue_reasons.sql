-- Why a step waits, as the leader last saw it: {"kind", "message", "unsatisfiable", "since"}; null until it has waited a while.
ALTER TABLE queue ADD COLUMN blocked jsonb;
CREATE INDEX queue_deadline ON queue (deadline) WHERE deadline IS NOT NULL;

-- How long the command may run, in microseconds; null: for ever. Tells when what the attempt holds becomes free.
ALTER TABLE attempt ADD COLUMN time_limit bigint;

-- Takes steps out of the queue, or fails with TM001 when one of them has been handed to a worker meanwhile.
CREATE FUNCTION step_unqueue(ids text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM queue WHERE step_id = ANY (ids);
	IF EXISTS (SELECT 1 FROM step WHERE id = ANY (ids) AND state NOT IN ('waiting', 'queued')) THEN
		RAISE EXCEPTION 'a step has been handed out' USING ERRCODE = 'TM001';
	END IF;
END $$;
