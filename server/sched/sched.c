/*
 * While this server leads: sched_on_lease loads the memory (sched_load → sched_on_loaded), the hub
 * keeps it true (sched_on_event), and each change asks for a pass (sched_dirty → sched_pass →
 * sched_on_assigned), one at a time. The tick looks after what time brings: steps that waited too
 * long, workers that are silent, runs that were left behind.
 */
#include "server/sched/sched.h"

#include "api/pipeline.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json_read.h"
#include "lib/json/json_write.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "server/app.h"
#include "server/sched/fleet.h"
#include "server/sched/hub.h"
#include "server/sched/lease.h"
#include "server/sched/pool.h"
#include "server/sched/progress.h"
#include "server/store/credential.h"
#include "server/store/sched_store.h"

enum {
	TICK_MS = 2000,
	RELOAD_TICKS = 8, /* memory is checked against the database this often */
	PASS_ARENA = 256 << 20,
	ASSIGN_MAX = 500,
	FETCH_MAX = 1000,
	ONE_LEASE_US = 5000000,
	BREAKER_WORKERS = 5,
	BREAKER_SILENT_US = 60000000,
	PASS_LONG_US = 5000
};

struct sched {
	struct app *app;
	struct lease *lease;
	struct pool *pool; /* NULL while not leading, or not loaded yet */
	struct hub_listener *listener;
	struct loop_timer tick, pass;
	int64_t rest_until; /* clock_elapsed(): no pass before */
	struct arena *fetch_arena; /* ids of steps that were queued lately */
	struct str *fetch;
	size_t fetch_n;
	bool fetching, passing, dirty, loading, reload, closing;
	unsigned ticks;
	size_t on_the_way; /* units whose callbacks will come */
};

struct pass {
	struct sched *sched;
	struct arena *arena;
	struct place_snapshot snapshot;
	struct place_result result;
	struct assign_rows rows;
	struct list *gpus; /* of each row: struct str */
};

static void sched_on_lease(void *arg, bool leading);
static void sched_load(struct sched *s);
static void sched_on_loaded(void *arg, const struct db_rows *rows, const struct err *e);
static void sched_on_event(void *arg, const struct event *ev, struct str project_id);
static void sched_fetch(struct sched *s);
static void sched_on_fetched(void *arg, const struct db_rows *rows, const struct err *e);
static void sched_dirty(struct sched *s);
static void sched_pass(void *arg);
static void sched_on_assigned(void *arg, const struct db_rows *rows, const struct err *e);
static void sched_on_tick(void *arg);

struct sched *sched_new(struct app *app)
{
	struct sched *s = mem_new_of(struct sched);

	s->app = app;
	s->listener = hub_listen(app->hub, sched_on_event, s);
	loop_timer_init(&s->tick, app->loop, sched_on_tick, s);
	loop_timer_init(&s->pass, app->loop, sched_pass, s);
	loop_timer_every(&s->tick, TICK_MS);
	s->lease = lease_new(app, "scheduler", sched_on_lease, s);
	return s;
}

static void sched_gone(struct sched *s)
{
	if (s->closing && s->on_the_way == 0)
		mem_free(s);
}

static void forget(struct sched *s)
{
	pool_free(s->pool);
	s->pool = NULL;
	arena_drop(s->fetch_arena);
	s->fetch_arena = NULL;
	s->fetch_n = 0;
	s->dirty = false;
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
	forget(s);
	s->closing = true;
	sched_gone(s);
}

bool sched_leading(const struct sched *s)
{
	return lease_held(s->lease);
}

size_t sched_pending(const struct sched *s)
{
	return s->pool != NULL ? pool_steps(s->pool) : 0;
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

static void sched_load(struct sched *s)
{
	struct db_unit *u = db_unit(s->app->db, NULL);

	if (s->loading) {
		db_unit_free(u);
		return;
	}
	s->loading = true;
	s->on_the_way++;
	sched_store_queue_all(u);
	sched_store_workers(u);
	sched_store_attempts(u);
	db_send(u, DB_BULK, sched_on_loaded, s);
}

/* The three statements are one snapshot only by chance: an attempt that was made between them is
 * repaired by the compare-and-set of the assignment and by the next reload. */
static void sched_on_loaded(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct sched *s = arg;

	s->loading = false;
	s->on_the_way--;
	s->reload = s->passing; /* a pass points into the memory: read again after it */
	if (s->closing || e->code != ERR_OK || !lease_held(s->lease) || s->passing) {
		if (!s->closing && e->code != ERR_OK)
			log_warn("the scheduler cannot read its state", LOG_E(e));
		sched_gone(s);
		return;
	}
	pool_free(s->pool);
	s->pool = pool_new();
	pool_add_steps(s->pool, &rows[0]);
	pool_set_workers(s->pool, &rows[1]);
	pool_set_attempts(s->pool, &rows[2]);
	sched_dirty(s);
}

static void fetch_later(struct sched *s, struct str step_id)
{
	if (s->fetch_arena == NULL) {
		s->fetch_arena = arena_new(4 << 20);
		s->fetch = arena_array_of(s->fetch_arena, struct str, FETCH_MAX);
	}
	if (s->fetch_n < FETCH_MAX)
		s->fetch[s->fetch_n++] = arena_str(s->fetch_arena, step_id);
	else
		sched_load(s); /* more than we noted: read it all */
	sched_fetch(s);
}

static void worker_on_row(void *arg, const struct db_rows *rows, const struct err *e);

struct worker_read {
	struct sched *sched;
	struct arena *arena;
	struct str id;
};

static void read_worker(struct sched *s, struct str id)
{
	struct arena *a = arena_new(1 << 20);
	struct worker_read *w = arena_new_of(a, struct worker_read);
	struct db_unit *u = db_unit(s->app->db, a);

	*w = (struct worker_read){ s, a, arena_str(a, id) };
	s->on_the_way++;
	sched_store_worker(u, w->id);
	db_send(u, DB_READ, worker_on_row, w);
}

static void worker_on_row(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct worker_read *w = arg;
	struct sched *s = w->sched;

	s->on_the_way--;
	if (!s->closing && s->pool != NULL && e->code == ERR_OK) {
		pool_put_worker(s->pool, w->id, &rows[0]);
		sched_dirty(s);
	}
	arena_drop(w->arena);
	sched_gone(s);
}

static void sched_on_event(void *arg, const struct event *ev, struct str project_id)
{
	struct sched *s = arg;

	(void)project_id;
	if (s->pool == NULL)
		return;
	if (str_is(ev->type, "step.queued")) {
		fetch_later(s, ev->subject);
	} else if (str_is(ev->type, "attempt.ended")) {
		pool_attempt_ended(s->pool, ev->subject);
		sched_dirty(s);
	} else if (str_is(ev->type, "step.cancelled") || str_is(ev->type, "step.failed")) {
		pool_remove_step(s->pool, ev->subject);
	} else if (str_starts(ev->type, STR("worker."))) {
		read_worker(s, ev->subject);
	}
}

static void sched_fetch(struct sched *s)
{
	if (s->fetching || s->fetch_n == 0)
		return;
	struct db_unit *u = db_unit(s->app->db, NULL);
	s->fetching = true;
	s->on_the_way++;
	sched_store_queue_some(u, s->fetch, s->fetch_n);
	arena_drop(s->fetch_arena);
	s->fetch_arena = NULL;
	s->fetch_n = 0;
	db_send(u, DB_READ, sched_on_fetched, s);
}

static void sched_on_fetched(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct sched *s = arg;

	s->fetching = false;
	s->on_the_way--;
	if (s->closing || s->pool == NULL) {
		sched_gone(s);
		return;
	}
	if (e->code == ERR_OK)
		pool_add_steps(s->pool, &rows[0]);
	else
		sched_load(s);
	sched_dirty(s);
	sched_fetch(s);
}

/* ---- passes ---- */

static void sched_dirty(struct sched *s)
{
	s->dirty = true;
	if (!s->passing)
		loop_timer_at(&s->pass, s->rest_until);
}

/* A queue that nobody can take is looked through again with each step that joins it, and that must
 * leave most of the loop to others. */
static void rest_after(struct sched *s, int64_t began, size_t placed)
{
	int64_t now = clock_elapsed(s->app->clock), took = now - began;

	if (placed == 0)
		s->rest_until = now + 3 * took;
	else
		s->rest_until = took > PASS_LONG_US ? now + took : 0;
}

static int64_t seen_at(void *arg, struct str worker_id, int64_t stored)
{
	const struct sched *s = arg;
	int64_t here = fleet_seen_at(s->app->fleet, worker_id);

	return here > stored ? here : stored;
}

static struct str devices_json(struct arena *a, const struct place_assignment *p)
{
	struct buf b;

	buf_init(&b, 16384);
	struct jsn_out w = jsn_out(&b);
	jsn_list_begin(&w);
	for (uint32_t i = 0; i < p->gpus_n; i++)
		jsn_str(&w, p->gpus[i]);
	jsn_list_end(&w);
	struct str out = arena_str(a, buf_str(&b));
	buf_done(&b);
	return out;
}

static struct list copy_gpus(struct arena *a, const struct place_assignment *placed)
{
	struct list out = { arena_array_of(a, struct str, placed->gpus_n + 1), placed->gpus_n };

	for (uint32_t i = 0; i < placed->gpus_n; i++)
		*list_at(&out, struct str, i) = arena_str(a, placed->gpus[i]);
	return out;
}

/* Copies: the memory may lose a step or read a worker again before the answer comes. */
static void fill_rows(struct pass *p, size_t n)
{
	struct str **columns[] = { &p->rows.step_ids, &p->rows.attempt_ids, &p->rows.worker_ids,
		&p->rows.runtimes, &p->rows.devices, &p->rows.token_ids, &p->rows.token_macs };
	char id[ID_MAX];

	for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
		*columns[c] = arena_array_of(p->arena, struct str, n);
	p->gpus = arena_array_of(p->arena, struct list, n);
	for (size_t i = 0; i < n; i++) {
		const struct place_assignment *placed = &p->result.placed[i];
		p->rows.step_ids[i] = arena_str(p->arena, p->snapshot.steps[placed->step].id);
		p->rows.worker_ids[i] = arena_str(p->arena, p->snapshot.workers[placed->worker].id);
		p->gpus[i] = copy_gpus(p->arena, placed);
		p->rows.attempt_ids[i] =
			arena_str(p->arena, str_c(id_new(id, "at", p->sched->app->clock)));
		p->rows.runtimes[i] = str_c(runtime_names[placed->runtime]);
		p->rows.devices[i] = devices_json(p->arena, placed);
		struct credential_row token = credential_derive(
			p->sched->app->pepper, CREDENTIAL_JOB, p->rows.attempt_ids[i], p->arena);
		p->rows.token_ids[i] = token.id;
		p->rows.token_macs[i] = token.mac;
	}
	p->rows.n = n;
}

static void sched_pass(void *arg)
{
	struct sched *s = arg;
	struct arena *a;
	int64_t next = 0, now = clock_now(s->app->clock), began = clock_elapsed(s->app->clock);

	if (s->pool == NULL || s->passing || !s->dirty)
		return;
	s->dirty = false;
	if (pool_steps(s->pool) == 0)
		return;
	a = arena_new(PASS_ARENA);
	struct pass *p = arena_new_of(a, struct pass);
	p->sched = s;
	p->arena = a;
	pool_snapshot(
		s->pool, now, s->app->conf.worker_lost_after, seen_at, s, a, &p->snapshot, &next);
	id_random(&p->snapshot.seed, sizeof p->snapshot.seed);
	place_pass(&p->snapshot, a, &p->result);
	rest_after(s, began, p->result.placed_n);
	if (next != 0)
		loop_timer_set(&s->pass, (next - now) / 1000 + 1);
	if (p->result.placed_n == 0) {
		arena_drop(a);
		s->dirty = next != 0;
		return;
	}
	fill_rows(p, p->result.placed_n < ASSIGN_MAX ? p->result.placed_n : ASSIGN_MAX);
	s->dirty = p->result.placed_n > ASSIGN_MAX || next != 0;
	s->passing = true;
	s->on_the_way++;
	struct db_unit *u = db_unit(s->app->db, a);
	sched_store_assign(u, s->app->instance, lease_epoch(s->lease), &p->rows);
	db_send(u, DB_WRITE, sched_on_assigned, p);
}

/* The rows tell which of the assignments were made; GPUs are those that we asked for. */
static void take_over(struct pass *p, const struct db_rows *rows)
{
	struct sched *s = p->sched;

	for (size_t i = 0; i < rows->n; i++)
		for (size_t k = 0; k < p->rows.n; k++)
			if (str_eq(db_str(rows, i, 1), p->rows.attempt_ids[k])) {
				pool_assigned(s->pool, p->rows.step_ids[k], p->rows.attempt_ids[k],
					p->rows.worker_ids[k], p->gpus[k].items, p->gpus[k].n);
				fleet_wake(s->app->fleet, p->rows.worker_ids[k]);
				break;
			}
}

static void sched_on_assigned(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct pass *p = arg;
	struct sched *s = p->sched;

	s->passing = false;
	s->on_the_way--;
	if (s->closing || s->pool == NULL) {
		arena_drop(p->arena);
		sched_gone(s);
		return;
	}
	if (e->code == ERR_OK) {
		take_over(p, &rows[0]);
		app_changed(s->app);
	} else {
		log_warn("assignments were not stored", LOG_E(e));
	}
	/* What was not handed out is not in the queue any more, or we do not lead: read it again.
	 */
	if (e->code != ERR_OK || rows[0].n != p->rows.n || s->reload)
		sched_load(s);
	arena_drop(p->arena);
	if (s->dirty)
		sched_dirty(s);
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
	sched_store_lose(u, s->app->instance, lease_epoch(s->lease), lease_since(s->lease));
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

	if (s->pool == NULL)
		return;
	struct db_unit *u = db_unit(s->app->db, NULL);
	s->on_the_way++;
	sched_store_queue_late(u);
	db_send(u, DB_READ, late_on_rows, s);
	if (clock_now(s->app->clock) - lease_since(s->lease) > ONE_LEASE_US) {
		u = db_unit(s->app->db, NULL);
		s->on_the_way++;
		sched_store_silent(u, BREAKER_SILENT_US);
		db_send(u, DB_READ, silent_on_row, s);
	}
	progress_sweep(s->app);
	if (++s->ticks % RELOAD_TICKS == 0)
		sched_load(s);
}
