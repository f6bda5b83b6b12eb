/*
 * finish_run → finish_on_run: the run, its steps, outputs and data sets → finish_feed: each output
 * of observations in turn, finish_on_fed → finish_on_model: where the aliases stand, which monitors
 * are concerned → (training data) finish_training.c, finish_on_training → (gate) finish_gate_run on
 * the work pool, finish_on_gate → finish_write →
 * finish_on_written. Whatever has changed meanwhile is found by the versions in the last unit, and
 * everything is read again. A run in another state goes finish_on_run → finish_on_retraining →
 * finish_on_closed.
 */
#include "server/sched/finish.h"

#include "api/run.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/loop/timer.h"
#include "lib/loop/work.h"
#include "server/app.h"
#include "server/sched/finish_inside.h"
#include "server/sched/hub.h"
#include "server/sched/monitor_rules.h"
#include "server/sched/progress.h"
#include "server/store/engine_store.h"
#include "server/store/monitor_store.h"

enum {
	TRY_ARENA = 256 << 20,
	KEEP_ARENA = 4096,
	TRIES = 8,
	SWEEP_MS = 15000,
	SWEEP_MAX = 1000,
	OUTPUTS_MAX = 100000
};

struct finish {
	struct app *app;
	struct hub_listener *listener;
	struct loop_timer timer;
	struct map *busy; /* run id -> struct finishing */
	bool sweeping, closing;
};

static void finish_read(struct finishing *f);
static void finish_on_run(void *arg, const struct db_rows *rows, const struct err *e);
static void finish_feed(struct finishing *f);
static void finish_on_fed(void *arg, const struct observation_result *result, const struct err *e);
static void finish_look(struct finishing *f);
static void finish_on_model(void *arg, const struct db_rows *rows, const struct err *e);
static void finish_on_training(struct finishing *f);
static void finish_gate(struct finishing *f);
static void finish_gate_run(void *arg);
static void finish_on_gate(void *arg);
static void finish_write(struct finishing *f);
static void finish_fail_run(struct finishing *f, const char *reason);
static void finish_on_written(void *arg, const struct db_rows *rows, const struct err *e);
static void finish_on_group(void *arg, const struct db_rows *rows, const struct err *e);
static void finish_on_retraining(void *arg, const struct db_rows *rows, const struct err *e);
static void finish_on_closed(void *arg, const struct db_rows *rows, const struct err *e);

/* ---- the whole ---- */

static void finish_release(struct finish *all)
{
	if (!all->closing || all->sweeping || map_count(all->busy) > 0)
		return;
	map_free(all->busy);
	mem_free(all);
}

static void finish_on_event(void *arg, const struct event *ev, struct str project_id)
{
	struct finish *all = arg;

	(void)project_id;
	if (str_is(ev->type, "run.failed") || str_is(ev->type, "run.cancelled"))
		finish_run(all->app, ev->subject);
}

static void sweep_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct finish *all = arg;

	all->sweeping = false;
	for (size_t i = 0; e->code == ERR_OK && !all->closing && i < rows[0].n; i++)
		finish_run(all->app, db_str(&rows[0], i, 0));
	finish_release(all);
}

static void finish_on_timer(void *arg)
{
	struct finish *all = arg;

	if (all->sweeping)
		return;
	all->sweeping = true;
	struct db_unit *u = db_unit(all->app->db, NULL);
	finish_store_sweep(u, SWEEP_MAX);
	db_send(u, DB_READ, sweep_on_rows, all);
}

struct finish *finish_new(struct app *app)
{
	struct finish *all = mem_new_of(struct finish);

	all->app = app;
	all->busy = map_new();
	all->listener = hub_listen(app->hub, finish_on_event, all);
	loop_timer_init(&all->timer, app->loop, finish_on_timer, all);
	loop_timer_every(&all->timer, SWEEP_MS);
	return all;
}

/* The memory goes when what is on its way has come back. */
void finish_free(struct finish *all)
{
	if (all == NULL)
		return;
	hub_unlisten(all->listener);
	loop_timer_cancel(&all->timer);
	all->closing = true;
	finish_release(all);
}

/* ---- the ends of a flow ---- */

static void finish_end(struct finishing *f)
{
	struct finish *all = f->all;

	if (f->err.code != ERR_OK && f->err.code != ERR_CANCELLED)
		log_error("a run could not be ended", LOG_STR("run", f->run_id), LOG_E(&f->err));
	(void)map_remove(all->busy, f->run_id);
	arena_drop(f->arena);
	arena_drop(f->keep);
	mem_free(f);
	finish_release(all);
}

static void finish_again(struct finishing *f)
{
	if (++f->tries < TRIES && !f->all->closing && f->app->db != NULL)
		finish_read(f);
	else
		finish_end(f); /* the sweep comes back to it */
}

/* What a user can mend fails the run; anything else is tried again later. */
static bool is_users_fault(const struct err *e)
{
	return e->code == ERR_INVALID || e->code == ERR_NOT_FOUND || e->code == ERR_CONFLICT ||
	       e->code == ERR_TOO_LARGE || e->code == ERR_MALFORMED;
}

void finish_run(struct app *app, struct str run_id)
{
	struct finish *all = app->finish;

	if (all == NULL || all->closing || map_get(all->busy, run_id) != NULL)
		return;
	struct finishing *f = mem_new_of(struct finishing);
	f->all = all;
	f->app = app;
	f->keep = arena_new(KEEP_ARENA);
	f->run_id = arena_str(f->keep, run_id);
	(void)map_put(all->busy, f->run_id, f);
	finish_read(f);
}

/* ---- the run ---- */

static void finish_read(struct finishing *f)
{
	arena_drop(f->arena);
	f->arena = arena_new(TRY_ARENA);
	f->gate = NULL;
	f->fed = 0;
	f->n_monitors = 0;
	f->against_id = f->promote_id = f->note = STR_NONE;
	struct db_unit *u = db_unit(f->app->db, f->arena);
	finish_store_run(u, f->run_id);
	finish_store_outputs(u, f->run_id, OUTPUTS_MAX + 1);
	finish_store_steps(u, f->run_id);
	finish_store_datasets(u, f->run_id);
	db_send(u, DB_READ, finish_on_run, f);
}

static void finish_on_run(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct finishing *f = arg;
	const struct db_rows *r = &rows[0];

	f->err = *e;
	if (e->code != ERR_OK) {
		finish_end(f);
		return;
	}
	if (r->n == 0 || !str_is(db_str(r, 0, db_col(r, "state")), "finishing")) {
		struct db_unit *u = db_unit(f->app->db, f->arena);
		finish_store_retraining(u, f->run_id);
		db_send(u, DB_READ, finish_on_retraining, f);
		return;
	}
	if (finish_read_run(f, rows) < 0) {
		finish_end(f);
	} else if (f->n_outputs > OUTPUTS_MAX) {
		(void)err_set(&f->err, ERR_INVALID,
			"the run has more than %d files of observations", OUTPUTS_MAX);
		finish_look(f);
	} else {
		finish_feed(f);
	}
}

/* ---- observations ---- */

static void finish_feed(struct finishing *f)
{
	for (; f->fed < f->n_outputs; f->fed++) {
		const struct finish_output *o = &f->outputs[f->fed];
		const struct output_spec *spec = finish_output_spec(f, o);
		if (spec == NULL || spec->kind != OUTPUT_OBSERVATIONS)
			continue;
		f->feed = (struct feed){ .project_id = f->project_id,
			.monitor = spec->monitor,
			.batch = arena_printf(f->arena, "%.*s/%.*s/%.*s", STR_ARG(o->step_id),
				STR_ARG(o->output), STR_ARG(o->path)),
			.path = o->path,
			.blob = o->blob };
		feed_start(f->app, &f->feed, finish_on_fed, f);
		return;
	}
	finish_look(f);
}

/* The run has succeeded all the same; its message says what came of its rows. */
static void note_late(
	struct finishing *f, const struct finish_output *o, const struct observation_result *result)
{
	if (f->note.n > 1000)
		return;
	f->note = arena_printf(f->arena,
		"%.*s%sRows of %.*s.%.*s that came too late for the monitor %.*s and were left "
		"out: %lld.",
		STR_ARG(f->note), f->note.n != 0 ? " " : "", STR_ARG(o->step), STR_ARG(o->output),
		STR_ARG(f->feed.monitor), (long long)result->late);
}

static void finish_on_fed(void *arg, const struct observation_result *result, const struct err *e)
{
	struct finishing *f = arg;
	const struct finish_output *o = &f->outputs[f->fed];

	f->err = *e;
	if (e->code == ERR_OK) {
		log_info("observations fed", LOG_STR("run", f->run_id),
			LOG_STR("monitor", f->feed.monitor), LOG_I("rows", result->rows),
			LOG_I("late", result->late));
		if (result->late > 0)
			note_late(f, o, result);
		f->fed++;
		finish_feed(f);
	} else if (is_users_fault(e)) {
		(void)err_set(&f->err, ERR_INVALID,
			"the observations %.*s.%.*s for the monitor %.*s: %.200s", STR_ARG(o->step),
			STR_ARG(o->output), STR_ARG(f->feed.monitor), e->msg);
		finish_look(f);
	} else {
		finish_end(f);
	}
}

/* ---- the model ---- */

static void finish_look(struct finishing *f)
{
	struct model_key m = { f->project_id, f->spec.has_model ? f->spec.model.name : STR("") };
	struct db_unit *u = db_unit(f->app->db, f->arena);

	finish_store_model(u, m, f->spec.model.gate.against, f->spec.model.gate.promote);
	finish_store_monitors(u, m, f->spec.model.gate.promote, f->decision_id);
	db_send(u, DB_READ, finish_on_model, f);
}

static int read_monitors(struct finishing *f, const struct db_rows *r)
{
	f->n_monitors = r->n;
	f->monitors = arena_array_of(f->arena, struct finish_monitor, r->n + 1);
	for (size_t i = 0; i < r->n; i++) {
		struct finish_monitor *m = &f->monitors[i];
		struct monitor_spec spec;
		struct err e;
		*m = (struct finish_monitor){ .id = finish_text(f, r, i, "id"),
			.version = db_int(r, i, db_col(r, "version")),
			.watches = db_bool(r, i, db_col(r, "watches")),
			.asked = db_bool(r, i, db_col(r, "asked")) };
		if (monitor_spec_read(finish_text(f, r, i, "spec"), f->arena, &spec, &e) < 0 ||
			policy_state_read(finish_text(f, r, i, "policy_state"), &m->state, &e) <
				0) {
			f->err = e;
			return -1;
		}
		m->rules = monitor_rules(&spec);
	}
	return 0;
}

static bool has_output(const struct finishing *f, struct str reference)
{
	for (size_t i = 0; i < f->n_outputs; i++)
		if (finish_is_output(&f->outputs[i], reference))
			return true;
	return false;
}

/* The file of predictions; -1 with the reason in f->err. */
static int find_predictions(struct finishing *f)
{
	const struct gate_spec *g = &f->spec.model.gate;
	const struct finish_output *found = NULL;
	size_t n = 0;

	for (size_t i = 0; i < f->n_outputs; i++)
		if (finish_is_output(&f->outputs[i], g->predictions)) {
			found = &f->outputs[i];
			n++;
		}
	if (n != 1)
		return err_set(&f->err, ERR_INVALID,
			"the predictions %.*s must be one file, there %s", STR_ARG(g->predictions),
			n == 0 ? "is none" : "are more");
	f->gate_source = (struct gate_source){ .blobs = f->app->blobs,
		.path = found->path,
		.blob = found->blob,
		.spec = g,
		.seed = str_hash(f->run_id, 0),
		.has_champion = f->against_id.n != 0 };
	return 0;
}

static void finish_on_model(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct finishing *f = arg;
	bool failed = f->err.code != ERR_OK; /* the observations were no good */

	if (e->code != ERR_OK || read_monitors(f, &rows[1]) < 0) {
		if (e->code != ERR_OK)
			f->err = *e;
		finish_end(f);
		return;
	}
	if (rows[0].n != 0) {
		f->against_id = finish_text(f, &rows[0], 0, "against_id");
		f->promote_id = finish_text(f, &rows[0], 0, "promote_id");
	}
	if (failed || arena_check(f->arena, &f->err) < 0) {
		finish_fail_run(f, reason_names[REASON_OUTPUT_INVALID]);
	} else if (f->spec.has_model && !has_output(f, f->spec.model.from)) {
		(void)err_set(&f->err, ERR_INVALID, "the model %.*s has no files",
			STR_ARG(f->spec.model.from));
		finish_fail_run(f, reason_names[REASON_MODEL_INVALID]);
	} else if (f->spec.has_model && f->spec.model.has_training_data) {
		finish_training(f, finish_on_training);
	} else {
		finish_gate(f);
	}
}

static void finish_on_training(struct finishing *f)
{
	if (f->err.code == ERR_OK)
		finish_gate(f);
	else if (is_users_fault(&f->err))
		finish_fail_run(f, reason_names[REASON_MODEL_INVALID]);
	else
		finish_end(f);
}

static void finish_gate(struct finishing *f)
{
	if (!f->spec.has_model || !f->spec.model.has_gate)
		finish_write(f);
	else if (find_predictions(f) < 0)
		finish_fail_run(f, reason_names[REASON_OUTPUT_INVALID]);
	else if (work_submit(f->app->loop, finish_gate_run, finish_on_gate, f, &f->err) < 0)
		finish_end(f);
}

static void finish_gate_run(void *arg)
{
	struct finishing *f = arg;

	f->gate = arena_new_of(f->arena, struct gate_verdict_made);
	f->err.code = ERR_OK;
	if (gate_read(&f->gate_source, f->arena, f->gate, &f->err) < 0)
		f->gate = NULL;
}

static void finish_on_gate(void *arg)
{
	struct finishing *f = arg;
	struct err why = f->err;

	if (f->app->db == NULL) {
		f->err.code = ERR_CANCELLED;
		finish_end(f);
	} else if (f->gate != NULL) {
		finish_write(f);
	} else if (is_users_fault(&why)) {
		(void)err_set(&f->err, ERR_INVALID, "the predictions %.*s: %.240s",
			STR_ARG(f->spec.model.gate.predictions), why.msg);
		finish_fail_run(f, reason_names[REASON_OUTPUT_INVALID]);
	} else {
		finish_end(f);
	}
}

/* ---- the last unit ---- */

static void finish_write(struct finishing *f)
{
	struct db_unit *u = db_unit(f->app->db, f->arena);

	finish_judge(f);
	finish_add_success(f, u);
	db_send(u, DB_WRITE, finish_on_written, f);
}

/* Not of the arena, which may be what the run is too large for. */
static void finish_fail_run(struct finishing *f, const char *reason)
{
	struct db_unit *u = db_unit(f->app->db, NULL);

	finish_add_failure(f, u, reason);
	db_send(u, DB_WRITE, finish_on_written, f);
}

static void finish_on_written(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct finishing *f = arg;

	f->err = *e;
	if (e->code != ERR_OK) {
		if (store_changed(rows) || db_outcome_unknown(rows))
			finish_again(f);
		else
			finish_end(f);
		return;
	}
	app_changed(f->app);
	if (f->group.n == 0) {
		finish_end(f);
		return;
	}
	struct db_unit *u = db_unit(f->app->db, f->arena);
	engine_store_group_next(u, f->project_id, f->group);
	db_send(u, DB_READ, finish_on_group, f);
}

static void finish_on_group(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct finishing *f = arg;

	if (e->code == ERR_OK && rows[0].n != 0)
		progress_run(f->app, db_str(&rows[0], 0, 0));
	finish_end(f);
}

/* ---- a run that has ended otherwise, and was a retraining ---- */

static int add_closing(struct finishing *f, struct db_unit *u, const struct db_rows *r)
{
	struct monitor_spec spec;
	struct policy_state state;

	if (db_is_null(r, 0, db_col(r, "id")) ||
		str_is(finish_text(f, r, 0, "state"), "succeeded")) {
		retraining_store_close(u, f->run_id);
		return 0;
	}
	if (monitor_spec_read(finish_text(f, r, 0, "spec"), f->arena, &spec, &f->err) < 0 ||
		policy_state_read(finish_text(f, r, 0, "policy_state"), &state, &f->err) < 0)
		return -1;
	struct policy_rules rules = monitor_rules(&spec);
	policy_failed(&rules, &state);
	struct str id = finish_text(f, r, 0, "id");
	monitor_store_advance(u, id, db_int(r, 0, db_col(r, "version")));
	finish_store_monitor_state(u, id, policy_state_write(&state, f->arena));
	retraining_store_close(u, f->run_id); /* the monitor first, as where a window closes */
	return 0;
}

static void finish_on_retraining(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct finishing *f = arg;

	f->err = *e;
	if (e->code != ERR_OK || rows[0].n == 0) {
		finish_end(f);
		return;
	}
	struct db_unit *u = db_unit(f->app->db, f->arena);
	if (add_closing(f, u, &rows[0]) < 0) {
		db_unit_free(u);
		finish_end(f);
		return;
	}
	db_send(u, DB_WRITE, finish_on_closed, f);
}

static void finish_on_closed(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct finishing *f = arg;

	f->err = *e;
	if (e->code != ERR_OK && (store_changed(rows) || db_outcome_unknown(rows))) {
		finish_again(f);
		return;
	}
	if (e->code == ERR_OK)
		app_changed(f->app);
	finish_end(f);
}
