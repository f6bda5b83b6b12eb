-- What a step has left in TIDEMILL_CHECKPOINT_DIR, so that its next attempt goes on from there on whatever host: of the
-- newest attempt that brought one. Gone when the step has ended.
ALTER TABLE step ADD COLUMN checkpoint_attempt int NOT NULL DEFAULT 0;
ALTER TABLE step ADD COLUMN checkpoint_at timestamptz;

CREATE TABLE checkpoint_file (
	step_id ctext NOT NULL REFERENCES step ON DELETE CASCADE,
	path    ctext NOT NULL,                        -- relative to the folder
	size    bigint NOT NULL,
	digest  bytea NOT NULL REFERENCES blob,
	PRIMARY KEY (step_id, path)
);
CREATE INDEX checkpoint_file_digest ON checkpoint_file (digest);
