-- What administrators have set of pools. A pool without a row is as these defaults, and as server/core/place.h says.
CREATE TABLE pool (
	name        ctext PRIMARY KEY,
	policy      text NOT NULL DEFAULT 'auto' CHECK (policy IN ('auto', 'pack', 'spread')),
	sensitivity text[] NOT NULL DEFAULT '{public,internal,confidential}'
		CHECK (sensitivity <@ '{public,internal,confidential,restricted}' AND cardinality(sensitivity) > 0),
	preemption  text NOT NULL DEFAULT 'none' CHECK (preemption IN ('none', 'quota', 'priority')),
	version     bigint NOT NULL DEFAULT 1
);
CREATE VIEW pool_all AS
SELECT coalesce(p.name, w.pool) AS name, coalesce(p.policy, 'auto') AS policy,
	coalesce(p.sensitivity, '{public,internal,confidential}') AS sensitivity, coalesce(p.preemption, 'none') AS preemption,
	coalesce(p.version, 0) AS version, coalesce(w.n, 0) AS workers
FROM pool p FULL JOIN (SELECT pool, count(*) AS n FROM worker WHERE state <> 'disabled' GROUP BY pool) w ON w.pool = p.name;
