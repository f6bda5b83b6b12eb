#include "server/store/engine_store.h"

#include "gen/sql.h"

void engine_store_run(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_ENGINE_RUN, DB_TEXT(run_id));
}

void engine_store_steps(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_ENGINE_STEPS, DB_TEXT(run_id));
}

void engine_store_advance(struct db_unit *u, struct str run_id, int64_t version)
{
	db_stmt(u, SQL_ENGINE_ADVANCE, DB_TEXT(run_id), DB_INT(version));
}

void step_updates_init(struct step_updates *s, size_t room, struct arena *a)
{
	*s = (struct step_updates){ .ids = arena_array_of(a, struct str, room),
		.states = arena_array_of(a, struct str, room),
		.reasons = arena_array_of(a, struct str, room),
		.messages = arena_array_of(a, struct str, room),
		.user_failures = arena_array_of(a, int64_t, room),
		.infra_failures = arena_array_of(a, int64_t, room),
		.started_at = arena_array_of(a, int64_t, room),
		.no_start = arena_array_of(a, bool, room) };
}

void engine_store_update_steps(struct db_unit *u, const struct step_updates *s)
{
	if (s->n == 0)
		return;
	db_stmt(u, SQL_ENGINE_STEP_UPDATE, DB_TEXTS(s->ids, s->n), DB_TEXTS(s->states, s->n),
		DB_TEXTS(s->reasons, s->n), DB_TEXTS(s->messages, s->n),
		DB_INTS(s->user_failures, s->n), DB_INTS(s->infra_failures, s->n),
		db_with_nulls(DB_TIMES(s->started_at, s->n), s->no_start));
}

void queue_rows_init(struct queue_rows *q, size_t room, struct arena *a)
{
	*q = (struct queue_rows){ .step_ids = arena_array_of(a, struct str, room),
		.pools = arena_array_of(a, struct str, room),
		.requests = arena_array_of(a, struct str, room),
		.priorities = arena_array_of(a, int64_t, room),
		.memory = arena_array_of(a, int64_t, room),
		.disk = arena_array_of(a, int64_t, room),
		.gpus = arena_array_of(a, int64_t, room),
		.not_before = arena_array_of(a, int64_t, room),
		.deadlines = arena_array_of(a, int64_t, room),
		.cpus = arena_array_of(a, double, room) };
}

void engine_store_queue(
	struct db_unit *u, struct str run_id, struct str project_id, const struct queue_rows *q)
{
	if (q->n == 0)
		return;
	const struct db_arg args[] = { DB_TEXT(run_id), DB_TEXT(project_id),
		DB_TEXTS(q->step_ids, q->n), DB_INTS(q->priorities, q->n), DB_REALS(q->cpus, q->n),
		DB_INTS(q->memory, q->n), DB_INTS(q->disk, q->n), DB_INTS(q->gpus, q->n),
		DB_TEXTS(q->pools, q->n), DB_JSONS(q->requests, q->n),
		DB_TIMES(q->not_before, q->n), DB_TIMES(q->deadlines, q->n) };
	db_add(u, SQL_ENGINE_QUEUE_INSERT, args, sizeof args / sizeof args[0]);
}

void engine_store_unqueue(struct db_unit *u, const struct str *step_ids, size_t n)
{
	if (n != 0)
		db_stmt(u, SQL_ENGINE_QUEUE_DELETE, DB_TEXTS(step_ids, n));
}

void engine_store_cancel_attempts(struct db_unit *u, const struct str *ids, size_t n)
{
	if (n != 0)
		db_stmt(u, SQL_ENGINE_ATTEMPT_CANCEL, DB_TEXTS(ids, n));
}

void engine_store_tracking(struct db_unit *u, const struct str *tracking_runs,
	const struct str *statuses, size_t n, int64_t now_ms)
{
	if (n != 0)
		db_stmt(u, SQL_ENGINE_TRACKING_STATUS, DB_TEXTS(tracking_runs, n),
			DB_TEXTS(statuses, n), DB_INT(now_ms));
}

void engine_store_update_run(
	struct db_unit *u, struct str id, const char *state, struct str reason, struct str message)
{
	db_stmt(u, SQL_ENGINE_RUN_UPDATE, DB_TEXT(id), DB_TEXTZ(state), DB_TEXT(reason),
		DB_TEXT(message));
}

void events_init(struct events *e, size_t room, struct arena *a)
{
	*e = (struct events){ .types = arena_array_of(a, struct str, room),
		.subjects = arena_array_of(a, struct str, room),
		.parents = arena_array_of(a, struct str, room),
		.data = arena_array_of(a, struct str, room) };
}

void engine_store_events(struct db_unit *u, struct str project_id, const struct events *e)
{
	if (e->n != 0)
		db_stmt(u, SQL_ENGINE_EVENTS, DB_TEXT(project_id), DB_TEXTS(e->types, e->n),
			DB_TEXTS(e->subjects, e->n), DB_TEXTS(e->parents, e->n),
			DB_JSONS(e->data, e->n));
}

void engine_store_group_next(struct db_unit *u, struct str project_id, struct str group)
{
	db_stmt(u, SQL_ENGINE_GROUP_NEXT, DB_TEXT(project_id), DB_TEXT(group));
}

void engine_store_sweep(struct db_unit *u, int64_t count)
{
	db_stmt(u, SQL_ENGINE_SWEEP, DB_INT(count));
}

void engine_store_run_started(struct db_unit *u, struct str run_id, const struct step_updates *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->no_start[i]) {
			db_stmt(u, SQL_ENGINE_RUN_STARTED, DB_TEXT(run_id),
				db_with_nulls(DB_TIMES(s->started_at, s->n), s->no_start));
			return;
		}
}
