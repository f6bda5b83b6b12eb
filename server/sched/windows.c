#include "server/sched/windows.h"

#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/db/row.h"
#include "lib/loop/defer.h"
#include "lib/loop/timer.h"
#include "server/app.h"
#include "server/sched/window_close.h"
#include "server/store/monitor_store.h"

#include <sys/queue.h>

/*
 * Each monitor with something to do has a line of requests, of which the first is being served:
 * line_next asks for the oldest window that it wants, line_on_next closes it, and so on until there
 * is none. A request that nobody waits for is one that closes what is complete.
 */
enum {
	SWEEP_MS = 10000,
	STAGE_SWEEPS = 360,
	SWEEP_MAX = 1000,
	REQUEST_ARENA = 4 << 20,
	DECISIONS_MAX = 10000
};

struct request {
	STAILQ_ENTRY(request) link;
	struct windows_which which;
	windows_cb *cb; /* NULL: close what is complete */
	void *arg;
	struct arena *arena;
	struct windows_closed done;
	struct str *decisions,
		*skip; /* skip: windows that were closed by this request, or failed */
	size_t n_skip, skip_room;
	struct err err;
};

struct line {
	struct windows *all;
	struct str monitor_id;
	STAILQ_HEAD(, request) requests;
	bool serving, looking; /* looking: one of the requests waits to look for complete ones */
};

struct windows {
	struct app *app;
	struct map *lines;
	struct loop_timer timer;
	unsigned sweeps;
	bool sweeping, closing;
};

static void line_next(struct line *l);
static void line_on_next(void *arg, const struct db_rows *rows, const struct err *e);
static void line_on_closed(void *arg, const struct window_closed_now *done, const struct err *e);
static void line_on_end(void *arg);

/* ---- the whole ---- */

static void windows_release(struct windows *w)
{
	if (!w->closing || w->sweeping || map_count(w->lines) > 0)
		return;
	map_free(w->lines);
	mem_free(w);
}

static void sweep_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct windows *w = arg;

	w->sweeping = false;
	for (size_t i = 0; e->code == ERR_OK && !w->closing && i < rows[0].n; i++)
		windows_look(w->app, db_str(&rows[0], i, 0));
	windows_release(w);
}

static void windows_on_timer(void *arg)
{
	struct windows *w = arg;

	if (w->sweeping)
		return;
	w->sweeping = true;
	if (w->sweeps++ % STAGE_SWEEPS == 0) { /* what requests have left that a kill cut short */
		struct db_unit *old = db_unit(w->app->db, NULL);
		stage_store_sweep(old);
		db_send(old, DB_BULK, NULL, NULL);
	}
	struct db_unit *u = db_unit(w->app->db, NULL);
	window_store_sweep(u, SWEEP_MAX);
	db_send(u, DB_READ, sweep_on_rows, w);
}

struct windows *windows_new(struct app *app)
{
	struct windows *w = mem_new_of(struct windows);

	w->app = app;
	w->lines = map_new();
	loop_timer_init(&w->timer, app->loop, windows_on_timer, w);
	loop_timer_every(&w->timer, SWEEP_MS);
	return w;
}

/* The memory goes when what is on its way has come back. */
void windows_free(struct windows *w)
{
	if (w == NULL)
		return;
	loop_timer_cancel(&w->timer);
	w->closing = true;
	windows_release(w);
}

/* ---- lines ---- */

static struct line *line_of(struct windows *w, struct str monitor_id)
{
	struct line *l = map_get(w->lines, monitor_id);

	if (l != NULL)
		return l;
	l = mem_new_of(struct line);
	l->all = w;
	l->monitor_id = (struct str){ mem_dupn(monitor_id.p, monitor_id.n), monitor_id.n };
	STAILQ_INIT(&l->requests);
	(void)map_put(w->lines, l->monitor_id, l);
	return l;
}

static void line_free(struct line *l)
{
	struct windows *w = l->all;
	union {
		const char *view;
		char *own;
	} id = { l->monitor_id.p };

	(void)map_remove(w->lines, l->monitor_id);
	mem_free(id.own);
	mem_free(l);
	windows_release(w);
}

static void add_request(struct line *l, const struct request *wanted)
{
	struct request *r = mem_new_of(struct request);

	*r = *wanted;
	r->arena = arena_new(REQUEST_ARENA);
	r->decisions = arena_array_of(r->arena, struct str, DECISIONS_MAX);
	STAILQ_INSERT_TAIL(&l->requests, r, link);
	if (!l->serving)
		line_next(l);
}

void windows_look(struct app *app, struct str monitor_id)
{
	if (app->windows == NULL || app->windows->closing)
		return;
	struct line *l = line_of(app->windows, monitor_id);
	if (l->looking)
		return;
	l->looking = true;
	add_request(l, &(struct request){ .cb = NULL });
}

void windows_close(struct app *app, struct str monitor_id, const struct windows_which *which,
	windows_cb *cb, void *arg)
{
	add_request(line_of(app->windows, monitor_id),
		&(struct request){ .which = *which, .cb = cb, .arg = arg });
}

static void request_free(struct request *r)
{
	arena_drop(r->arena);
	mem_free(r->skip);
	mem_free(r);
}

/* The first request is done: the next, or the end of the line. */
static void line_on_end(void *arg)
{
	struct line *l = arg;
	struct request *r = STAILQ_FIRST(&l->requests);

	STAILQ_REMOVE_HEAD(&l->requests, link);
	r->done.decisions = r->decisions;
	if (r->cb != NULL)
		r->cb(r->arg, &r->done, &r->err);
	else if (r->err.code != ERR_OK && r->err.code != ERR_CANCELLED)
		log_error("windows were not closed", LOG_STR("monitor", l->monitor_id),
			LOG_E(&r->err));
	request_free(r);
	if (STAILQ_EMPTY(&l->requests))
		line_free(l);
	else
		line_next(l);
}

static void line_end(struct line *l, const struct err *e)
{
	STAILQ_FIRST(&l->requests)->err = *e;
	loop_defer(l->all->app->loop, line_on_end, l);
}

static void line_next(struct line *l)
{
	struct request *r = STAILQ_FIRST(&l->requests);
	struct err e;

	l->serving = true;
	if (r->cb == NULL)
		l->looking = false; /* what comes from here on is looked for again */
	if (l->all->closing) {
		(void)err_set(&e, ERR_CANCELLED, "the server is going down");
		line_end(l, &e);
		return;
	}
	struct db_unit *u = db_unit(l->all->app->db, NULL);
	window_store_next(u, l->monitor_id,
		&(struct window_wanted){ .has_start = r->which.has_start,
			.has_before = r->which.has_before,
			.start = r->which.start,
			.before = r->which.before,
			.complete = r->cb == NULL,
			.skip = r->skip,
			.n_skip = r->n_skip });
	db_send(u, DB_READ, line_on_next, l);
}

static void skip_window(struct request *r, struct str id)
{
	if (r->n_skip == r->skip_room) {
		r->skip_room = r->skip_room == 0 ? 16 : 2 * r->skip_room;
		r->skip = mem_resize(r->skip, r->skip_room, sizeof *r->skip);
	}
	r->skip[r->n_skip++] = arena_str(r->arena, id);
}

static void line_on_next(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct line *l = arg;
	struct request *r = STAILQ_FIRST(&l->requests);

	if (e->code != ERR_OK || rows[0].n == 0 || l->all->closing ||
		r->done.n + WINDOW_DECISIONS > DECISIONS_MAX) {
		line_end(l, e);
		return;
	}
	skip_window(r, db_str(&rows[0], 0, 0));
	window_close(l->all->app, l->monitor_id, r->skip[r->n_skip - 1], line_on_closed, l);
}

static void line_on_closed(void *arg, const struct window_closed_now *done, const struct err *e)
{
	struct line *l = arg;
	struct request *r = STAILQ_FIRST(&l->requests);

	if (e->code != ERR_OK) {
		line_end(l, e);
		return;
	}
	r->done.closed += done->closed;
	for (size_t i = 0; i < done->n; i++)
		r->decisions[r->done.n++] = arena_str(r->arena, done->decisions[i]);
	line_next(l);
}
