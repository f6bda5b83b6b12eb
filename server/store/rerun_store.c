#include "server/store/rerun_store.h"

#include "gen/sql.h"
#include "server/store/engine_store.h"
#include "server/store/launch_store.h"

void rerun_store_source(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_RERUN_SOURCE, DB_TEXT(run_id));
}

static void take_steps(struct db_unit *u, const struct rerun_steps *s, struct arena *a)
{
	struct str *ids = arena_array_of(a, struct str, s->n + 1);
	struct str *sources = arena_array_of(a, struct str, s->n + 1);
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->taken[i]) {
			ids[n] = s->ids[i];
			sources[n++] = s->sources[i];
		}
	engine_store_take(u, ids, sources, n);
}

void rerun_store_number(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_RERUN_NUMBER, DB_TEXT(id));
}

void rerun_store_add(struct db_unit *u, const struct rerun_row *r, int64_t now, struct arena *a)
{
	const struct rerun_steps *s = &r->steps;

	db_stmt(u, SQL_RERUN_HOLD, DB_TEXT(r->source_id));
	db_stmt(u, SQL_RUN_EXPERIMENTS, DB_TEXTS(&r->project_id, 1), DB_TEXTS(&r->pipeline, 1));
	db_stmt(u, SQL_RERUN_INSERT, DB_TEXT(r->id), DB_TEXT(r->source_id), DB_TEXTZ(r->from),
		DB_TEXT(r->actor));
	db_stmt(u, SQL_RERUN_PINS, DB_TEXT(r->id), DB_TEXT(r->source_id));
	db_stmt(u, SQL_RERUN_STEPS, DB_TEXT(r->id), DB_TEXT(r->source_id), DB_TEXTS(s->ids, s->n),
		DB_TEXTS(s->sources, s->n), DB_TEXTS(s->tracking_runs, s->n),
		DB_BOOLS(s->taken, s->n));
	db_stmt(u, SQL_RERUN_TRACKING, DB_TEXT(r->id), DB_INT(now / 1000));
	launch_store_matrices(u, &r->id, 1);
	take_steps(u, s, a);
	db_stmt(u, SQL_RERUN_EVENTS, DB_TEXT(r->id), DB_TEXT(r->actor));
	db_stmt(u, SQL_RERUN_STEP_EVENTS, DB_TEXT(r->id));
}
