-- Steps that say so are looked up by what they are made of before they run.
ALTER TABLE step ADD COLUMN cache_key bytea;
CREATE INDEX step_cache ON step (project_id, cache_key, ended_at) WHERE cache_key IS NOT NULL;
ALTER TABLE run ADD COLUMN no_cache boolean NOT NULL DEFAULT false; -- it takes nothing from there

-- Fails with TM001 unless all of these steps are there; they stay so until the end of the transaction.
CREATE FUNCTION steps_hold(ids text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	held bigint;
BEGIN
	PERFORM FROM step s WHERE s.id = ANY (ids) ORDER BY s.id FOR KEY SHARE;
	GET DIAGNOSTICS held = ROW_COUNT;
	IF held <> (SELECT count(DISTINCT i) FROM unnest(ids) AS i) THEN
		RAISE EXCEPTION 'a step is not there' USING ERRCODE = 'TM001';
	END IF;
END $$;
