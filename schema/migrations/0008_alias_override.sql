-- An alias that was given to a version which its gate had refused, by hand.
ALTER TABLE model_alias_history DROP CONSTRAINT model_alias_history_cause_check;
ALTER TABLE model_alias_history ADD CONSTRAINT model_alias_history_cause_check
	CHECK (cause IN ('api', 'gate', 'rollback', 'override'));
