-- What workers hold of images and data, so that steps go where they need fetch the least. Apart from the worker, since it
-- changes often and tells nobody.
CREATE TABLE worker_holds (
	worker_id ctext PRIMARY KEY REFERENCES worker ON DELETE CASCADE,
	holds     jsonb NOT NULL,      -- list of {kind, name, bytes}
	keys      bytea NOT NULL       -- of each: hash of kind and name, bytes
);
