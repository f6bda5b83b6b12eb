-- The time of a monitor is what its windows bear out, not the time of whatever row is furthest ahead, so that one row with a
-- wrong date neither closes windows nor makes the rows between late.
--   settled_at: the last row of the newest window from which on there are at least min_samples rows. What is late is late
--               against this.
--   newest_at:  from there on as far as windows follow each other without a gap. What has ended by then is closed.
-- Both count no further than the server's clock, by until_now(): rows of tomorrow make nothing late today.
ALTER TABLE monitor ADD COLUMN settled_at timestamptz;
ALTER TABLE monitor ADD COLUMN late_rows bigint NOT NULL DEFAULT 0; -- rows and labels that came too late, ever
ALTER TABLE monitor_window ADD COLUMN first_at timestamptz;         -- times of its first and its last row
ALTER TABLE monitor_window ADD COLUMN last_at timestamptz;
UPDATE monitor_window w SET first_at = w.start_at, last_at = greatest(w.start_at, least(w.end_at - interval '1 microsecond', m.newest_at))
FROM monitor m WHERE m.id = w.monitor_id AND w.rows > 0;

CREATE FUNCTION until_now(at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE STRICT AS $$ SELECT least(at, now()) $$;

-- Of windows by time, those from `since` on; windows by rows (per_window > 0) have one time, the earliest row of the latest
-- window with enough rows.
CREATE FUNCTION monitor_clock(mon text, since timestamptz, min_rows bigint, per_window bigint,
	OUT newest timestamptz, OUT settled timestamptz) LANGUAGE sql STABLE AS $$
	WITH w AS MATERIALIZED (
		SELECT start_at, last_at, sum(rows) OVER (ORDER BY start_at DESC) >= min_rows AS enough,
			coalesce(lag(end_at) OVER (ORDER BY start_at) <> start_at, false) AS gap
		FROM monitor_window WHERE monitor_id = mon AND ordinal = 0 AND rows > 0 AND start_at >= since
	), base AS (
		SELECT coalesce(max(start_at) FILTER (WHERE enough), min(start_at)) AS start_at FROM w
	), reached AS (
		SELECT w.last_at, bool_or(w.gap AND w.start_at > b.start_at) OVER (ORDER BY w.start_at) AS cut
		FROM w JOIN base b ON w.start_at >= b.start_at
	), full_ones AS (
		SELECT max(first_at) AS at FROM monitor_window
		WHERE per_window > 0 AND monitor_id = mon AND ordinal > 0 AND rows >= least(min_rows, per_window)
	)
	SELECT coalesce((SELECT max(last_at) FROM reached WHERE NOT cut), f.at),
		coalesce((SELECT max(last_at) FROM w WHERE enough), f.at)
	FROM full_ones f
$$;

-- Moves a monitor's time on after rows have come; `anew`: works it out from all windows, for when some have gone.
CREATE FUNCTION monitor_clock_move(mon text, anew boolean) RETURNS void LANGUAGE sql AS $$
	UPDATE monitor o SET newest_at = CASE WHEN anew THEN c.newest ELSE greatest(o.newest_at, c.newest) END,
		settled_at = CASE WHEN anew THEN c.settled ELSE greatest(o.settled_at, c.settled) END
	FROM monitor m, LATERAL monitor_clock(mon,
		CASE WHEN anew OR m.settled_at IS NULL THEN '-infinity'
			ELSE coalesce((SELECT max(w.start_at) FROM monitor_window w
				WHERE w.monitor_id = mon AND w.ordinal = 0 AND w.start_at <= m.settled_at), '-infinity') END,
		coalesce((m.spec ->> 'min_samples')::bigint, 1), coalesce((m.spec -> 'window' ->> 'rows')::bigint, 0)) c
	WHERE m.id = mon AND o.id = mon
$$;

SELECT monitor_clock_move(id, true) FROM monitor;

-- A time as the API has it; NULL when it lies before all dates.
CREATE FUNCTION time_text(at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
	SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') WHERE at >= '0001-01-01T00:00:00Z'
$$;

-- Puts staged rows into their windows: those by time, or by rows (per_window > 0) in the order they came.
-- A closed window takes rows until the monitor's time has passed its end by `grace`, and is open again then.
CREATE OR REPLACE FUNCTION observation_commit(mon text, spec_at bigint, stage text, lay bigint, batch text, hash bytea,
	grace interval, per_window bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	m monitor;
	result jsonb;
	staged bigint;
	too_late bigint := 0;
	added bigint;
	touched bigint;
	again bigint;
	horizon timestamptz;
BEGIN
	SELECT * INTO m FROM monitor WHERE id = mon AND spec_version = spec_at FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'monitor has changed' USING ERRCODE = 'TM001';
	END IF;
	result := observation_replay(mon, batch, hash);
	IF result IS NOT NULL THEN
		DELETE FROM observation_stage WHERE stage_id = stage;
		RETURN result;
	END IF;
	SELECT count(*) INTO staged FROM observation_stage WHERE stage_id = stage;
	IF per_window = 0 THEN
		horizon := until_now(m.settled_at) - grace;
		WITH gone AS (
			DELETE FROM observation_stage s WHERE s.stage_id = stage AND s.end_at < horizon
				AND NOT EXISTS (SELECT FROM monitor_window w WHERE w.monitor_id = mon
					AND w.start_at = s.start_at AND w.ordinal = 0 AND w.state = 'open')
			RETURNING s.start_at, s.row_id
		)
		SELECT count(*) INTO too_late FROM gone g
		WHERE NOT EXISTS (SELECT FROM monitor_window w
			JOIN observation o ON o.made = w.made AND o.window_id = w.id AND o.row_id = g.row_id
			WHERE w.monitor_id = mon AND w.start_at = g.start_at AND w.ordinal = 0);
	ELSE
		DELETE FROM observation_stage s USING monitor_window w, observation o
			WHERE s.stage_id = stage AND w.monitor_id = mon AND o.made = w.made AND o.window_id = w.id
				AND o.row_id = s.row_id;
		DELETE FROM observation_stage s USING observation_stage earlier
			WHERE s.stage_id = stage AND earlier.stage_id = stage AND earlier.row_id = s.row_id AND earlier.ord < s.ord;
		UPDATE observation_stage s SET ordinal = x.ordinal,
			start_at = coalesce(w.start_at, x.start_at), end_at = x.end_at
		FROM (SELECT ord, n.ordinal, min(time) OVER same AS start_at,
				max(time) OVER same + interval '1 microsecond' AS end_at
			FROM (SELECT ord, time, (m.rows_taken + row_number() OVER (ORDER BY ord) - 1) / per_window + 1 AS ordinal
				FROM observation_stage WHERE stage_id = stage) n
			WINDOW same AS (PARTITION BY n.ordinal)) x
		LEFT JOIN monitor_window w ON w.monitor_id = mon AND w.ordinal = x.ordinal
		WHERE s.stage_id = stage AND s.ord = x.ord;
	END IF;
	INSERT INTO monitor_window (id, monitor_id, made, ordinal, start_at, end_at)
	SELECT make_id('win'), mon, date_trunc('month', now())::date, s.ordinal, s.start_at, max(s.end_at)
	FROM observation_stage s WHERE s.stage_id = stage GROUP BY s.ordinal, s.start_at
	ON CONFLICT (monitor_id, start_at, ordinal) DO UPDATE SET end_at = greatest(monitor_window.end_at, excluded.end_at)
		WHERE monitor_window.ordinal > 0;
	WITH taken AS (
		INSERT INTO observation (made, window_id, row_id, time, prediction, label, layout, cells)
		SELECT w.made, w.id, s.row_id, s.time, s.prediction, s.label, lay, s.cells
		FROM observation_stage s JOIN monitor_window w
			ON w.monitor_id = mon AND w.start_at = s.start_at AND w.ordinal = s.ordinal
		WHERE s.stage_id = stage ORDER BY s.ord
		ON CONFLICT DO NOTHING RETURNING window_id, label, time
	), changed AS (
		UPDATE monitor_window w SET rows = w.rows + t.n, labelled = w.labelled + t.labels, state = 'open',
			first_at = least(w.first_at, t.first_at), last_at = greatest(w.last_at, t.last_at), version = w.version + 1
		FROM (SELECT window_id, count(*) AS n, count(label) AS labels, min(time) AS first_at, max(time) AS last_at
			FROM taken GROUP BY window_id) t
		JOIN monitor_window old ON old.id = t.window_id
		WHERE w.id = t.window_id RETURNING t.n, old.state = 'closed' AS was_closed
	)
	SELECT coalesce(sum(n), 0), count(*), count(*) FILTER (WHERE was_closed) INTO added, touched, again FROM changed;
	UPDATE monitor SET rows_taken = rows_taken + added, late_rows = late_rows + too_late WHERE id = mon;
	PERFORM monitor_clock_move(mon, false);
	result := jsonb_build_object('rows', added, 'duplicates', staged - too_late - added, 'late', too_late,
		'unknown', 0, 'windows', touched, 'reopened', again, 'replayed', false)
		|| jsonb_strip_nulls(jsonb_build_object('horizon', CASE WHEN too_late > 0 THEN time_text(horizon) END));
	INSERT INTO observation_batch (monitor_id, batch_id, request_hash, result)
	SELECT mon, batch, hash, result WHERE batch IS NOT NULL;
	DELETE FROM observation_stage WHERE stage_id = stage;
	RETURN result;
END $$;

-- Puts staged labels to the rows that wait for them; the first label of a row stays.
CREATE OR REPLACE FUNCTION label_commit(mon text, spec_at bigint, stage text, batch text, hash bytea, grace interval)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	m monitor;
	result jsonb;
	staged bigint;
	known bigint;
	too_late bigint;
	added bigint;
	touched bigint;
	again bigint;
	horizon timestamptz;
BEGIN
	SELECT * INTO m FROM monitor WHERE id = mon AND spec_version = spec_at FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'monitor has changed' USING ERRCODE = 'TM001';
	END IF;
	result := observation_replay(mon, batch, hash);
	IF result IS NOT NULL THEN
		DELETE FROM observation_stage WHERE stage_id = stage;
		RETURN result;
	END IF;
	horizon := until_now(m.settled_at) - grace;
	SELECT count(*) INTO staged FROM observation_stage WHERE stage_id = stage;
	WITH found AS MATERIALIZED (
		SELECT DISTINCT ON (w.id, s.row_id) w.made, w.id AS window_id, s.row_id, s.label, o.label IS NULL AS wanted,
			coalesce(w.state = 'closed' AND w.end_at < horizon, false) AS late
		FROM observation_stage s JOIN monitor_window w
			ON w.monitor_id = mon AND (s.start_at IS NULL OR w.ordinal > 0 OR w.start_at = s.start_at)
		JOIN observation o ON o.made = w.made AND o.window_id = w.id AND o.row_id = s.row_id
		WHERE s.stage_id = stage ORDER BY w.id, s.row_id, s.ord
	), taken AS (
		UPDATE observation o SET label = f.label FROM found f
		WHERE f.wanted AND NOT f.late AND o.made = f.made AND o.window_id = f.window_id AND o.row_id = f.row_id
		RETURNING o.window_id
	), changed AS (
		UPDATE monitor_window w SET labelled = w.labelled + t.n, state = 'open', version = w.version + 1
		FROM (SELECT window_id, count(*) AS n FROM taken GROUP BY window_id) t
		JOIN monitor_window old ON old.id = t.window_id
		WHERE w.id = t.window_id RETURNING t.n, old.state = 'closed' AS was_closed
	)
	SELECT (SELECT count(*) FROM found), (SELECT count(*) FROM found f WHERE f.late AND f.wanted),
		(SELECT coalesce(sum(n), 0) FROM changed), (SELECT count(*) FROM changed),
		(SELECT count(*) FROM changed WHERE was_closed)
	INTO known, too_late, added, touched, again;
	UPDATE monitor SET late_rows = late_rows + too_late WHERE id = mon AND too_late > 0;
	result := jsonb_build_object('rows', added, 'duplicates', known - too_late - added, 'late', too_late,
		'unknown', greatest(staged - known, 0), 'windows', touched, 'reopened', again, 'replayed', false)
		|| jsonb_strip_nulls(jsonb_build_object('horizon', CASE WHEN too_late > 0 THEN time_text(horizon) END));
	INSERT INTO observation_batch (monitor_id, batch_id, request_hash, result)
	SELECT mon, batch, hash, result WHERE batch IS NOT NULL;
	DELETE FROM observation_stage WHERE stage_id = stage;
	RETURN result;
END $$;

-- Takes windows away with their rows, metrics and decisions, as if the rows had never come: the one that starts `at` a time, or
-- those within [lower_at, upper_at). When they were the last that the policy has seen, its state becomes the one before them,
-- unless another version has the alias since. Batches that may have brought the rows are forgotten, so that they can be sent
-- again. Nothing is done when a decision on one of them has started something (held_by), or when `dry`.
CREATE FUNCTION windows_delete(mon text, at timestamptz, lower_at timestamptz, upper_at timestamptz, who text, dry boolean)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	m monitor;
	ids text[];
	since timestamptz;
	held text;
	result jsonb;
	oldest monitor_window;
	state jsonb;
	per_window bigint;
BEGIN
	SELECT * INTO m FROM monitor WHERE id = mon FOR UPDATE;
	SELECT coalesce(array_agg(w.id::text), '{}'), min(w.created_at), jsonb_build_object('windows', count(*),
		'rows', coalesce(sum(w.rows), 0), 'dry_run', dry)
	INTO ids, since, result FROM monitor_window w
	WHERE w.monitor_id = mon AND (w.start_at = at OR (w.start_at >= lower_at AND w.end_at <= upper_at));
	SELECT result || jsonb_build_object('decisions', count(*)),
		min(d.id) FILTER (WHERE d.run_id IS NOT NULL OR (d.fired AND d.action = 'rollback'))
	INTO result, held FROM decision d WHERE d.window_id = ANY (ids);
	IF held IS NOT NULL THEN
		RETURN result || jsonb_build_object('held_by', held);
	ELSIF dry OR ids = '{}' THEN
		RETURN result;
	END IF;
	SELECT * INTO oldest FROM monitor_window w WHERE w.id = ANY (ids) AND w.revision > 0 ORDER BY w.start_at, w.ordinal LIMIT 1;
	state := m.policy_state;
	IF oldest.policy_before IS NOT NULL
		AND NOT EXISTS (SELECT FROM monitor_window w WHERE w.monitor_id = mon AND w.revision > 0 AND w.id <> ALL (ids)
			AND (w.start_at, w.ordinal) > (oldest.start_at, oldest.ordinal))
		AND EXISTS (SELECT FROM model_alias a WHERE a.model_id = m.model_id AND a.alias = m.alias
			AND a.version_id = oldest.model_version_id) THEN
		state := (oldest.policy_before - 'open' - 'muted_until') || jsonb_strip_nulls(jsonb_build_object(
			'open', m.policy_state -> 'open', 'muted_until', m.policy_state -> 'muted_until'));
	END IF;
	DELETE FROM observation o USING monitor_window w WHERE w.id = ANY (ids) AND o.made = w.made AND o.window_id = w.id;
	DELETE FROM drift_metric d USING monitor_window w WHERE w.id = ANY (ids) AND d.made = w.made AND d.window_id = w.id;
	DELETE FROM decision d WHERE d.window_id = ANY (ids);
	DELETE FROM monitor_window w WHERE w.id = ANY (ids);
	DELETE FROM observation_batch b WHERE b.monitor_id = mon AND b.received_at >= since;
	per_window := (m.spec -> 'window' ->> 'rows')::bigint;
	UPDATE monitor SET version = version + 1, policy_state = state,
		-- A window by rows that was being filled is not filled on: the next row begins the next one.
		rows_taken = CASE WHEN per_window > 0 AND NOT EXISTS (SELECT FROM monitor_window w
				WHERE w.monitor_id = mon AND w.ordinal = m.rows_taken / per_window + 1)
			THEN (m.rows_taken + per_window - 1) / per_window * per_window ELSE m.rows_taken END
	WHERE id = mon;
	PERFORM monitor_clock_move(mon, true);
	INSERT INTO event (project_id, type, subject, actor, data) VALUES (m.project_id, 'monitor.windows_deleted', mon, who,
		result || jsonb_strip_nulls(jsonb_build_object('from', time_text(coalesce(at, lower_at)), 'to', time_text(upper_at))));
	RETURN result;
END $$;
