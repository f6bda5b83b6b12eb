-- Runs that new versions of data sets start are owed like the others.
ALTER TABLE trigger_due DROP CONSTRAINT trigger_due_trigger_check,
	ADD CONSTRAINT trigger_due_trigger_check CHECK (trigger IN ('schedule', 'pipeline', 'dataset'));
