/*
 * While this server leads: sched_on_lease loads the memory (sched_load → sched_on_loaded), the hub
 * keeps it true (sched_on_event), and each change asks for a pass (sched_dirty → sched_pass →
 * sched_on_assigned), one at a time. The tick looks after what time brings: steps that waited too
 * long, workers that are silent, runs that were left behind.
 */
#include "server/sched/sched.h"

#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"
#include "server/sched/hub.h"
#include "server/sched/note.h"
#include "server/sched/progress.h"
#include "server/sched/sched_inside.h"
#include "server/store/engine_store.h"
#include "server/store/sched_store.h"

enum {
	TICK_MS = 2000,
	RELOAD_TICKS = 8, /* memory is checked against the database this often */
	NEWS_MAX = 10000,
	NEWS_ARENA = 4 << 20,
	LATER_ARENA = 16 << 20,
	ONE_LEASE_US = 5000000,
	BREAKER_WORKERS = 5,
	BREAKER_SILENT_US = 60000000
};

/* A change of which we heard while the memory was read anew. */
struct sched_later {
	struct sched_later *next;
	struct str type, subject;
};

static void sched_on_lease(void *arg, bool leading);
static void load_now(struct sched *s);
static void news_drop(struct sched_news *news);
static void close_again(struct sched *s);
static void look_at_later(struct sched *s);
static void sched_on_loaded(void *arg, const struct db_rows *rows, const struct err *e);
static void sched_on_event(void *arg, const struct event *ev, struct str project_id);
static void sched_fetch(struct sched *s);
static void sched_on_fetched(void *arg, const struct db_rows *rows, const struct err *e);
static void sched_on_tick(void *arg);

struct sched *sched_new(struct app *app)
{
	struct sched *s = mem_new_of(struct sched);

	s->app = app;
	s->handed = map_new();
	s->listener = hub_listen(app->hub, sched_on_event, s);
	loop_timer_init(&s->tick, app->loop, sched_on_tick, s);
	loop_timer_init(&s->pass, app->loop, sched_pass, s);
	loop_timer_every(&s->tick, TICK_MS);
	s->note = note_new(app);
	s->lease = lease_new(app, "scheduler", sched_on_lease, s);
	return s;
}

void sched_gone(struct sched *s)
{
	if (!s->closing || s->on_the_way != 0)
		return;
	map_free(s->handed);
	mem_free(s);
}

static void forget(struct sched *s)
{
	pool_free(s->pool);
	s->pool = NULL;
	news_drop(s->news);
	s->news = NULL;
	s->closed_n = 0;
	arena_drop(s->later_arena);
	s->later_arena = NULL;
	s->later = s->last = NULL;
	s->dirty = s->reload = false;
}

void sched_free(struct sched *s)
{
	if (s == NULL)
		return;
	hub_unlisten(s->listener);
	loop_timer_cancel(&s->tick);
	loop_timer_cancel(&s->pass);
	lease_free(s->lease);
	s->lease = NULL;
	note_free(s->note);
	forget(s);
	s->closing = true;
	sched_gone(s);
}

bool sched_leading(const struct sched *s)
{
	return s != NULL && lease_held(s->lease);
}

void sched_lead_free(struct sched *s)
{
	if (s != NULL)
		lease_look(s->lease);
}

void sched_resign(struct sched *s)
{
	if (s != NULL)
		lease_resign(s->lease);
}

struct pool *sched_pool(const struct sched *s)
{
	return s != NULL && lease_held(s->lease) ? s->pool : NULL;
}

size_t sched_pending(const struct sched *s)
{
	return s != NULL && s->pool != NULL ? pool_steps(s->pool) : 0;
}

bool sched_is_steady(const struct sched *s)
{
	return s->pool != NULL && !s->loading && !s->reload;
}

/* ---- the memory ---- */

static void sched_on_lease(void *arg, bool leading)
{
	struct sched *s = arg;

	if (!leading) {
		forget(s);
		return;
	}
	progress_sweep(s->app);
	sched_load(s);
}

void sched_load(struct sched *s)
{
	s->reload = true;
	load_now(s);
}

static void load_now(struct sched *s)
{
	if (!s->reload || s->loading || s->fetching || s->passing)
		return;
	struct db_unit *u = db_unit(s->app->db, NULL);
	s->reload = false;
	s->loading = true;
	s->on_the_way++;
	sched_store_memory(u);
	db_send(u, DB_BULK, sched_on_loaded, s);
}

/* The statements are one snapshot only by chance: an attempt that was made between them is
 * repaired by the compare-and-set of the assignment and by the next reload. */
static void sched_on_loaded(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct sched *s = arg;

	s->loading = false;
	s->on_the_way--;
	if (s->closing || !lease_held(s->lease)) {
		sched_gone(s);
		return;
	}
	if (e->code == ERR_OK) {
		pool_free(s->pool);
		s->pool = pool_new();
		pool_read(s->pool, rows);
		map_free(s->handed);
		s->handed = map_new();
		s->dirty = true;
	} else {
		log_warn("the scheduler cannot read its state", LOG_E(e));
	}
	close_again(s);
	look_at_later(s);
	sched_settle(s);
}

void sched_settle(struct sched *s)
{
	if (s->reload) {
		load_now(s);
		return;
	}
	sched_fetch(s);
	if (s->dirty)
		sched_dirty(s);
}

/* ---- what was heard of ---- */

/* To be read: one read at a time, since of two on their way the older may come back last. */
struct sched_news {
	struct arena *arena;
	struct str *steps, *workers;
	size_t steps_n, workers_n;
};

static struct sched_news *news_of(struct sched *s)
{
	if (s->news == NULL) {
		struct arena *a = arena_new(NEWS_ARENA);
		s->news = arena_new_of(a, struct sched_news);
		s->news->arena = a;
		s->news->steps = arena_array_of(a, struct str, NEWS_MAX);
		s->news->workers = arena_array_of(a, struct str, NEWS_MAX);
	}
	return s->news;
}

static void news_drop(struct sched_news *news)
{
	if (news != NULL)
		arena_drop(news->arena);
}

static void fetch_later(struct sched *s, struct str id, bool is_worker)
{
	struct sched_news *news = news_of(s);
	size_t *n = is_worker ? &news->workers_n : &news->steps_n;

	if (*n < NEWS_MAX)
		(is_worker ? news->workers : news->steps)[(*n)++] = arena_str(news->arena, id);
	else
		sched_load(s); /* more than we noted: read it all */
	sched_fetch(s);
}

/* What is read just now may be older than that they were closed. */
static void close_again(struct sched *s)
{
	for (size_t i = 0; s->pool != NULL && i < s->closed_n; i++)
		pool_close_worker(s->pool, str_c(s->closed[i]));
	s->closed_n = 0;
}

void sched_worker_closed(struct sched *s, struct str worker_id)
{
	if (s == NULL || s->pool == NULL)
		return;
	pool_close_worker(s->pool, worker_id);
	if (!s->fetching && !s->loading)
		return;
	if (s->closed_n < CLOSED_MAX)
		(void)str_print(s->closed[s->closed_n++], ID_MAX, "%.*s", STR_ARG(worker_id));
	else
		s->reload = true;
}

static void note_later(struct sched *s, struct str type, struct str subject)
{
	if (s->later_arena == NULL)
		s->later_arena = arena_new(LATER_ARENA);
	if (arena_room(s->later_arena) < 4096) {
		s->reload = true; /* more than we can note: once more after this */
		return;
	}
	struct sched_later *l = arena_new_of(s->later_arena, struct sched_later);
	*l = (struct sched_later){ NULL, arena_str(s->later_arena, type),
		arena_str(s->later_arena, subject) };
	if (s->last != NULL)
		s->last->next = l;
	else
		s->later = l;
	s->last = l;
}

/* Quotas and pools. */
static bool changes_rules(struct str type)
{
	return str_is(type, "project.quota_changed") || str_is(type, "pool.changed");
}

static void react(struct sched *s, struct str type, struct str subject)
{
	if (str_is(type, "step.queued")) {
		if (map_remove(s->handed, subject) == NULL)
			fetch_later(s, subject, false);
	} else if (str_is(type, "attempt.ended")) {
		pool_attempt_ended(s->pool, subject);
		sched_dirty(s);
	} else if (str_is(type, "step.cancelled") || str_is(type, "step.failed")) {
		pool_remove_step(s->pool, subject);
	} else if (str_starts(type, STR("worker."))) {
		fetch_later(s, subject, true);
	} else if (changes_rules(type)) {
		sched_load(s);
	}
}

static void look_at_later(struct sched *s)
{
	struct arena *a = s->later_arena;
	struct sched_later *l = s->later;

	s->later_arena = NULL;
	s->later = s->last = NULL;
	for (; s->pool != NULL && l != NULL; l = l->next)
		react(s, l->type, l->subject);
	arena_drop(a);
}

static bool concerns_us(struct str type)
{
	return str_is(type, "step.queued") || str_is(type, "attempt.ended") ||
	       str_is(type, "step.cancelled") || str_is(type, "step.failed") ||
	       str_starts(type, STR("worker.")) || changes_rules(type);
}

static void sched_on_event(void *arg, const struct event *ev, struct str project_id)
{
	struct sched *s = arg;

	(void)project_id;
	if (!concerns_us(ev->type))
		return;
	if (s->loading || s->reload)
		note_later(s, ev->type, ev->subject);
	else if (s->pool != NULL)
		react(s, ev->type, ev->subject);
}

void sched_queued(struct sched *s, const struct queue_rows *rows)
{
	static char here;

	if (s == NULL || !sched_is_steady(s) || rows->n == 0)
		return; /* the event will tell */
	pool_queue_steps(s->pool, rows, clock_now(s->app->clock));
	for (size_t i = 0; i < rows->n; i++)
		(void)map_put(s->handed, rows->step_ids[i], &here);
	sched_dirty(s);
}

/* Until the memory is read anew nothing is handed to it past the events. */
void sched_rules_changed(struct sched *s)
{
	if (sched_leading(s))
		sched_load(s);
}

void sched_worker_holds(struct sched *s, struct str worker_id, struct str keys)
{
	if (s != NULL && s->pool != NULL)
		pool_worker_holds(s->pool, worker_id, keys);
}

static void sched_fetch(struct sched *s)
{
	struct sched_news *news = s->news;

	if (!sched_is_steady(s) || s->fetching || news == NULL)
		return;
	struct db_unit *u = db_unit(s->app->db, NULL);
	s->fetching = true;
	s->on_the_way++;
	s->asked = news;
	s->news = NULL;
	sched_store_queue_some(u, news->steps, news->steps_n);
	sched_store_workers_some(u, news->workers, news->workers_n);
	db_send(u, DB_READ, sched_on_fetched, s);
}

static void sched_on_fetched(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct sched *s = arg;
	struct sched_news *asked = s->asked;

	s->fetching = false;
	s->asked = NULL;
	s->on_the_way--;
	if (!s->closing && s->pool != NULL) {
		if (e->code == ERR_OK) {
			pool_add_steps(s->pool, &rows[0]);
			pool_put_workers(s->pool, asked->workers, asked->workers_n, &rows[1]);
		} else {
			s->reload = true;
		}
		close_again(s);
		s->dirty = true;
	}
	news_drop(asked);
	if (s->closing)
		sched_gone(s);
	else
		sched_settle(s);
}

/* ---- what time brings ---- */

static void runs_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct sched *s = arg;

	s->on_the_way--;
	if (!s->closing && e->code == ERR_OK && rows[0].n != 0) {
		size_t run = db_col(&rows[0], "run_id");
		for (size_t i = 0; i < rows[0].n; i++)
			progress_run(s->app, db_str(&rows[0], i, run));
		sched_load(s);
	}
	sched_gone(s);
}

/* Their steps fail, and leave our memory by the events of that. */
static void late_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct sched *s = arg;

	s->on_the_way--;
	for (size_t i = 0; !s->closing && e->code == ERR_OK && i < rows[0].n; i++)
		progress_run(s->app, db_str(&rows[0], i, 0));
	sched_gone(s);
}

static void lose_silent(struct sched *s)
{
	struct db_unit *u = db_unit(s->app->db, NULL);

	s->on_the_way++;
	sched_store_lose(u, s->app->instance, lease_epoch(s->lease), lease_age(s->lease),
		s->app->conf.worker_lost_after);
	db_send(u, DB_WRITE, runs_on_rows, s);
}

/* When a fifth of the workers fall silent at once, the fault is rather ours: nothing is given up.
 */
static void silent_on_row(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct sched *s = arg;

	s->on_the_way--;
	if (s->closing || e->code != ERR_OK || !lease_held(s->lease)) {
		sched_gone(s);
		return;
	}
	int64_t silent = db_int(&rows[0], 0, 0), workers = db_int(&rows[0], 0, 1);
	if (workers >= BREAKER_WORKERS && silent * 5 > workers)
		log_warn("many workers are silent at once; nothing is given up",
			LOG_I("silent", silent), LOG_I("workers", workers));
	else
		lose_silent(s);
}

static void sched_on_tick(void *arg)
{
	struct sched *s = arg;

	if (s->pool == NULL) {
		if (lease_held(s->lease))
			sched_load(s); /* it could not be read */
		return;
	}
	struct db_unit *u = db_unit(s->app->db, NULL);
	s->on_the_way++;
	sched_store_queue_late(u);
	db_send(u, DB_READ, late_on_rows, s);
	if (lease_age(s->lease) > ONE_LEASE_US) {
		u = db_unit(s->app->db, NULL);
		s->on_the_way++;
		sched_store_silent(u, BREAKER_SILENT_US);
		db_send(u, DB_READ, silent_on_row, s);
	}
	progress_sweep(s->app);
	note_tick(s->note, s->pool, lease_epoch(s->lease));
	if (++s->ticks % RELOAD_TICKS == 0)
		sched_load(s);
}
