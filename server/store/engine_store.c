#include "server/store/engine_store.h"

#include "gen/sql.h"
#include "lib/base/mem.h"

void engine_store_looks(struct db_unit *u, const struct str *run_ids, size_t n)
{
	db_stmt(u, SQL_ENGINE_LOOKS, DB_TEXTS(run_ids, n));
}

void run_moves_init(struct run_moves *m, size_t room, struct arena *a)
{
	*m = (struct run_moves){ .ids = arena_array_of(a, struct str, room),
		.states = arena_array_of(a, struct str, room),
		.reasons = arena_array_of(a, struct str, room),
		.messages = arena_array_of(a, struct str, room),
		.no_state = arena_array_of(a, bool, room),
		.versions = arena_array_of(a, int64_t, room),
		.started_at = arena_array_of(a, int64_t, room),
		.no_start = arena_array_of(a, bool, room) };
}

void engine_store_advance(struct db_unit *u, const struct run_moves *m)
{
	db_stmt(u, SQL_ENGINE_ADVANCE, DB_TEXTS(m->ids, m->n), DB_INTS(m->versions, m->n),
		db_with_nulls(DB_TEXTS(m->states, m->n), m->no_state), DB_TEXTS(m->reasons, m->n),
		DB_TEXTS(m->messages, m->n),
		db_with_nulls(DB_TIMES(m->started_at, m->n), m->no_start));
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

static bool some_end(const struct step_updates *s)
{
	static const char *const ends[] = { "succeeded", "failed", "cancelled", "skipped" };

	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++)
			if (str_is(s->states[i], ends[k]))
				return true;
	return false;
}

void step_updates_append(struct step_updates *s, const struct step_updates *more)
{
	for (size_t i = 0; i < more->n; i++, s->n++) {
		s->ids[s->n] = more->ids[i];
		s->states[s->n] = more->states[i];
		s->reasons[s->n] = more->reasons[i];
		s->messages[s->n] = more->messages[i];
		s->user_failures[s->n] = more->user_failures[i];
		s->infra_failures[s->n] = more->infra_failures[i];
		s->started_at[s->n] = more->started_at[i];
		s->no_start[s->n] = more->no_start[i];
	}
}

void engine_store_update_steps(struct db_unit *u, const struct step_updates *s)
{
	if (s->n == 0)
		return;
	db_stmt(u, SQL_ENGINE_STEP_UPDATE, DB_TEXTS(s->ids, s->n), DB_TEXTS(s->states, s->n),
		DB_TEXTS(s->reasons, s->n), DB_TEXTS(s->messages, s->n),
		DB_INTS(s->user_failures, s->n), DB_INTS(s->infra_failures, s->n),
		db_with_nulls(DB_TIMES(s->started_at, s->n), s->no_start));
	if (some_end(s))
		db_stmt(u, SQL_ENGINE_CHECKPOINT_DELETE, DB_TEXTS(s->ids, s->n));
}

void engine_store_step_specs(
	struct db_unit *u, const struct str *ids, const struct str *specs, size_t n)
{
	if (n != 0)
		db_stmt(u, SQL_ENGINE_STEP_SPEC, DB_TEXTS(ids, n), DB_JSONS(specs, n));
}

void engine_store_take(
	struct db_unit *u, const struct str *ids, const struct str *sources, size_t n)
{
	if (n != 0)
		db_stmt(u, SQL_ENGINE_TAKE, DB_TEXTS(ids, n), DB_TEXTS(sources, n));
}

void engine_store_gather(struct db_unit *u, const struct str *ids, size_t n)
{
	if (n != 0)
		db_stmt(u, SQL_ENGINE_GATHER, DB_TEXTS(ids, n));
}

void engine_store_cache_facts(struct db_unit *u, struct str run_id, const struct str *ids,
	const struct str *images, size_t n, int64_t files)
{
	db_stmt(u, SQL_CACHE_FACTS, DB_TEXT(run_id), DB_TEXTS(ids, n), DB_TEXTS(images, n),
		DB_INT(files));
}

void engine_store_cache_find(struct db_unit *u, struct str project_id, const struct str *keys,
	const struct str *images, const int64_t *ages, size_t n)
{
	db_stmt(u, SQL_CACHE_FIND, DB_TEXT(project_id), DB_BLOBS(keys, n), DB_TEXTS(images, n),
		DB_INTS(ages, n));
}

void engine_store_cache_keys(
	struct db_unit *u, const struct str *ids, const struct str *keys, size_t n)
{
	if (n != 0)
		db_stmt(u, SQL_CACHE_KEYS, DB_TEXTS(ids, n), DB_BLOBS(keys, n));
}

void engine_store_cache_take(
	struct db_unit *u, const struct str *ids, const struct str *sources, size_t n)
{
	if (n == 0)
		return;
	db_stmt(u, SQL_CACHE_HOLD, DB_TEXTS(sources, n));
	engine_store_take(u, ids, sources, n);
	db_stmt(u, SQL_CACHE_REUSE, DB_TEXTS(ids, n), DB_TEXTS(sources, n));
}

void engine_store_look(struct db_unit *u, const struct str *run_ids, const bool *looks, size_t n)
{
	if (n != 0)
		db_stmt(u, SQL_ENGINE_LOOK_SET, DB_TEXTS(run_ids, n), DB_BOOLS(looks, n));
}

void engine_store_context(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_ENGINE_CONTEXT, DB_TEXT(run_id));
}

void engine_store_values(
	struct db_unit *u, struct str run_id, const struct str *names, size_t n, size_t room)
{
	struct str *steps = mem_new(n + 1, sizeof *steps), *keys = mem_new(n + 1, sizeof *keys);

	for (size_t i = 0; i < n; i++) {
		ptrdiff_t at = str_find(names[i], STR(".outputs."));
		BUG_ON(at < 6);
		steps[i] = str_slice(names[i], 6, (size_t)at - 6);
		keys[i] = str_slice(names[i], (size_t)at + 9, names[i].n);
	}
	db_stmt(u, SQL_ENGINE_VALUES, DB_TEXT(run_id), DB_TEXTS(steps, n), DB_TEXTS(keys, n),
		DB_INT((int64_t)room));
	mem_free(steps);
	mem_free(keys);
}

void queue_rows_init(struct queue_rows *q, size_t room, struct arena *a)
{
	struct str **texts[] = { &q->run_ids, &q->project_ids, &q->step_ids, &q->pools,
		&q->requests };
	int64_t **numbers[] = { &q->priorities, &q->memory, &q->disk, &q->gpus, &q->not_before,
		&q->deadlines };

	*q = (struct queue_rows){ .cpus = arena_array_of(a, double, room) };
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		*texts[i] = arena_array_of(a, struct str, room);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		*numbers[i] = arena_array_of(a, int64_t, room);
}

void queue_rows_append(struct queue_rows *q, const struct queue_rows *more)
{
	for (size_t i = 0; i < more->n; i++, q->n++) {
		q->run_ids[q->n] = more->run_ids[i];
		q->project_ids[q->n] = more->project_ids[i];
		q->step_ids[q->n] = more->step_ids[i];
		q->pools[q->n] = more->pools[i];
		q->requests[q->n] = more->requests[i];
		q->priorities[q->n] = more->priorities[i];
		q->memory[q->n] = more->memory[i];
		q->disk[q->n] = more->disk[i];
		q->gpus[q->n] = more->gpus[i];
		q->not_before[q->n] = more->not_before[i];
		q->deadlines[q->n] = more->deadlines[i];
		q->cpus[q->n] = more->cpus[i];
	}
}

void engine_store_queue(struct db_unit *u, const struct queue_rows *q)
{
	if (q->n == 0)
		return;
	const struct db_arg args[] = { DB_TEXTS(q->run_ids, q->n), DB_TEXTS(q->project_ids, q->n),
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

void engine_store_cancel_attempts(
	struct db_unit *u, const struct str *ids, const struct str *reasons, size_t n)
{
	if (n != 0)
		db_stmt(u, SQL_ENGINE_ATTEMPT_CANCEL, DB_TEXTS(ids, n), DB_TEXTS(reasons, n));
}

void engine_store_release_attempts(struct db_unit *u, const struct str *ids, size_t n)
{
	if (n != 0)
		db_stmt(u, SQL_ENGINE_ATTEMPT_RELEASE, DB_TEXTS(ids, n));
}

void engine_store_tracking(struct db_unit *u, const struct str *tracking_runs,
	const struct str *statuses, size_t n, int64_t now_ms)
{
	if (n != 0)
		db_stmt(u, SQL_ENGINE_TRACKING_STATUS, DB_TEXTS(tracking_runs, n),
			DB_TEXTS(statuses, n), DB_INT(now_ms));
}

void events_init(struct events *e, size_t room, struct arena *a)
{
	struct str **texts[] = { &e->project_ids, &e->types, &e->subjects, &e->parents, &e->actors,
		&e->data };

	e->n = 0;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		*texts[i] = arena_array_of(a, struct str, room);
}

void events_add(struct events *e, struct str project_id, const char *type, struct str subject)
{
	size_t i = e->n++;

	e->project_ids[i] = project_id;
	e->types[i] = str_c(type);
	e->subjects[i] = subject;
	e->parents[i] = e->actors[i] = STR("");
	e->data[i] = STR("{}");
}

void events_append(struct events *e, const struct events *more)
{
	for (size_t i = 0; i < more->n; i++, e->n++) {
		e->project_ids[e->n] = more->project_ids[i];
		e->types[e->n] = more->types[i];
		e->subjects[e->n] = more->subjects[i];
		e->parents[e->n] = more->parents[i];
		e->actors[e->n] = more->actors[i];
		e->data[e->n] = more->data[i];
	}
}

void engine_store_events(struct db_unit *u, const struct events *e)
{
	if (e->n != 0)
		db_stmt(u, SQL_ENGINE_EVENTS, DB_TEXTS(e->project_ids, e->n),
			DB_TEXTS(e->types, e->n), DB_TEXTS(e->subjects, e->n),
			DB_TEXTS(e->parents, e->n), DB_TEXTS(e->actors, e->n),
			DB_JSONS(e->data, e->n));
}

void engine_store_group_next(struct db_unit *u, struct str project_id, struct str group)
{
	db_stmt(u, SQL_ENGINE_GROUP_NEXT, DB_TEXT(project_id), DB_TEXT(group));
}

void engine_store_sweep(struct db_unit *u, struct str after, int64_t count)
{
	db_stmt(u, SQL_ENGINE_SWEEP, DB_TEXT(after), DB_INT(count));
}

void engine_store_run_admitted(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_ENGINE_RUN_ADMITTED, DB_TEXT(run_id));
}
