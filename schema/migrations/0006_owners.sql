-- More of what goes with a row that has no foreign key to it (see 0001): rows and metrics of a window, also when its whole
-- project goes, and the job token of an attempt.

CREATE FUNCTION window_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM observation WHERE made = OLD.made AND window_id = OLD.id;
	DELETE FROM drift_metric WHERE made = OLD.made AND window_id = OLD.id;
	RETURN NULL;
END $$;
CREATE TRIGGER window_deleted AFTER DELETE ON monitor_window FOR EACH ROW EXECUTE FUNCTION window_deleted();

CREATE FUNCTION attempt_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM token WHERE attempt_id = OLD.id;
	RETURN NULL;
END $$;
CREATE TRIGGER attempt_deleted AFTER DELETE ON attempt FOR EACH ROW EXECUTE FUNCTION attempt_deleted();

-- What was left behind so far.
DELETE FROM observation o WHERE NOT EXISTS (SELECT 1 FROM monitor_window w WHERE w.id = o.window_id);
DELETE FROM drift_metric d WHERE NOT EXISTS (SELECT 1 FROM monitor_window w WHERE w.id = d.window_id);
DELETE FROM token t WHERE t.attempt_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.id = t.attempt_id);
