-- Pages of a monitor's decisions go by id; and from the run whose version a window judges, back to what was decided.
DROP INDEX decision_monitor;
CREATE INDEX decision_monitor ON decision (monitor_id, id);
CREATE INDEX decision_run ON decision (run_id) WHERE run_id IS NOT NULL;

-- Logs that are kept, oldest first: what retention looks at.
CREATE INDEX log_kept ON log (made) WHERE removed_at IS NULL;
