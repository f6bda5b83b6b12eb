/* Why steps wait, and the queue: what the database knows, then where the steps stand. */
#include "api/run.h"
#include "lib/base/map.h"
#include "lib/base/num.h"
#include "server/rest/handlers.h"
#include "server/sched/pool.h"
#include "server/sched/snapshot.h"
#include "server/sched/waits.h"
#include "server/sched/why.h"
#include "server/store/wait_store.h"

#define DEEP_US 20000 /* of one request: what would let steps start, of as many as that allows */

struct waits {
	struct call *call;
	struct wait_facts *facts;
	size_t n;
	bool list;
	bool shallow; /* not what would let them start */
	struct str next; /* page_key of the last one when there is more */
	int64_t now;
	/* the queue */
	const struct why_view *view; /* held */
	struct str *ids; /* of the page, in order */
};

static void reply(struct waits *w, const struct why_view *v)
{
	struct call *c = w->call;
	struct step_wait *items = arena_array_of(c->arena, struct step_wait, w->n + 1);
	int64_t began = clock_elapsed(c->app->clock);

	for (size_t i = 0; i < w->n; i++) {
		bool deep = !w->shallow && clock_elapsed(c->app->clock) - began < DEEP_US;
		wait_explain(&w->facts[i], v, w->now, deep, c->arena, &items[i]);
	}
	if (w->list)
		call_reply_items(c, items, w->n, sizeof *items, w->next);
	else
		call_reply(c, 200, step_wait_fields, &items[0]);
}

static void view_on_ready(void *arg, const struct why_view *v, const struct err *e)
{
	struct waits *w = arg;

	if (e->code != ERR_OK)
		call_fail(w->call, e);
	else
		reply(w, v);
	arena_drop(w->call->arena);
}

static struct waits *waits_read(struct call *c, const struct db_rows *rows, size_t n)
{
	struct waits *w = arena_new_of(c->arena, struct waits);

	w->call = c;
	w->n = n;
	w->now = clock_now(c->app->clock);
	w->facts = arena_array_of(c->arena, struct wait_facts, n + 1);
	for (size_t i = 0; i < n; i++)
		w->facts[i] = wait_read(rows, i, c->arena);
	return w;
}

static void answer(struct waits *w)
{
	bool wanted = false;

	for (size_t i = 0; i < w->n; i++)
		wanted = wanted || wait_wants_view(&w->facts[i], w->now);
	if (!wanted) {
		reply(w, NULL);
		return;
	}
	arena_hold(w->call->arena);
	why_ask(w->call->app->why, view_on_ready, w);
}

static void step_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		call_not_found(c, "step");
	else
		answer(waits_read(c, &rows[0], 1));
}

static void step_blockers(struct call *c)
{
	struct db_unit *u = call_unit(c);

	wait_store_step(u, call_param(c, "step"));
	call_send(c, u, DB_READ, step_on_row);
}

static void run_on_rows(struct call *c, const struct db_rows *rows)
{
	size_t limit = (size_t)call_page_count(c) - 1, n = rows[0].n < limit ? rows[0].n : limit;
	struct waits *w = waits_read(c, &rows[0], n);

	w->list = true;
	if (rows[0].n > limit)
		w->next =
			arena_str(c->arena, db_str(&rows[0], n - 1, db_col(&rows[0], "page_key")));
	answer(w);
}

static void run_blockers(struct call *c)
{
	struct db_unit *u = call_unit(c);

	wait_store_run(u, call_param(c, "run"), call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, run_on_rows);
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* The cursor is the place in the project's queue: what joins or leaves between two pages may shift
 * a step by that much. */
static size_t first_of(struct call *c)
{
	int64_t at = 0;

	return num_parse_i64(call_page_after(c, "0"), 0, INT64_MAX, &at) ? (size_t)at : 0;
}

static bool is_asked(const struct waits *w, struct str project_id, struct str pool)
{
	const struct queue_query *q = w->call->query;

	return str_eq(project_id, w->call->project_id) && (q->pool.n == 0 || str_eq(pool, q->pool));
}

/* Ids of the page: those that wait for a worker, in the order of their turn, then those that wait
 * for their time. */
static void pick(struct waits *w, const struct why_view *v)
{
	size_t limit = (size_t)call_page_count(w->call) - 1, from = first_of(w->call), seen = 0;
	const struct place_snapshot *s = &v->snapshot;
	size_t all = v->result.waiting_n + v->later_n;

	w->ids = arena_array_of(w->call->arena, struct str, limit + 1);
	for (size_t i = 0; i < all; i++) {
		bool later = i >= v->result.waiting_n;
		const struct pool_later *l = &v->later[later ? i - v->result.waiting_n : 0];
		const struct place_step *step = later ? NULL : &s->steps[v->result.waiting[i]];
		if (!is_asked(w, later ? l->project_id : s->projects[step->project].id,
			    later ? l->pool : step->pool))
			continue;
		if (seen++ < from)
			continue;
		if (w->n == limit) {
			w->next = arena_printf(w->call->arena, "%zu", from + limit);
			return;
		}
		w->ids[w->n++] = later ? l->step_id : step->id;
	}
}

/* In the order of the queue; what has left it meanwhile is left out. */
static void queue_on_rows(struct call *c, const struct db_rows *rows)
{
	struct waits *w = c->state;
	struct map *at = map_new();
	size_t n = 0;

	for (size_t i = 0; i < rows[0].n; i++)
		(void)map_put(at, db_str(&rows[0], i, db_col(&rows[0], "step_id")),
			(void *)(uintptr_t)(i + 1));
	w->facts = arena_array_of(c->arena, struct wait_facts, rows[0].n + 1);
	for (size_t i = 0; i < w->n; i++) {
		uintptr_t row = (uintptr_t)map_remove(at, w->ids[i]);
		if (row != 0)
			w->facts[n++] = wait_read(&rows[0], row - 1, c->arena);
	}
	map_free(at);
	w->n = n;
	w->now = w->view->at;
	reply(w, w->view);
}

static void drop_on_drop(void *arena)
{
	arena_drop(arena);
}

static void queue_on_view(void *arg, const struct why_view *v, const struct err *e)
{
	struct waits *w = arg;
	struct call *c = w->call;

	if (e->code != ERR_OK) {
		call_fail(c, e);
	} else {
		arena_hold(v->arena);
		arena_defer(c->arena, drop_on_drop, v->arena);
		w->view = v;
		pick(w, v);
		struct db_unit *u = call_unit(c);
		wait_store_some(u, w->ids, w->n);
		call_send(c, u, DB_READ, queue_on_rows);
	}
	arena_drop(c->arena);
}

static void queue_list(struct call *c)
{
	struct waits *w = arena_new_of(c->arena, struct waits);

	w->call = c;
	w->list = true;
	w->shallow = true;
	c->state = w;
	arena_hold(c->arena);
	why_ask(c->app->why, queue_on_view, w);
}

/* ---- the scheduler's look -------------------------------------------------------------------- */

static void snapshot_on_view(void *arg, const struct why_view *v, const struct err *e)
{
	struct call *c = arg;
	struct err bad = *e;
	struct buf b;

	buf_init(&b, SNAPSHOT_BYTES_MAX);
	if (e->code == ERR_OK)
		snapshot_write(&v->snapshot, &v->result, v->at, &b);
	if (buf_failed(&b))
		(void)err_set(&bad, ERR_TOO_LARGE, "the snapshot has more than %d bytes",
			SNAPSHOT_BYTES_MAX);
	if (bad.code != ERR_OK)
		call_fail(c, &bad);
	else
		http_reply_bytes(c->req, 200, "application/x-ndjson", buf_str(&b));
	buf_done(&b);
	arena_drop(c->arena);
}

static void scheduler_snapshot(struct call *c)
{
	arena_hold(c->arena);
	why_ask(c->app->why, snapshot_on_view, c);
}

const struct binding queue_bindings[] = {
	{ "scheduler.snapshot", scheduler_snapshot },
	{ "steps.blockers", step_blockers },
	{ "runs.blockers", run_blockers },
	{ "queue.list", queue_list },
	{ 0 },
};
