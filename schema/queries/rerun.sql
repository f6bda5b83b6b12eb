-- A run that runs another one again. What the new one shares with it is in the new one's rows from its first moment on: what
-- becomes of the other one later does not matter to it.

-- The steps of the run, in order, and what of its models is gone. overwritten: earlier releases have filled the step in, and
-- kept nothing of what was written there.
-- name: rerun_source :many
-- params: run_id text
SELECT r.state AS run_state, r.pipeline, r.concurrency_group, r.concurrency_policy, s.id, s.state,
	(SELECT min(m.key) FROM jsonb_each_text(r.models) m WHERE NOT EXISTS (SELECT 1 FROM model_version v WHERE v.id = m.value)) AS gone,
	s.name, NOT s.late AND s.written IS NULL AND strpos(s.spec::text, '${steps.') = 0
		AND strpos(r.spec #>> ARRAY['steps', coalesce(s.matrix_of, s.name)], '${steps.') > 0 AS overwritten
FROM run r JOIN step s ON s.run_id = r.id WHERE r.id = $1 ORDER BY s.position;

-- name: rerun_hold :exec
-- params: run_id text
SELECT run_hold($1);

-- A run's own id stands in its spec only where ${run.id} has put it: nobody can have known it before. It has no number yet.
-- name: rerun_insert :exec
-- params: id text, source_id text, rerun_from text, actor text
INSERT INTO run (id, project_id, pipeline_id, pipeline, number, admitted_at, spec, inputs, models, labels, repository, commit, trigger,
	rerun_of, rerun_from, experiment_id, concurrency_group, concurrency_policy, created_by, look, no_cache)
SELECT $1, r.project_id, r.pipeline_id, r.pipeline, 0,
	CASE WHEN r.concurrency_group IS NULL THEN now() END, replace(r.spec::text, r.id, $1)::jsonb, r.inputs, r.models, r.labels,
	r.repository, r.commit, 'rerun', r.id, $3, e.id, r.concurrency_group, r.concurrency_policy, nullif($4, ''), true, r.no_cache OR $3 = 'start'
FROM run r JOIN experiment e ON e.project_id = r.project_id AND e.name = r.pipeline WHERE r.id = $2;

-- name: rerun_pins :exec
-- params: id text, source_id text
WITH images AS (
	INSERT INTO run_image (run_id, image, ref, attempt_id) SELECT $1, image, ref, attempt_id FROM run_image WHERE run_id = $2
)
INSERT INTO run_dataset (run_id, name, version_id) SELECT $1, name, version_id FROM run_dataset WHERE run_id = $2;

-- Steps that are taken over are what they were; the others are as they were written. The cache does not find those whose
-- artifacts retention may have taken before.
-- name: rerun_steps :exec
-- params: id text, source_id text, ids text[], sources text[], tracking_runs text[], taken bool[]
INSERT INTO step (id, run_id, project_id, name, position, needs, spec, written, late, joins, matrix, matrix_of, slots, metric, state,
	message, reused, cache_key, tracking_run, ended_at)
SELECT x.id, $1, s.project_id, s.name, s.position, s.needs,
	CASE WHEN x.taken THEN s.spec ELSE replace(coalesce(s.written, s.spec)::text, $2, $1)::jsonb END,
	CASE WHEN x.taken THEN s.written END, NOT x.taken AND (s.late OR s.written IS NOT NULL), s.joins, s.matrix, s.matrix_of, s.slots,
	s.metric, CASE WHEN x.taken THEN 'succeeded' ELSE 'waiting' END,
	CASE WHEN x.taken THEN 'taken over from ' || (step_reuse(s, 'rerun') ->> 'run_id') ELSE '' END,
	CASE WHEN x.taken THEN step_reuse(s, 'rerun') END, CASE WHEN x.taken AND s.ended_at
		> coalesce(now() - span_us(p.retention ->> 'artifacts') * interval '1 microsecond', '-infinity') THEN s.cache_key END, x.tracking_run, CASE WHEN x.taken THEN now() END
FROM unnest($3::text[], $4::text[], $5::text[], $6::bool[]) AS x(id, source, tracking_run, taken) JOIN step s ON s.id = x.source
JOIN project p ON p.id = s.project_id;

-- Last of all: until the end of the transaction no other run of the pipeline can begin.
-- name: rerun_number :exec
-- params: id text
WITH counted AS (
	UPDATE pipeline p SET runs = p.runs + 1 FROM run r WHERE r.id = $1 AND p.id = r.pipeline_id RETURNING p.runs
)
UPDATE run SET number = counted.runs FROM counted WHERE id = $1;

-- name: rerun_tracking :exec
-- params: id text, now_ms bigint
INSERT INTO tracking_run (run_id, experiment_id, project_id, made, step_id, name, status, start_time, end_time, artifact_uri)
SELECT s.tracking_run, e.id, s.project_id, date_trunc('month', now())::date, s.id, s.name,
	CASE WHEN s.reused IS NULL THEN 'SCHEDULED' ELSE 'FINISHED' END, $2, CASE WHEN s.reused IS NOT NULL THEN $2 END,
	e.artifact_location || '/' || s.tracking_run || '/artifacts'
FROM step s JOIN run r ON r.id = s.run_id JOIN experiment e ON e.id = r.experiment_id WHERE s.run_id = $1;

-- name: rerun_events :exec
-- params: id text, actor text
INSERT INTO event (project_id, type, subject, actor, data)
SELECT project_id, 'run.created', id, nullif($2, ''), jsonb_build_object('rerun_of', rerun_of, 'from', rerun_from) FROM run WHERE id = $1;

-- name: rerun_step_events :exec
-- params: id text
INSERT INTO event (project_id, type, subject, parent, data)
SELECT project_id, 'step.succeeded', id, run_id, jsonb_build_object('name', name, 'reason', '', 'worker_id', '',
	'reused_from', reused ->> 'run_id')
FROM step WHERE run_id = $1 AND reused IS NOT NULL ORDER BY position;
