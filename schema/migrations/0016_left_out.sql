-- Rows with a label that a window's performance leaves out, because of their size.
ALTER TABLE monitor_window ADD COLUMN left_out bigint NOT NULL DEFAULT 0;
