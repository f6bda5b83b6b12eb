-- When pipelines start by the clock. All instants up to settled_at have been decided: started, owed or passed over.
CREATE TABLE pipeline_schedule (
	pipeline_id ctext NOT NULL REFERENCES pipeline ON DELETE CASCADE,
	cron        ctext NOT NULL,
	timezone    ctext NOT NULL,
	dst         text NOT NULL CHECK (dst IN ('once', 'skip')),
	missed      text NOT NULL CHECK (missed IN ('none', 'last', 'all')),
	max         int NOT NULL CHECK (max BETWEEN 1 AND 100),
	settled_at  timestamptz NOT NULL,
	next_at     timestamptz NOT NULL,              -- the first instant after settled_at; infinity: none
	PRIMARY KEY (pipeline_id, cron, timezone)
);
CREATE INDEX pipeline_schedule_next ON pipeline_schedule (next_at);

-- Runs that triggers owe. over_at: made (set in that transaction) or refused for good; the row stays for a day, so that nothing
-- is owed twice.
CREATE TABLE trigger_due (
	pipeline_id ctext NOT NULL REFERENCES pipeline ON DELETE CASCADE,
	trigger     text NOT NULL CHECK (trigger IN ('schedule', 'pipeline')),
	key         ctext NOT NULL,                    -- as in run.trigger_key
	due_at      timestamptz NOT NULL,
	tries       int NOT NULL DEFAULT 0,
	try_at      timestamptz NOT NULL,
	error       text NOT NULL DEFAULT '',
	over_at     timestamptz,
	PRIMARY KEY (pipeline_id, trigger, key)
);
CREATE INDEX trigger_due_try ON trigger_due (try_at, due_at) WHERE over_at IS NULL;
CREATE INDEX trigger_due_over ON trigger_due (over_at) WHERE over_at IS NOT NULL;

-- Whether a run stems, over any number of upstream runs, from a run of this pipeline.
CREATE FUNCTION run_stems_from(run_id text, pipeline text) RETURNS boolean LANGUAGE sql STABLE AS $$
	WITH RECURSIVE line AS (
		SELECT r.id, r.pipeline_id, r.trigger, r.trigger_key FROM run r WHERE r.id = $1
		UNION
		SELECT r.id, r.pipeline_id, r.trigger, r.trigger_key FROM line l JOIN run r ON l.trigger = 'pipeline' AND r.id = l.trigger_key
	)
	SELECT EXISTS (SELECT 1 FROM line WHERE pipeline_id = $2)
$$;
