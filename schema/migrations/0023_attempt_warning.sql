-- What should be known of an attempt while it runs: the newest warning of its worker.
ALTER TABLE attempt ADD COLUMN warning text;
