/* Running a run again: a new run of what the other one ran, with all that it had pinned. */
#include "server/rest/handlers.h"
#include "server/sched/progress.h"
#include "server/store/launch_store.h"
#include "server/store/rerun_store.h"
#include "server/store/run_store.h"

struct rerun {
	struct rerun_row row;
	struct str source_id;
	bool key_given;
};

static void rerun_on_source(struct call *c, const struct db_rows *rows);
static void rerun_on_written(void *arg, const struct db_rows *rows, const struct err *e);
static void rerun_reply(struct call *c);

static void rerun_start(struct call *c)
{
	struct rerun *r = arena_new_of(c->arena, struct rerun);

	c->state = r;
	r->source_id = call_param(c, "run");
	if (!call_key_ok(c, &r->key_given))
		return;
	struct db_unit *u = call_unit(c);
	rerun_store_source(u, r->source_id);
	call_send(c, u, DB_READ, rerun_on_source);
}

static void refuse(struct call *c, const char *why)
{
	struct err e;

	(void)err_set(&e, ERR_CONFLICT, "%s", why);
	call_fail(c, &e);
}

static bool is(const struct db_rows *r, size_t row, const char *column, const char *value)
{
	return str_is(db_str(r, row, db_col(r, column)), value);
}

/* False when one of them is to run and cannot be filled in anew. Steps that have succeeded need
 * none that has not: they can be taken over as they are. */
static bool make_steps(struct call *c, const struct db_rows *r, bool all)
{
	struct rerun_steps *s = &((struct rerun *)c->state)->row.steps;
	char hex[ID_HEX + 1];

	*s = (struct rerun_steps){ .ids = arena_array_of(c->arena, struct str, r->n),
		.sources = arena_array_of(c->arena, struct str, r->n),
		.tracking_runs = arena_array_of(c->arena, struct str, r->n),
		.taken = arena_array_of(c->arena, bool, r->n),
		.n = r->n };
	for (size_t i = 0; i < r->n; i++) {
		s->ids[i] = call_id(c, "st");
		s->sources[i] = arena_str(c->arena, db_str(r, i, db_col(r, "id")));
		s->tracking_runs[i] = arena_str(c->arena, str_c(id_hex(hex)));
		s->taken[i] = !all && is(r, i, "state", "succeeded");
		if (!s->taken[i] && db_bool(r, i, db_col(r, "overwritten"))) {
			refuse(c,
				arena_printf(c->arena,
					"the step %.*s was filled in by an earlier release, which "
					"did not keep what its file said; submit the pipeline",
					STR_ARG(db_str(r, i, db_col(r, "name"))))
					.p);
			return false;
		}
	}
	return true;
}

/* What the concurrency group of the run says of a new one, as of one that is submitted. */
static void add_group_rules(struct call *c, struct db_unit *u, const struct db_rows *r)
{
	struct str group = arena_str(c->arena, db_str(r, 0, db_col(r, "concurrency_group")));

	if (is(r, 0, "concurrency_policy", "refuse"))
		launch_store_group_alone(u, c->project_id, group, c->object_id);
	else if (is(r, 0, "concurrency_policy", "cancel_running"))
		run_store_group_cancel(u, c->project_id, group, c->object_id);
}

static void rerun_on_source(struct call *c, const struct db_rows *rows)
{
	const struct db_rows *r = &rows[0];
	const struct rerun_new *in = c->in;
	struct rerun *re = c->state;

	if (r->n == 0) {
		call_not_found(c, "run");
		return;
	}
	if (!is(r, 0, "run_state", "succeeded") && !is(r, 0, "run_state", "failed") &&
		!is(r, 0, "run_state", "cancelled")) {
		refuse(c, "the run has not ended; cancel it, or wait for its end");
		return;
	}
	if (in->from == RERUN_FAILED && is(r, 0, "run_state", "succeeded")) {
		refuse(c, "nothing of the run has failed; from: start runs all of it again");
		return;
	}
	if (!db_is_null(r, 0, db_col(r, "gone"))) {
		refuse(c, arena_printf(c->arena,
				  "the version that the run had of its model %.*s is gone",
				  STR_ARG(db_str(r, 0, db_col(r, "gone"))))
				  .p);
		return;
	}
	c->object_id = call_id(c, "run");
	if (!make_steps(c, r, in->from == RERUN_START))
		return;
	re->row.id = c->object_id;
	re->row.source_id = re->source_id;
	re->row.project_id = c->project_id;
	re->row.pipeline = arena_str(c->arena, db_str(r, 0, db_col(r, "pipeline")));
	re->row.actor = call_actor(c);
	re->row.from = rerun_from_names[in->from];
	struct db_unit *u = call_unit(c);
	rerun_store_add(u, &re->row, clock_now(c->app->clock), c->arena);
	add_group_rules(c, u, r);
	if (re->key_given)
		call_key_add(c, u, c->object_id);
	rerun_store_number(u, c->object_id);
	db_send(u, DB_BULK, rerun_on_written, c); /* with files and metrics of any number */
}

static void rerun_on_written(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;
	const struct rerun *re = c->state;
	const char *sqlstate = rows->fault != NULL ? rows->fault->sqlstate : "";
	struct err said = *e;

	if (e->code == ERR_OK) {
		app_changed(c->app);
		progress_run(c->app, c->object_id);
		rerun_reply(c);
		return;
	}
	if (strcmp(sqlstate, "TM001") == 0)
		(void)err_set(&said, ERR_NOT_FOUND, "the run was removed meanwhile");
	else if (strcmp(sqlstate, "TM002") == 0)
		(void)err_set(&said, ERR_CONFLICT, "a run of the concurrency group is open");
	if (said.code == ERR_CONFLICT && re->key_given)
		call_replay(c, &said, rerun_reply);
	else
		call_fail(c, &said);
}

static void rerun_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, c->route->ok, &rows[0], "run");
}

static void rerun_reply(struct call *c)
{
	struct db_unit *u = call_unit(c);

	run_store_get(u, c->object_id);
	call_send(c, u, DB_READ, rerun_on_row);
}

const struct binding rerun_bindings[] = {
	{ "runs.rerun", rerun_start },
	{ 0 },
};
