#include "server/sched/why.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/loop/defer.h"
#include "lib/loop/timer.h"
#include "server/app.h"
#include "server/sched/fleet.h"
#include "server/sched/pool.h"
#include "server/sched/sched.h"
#include "server/store/sched_store.h"

enum { VIEW_ARENA = 512 << 20, FRESH_US = 1000000, KEEP_MS = 10000 };
#define STEP_BYTES ((size_t)4096) /* what a step may take of a view */

struct view {
	struct why_view view;
	struct map *waiting, *placed; /* step id -> position + 1 */
	int64_t made; /* loop_now() */
};

struct ask {
	struct ask *next;
	why_cb *cb;
	void *arg;
};

struct why {
	struct app *app;
	struct view *view; /* NULL: none yet, or old */
	struct ask *asks;
	struct loop_timer forget;
	bool answering, loading, closing;
};

static void why_answer(void *arg);
static void why_on_loaded(void *arg, const struct db_rows *rows, const struct err *e);
static void why_on_old(void *arg);

struct why *why_new(struct app *app)
{
	struct why *w = mem_new_of(struct why);

	w->app = app;
	loop_timer_init(&w->forget, app->loop, why_on_old, w);
	return w;
}

static void view_drop(struct view *v)
{
	if (v != NULL)
		arena_drop(v->view.arena);
}

static void why_on_old(void *arg)
{
	struct why *w = arg;

	view_drop(w->view);
	w->view = NULL;
}

static void keep(struct why *w, struct view *v)
{
	view_drop(w->view);
	w->view = v;
	loop_timer_set(&w->forget, KEEP_MS);
}

static void why_gone(struct why *w)
{
	if (w->closing && !w->answering && !w->loading)
		mem_free(w);
}

static void tell(struct why *w, const struct why_view *v, const struct err *e)
{
	struct ask *asks = w->asks;

	w->asks = NULL;
	for (struct ask *next; asks != NULL; asks = next) {
		next = asks->next;
		asks->cb(asks->arg, v, e);
		mem_free(asks);
	}
}

void why_free(struct why *w)
{
	struct err e;

	if (w == NULL)
		return;
	w->closing = true;
	(void)err_set(&e, ERR_CANCELLED, "the server is about to end");
	tell(w, NULL, &e);
	loop_timer_cancel(&w->forget);
	why_on_old(w);
	why_gone(w);
}

/* ---- a view ---- */

static void map_on_drop(void *map)
{
	map_free(map);
}

static struct map *positions(struct arena *a)
{
	struct map *m = map_new();

	arena_defer(a, map_on_drop, m);
	return m;
}

/* Places among the steps of one pool; by the number of each pool. */
static void count_pools(struct view *v)
{
	const struct place_result *r = &v->view.result;
	struct map *pools = map_new();
	uint32_t *counts = arena_array_of(v->view.arena, uint32_t, r->waiting_n + 1);
	size_t known = 0;

	v->view.position = arena_array_of(v->view.arena, uint32_t, r->waiting_n + 1);
	v->view.of = arena_array_of(v->view.arena, uint32_t, r->waiting_n + 1);
	for (size_t i = 0; i < r->waiting_n; i++) {
		struct str pool = v->view.snapshot.steps[r->waiting[i]].pool;
		uint32_t *count = map_get(pools, pool);
		if (count == NULL) {
			count = &counts[known++];
			(void)map_put(pools, pool, count);
		}
		v->view.position[i] = ++*count;
	}
	for (size_t i = 0; i < r->waiting_n; i++)
		v->view.of[i] =
			*(uint32_t *)map_get(pools, v->view.snapshot.steps[r->waiting[i]].pool);
	map_free(pools);
}

static void index_steps(struct view *v)
{
	const struct place_snapshot *s = &v->view.snapshot;
	const struct place_result *r = &v->view.result;

	v->waiting = positions(v->view.arena);
	v->placed = positions(v->view.arena);
	for (size_t i = 0; i < r->waiting_n; i++)
		(void)map_put(v->waiting, s->steps[r->waiting[i]].id, (void *)(uintptr_t)(i + 1));
	for (size_t i = 0; i < r->placed_n; i++)
		(void)map_put(
			v->placed, s->steps[r->placed[i].step].id, (void *)(uintptr_t)(i + 1));
	count_pools(v);
}

static struct view *view_make(struct app *app, struct pool *pool)
{
	struct arena *a = arena_new(VIEW_ARENA + pool_steps(pool) * STEP_BYTES);
	struct view *v = arena_new_of(a, struct view);
	int64_t next;

	v->view.arena = a;
	v->view.at = clock_now(app->clock);
	v->made = loop_now(app->loop);
	pool_hold(pool, a);
	pool_snapshot(pool, v->view.at, app->conf.worker_lost_after, fleet_last_seen, app->fleet, a,
		&v->view.snapshot, &next);
	pool_add_running(pool, v->view.at, a, &v->view.snapshot);
	id_random(&v->view.snapshot.seed, sizeof v->view.snapshot.seed);
	place_pass(&v->view.snapshot, a, &v->view.result);
	index_steps(v);
	v->view.later = pool_list_later(pool, v->view.at, a, &v->view.later_n);
	return v;
}

static bool is_fresh(const struct why *w)
{
	return w->view != NULL && loop_now(w->app->loop) - w->view->made < FRESH_US;
}

const struct why_view *why_view_of(struct why *w, struct pool *pool)
{
	if (!is_fresh(w))
		keep(w, view_make(w->app, pool));
	return &w->view->view;
}

struct why_place why_find(const struct why_view *view, struct str step_id)
{
	const struct view *v = (const struct view *)view;
	uintptr_t waiting = (uintptr_t)map_get(v->waiting, step_id);
	uintptr_t placed = (uintptr_t)map_get(v->placed, step_id);

	return (struct why_place){ (ptrdiff_t)waiting - 1, (ptrdiff_t)placed - 1 };
}

/* ---- asking ---- */

static void why_load(struct why *w)
{
	struct db_unit *u = db_unit(w->app->db, NULL);

	w->loading = true;
	sched_store_memory(u);
	db_send(u, DB_BULK, why_on_loaded, w);
}

static void why_on_loaded(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct why *w = arg;

	w->loading = false;
	if (w->closing) {
		why_gone(w);
		return;
	}
	if (e->code != ERR_OK) {
		tell(w, NULL, e);
		return;
	}
	struct pool *pool = pool_new();
	pool_read(pool, rows);
	keep(w, view_make(w->app, pool));
	pool_free(pool);
	tell(w, &w->view->view, e);
}

static void why_answer(void *arg)
{
	struct why *w = arg;
	struct pool *pool = sched_pool(w->app->sched);
	struct err e = { .code = ERR_OK };

	w->answering = false;
	if (w->closing)
		why_gone(w);
	else if (is_fresh(w) || pool != NULL)
		tell(w, pool != NULL ? why_view_of(w, pool) : &w->view->view, &e);
	else if (!w->loading)
		why_load(w);
}

void why_ask(struct why *w, why_cb *cb, void *arg)
{
	struct ask *a = mem_new_of(struct ask);

	*a = (struct ask){ w->asks, cb, arg };
	w->asks = a;
	if (!w->answering && !w->loading) {
		w->answering = true;
		loop_defer(w->app->loop, why_answer, w);
	}
}
