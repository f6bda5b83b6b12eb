/*
 * One look at a run is a small flow: progress_run → (read) look_on_read → look_plan → (what its
 * steps are filled in with, when some are ready that name it) look_on_context → look_plan → (write)
 * look_on_written. Reads and writes are
 * shared with the looks at other runs that come meanwhile (lib/db/group): at any time one batch of
 * each is under way. While a look at a run is under way, further calls for the same run only ask
 * for one more look after it.
 */
#include "server/sched/progress.h"

#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/db/group.h"
#include "lib/db/row.h"
#include "lib/json/json_read.h"
#include "server/app.h"
#include "server/sched/cache_look.h"
#include "server/sched/finish.h"
#include "server/sched/plan.h"
#include "server/sched/sched.h"
#include "server/sched/spec.h"
#include "server/store/engine_store.h"

enum {
	LOOK_ARENA = 128 << 20,
	VALUES_ROOM = 4 << 20, /* bytes of values that a look reads; a step's have fewer */
	SWEEP_MAX = 1000,
	READ_BATCH = 50,
	WRITE_BATCH = 100,
	READ_BYTES = 1024, /* about, of one look */
	STEP_BYTES = 2048, /* about, of a step that moves */
	TAKEN_MAX = 10000,
	TAKEN_BYTES = 800 /* rows that are copied: as much as a batch may carry */
};

struct look {
	struct app *app;
	struct arena *arena;
	struct plan_run run;
	struct plan *plan;
	uint64_t random;
	struct list cache_wants; /* struct plan_cache_want */
	struct list wants; /* struct str: names of values that are read */
	struct map *values; /* struct plan_value */
	bool again;
	bool takes_none; /* the next look takes nothing from the cache */
};

struct progress {
	struct map *looks; /* run id -> struct look */
	struct db_group *reads, *writes;
	char swept[ID_MAX]; /* where the next sweep begins; "": from the start */
	bool stopped;
};

static void look_start(struct look *l);
static void reads_build(void *arg, struct db_unit *u, void *const *items, size_t n);
static void look_on_read(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e);
static void look_plan(struct look *l);
static void look_on_context(void *arg, const struct db_rows *rows, const struct err *e);
static void writes_build(void *arg, struct db_unit *u, void *const *items, size_t n);
static void look_on_written(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e);

struct progress *progress_new(struct app *app)
{
	struct progress *p = mem_new_of(struct progress);

	p->looks = map_new();
	p->reads = db_group_new(app->loop, app->db,
		&(struct db_group_conf){ .lane = DB_READ,
			.build = reads_build,
			.done = look_on_read,
			.result = 0,
			.batch_max = READ_BATCH });
	p->writes = db_group_new(app->loop, app->db,
		&(struct db_group_conf){ .lane = DB_WRITE,
			.build = writes_build,
			.done = look_on_written,
			.arg = app,
			.result = -1,
			.batch_max = WRITE_BATCH });
	return p;
}

void progress_stop(struct progress *p)
{
	if (p == NULL)
		return;
	p->stopped = true;
	db_group_free(p->reads);
	db_group_free(p->writes);
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

static void look_drop(struct look *l)
{
	(void)map_remove(l->app->progress->looks, l->run.id);
	map_free(l->values);
	arena_drop(l->arena);
	mem_free(l);
}

/* What cannot be looked at now is swept up later. */
static void look_start(struct look *l)
{
	struct progress *p = l->app->progress;
	struct err e;

	l->again = false;
	id_random(&l->random, sizeof l->random);
	if (p->stopped || db_group_add(p->reads, l, READ_BYTES, &e) < 0)
		look_drop(l);
}

static void reads_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	struct str ids[READ_BATCH];

	(void)arg;
	for (size_t i = 0; i < n; i++)
		ids[i] = ((const struct look *)items[i])->run.id;
	engine_store_looks(u, ids, n);
}

/* Tail: another look in a fresh arena, or none. */
static void look_done(struct look *l)
{
	struct arena *old = l->arena;

	if (!l->again) {
		look_drop(l);
		return;
	}
	struct str id = l->run.id;
	map_free(l->values);
	l->values = NULL;
	l->arena = arena_new(LOOK_ARENA);
	l->run = (struct plan_run){ .id = arena_str(l->arena, id), .takes_none = l->takes_none };
	arena_drop(old);
	look_start(l);
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
		.late = db_bool(r, i, db_col(r, "late")),
		.joins = db_bool(r, i, db_col(r, "joins")),
		.reused = db_bool(r, i, db_col(r, "reused")),
		.matrix_of = text_of(l, r, i, "matrix_of"),
		.slots = db_int(r, i, db_col(r, "slots")),
		.has_metric = !db_is_null(r, i, db_col(r, "metric_value")),
		.metric = db_real(r, i, db_col(r, "metric_value")),
		.state = state_of(db_str(r, i, db_col(r, "state")), step_state_names),
		.user_failures = db_int(r, i, db_col(r, "user_failures")),
		.infra_failures = db_int(r, i, db_col(r, "infra_failures")),
		.preempted = db_int(r, i, db_col(r, "preempted")),
		.reason = text_of(l, r, i, "reason"),
		.message = text_of(l, r, i, "message"),
		.deadline = db_time(r, i, db_col(r, "deadline")),
		.blocked = text_of(l, r, i, "waits_for"),
		.attempts = db_int(r, i, db_col(r, "attempts")),
		.attempt_id = text_of(l, r, i, "attempt_id"),
		.attempt_reason = text_of(l, r, i, "attempt_reason"),
		.attempt_message = text_of(l, r, i, "attempt_message"),
		.worker_id = text_of(l, r, i, "worker_id"),
		.attempt_state =
			state_of(db_str(r, i, db_col(r, "attempt_state")), attempt_state_names),
		.attempt_started_at = db_time(r, i, db_col(r, "attempt_started_at")),
		.attempt_cancelling = db_bool(r, i, db_col(r, "attempt_cancelling")),
		.log_matches = text_of(l, r, i, "log_matches"),
		.avoid_workers = db_list(r, i, db_col(r, "avoid_workers"), l->arena),
	};
}

/* An object of texts. */
static int read_pairs(struct look *l, struct str json, struct list *ret, struct err *e)
{
	struct jsn_doc *doc;

	if (jsn_parse(json, &doc, e) < 0)
		return -1;
	size_t n = jsn_count(jsn_root(doc));
	struct field_pair *pairs = arena_array_of(l->arena, struct field_pair, n + 1);
	for (size_t i = 0; i < n; i++) {
		const struct jsn *v = jsn_at(jsn_root(doc), i);
		pairs[i] = (struct field_pair){ arena_str(l->arena, jsn_name(v)),
			arena_str(l->arena, jsn_get_str(v)) };
	}
	*ret = (struct list){ pairs, n };
	jsn_doc_free(doc);
	return 0;
}

/* The values of a combination that is filled in later. */
static int read_matrix(
	struct look *l, const struct db_rows *r, size_t i, struct plan_step *s, struct err *e)
{
	struct str json = db_str(r, i, db_col(r, "matrix"));

	return !s->late || json.n == 0 ? 0 : read_pairs(l, json, &s->matrix, e);
}

/* What its ranks come to stands for the attempt. */
static int read_gang(
	struct look *l, const struct db_rows *r, size_t i, struct plan_step *s, struct err *e)
{
	struct str ranks = db_str(r, i, db_col(r, "gang"));

	if (ranks.n == 0)
		return 0;
	if (gang_read(ranks, db_bool(r, i, db_col(r, "led")), l->arena, &s->gang, e) < 0)
		return -1;
	gang_judge(&s->gang, l->arena, &s->verdict);
	s->attempt_state = s->verdict.state;
	s->attempt_reason = s->verdict.reason;
	s->attempt_message = s->verdict.message;
	s->attempt_started_at = s->verdict.started_at;
	return 0;
}

/* The rows of a run stand together, from its first one. */
static int read_run(struct look *l, const struct db_rows *rows, size_t row, struct err *e)
{
	struct plan_run *r = &l->run;
	size_t ord = db_col(rows, "ord"), n = 1;

	while (row + n < rows->n && db_int(rows, row + n, ord) == db_int(rows, row, ord))
		n++;
	r->project_id = text_of(l, rows, row, "project_id");
	r->pipeline = text_of(l, rows, row, "pipeline");
	r->group = text_of(l, rows, row, "concurrency_group");
	r->state = state_of(db_str(rows, row, db_col(rows, "run_state")), run_state_names);
	r->version = db_int(rows, row, db_col(rows, "version"));
	r->cancelling = db_bool(rows, row, db_col(rows, "cancelling"));
	r->admitted = db_bool(rows, row, db_col(rows, "admitted"));
	r->blocked = db_bool(rows, row, db_col(rows, "blocked"));
	r->data = db_list(rows, row, db_col(rows, "data"), l->arena);
	r->look = db_bool(rows, row, db_col(rows, "look"));
	r->finishing_work = db_bool(rows, row, db_col(rows, "finishing_work"));
	r->n = n;
	r->steps = arena_array_of(l->arena, struct plan_step, n);
	for (size_t i = 0; i < n; i++) {
		read_step(l, rows, row + i, &r->steps[i]);
		if (read_matrix(l, rows, row + i, &r->steps[i], e) < 0 ||
			read_gang(l, rows, row + i, &r->steps[i], e) < 0)
			return -1;
	}
	return 0;
}

static void look_fail(struct look *l, const struct err *e)
{
	if (e->code != ERR_CANCELLED)
		log_error("a run cannot go on", LOG_STR("run", l->run.id), LOG_E(e));
	look_done(l);
}

static void look_write(struct look *l)
{
	struct progress *p = l->app->progress;
	struct err e;

	int64_t taken = plan_cached_rows(l->plan);
	size_t bytes = l->run.n * STEP_BYTES + plan_spec_bytes(l->plan) +
		       (size_t)(taken < 0           ? 0
				: taken < TAKEN_MAX ? taken
						    : TAKEN_MAX) *
			       TAKEN_BYTES;
	if (db_group_add(p->writes, l, bytes, &e) < 0)
		look_fail(l, &e);
}

static void look_on_read(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	struct look *l = item;
	struct err bad;

	(void)arg;
	if (e->code != ERR_OK) {
		look_fail(l, e);
		return;
	}
	if (row == DB_NO_ROW) { /* the run is gone */
		look_done(l);
		return;
	}
	if (read_run(l, rows, row, &bad) < 0) {
		look_fail(l, &bad);
		return;
	}
	look_plan(l);
}

static void read_values(struct look *l, const struct db_rows *r)
{
	size_t size = db_col(r, "size"), value = db_col(r, "value");

	l->values = map_new();
	for (size_t i = 0; i < r->n; i++) {
		struct plan_value *v = arena_new_of(l->arena, struct plan_value);
		*v = (struct plan_value){ .size = db_int(r, i, size),
			.here = !db_is_null(r, i, value),
			.text = arena_str(l->arena, db_str(r, i, value)) };
		(void)map_put(l->values, *list_at(&l->wants, struct str, i), v);
	}
	l->run.values = l->values;
}

static int read_context(struct look *l, const struct db_rows *r, struct err *e)
{
	struct spec_scope *scope = arena_new_of(l->arena, struct spec_scope);
	struct pipeline_spec *spec = arena_new_of(l->arena, struct pipeline_spec);

	*scope = (struct spec_scope){ .run_id = l->run.id };
	l->run.scope = scope;
	if (field_decode_reply(pipeline_spec_fields, text_of(l, r, 0, "spec"), l->arena, spec, e) <
		0)
		return -1;
	return spec_fill_inputs(spec, text_of(l, r, 0, "inputs"), false, l->arena, scope, e);
}

static void look_on_context(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct look *l = arg;
	struct err bad = *e;

	if (e->code == ERR_OK && rows[0].n == 0) {
		look_done(l);
	} else if (e->code != ERR_OK || read_context(l, &rows[0], &bad) < 0) {
		look_fail(l, &bad);
	} else {
		read_values(l, &rows[1]);
		look_plan(l);
	}
}

static void ask_context(struct look *l)
{
	struct db_unit *u = db_unit(l->app->db, l->arena);

	engine_store_context(u, l->run.id);
	engine_store_values(u, l->run.id, l->wants.items, l->wants.n, VALUES_ROOM);
	db_send(u, DB_READ, look_on_context, l);
}

static void look_on_cached(void *arg, const struct err *e)
{
	struct look *l = arg;

	if (e->code != ERR_OK)
		look_fail(l, e);
	else
		look_plan(l);
}

static void look_plan(struct look *l)
{
	struct err bad;

	if (plan_make(&l->run, clock_now(l->app->clock), l->random, l->arena, &l->plan, &bad) < 0) {
		look_fail(l, &bad);
	} else if (l->plan != NULL && plan_wants(l->plan, &l->wants)) {
		ask_context(l);
	} else if (l->plan != NULL && plan_cache_wants(l->plan, &l->cache_wants)) {
		cache_look(l->app, l->arena, &l->run, &l->cache_wants, look_on_cached, l);
	} else if (l->plan != NULL) {
		look_write(l);
	} else {
		if (l->run.state == RUN_FINISHING)
			finish_run(l->app, l->run.id);
		look_done(l);
	}
}

static void writes_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	const struct plan *plans[WRITE_BATCH];
	const struct app *app = arg;

	for (size_t i = 0; i < n; i++)
		plans[i] = ((const struct look *)items[i])->plan;
	plans_add(u, plans, n, clock_now(app->clock));
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

static void look_on_written(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	struct look *l = item;

	(void)arg, (void)row;
	if (e->code != ERR_OK) {
		/* What the cache has is being removed, or too much to be taken: the steps are run.
		 */
		l->takes_none =
			plan_cached_rows(l->plan) >= 0 &&
			(strcmp(rows->fault->sqlstate, "TM004") == 0 || e->code == ERR_TIMEOUT);
		/* Somebody was quicker, or the outcome is not known: look again. */
		if (l->takes_none || strcmp(rows->fault->sqlstate, "TM001") == 0 ||
			db_outcome_unknown(rows))
			l->again = true;
		else if (e->code != ERR_CANCELLED)
			log_error("a run's progress was not stored", LOG_STR("run", l->run.id),
				LOG_E(e));
		look_done(l);
		return;
	}
	l->takes_none = false;
	app_changed(l->app);
	sched_queued(l->app->sched, plan_queue(l->plan));
	l->again |= plan_leaves(l->plan);
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
	struct str last = STR("");

	if (e->code != ERR_OK || app->progress->stopped)
		return;
	for (size_t i = 0; i < rows[0].n; i++) {
		last = db_str(&rows[0], i, 0);
		progress_run(app, last);
	}
	if (rows[0].n < SWEEP_MAX)
		last = STR("");
	(void)str_print(app->progress->swept, ID_MAX, "%.*s", STR_ARG(last));
}

/* Where there are more, the next sweep goes on behind them: what nobody can help keeps nothing from
 * its turn. */
void progress_sweep(struct app *app)
{
	struct db_unit *u = db_unit(app->db, NULL);

	engine_store_sweep(u, str_c(app->progress->swept), SWEEP_MAX);
	db_send(u, DB_READ, sweep_on_rows, app);
}
