-- What ends of runs start, none of a pipeline that the run stems from: they would start each other for ever.
CREATE VIEW upstream_owed AS
SELECT p.id AS pipeline_id, r.id AS key, r.ended_at AS at
FROM run r JOIN pipeline_trigger t ON t.kind = 'pipeline' AND t.subject = r.pipeline
JOIN pipeline p ON p.id = t.pipeline_id AND p.project_id = r.project_id AND NOT p.paused
WHERE r.ended_at > greatest(p.created_at, p.resumed_at) AND r.pipeline_id IS NOT NULL AND r.state IN ('succeeded', 'failed', 'cancelled')
	AND coalesce(t.spec #>> '{pipeline,state}', 'succeeded') IN (r.state, 'ended')
	AND NOT run_stems_from(r.id, p.id)
	AND NOT EXISTS (SELECT 1 FROM run o WHERE o.pipeline_id = p.id AND o.trigger = 'pipeline' AND o.trigger_key = r.id);

-- What new versions of data sets start.
CREATE VIEW dataset_owed AS
SELECT DISTINCT p.id AS pipeline_id, v.id AS key, v.created_at AS at
FROM dataset_version v JOIN dataset d ON d.id = v.dataset_id
JOIN pipeline_trigger t ON t.kind = 'dataset' AND t.subject = d.name
JOIN pipeline p ON p.id = t.pipeline_id AND p.project_id = d.project_id AND NOT p.paused
WHERE v.created_at > greatest(p.created_at, p.resumed_at)
	AND NOT EXISTS (SELECT 1 FROM run r WHERE r.pipeline_id = p.id AND r.trigger = 'dataset' AND r.trigger_key = v.id);
