/*
 * window_close → close_on_read: everything but the rows, in one snapshot → (close_on_reference: the
 * profile of the training data is made first) → close_count ⇄ close_on_page, close_page_run,
 * close_page_done: the rows, a page at a time → close_judge_run, on the work pool → close_decide,
 * in window_decide.c. What was read is guarded by the versions of monitor and window when it is
 * written.
 */
#include "server/sched/window_close.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json_read.h"
#include "lib/loop/defer.h"
#include "lib/loop/work.h"
#include "server/app.h"
#include "server/sched/monitor_rules.h"
#include "server/sched/window_inside.h"

#include <math.h>

enum { KEEP_ARENA = 1 << 20, BYTES_MAX = 512 << 20 };

static void close_read(struct closing *c);
static void close_on_read(void *arg, const struct db_rows *rows, const struct err *e);
static void close_on_reference(void *arg, const struct reference_made *made, const struct err *e);
static void close_count(struct closing *c);
static void close_on_page(void *arg, const struct db_rows *rows, const struct err *e);
static void close_page_run(void *arg);
static void close_page_done(void *arg);
static void close_judge_run(void *arg);
static void close_judge_done(void *arg);

/* ---- ends ---- */

static void close_on_end(void *arg)
{
	struct closing *c = arg;

	c->cb(c->arg, &c->done, &c->err);
	buf_done(&c->bytes);
	arena_drop(c->arena);
	arena_drop(c->keep);
	mem_free(c);
}

void close_done(struct closing *c)
{
	c->err.code = ERR_OK;
	loop_defer(c->app->loop, close_on_end, c);
}

void close_fail(struct closing *c)
{
	loop_defer(c->app->loop, close_on_end, c);
}

void close_again(struct closing *c)
{
	if (++c->tries < CLOSE_TRIES) {
		close_read(c);
		return;
	}
	(void)err_set(
		&c->err, ERR_UNAVAILABLE, "the monitor is being changed all the time; try again");
	close_fail(c);
}

void window_close(struct app *app, struct str monitor_id, struct str window_id, window_close_cb *cb,
	void *arg)
{
	struct closing *c = mem_new_of(struct closing);

	c->app = app;
	c->keep = arena_new(KEEP_ARENA);
	c->monitor_id = arena_str(c->keep, monitor_id);
	c->window_id = arena_str(c->keep, window_id);
	c->cb = cb;
	c->arg = arg;
	buf_init(&c->bytes, BYTES_MAX);
	close_read(c);
}

/* ---- what there is ---- */

static void close_read(struct closing *c)
{
	arena_drop(c->arena);
	c->arena = arena_new(REFERENCE_ARENA);
	c->done = (struct window_closed_now){ 0 };
	c->counts = NULL;
	c->after = STR("");
	struct db_unit *u = db_unit(c->app->db, c->arena);
	close_store_read(u, c->monitor_id, c->window_id);
	db_send(u, DB_READ, close_on_read, c);
}

static struct str column(struct closing *c, const struct db_rows *r, const char *name)
{
	return arena_str(c->arena, db_str(r, 0, db_col(r, name)));
}

static int read_monitor(struct closing *c, const struct db_rows *r)
{
	c->project_id = column(c, r, "project_id");
	c->project = column(c, r, "project");
	c->name = column(c, r, "name");
	c->model = column(c, r, "model");
	c->model_id = column(c, r, "model_id");
	c->alias = column(c, r, "alias");
	c->mutes = column(c, r, "mutes");
	c->version = db_int(r, 0, db_col(r, "version"));
	c->spec_version = db_int(r, 0, db_col(r, "spec_version"));
	if (monitor_spec_read(column(c, r, "spec"), c->arena, &c->spec, &c->err) < 0)
		return -1;
	return policy_state_read(column(c, r, "policy_state"), &c->state, &c->err);
}

/* From which state the window is judged, and whether the monitor's follows. */
static int read_window(struct closing *c, const struct db_rows *r, const struct db_rows *open)
{
	struct str closed_with = column(c, r, "closed_with"),
		   before = column(c, r, "policy_before");
	bool started = db_bool(open, 0, db_col(open, "started"));
	struct policy_state now = c->state;

	c->made = db_date(r, 0, db_col(r, "made"));
	c->start = db_time(r, 0, db_col(r, "start_at"));
	c->end = db_time(r, 0, db_col(r, "end_at"));
	c->revision = db_int(r, 0, db_col(r, "revision")) + 1;
	c->window_version = db_int(r, 0, db_col(r, "version"));
	c->newest = db_bool(r, 0, db_col(r, "newest"));
	c->model_version_id = column(c, r, "model_version_id");
	c->current_id = column(c, open, "current_id");
	c->previous_id = column(c, open, "previous_id");
	c->moves =
		c->newest && (c->revision == 1 || (!started && str_eq(closed_with, c->current_id)));
	if (before.n != 0 && policy_state_read(before, &c->state, &c->err) < 0)
		return -1;
	c->state.open = db_bool(open, 0, db_col(open, "open"));
	c->state.muted = now.muted;
	c->state.muted_until = now.muted_until;
	c->first_before = policy_state_write(&c->state, c->arena);
	return 0;
}

/* The champion's value of the monitor's metric on its holdout: the gate's own, or one of its
 * levels. */
static int read_level(struct closing *c, const struct db_rows *r)
{
	const char *metric = stats_score_name(monitor_score(&c->spec));
	struct jsn_doc *doc;

	c->has_level =
		str_is(column(c, r, "metric"), metric) && !db_is_null(r, 0, db_col(r, "level"));
	c->level = db_real(r, 0, db_col(r, "level"));
	if (c->has_level)
		return 0;
	if (jsn_parse(column(c, r, "gate"), &doc, &c->err) < 0)
		return -1;
	c->level = jsn_get_real(jsn_get(jsn_get(jsn_root(doc), "levels"), metric), (double)NAN);
	c->has_level = isfinite(c->level);
	jsn_doc_free(doc);
	return 0;
}

static int read_version(struct closing *c, const struct db_rows *r)
{
	if (r->n == 0)
		return err_set(&c->err, ERR_CONFLICT,
			"the model %.*s has no version with the alias %.*s: nothing to compare "
			"with",
			STR_ARG(c->model), STR_ARG(c->alias));
	c->training_data = column(c, r, "training_data");
	c->model_version = arena_printf(c->arena, "%.*s/%lld", STR_ARG(c->model),
		(long long)db_int(r, 0, db_col(r, "number")));
	return read_level(c, r);
}

static int read_layouts(struct closing *c, const struct db_rows *r)
{
	c->n_layouts = r->n;
	c->layouts = arena_array_of(c->arena, struct judge_layout, r->n + 1);
	for (size_t i = 0; i < r->n; i++) {
		struct reference *ref = arena_new_of(c->arena, struct reference);
		c->layouts[i] = (struct judge_layout){ db_int(r, i, 0), ref };
		if (reference_decode_shape(db_str(r, i, 1), c->arena, ref, &c->err) < 0)
			return -1;
	}
	return 0;
}

static void read_earlier(struct closing *c, const struct db_rows *r)
{
	for (int cause = 0; cause < POLICY_CAUSES; cause++)
		c->earlier_id[cause] = c->earlier_run[cause] = STR_NONE;
	for (size_t i = 0; i < r->n; i++)
		for (int cause = 0; cause < POLICY_CAUSES; cause++)
			if (str_is(db_str(r, i, db_col(r, "cause")),
				    policy_cause_name((enum policy_cause)cause))) {
				c->earlier_id[cause] =
					arena_str(c->arena, db_str(r, i, db_col(r, "id")));
				c->earlier_run[cause] =
					arena_str(c->arena, db_str(r, i, db_col(r, "run_id")));
			}
}

/* 1: there is nothing to do. */
static int read_all(struct closing *c, const struct db_rows *rows)
{
	const struct db_rows *window = &rows[CLOSE_WINDOW];

	if (rows[CLOSE_MONITOR].n == 0 || window->n == 0 ||
		str_is(db_str(window, 0, db_col(window, "state")), "closed"))
		return 1;
	if (read_monitor(c, &rows[CLOSE_MONITOR]) < 0 ||
		read_window(c, window, &rows[CLOSE_OPEN]) < 0 ||
		read_version(c, &rows[CLOSE_VERSION]) < 0 ||
		read_layouts(c, &rows[CLOSE_LAYOUTS]) < 0)
		return -1;
	read_earlier(c, &rows[CLOSE_EARLIER]);
	return 0;
}

static void close_on_read(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct closing *c = arg;
	const struct db_rows *ref = &rows[CLOSE_REFERENCE];

	c->err = *e;
	int rc = e->code == ERR_OK ? read_all(c, rows) : -1;
	if (rc != 0) {
		if (rc > 0)
			close_done(c);
		else
			close_fail(c);
		return;
	}
	if (ref->n == 0) {
		c->want = (struct reference_want){ .monitor_id = c->monitor_id,
			.model_version_id = c->model_version_id,
			.spec_version = c->spec_version,
			.training_data = c->training_data,
			.spec = &c->spec };
		reference_make(c->app, c->arena, &c->want, close_on_reference, c);
		return;
	}
	c->reference_id = column(c, ref, "id");
	if (reference_decode(
		    db_str(ref, 0, db_col(ref, "profile")), c->arena, &c->reference, &c->err) < 0)
		close_fail(c);
	else
		close_count(c);
}

static void close_on_reference(void *arg, const struct reference_made *made, const struct err *e)
{
	struct closing *c = arg;

	c->err = *e;
	if (e->code != ERR_OK) {
		close_fail(c);
		return;
	}
	c->reference_id = made->id;
	c->reference = made->reference;
	close_count(c);
}

/* ---- the rows ---- */

static void close_count(struct closing *c)
{
	if (c->counts == NULL)
		c->counts = judge_counts_new(c->arena, &c->reference, c->layouts, c->n_layouts);
	struct db_unit *u = db_unit(c->app->db, NULL);
	close_store_rows(u, c->made, c->window_id, c->after, CLOSE_PAGE);
	db_send(u, DB_READ, close_on_page, c);
}

/* Rows live as long as the callback: their cells are copied for the work pool. */
static void copy_page(struct closing *c, const struct db_rows *r)
{
	size_t from = 0;

	buf_clear(&c->bytes);
	c->n_rows = r->n;
	for (size_t i = 0; i < r->n; i++)
		buf_add(&c->bytes, db_str(r, i, 4));
	for (size_t i = 0; i < r->n; i++) {
		size_t n = db_str(r, i, 4).n;
		c->rows[i] = (struct judge_row){ .prediction = db_real(r, i, 1),
			.label = db_is_null(r, i, 2) ? (double)NAN : db_real(r, i, 2),
			.layout = db_int(r, i, 3),
			.cells = { c->bytes.p + from, n } };
		from += n;
	}
	if (r->n > 0)
		c->after = arena_str(c->arena, db_str(r, r->n - 1, 0));
	c->last_page = r->n < CLOSE_PAGE;
}

static void close_on_page(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct closing *c = arg;

	c->err = *e;
	if (e->code == ERR_OK) {
		copy_page(c, &rows[0]);
		if (buf_failed(&c->bytes))
			(void)err_set(&c->err, ERR_TOO_LARGE, "rows too large to be read");
		else if (work_submit(c->app->loop, close_page_run, close_page_done, c, &c->err) ==
			 0)
			return;
	}
	close_fail(c);
}

/* Jobs of the work pool end after the database is gone. */
static bool going_down(struct closing *c)
{
	if (c->app->db != NULL)
		return false;
	(void)err_set(&c->err, ERR_CANCELLED, "the server is going down");
	return true;
}

static void close_page_run(void *arg)
{
	struct closing *c = arg;

	if (judge_add(c->counts, c->rows, c->n_rows, &c->err) == 0)
		c->err.code = ERR_OK;
}

static void close_page_done(void *arg)
{
	struct closing *c = arg;

	if (going_down(c)) {
		close_fail(c);
		return;
	}
	if (c->err.code == ERR_CORRUPT) {
		/* A row of a layout that came after our look. */
		close_again(c);
		return;
	}
	if (!c->last_page) {
		close_count(c);
		return;
	}
	c->args = (struct judge_args){ .spec = &c->spec,
		.mutes = c->mutes,
		.start = c->start,
		.end = c->end,
		.has_level = c->has_level,
		.level = c->level,
		.model_version = c->model_version.p };
	if (work_submit(c->app->loop, close_judge_run, close_judge_done, c, &c->err) < 0)
		close_fail(c);
}

static void close_judge_run(void *arg)
{
	struct closing *c = arg;

	judge_window(c->counts, &c->args, &c->state, c->arena, &c->judgement);
}

static void close_judge_done(void *arg)
{
	struct closing *c = arg;

	if (going_down(c))
		close_fail(c);
	else
		close_decide(c);
}
