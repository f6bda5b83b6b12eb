-- A run is queued until its first step starts, so that its state alone no longer says whether its concurrency group holds it
-- back: when the group let it in is a fact of its own.
ALTER TABLE run ADD COLUMN admitted_at timestamptz;
UPDATE run SET admitted_at = created_at WHERE state IN ('running', 'finishing');
UPDATE run r SET state = 'queued' WHERE state = 'running' AND started_at IS NULL
	AND NOT EXISTS (SELECT 1 FROM step s WHERE s.run_id = r.id AND s.state IN ('running', 'finishing', 'succeeded'));

-- What the leader looks after on every tick.
CREATE INDEX run_held ON run (id) WHERE state = 'queued' AND admitted_at IS NULL;
CREATE INDEX run_cancelling ON run (id) WHERE state IN ('queued', 'running') AND cancel_requested_at IS NOT NULL;
