-- Fails with TM004 unless all of these steps are there, and nobody is about to remove one; they stay so until the end of the
-- transaction. A removal may take long, and others have a part in the transaction: it does not wait.
CREATE OR REPLACE FUNCTION steps_hold(ids text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	held bigint;
BEGIN
	PERFORM FROM step s WHERE s.id = ANY (ids) ORDER BY s.id FOR KEY SHARE SKIP LOCKED;
	GET DIAGNOSTICS held = ROW_COUNT;
	IF held <> (SELECT count(DISTINCT i) FROM unnest(ids) AS i) THEN
		RAISE EXCEPTION 'a step is not there' USING ERRCODE = 'TM004';
	END IF;
END $$;
