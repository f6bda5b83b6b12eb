-- The cache of steps. What is the same is in the digest of server/sched/cache_key.h.

-- What keys are made of, of steps of one run, in the order in which they are asked for. Names hold neither spaces nor newlines.
-- What a step has put out is read once, however many need it; many: it is too much to be read at all.
-- name: cache_facts :many
-- params: run_id text, ids text[], images text[], files bigint
WITH x AS MATERIALIZED (
	SELECT x.ord, x.image, s.needs, s.matrix FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS x(id, image, ord) JOIN step s ON s.id = x.id
), need AS MATERIALIZED (
	SELECT n.id, n.name, (SELECT coalesce(sum((o.value ->> 'files')::bigint), 0) FROM jsonb_each(n.outputs) o) > $4 AS many
	FROM step n WHERE n.run_id = $1 AND n.name IN (SELECT unnest(x.needs) FROM x)
), put_out AS MATERIALIZED (
	SELECT n.name, n.many, CASE WHEN NOT n.many THEN encode(sha256(convert_to(coalesce((
		SELECT string_agg(encode(o.digest, 'hex') || ' ' || o.name || ' ' || octet_length(o.path) || ' ' || o.path, E'\n'
			ORDER BY o.name, o.path) FROM step_output o WHERE o.step_id = n.id), ''), 'UTF8')), 'hex') END AS digest FROM need n
)
SELECT r.repository, r.commit, r.no_cache, coalesce(x.matrix::text, '') AS matrix,
	coalesce((SELECT string_agg(d.name || ' ' || encode(v.digest, 'hex'), E'\n' ORDER BY d.name)
		FROM run_dataset d JOIN dataset_version v ON v.id = d.version_id WHERE d.run_id = r.id), '') AS datasets,
	coalesce((SELECT string_agg(m.key || ' ' || m.value, E'\n' ORDER BY m.key) FROM jsonb_each_text(r.models) m), '') AS models,
	coalesce((SELECT string_agg(p.name || ' ' || p.digest, E'\n' ORDER BY p.name) FROM put_out p WHERE p.name = ANY (x.needs)), '') AS inputs,
	EXISTS (SELECT 1 FROM put_out p WHERE p.name = ANY (x.needs) AND p.many) AS many,
	coalesce((SELECT i.ref FROM run_image i WHERE i.run_id = r.id AND i.image = x.image), '') AS image_ref
FROM x JOIN run r ON r.id = $1 ORDER BY x.ord;

-- The newest step of the project that is the same, has succeeded and is not too old; as old as it is by the one that really ran.
-- Not one whose artifacts retention may have taken. image: the digest that it must have run in, or ''; rows: what it takes to take it.
-- name: cache_find :many
-- params: project_id text, keys bytea[], images text[], ages bigint[]
SELECT x.ord, f.id, coalesce(f.reused ->> 'run_id', f.run_id) AS run_id,
	(SELECT coalesce(sum((o.value ->> 'files')::bigint), 0) FROM jsonb_each(f.outputs) o)::bigint
		+ (SELECT count(*) FROM tracking_run t JOIN artifact a ON a.tracking_id = t.id WHERE t.run_id = f.tracking_run)
		+ (SELECT count(*) FROM tracking_run t JOIN metric_latest l ON l.tracking_id = t.id WHERE t.run_id = f.tracking_run) AS rows
FROM unnest($2::bytea[], $3::text[], $4::bigint[]) WITH ORDINALITY AS x(key, image, age, ord)
CROSS JOIN LATERAL (
	SELECT s.id, s.run_id, s.reused, s.outputs, s.tracking_run FROM step s JOIN project p ON p.id = s.project_id
	WHERE s.project_id = $1 AND s.cache_key = x.key AND s.state = 'succeeded'
		AND coalesce((s.reused ->> 'ended_at')::timestamptz, s.ended_at) > now() - x.age * interval '1 microsecond'
		AND s.ended_at > coalesce(now() - span_us(p.retention ->> 'artifacts') * interval '1 microsecond', '-infinity')
		AND (x.image = '' OR substring(step_reuse(s, '') ->> 'image_ref' FROM 'sha256:.*$') = x.image)
	ORDER BY s.ended_at DESC LIMIT 1) f;

-- name: cache_keys :exec
-- params: ids text[], keys bytea[]
UPDATE step s SET cache_key = x.key FROM unnest($1::text[], $2::bytea[]) AS x(id, key) WHERE s.id = ANY ($1) AND s.id = x.id;

-- name: cache_hold :exec
-- params: sources text[]
SELECT steps_hold($1);

-- name: cache_reuse :exec
-- params: ids text[], sources text[]
UPDATE step s SET reused = step_reuse(f, 'cache') FROM unnest($1::text[], $2::text[]) AS x(id, source) JOIN step f ON f.id = x.source
WHERE s.id = ANY ($1) AND s.id = x.id;
