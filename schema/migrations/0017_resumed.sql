-- When the pipeline was resumed: what came before is not made up for.
ALTER TABLE pipeline ADD COLUMN resumed_at timestamptz;
