-- Attempts that are ended for a step that goes first: for which, and what is said of it.
ALTER TABLE attempt ADD COLUMN preempted_by ctext, ADD COLUMN preempted_why text;
-- Steps for which it was ended once, never to be again.
ALTER TABLE step ADD COLUMN preempted_by text[] NOT NULL DEFAULT '{}';
-- Workers on which others are ended for the step, or were: what is free there is set aside for it.
ALTER TABLE queue ADD COLUMN cleared_on text[] NOT NULL DEFAULT '{}';
