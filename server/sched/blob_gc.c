#include "server/sched/blob_gc.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/loop/defer.h"
#include "lib/loop/timer.h"
#include "lib/loop/work.h"
#include "server/app.h"
#include "server/blob/blob.h"
#include "server/store/blob_store.h"

#include <stdlib.h>

/*
 *     run → [shelf: lock (thread) → on_locked → on_rows → remove (thread) → on_removed] × 256
 *         → sweep (thread) → on_swept → callback
 */

struct gc {
	struct app *app;
	bool dry_run;
	blob_gc_cb *cb;
	void *arg;
	int64_t older_than;
	unsigned at; /* the shelf */
	struct blob_shelf *shelf;
	struct blob_id *doomed;
	size_t n_doomed, doomed_cap;
	struct str *digests; /* of the shelf's files */
	struct blob_gc_report report;
	struct err err; /* of the last job */
};

static void gc_shelf(struct gc *g);
static void gc_lock(void *arg);
static void gc_on_locked(void *arg);
static void gc_on_rows(void *arg, const struct db_rows *rows, const struct err *e);
static void gc_remove(void *arg);
static void gc_on_removed(void *arg);
static void gc_sweep(void *arg);
static void gc_finish(void *arg);

void blob_gc_run(struct app *app, bool dry_run, blob_gc_cb *cb, void *arg)
{
	struct gc *g = mem_new_of(struct gc);

	g->app = app;
	g->dry_run = dry_run;
	g->cb = cb;
	g->arg = arg;
	g->older_than = clock_now(app->clock) - app->conf.blob_grace;
	gc_shelf(g);
}

static void gc_finish(void *arg)
{
	struct gc *g = arg;

	blob_shelf_unlock(g->shelf);
	mem_free(g->doomed);
	mem_free(g->digests);
	g->cb(g->arg, &g->report, &g->err);
	mem_free(g);
}

static void gc_submit(struct gc *g, work_run_cb *run, work_done_cb *done)
{
	if (work_submit(g->app->loop, run, done, g, &g->err) < 0)
		loop_defer(g->app->loop, gc_finish, g);
}

/* What the loop still runs when the server ends must not reach for the database. */
static bool gc_draining(struct gc *g)
{
	if (!g->app->draining)
		return false;
	(void)err_set(&g->err, ERR_CANCELLED, "the server is shutting down");
	gc_finish(g);
	return true;
}

static void gc_shelf(struct gc *g)
{
	if (g->at < BLOB_SHELVES)
		gc_submit(g, gc_lock, gc_on_locked);
	else
		gc_submit(g, gc_sweep, gc_finish);
}

static void gc_lock(void *arg)
{
	struct gc *g = arg;

	g->shelf = blob_shelf_lock(g->app->blobs, g->at, g->older_than, &g->err);
}

static void gc_on_locked(void *arg)
{
	struct gc *g = arg;
	size_t n;

	if (g->shelf == NULL && g->err.code == ERR_IN_PROGRESS) {
		g->err.code = ERR_OK;
		g->report.skipped++;
		g->at++;
		if (!gc_draining(g))
			gc_shelf(g);
		return;
	}
	if (g->shelf == NULL) {
		gc_finish(g);
		return;
	}
	if (gc_draining(g))
		return;
	const struct blob_id *files = blob_shelf_files(g->shelf, &n);
	g->digests = mem_resize(g->digests, n + 1, sizeof *g->digests);
	for (size_t i = 0; i < n; i++)
		g->digests[i] = (struct str){ (const char *)files[i].digest, HASH_SIZE };
	struct db_unit *u = db_unit(g->app->db, NULL);
	if (g->dry_run)
		blob_store_unreferenced(u, g->at, g->older_than);
	else
		blob_store_collect(u, g->at, g->older_than);
	blob_store_known(u, g->digests, n);
	db_send(u, DB_BULK, gc_on_rows, g);
}

static void doom(struct gc *g, struct str digest, int64_t size)
{
	if (g->n_doomed == g->doomed_cap) {
		g->doomed_cap = g->doomed_cap != 0 ? g->doomed_cap * 2 : 64;
		g->doomed = mem_resize(g->doomed, g->doomed_cap, sizeof *g->doomed);
	}
	memcpy(g->doomed[g->n_doomed].digest, digest.p, HASH_SIZE);
	g->doomed[g->n_doomed++].size = size;
	g->report.blobs++;
	g->report.bytes += size;
}

static int by_digest(const void *a, const void *b)
{
	return memcmp(((const struct blob_id *)a)->digest, ((const struct blob_id *)b)->digest,
		HASH_SIZE);
}

/* Files that have no row and have not been doomed with their row. */
static void doom_orphans(struct gc *g, const struct db_rows *known)
{
	size_t n, k = 0, with_row = g->n_doomed;
	const struct blob_id *files = blob_shelf_files(g->shelf, &n);

	if (with_row != 0)
		qsort(g->doomed, with_row, sizeof *g->doomed, by_digest);
	for (size_t i = 0; i < n; i++) {
		while (k < known->n && str_cmp(db_str(known, k, 0), g->digests[i]) < 0)
			k++;
		bool has_row = k < known->n && str_eq(db_str(known, k, 0), g->digests[i]);
		if (!has_row && (with_row == 0 || bsearch(&files[i], g->doomed, with_row,
							  sizeof *g->doomed, by_digest) == NULL))
			doom(g, g->digests[i], files[i].size);
	}
}

static void gc_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct gc *g = arg;

	g->n_doomed = 0;
	if (e->code == ERR_CONFLICT) { /* somebody has just begun to use one of them */
		g->report.skipped++;
	} else if (e->code != ERR_OK) {
		g->err = *e;
		gc_finish(g);
		return;
	} else {
		for (size_t i = 0; i < rows[0].n; i++)
			doom(g, db_str(&rows[0], i, 0), db_int(&rows[0], i, 1));
		doom_orphans(g, &rows[1]);
	}
	gc_submit(g, gc_remove, gc_on_removed);
}

static void gc_remove(void *arg)
{
	struct gc *g = arg;

	for (size_t i = 0; i < g->n_doomed && !g->dry_run; i++)
		if (blob_shelf_remove(g->shelf, g->doomed[i].digest, &g->err) < 0)
			break;
	blob_shelf_unlock(g->shelf);
	g->shelf = NULL;
}

static void gc_on_removed(void *arg)
{
	struct gc *g = arg;

	g->at++;
	if (g->err.code != ERR_OK)
		gc_finish(g);
	else if (!gc_draining(g))
		gc_shelf(g);
}

static void gc_sweep(void *arg)
{
	struct gc *g = arg;

	if (!g->dry_run && blob_sweep_tmp(g->app->blobs, g->older_than, &g->err) < 0)
		return;
}

/* ---- at intervals ---- */

struct blob_gc {
	struct app *app;
	struct loop_timer timer;
	bool running, gone;
};

static void periodic_on_done(void *arg, const struct blob_gc_report *r, const struct err *e)
{
	struct blob_gc *g = arg;

	if (e->code != ERR_OK && e->code != ERR_CANCELLED)
		log_warn("collecting blobs failed", LOG_E(e));
	if (r->blobs != 0)
		log_info("blobs collected", LOG_I("blobs", r->blobs), LOG_I("bytes", r->bytes));
	g->running = false;
	if (g->gone)
		mem_free(g);
}

static void periodic_run(void *arg)
{
	struct blob_gc *g = arg;

	if (g->running || g->app->draining)
		return;
	g->running = true;
	blob_gc_run(g->app, false, periodic_on_done, g);
}

struct blob_gc *blob_gc_new(struct app *app)
{
	struct blob_gc *g = mem_new_of(struct blob_gc);

	g->app = app;
	loop_timer_init(&g->timer, app->loop, periodic_run, g);
	loop_timer_every(&g->timer, app->conf.blob_gc_interval / 1000);
	return g;
}

void blob_gc_free(struct blob_gc *g)
{
	if (g == NULL)
		return;
	loop_timer_cancel(&g->timer);
	g->gone = true;
	if (!g->running)
		mem_free(g);
}
