-- Attempts in a row that failed by the fault of their worker. Placement takes a worker with several last, for a while.
ALTER TABLE worker ADD COLUMN faults int NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN fault_at timestamptz;
-- When an attempt of it was given up last: until it is heard of again, it is given nothing.
ALTER TABLE worker ADD COLUMN lost_at timestamptz;
