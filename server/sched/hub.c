#include "server/sched/hub.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/db/row.h"

#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "server/app.h"
#include "server/store/event_store.h"

enum {
	BATCH = 500,
	POLL_MS = 1000,
	PAUSE_US = 10000, /* from one read to the next, at least */
	HELD_US = 20000, /* until the next look while older transactions may hold events back */
	EVENT_ARENA = 4 << 20
};

struct hub_listener {
	struct hub_listener *next;
	struct hub *hub;
	hub_cb *fn; /* NULL: to be removed */
	void *arg;
};

struct hub {
	struct app *app;
	struct hub_listener *listeners;
	struct loop_timer timer, pause;
	int64_t position; /* -1: not known yet */
	int64_t asked_at, told_until; /* loop_now() */
	int64_t mark, mark_at; /* a transaction id that none had been given yet at that time */
	bool reading, again, telling, closing;
};

static void hub_read(struct hub *h);
static void hub_on_last(void *arg, const struct db_rows *rows, const struct err *e);
/* Events wait for transactions that are older and open. Once all those are over that had begun at
 * the mark, nothing from before it is left to be told. */
static void move_mark(struct hub *h, const struct db_rows *horizon)
{
	if (db_int(horizon, 0, 0) < h->mark)
		return;
	if (h->mark != 0)
		h->told_until = h->mark_at;
	h->mark = db_int(horizon, 0, 1);
	h->mark_at = h->asked_at;
}

static void hub_on_events(void *arg, const struct db_rows *rows, const struct err *e);

static void hub_on_timer(void *arg)
{
	hub_wake(arg);
}

static void hub_on_pause(void *arg)
{
	struct hub *h = arg;

	if (!h->reading)
		hub_read(h);
}

struct hub *hub_new(struct app *app)
{
	struct hub *h = mem_new_of(struct hub);

	h->app = app;
	h->position = -1;
	loop_timer_init(&h->timer, app->loop, hub_on_timer, h);
	loop_timer_init(&h->pause, app->loop, hub_on_pause, h);
	loop_timer_every(&h->timer, POLL_MS);
	hub_read(h);
	return h;
}

/* The memory goes when the read that is on its way has come back. */
void hub_free(struct hub *h)
{
	if (h == NULL)
		return;
	loop_timer_cancel(&h->timer);
	loop_timer_cancel(&h->pause);
	h->closing = true;
	if (!h->reading)
		mem_free(h);
}

/* At once when it was quiet; what comes in quick succession is read together. */
void hub_wake(struct hub *h)
{
	int64_t next = h->asked_at + PAUSE_US;

	if (h->reading)
		h->again = true;
	else if (loop_now(h->app->loop) >= next)
		hub_read(h);
	else
		loop_timer_at(&h->pause, next);
}

struct hub_listener *hub_listen(struct hub *h, hub_cb *fn, void *arg)
{
	struct hub_listener *l = mem_new_of(struct hub_listener);

	*l = (struct hub_listener){ .next = h->listeners, .hub = h, .fn = fn, .arg = arg };
	h->listeners = l;
	return l;
}

static void sweep(struct hub *h)
{
	for (struct hub_listener **p = &h->listeners; *p != NULL;) {
		struct hub_listener *l = *p;
		if (l->fn != NULL) {
			p = &l->next;
			continue;
		}
		*p = l->next;
		mem_free(l);
	}
}

void hub_unlisten(struct hub_listener *l)
{
	if (l == NULL)
		return;
	l->fn = NULL;
	if (!l->hub->telling)
		sweep(l->hub);
}

int64_t hub_position(const struct hub *h)
{
	return h->position;
}

int64_t hub_told_until(const struct hub *h)
{
	return h->told_until;
}

static void hub_read(struct hub *h)
{
	struct db_unit *u = db_unit(h->app->db, NULL);

	h->asked_at = loop_now(h->app->loop);
	h->reading = true;
	h->again = false;
	if (h->position < 0)
		event_store_last(u);
	else
		event_store_after(u, h->position, BATCH);
	event_store_horizon(u);
	db_send(u, DB_READ, h->position < 0 ? hub_on_last : hub_on_events, h);
}

/* Tail of a read: another one when there is more, else until somebody wakes us. */
static void hub_read_done(struct hub *h, bool more)
{
	h->reading = false;
	if (h->closing)
		mem_free(h);
	else if (more)
		hub_read(h);
	else if (h->again)
		hub_wake(h);
}

static void hub_on_last(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct hub *h = arg;

	if (e->code == ERR_OK)
		h->position = db_int(&rows[0], 0, 0);
	hub_read_done(h, e->code == ERR_OK);
}

static void tell(struct hub *h, const struct event *ev, struct str project_id)
{
	h->telling = true;
	for (struct hub_listener *l = h->listeners; l != NULL; l = l->next)
		if (l->fn != NULL)
			l->fn(l->arg, ev, project_id);
	h->telling = false;
	sweep(h);
}

static void hub_on_events(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct hub *h = arg;
	struct err bad;

	for (size_t i = 0; e->code == ERR_OK && !h->closing && i < rows[0].n; i++) {
		struct arena *a = arena_new(EVENT_ARENA);
		struct event ev = { 0 };
		if (db_row_decode(&rows[0], i, event_fields, a, &ev, &bad) < 0)
			log_error("an event cannot be read", LOG_E(&bad));
		else
			tell(h, &ev, db_str(&rows[0], i, db_col(&rows[0], "project_id")));
		h->position = db_int(&rows[0], i, db_col(&rows[0], "id"));
		arena_drop(a);
	}
	if (e->code == ERR_OK && rows[0].n < BATCH) {
		move_mark(h, &rows[1]);
		if (!h->closing && db_int(&rows[1], 0, 0) < db_int(&rows[1], 0, 1))
			loop_timer_at(&h->pause, loop_now(h->app->loop) + HELD_US);
	}
	hub_read_done(h, e->code == ERR_OK && rows[0].n == BATCH);
}
