/*
 * One look at a run is a small flow: progress_run → (read) look_on_read → (plan) → (write)
 * look_on_written. While a look at a run is under way, further calls for the same run only ask for
 * one more look after it.
 */
#include "server/sched/progress.h"

#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/db/row.h"
#include "server/app.h"
#include "server/sched/finish.h"
#include "server/sched/plan.h"
#include "server/sched/sched.h"
#include "server/store/engine_store.h"

enum { LOOK_ARENA = 64 << 20, SWEEP_MAX = 1000 };

struct look {
	struct app *app;
	struct arena *arena;
	struct plan_run run;
	struct plan *plan;
	bool again;
};

struct progress {
	struct map *looks; /* run id -> struct look */
};

static void look_start(struct look *l);
static void look_on_read(void *arg, const struct db_rows *rows, const struct err *e);
static void look_on_written(void *arg, const struct db_rows *rows, const struct err *e);

struct progress *progress_new(void)
{
	struct progress *p = mem_new_of(struct progress);

	p->looks = map_new();
	return p;
}

void progress_free(struct progress *p)
{
	if (p == NULL)
		return;
	map_free(p->looks);
	mem_free(p);
}

void progress_run(struct app *app, struct str run_id)
{
	struct look *l = map_get(app->progress->looks, run_id);

	if (l != NULL) {
		l->again = true;
		return;
	}
	l = mem_new_of(struct look);
	l->app = app;
	l->arena = arena_new(LOOK_ARENA);
	l->run.id = arena_str(l->arena, run_id);
	(void)map_put(app->progress->looks, l->run.id, l);
	look_start(l);
}

static void look_start(struct look *l)
{
	struct db_unit *u = db_unit(l->app->db, l->arena);

	l->again = false;
	engine_store_run(u, l->run.id);
	engine_store_steps(u, l->run.id);
	db_send(u, DB_READ, look_on_read, l);
}

/* Tail: another look in a fresh arena, or none. */
static void look_done(struct look *l)
{
	struct app *app = l->app;
	struct arena *old = l->arena;

	if (l->again) {
		struct str id = l->run.id;
		l->arena = arena_new(LOOK_ARENA);
		l->run = (struct plan_run){ .id = arena_str(l->arena, id) };
		arena_drop(old);
		look_start(l);
		return;
	}
	(void)map_remove(app->progress->looks, l->run.id);
	arena_drop(old);
	mem_free(l);
}

static int state_of(struct str name, const char *const *names)
{
	for (int i = 0; names[i] != NULL; i++)
		if (str_is(name, names[i]))
			return i;
	return 0;
}

static struct str text_of(struct look *l, const struct db_rows *r, size_t row, const char *column)
{
	return arena_str(l->arena, db_str(r, row, db_col(r, column)));
}

static void read_step(struct look *l, const struct db_rows *r, size_t i, struct plan_step *s)
{
	*s = (struct plan_step){
		.id = text_of(l, r, i, "id"),
		.name = text_of(l, r, i, "name"),
		.spec = text_of(l, r, i, "spec"),
		.tracking_run = text_of(l, r, i, "tracking_run"),
		.needs = db_list(r, i, db_col(r, "needs"), l->arena),
		.state = state_of(db_str(r, i, db_col(r, "state")), step_state_names),
		.user_failures = db_int(r, i, db_col(r, "user_failures")),
		.infra_failures = db_int(r, i, db_col(r, "infra_failures")),
		.reason = text_of(l, r, i, "reason"),
		.message = text_of(l, r, i, "message"),
		.deadline = db_time(r, i, db_col(r, "deadline")),
		.blocked = text_of(l, r, i, "blocked"),
		.attempts = db_int(r, i, db_col(r, "attempts")),
		.attempt_id = text_of(l, r, i, "attempt_id"),
		.attempt_reason = text_of(l, r, i, "attempt_reason"),
		.attempt_message = text_of(l, r, i, "attempt_message"),
		.worker_id = text_of(l, r, i, "worker_id"),
		.attempt_state =
			state_of(db_str(r, i, db_col(r, "attempt_state")), attempt_state_names),
		.attempt_started_at = db_time(r, i, db_col(r, "attempt_started_at")),
	};
}

static void read_run(struct look *l, const struct db_rows *run, const struct db_rows *steps)
{
	struct plan_run *r = &l->run;

	r->project_id = text_of(l, run, 0, "project_id");
	r->pipeline = text_of(l, run, 0, "pipeline");
	r->group = text_of(l, run, 0, "concurrency_group");
	r->state = state_of(db_str(run, 0, db_col(run, "state")), run_state_names);
	r->version = db_int(run, 0, db_col(run, "version"));
	r->cancelling = db_bool(run, 0, db_col(run, "cancelling"));
	r->admitted = db_bool(run, 0, db_col(run, "admitted"));
	r->blocked = db_bool(run, 0, db_col(run, "blocked"));
	r->finishing_work = db_bool(run, 0, db_col(run, "finishing_work"));
	r->n = steps->n;
	r->steps = arena_array_of(l->arena, struct plan_step, steps->n + 1);
	for (size_t i = 0; i < steps->n; i++)
		read_step(l, steps, i, &r->steps[i]);
}

static void look_on_read(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct look *l = arg;
	struct err bad = *e;
	uint64_t random;

	if (e->code == ERR_OK && rows[0].n == 0) {
		look_done(l);
		return;
	}
	id_random(&random, sizeof random);
	if (e->code == ERR_OK) {
		read_run(l, &rows[0], &rows[1]);
		if (plan_make(&l->run, clock_now(l->app->clock), random, l->arena, &l->plan,
			    &bad) == 0) {
			if (l->plan == NULL) {
				if (l->run.state == RUN_FINISHING)
					finish_run(l->app, l->run.id);
				look_done(l);
				return;
			}
			struct db_unit *u = db_unit(l->app->db, l->arena);
			engine_store_advance(u, l->run.id, l->run.version);
			plan_add(u, l->plan, clock_now(l->app->clock));
			db_send(u, DB_WRITE, look_on_written, l);
			return;
		}
	}
	log_error("a run cannot go on", LOG_STR("run", l->run.id), LOG_E(&bad));
	look_done(l);
}

/* ---- after the write ---- */

static void group_on_next(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct app *app = arg;

	if (e->code == ERR_OK && rows[0].n != 0)
		progress_run(app, db_str(&rows[0], 0, 0));
}

static void wake_group(struct look *l)
{
	struct db_unit *u = db_unit(l->app->db, NULL);

	engine_store_group_next(u, l->run.project_id, l->run.group);
	db_send(u, DB_READ, group_on_next, l->app);
}

static void look_on_written(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct look *l = arg;

	if (e->code != ERR_OK) {
		/* Somebody was quicker, or the outcome is not known: look again. */
		if ((rows->fault != NULL && strcmp(rows->fault->sqlstate, "TM001") == 0) ||
			db_outcome_unknown(rows))
			l->again = true;
		else
			log_error("a run's progress was not stored", LOG_STR("run", l->run.id),
				LOG_E(e));
		look_done(l);
		return;
	}
	app_changed(l->app);
	sched_queued(l->app->sched, plan_queue(l->plan));
	int state = plan_run_state(l->plan);
	if (state == RUN_FINISHING)
		finish_run(l->app, l->run.id);
	if (state > RUN_FINISHING && l->run.group.n != 0)
		wake_group(l);
	look_done(l);
}

/* ---- what was left behind ---- */

static void sweep_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct app *app = arg;

	for (size_t i = 0; e->code == ERR_OK && i < rows[0].n; i++)
		progress_run(app, db_str(&rows[0], i, 0));
}

void progress_sweep(struct app *app)
{
	struct db_unit *u = db_unit(app->db, NULL);

	engine_store_sweep(u, SWEEP_MAX);
	db_send(u, DB_READ, sweep_on_rows, app);
}
