-- Which image exactly a run's steps run in: as the first attempt found out that resolved the name. Later ones get that one.
CREATE TABLE run_image (
	run_id     ctext NOT NULL REFERENCES run ON DELETE CASCADE,
	image      text NOT NULL, -- as the pipeline names it
	ref        text NOT NULL, -- REPOSITORY@sha256:…, or the id of an image that no registry is known to have
	attempt_id ctext NOT NULL,
	PRIMARY KEY (run_id, image)
);
