-- What a project may hold of the workers at once: what is granted to it, and what it may borrow beyond; null: no limit. Twice
-- the weight is twice the share where projects compete.
ALTER TABLE project
	ADD COLUMN quota_weight float8 NOT NULL DEFAULT 1 CHECK (quota_weight > 0),
	ADD COLUMN quota_gpus int CHECK (quota_gpus >= 0),
	ADD COLUMN quota_gpus_borrow int NOT NULL DEFAULT 0 CHECK (quota_gpus_borrow >= 0),
	ADD COLUMN quota_steps int CHECK (quota_steps >= 0),
	ADD COLUMN quota_steps_borrow int NOT NULL DEFAULT 0 CHECK (quota_steps_borrow >= 0);

-- What is held is counted once for all projects.
CREATE VIEW project_quota AS
SELECT p.id AS project_id, p.name AS project, p.quota_weight AS weight,
	jsonb_build_object('nominal', p.quota_gpus, 'borrow', p.quota_gpus_borrow, 'used', coalesce(u.gpus, 0)) AS gpus,
	jsonb_build_object('nominal', p.quota_steps, 'borrow', p.quota_steps_borrow, 'used', coalesce(u.steps, 0)) AS steps
FROM project p LEFT JOIN (
	SELECT project_id, count(*) AS steps, sum(cardinality(devices)) AS gpus FROM attempt
	WHERE state IN ('assigned', 'preparing', 'running', 'finishing') GROUP BY project_id) u ON u.project_id = p.id;
