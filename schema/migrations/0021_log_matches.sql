-- Log policies that lines of an attempt's log have matched: a list of objects, by policy.
ALTER TABLE attempt ADD COLUMN log_matches jsonb;
