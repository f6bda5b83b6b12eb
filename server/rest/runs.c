/* Runs, steps and attempts: submitting, looking, waiting, cancelling, removing. */
#include "lib/json/json_write.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "server/rest/handlers.h"
#include "server/sched/hub.h"
#include "server/sched/launch.h"
#include "server/sched/progress.h"
#include "server/store/event_store.h"
#include "server/store/run_store.h"

enum { WAIT_TICK_MS = 200 };

static void run_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, c->route->ok, &rows[0], "run");
}

static void run_reply(struct call *c)
{
	struct db_unit *u = call_unit(c);

	run_store_get(u, c->object_id);
	call_send(c, u, DB_READ, run_on_row);
}

/* ---- submitting ---- */

struct submit {
	struct launch launch;
	bool key_given;
};

static void submit_add(void *arg, struct db_unit *u, struct str run_id)
{
	call_key_add(arg, u, run_id);
}

/* Places in the pipeline's file are within `source`, where that was given; else the file is what
 * `pipeline` led to, and the place is in the words. */
static void submit_refuse(struct call *c, const struct err *why)
{
	const struct run_new *in = c->in;
	struct err e = *why;
	bool bad = e.code == ERR_INVALID || e.code == ERR_MALFORMED;
	bool ours = e.field[0] == '\0' || str_starts(str_c(e.field), STR("/inputs")) ||
		    strcmp(e.field, "/pipeline") == 0 ||
		    (in->ref.n != 0 && strcmp(e.field, "/ref") == 0);

	if (e.code == ERR_INVALID && in->source.n != 0 && !ours) {
		err_field_prefix(&e, "source");
	} else if (bad && in->source.n == 0 && !ours) {
		(void)err_field(&e, in->ref.n != 0 ? "/ref" : "/pipeline",
			"the pipeline %.*s: %s: %s", STR_ARG(in->pipeline), why->field, why->msg);
	}
	call_fail(c, &e);
}

static void submit_on_launched(
	void *arg, const struct launched *made, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;
	const struct submit *s = c->state;

	(void)rows;
	if (e->code == ERR_CONFLICT && s->key_given) {
		call_replay(c, e, run_reply);
	} else if (e->code != ERR_OK) {
		submit_refuse(c, e);
	} else if (made->held) {
		c->object_id = made->run.id;
		run_reply(c);
	} else {
		struct run run = made->run;
		run.project = c->project;
		run.created_by = c->who.name;
		(void)http_reply_header(
			c->req, "ETag", arena_printf(c->arena, "\"%lld\"", (long long)run.version));
		call_reply(c, 201, run_fields, &run);
	}
}

static struct str labels_json(struct call *c, const struct list *labels)
{
	struct buf b;

	buf_init(&b, 65536);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	for (size_t i = 0; i < labels->n; i++) {
		jsn_key_str(&w, list_at(labels, struct field_pair, i)->key);
		jsn_str(&w, list_at(labels, struct field_pair, i)->value);
	}
	jsn_obj_end(&w);
	return buf_keep(&b, c->arena);
}

static void run_create(struct call *c)
{
	const struct run_new *in = c->in;
	struct submit *s = arena_new_of(c->arena, struct submit);

	c->state = s;
	if (!call_key_ok(c, &s->key_given))
		return;
	s->launch = (struct launch){ .project_id = c->project_id,
		.pipeline = in->pipeline,
		.source = in->source,
		.ref = in->ref,
		.inputs = in->inputs,
		.labels = labels_json(c, &in->labels),
		.no_cache = in->no_cache,
		.trigger = "api",
		.actor = call_actor(c),
		.add = s->key_given ? submit_add : NULL,
		.add_arg = c };
	launch_start(c->app, c->arena, &s->launch, submit_on_launched, c);
}

/* ---- looking and waiting ---- */

struct wait {
	struct call *call;
	struct hub_listener *listener;
	struct loop_timer timer;
	int64_t until; /* loop_now() */
	bool over;
};

static void wait_end(struct wait *w)
{
	hub_unlisten(w->listener);
	w->listener = NULL;
	loop_timer_cancel(&w->timer);
	w->over = true;
}

static void wait_answer(struct wait *w)
{
	wait_end(w);
	run_reply(w->call);
}

/* Also when the server is about to end: the client asks again, another one. */
static void wait_on_timer(void *arg)
{
	struct wait *w = arg;

	if (w->call->app->draining || loop_now(w->call->app->loop) >= w->until)
		wait_answer(w);
}

static void wait_on_left(void *arg)
{
	struct wait *w = arg;

	if (w->over)
		return;
	wait_end(w);
	http_drop(w->call->req);
}

static bool ends_run(struct str type)
{
	return str_is(type, "run.succeeded") || str_is(type, "run.failed") ||
	       str_is(type, "run.cancelled");
}

static void wait_on_event(void *arg, const struct event *ev, struct str project_id)
{
	struct wait *w = arg;

	(void)project_id;
	if (!w->over && ends_run(ev->type) && str_eq(ev->subject, w->call->object_id))
		wait_answer(w);
}

/* Ends the wait before it answers, also when the look has failed: listener and timer must not
 * outlive the request. */
static void wait_on_row(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;
	struct wait *w = c->state;

	if (w->over)
		return;
	if (e->code != ERR_OK) {
		wait_end(w);
		call_fail(c, e);
		return;
	}
	struct str state =
		rows[0].n != 0 ? db_str(&rows[0], 0, db_col(&rows[0], "state")) : STR("failed");
	if (!str_is(state, "succeeded") && !str_is(state, "failed") && !str_is(state, "cancelled"))
		return; /* the listener or the timer answers */
	wait_end(w);
	run_on_row(c, rows);
}

/* Listens first and looks then, so that an end in between is not missed. */
static void run_wait(struct call *c, int64_t us)
{
	struct wait *w = arena_new_of(c->arena, struct wait);

	w->call = c;
	c->state = w;
	w->listener = hub_listen(c->app->hub, wait_on_event, w);
	loop_timer_init(&w->timer, c->app->loop, wait_on_timer, w);
	w->until = loop_now(c->app->loop) + us;
	loop_timer_every(&w->timer, WAIT_TICK_MS);
	http_on_close(c->req, wait_on_left, w);
	struct db_unit *u = call_unit(c);
	run_store_get(u, c->object_id);
	db_send(u, DB_READ, wait_on_row, c);
}

static void run_get(struct call *c)
{
	const struct wait_query *q = c->query;

	c->object_id = call_param(c, "run");
	if (q->wait.text.n != 0 && q->wait.span.us > 0)
		run_wait(c, q->wait.span.us);
	else
		run_reply(c);
}

static void run_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	run_store_list(u, c->project_id, c->query, call_page_after(c, "~"), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

static void step_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	step_store_list(u, call_param(c, "run"), call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

static void step_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "step");
}

static void step_get(struct call *c)
{
	struct db_unit *u = call_unit(c);

	step_store_get(u, call_param(c, "step"));
	call_send(c, u, DB_READ, step_on_row);
}

static void attempt_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	attempt_store_list(u, call_param(c, "step"), call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

/* ---- cancelling and removing ---- */

static void cancel_on_row(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	progress_run(c->app, c->object_id);
	run_reply(c);
}

static void run_cancel(struct call *c)
{
	struct db_unit *u = call_unit(c);

	c->object_id = call_param(c, "run");
	run_store_cancel(u, c->object_id);
	event_store_add(u, &(struct event_new){ .project_id = c->project_id,
				   .type = "run.cancel_requested",
				   .subject = c->object_id,
				   .actor = call_actor(c) });
	call_send(c, u, DB_WRITE, cancel_on_row);
}

static void delete_on_row(struct call *c, const struct db_rows *rows)
{
	struct err e;

	if (rows[0].n != 0) {
		call_reply_empty(c);
		return;
	}
	(void)err_set(&e, ERR_CONFLICT, "the run has not ended; cancel it first");
	call_fail(c, &e);
}

static void run_delete(struct call *c)
{
	struct db_unit *u = call_unit(c);

	run_store_delete(u, call_param(c, "run"), call_actor(c));
	call_send(c, u, DB_BULK, delete_on_row); /* with logs and metrics of any length */
}

const struct binding run_bindings[] = {
	{ "runs.create", run_create },
	{ "runs.get", run_get },
	{ "runs.list", run_list },
	{ "runs.cancel", run_cancel },
	{ "runs.delete", run_delete },
	{ "steps.list", step_list },
	{ "steps.get", step_get },
	{ "attempts.list", attempt_list },
	{ 0 },
};
