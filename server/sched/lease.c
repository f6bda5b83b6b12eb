#include "server/sched/lease.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/db/row.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "server/app.h"
#include "server/store/sched_store.h"

/*
 * We trust the lease for a second less than the database does, from before the question was sent.
 * Who waits for the lease of another asks again as soon as it has run out, or is told that it was
 * given back.
 */
enum { TICK_MS = 1000, TRUST_US = 4000000, AFTER_MS = 2 };

struct lease {
	struct app *app;
	const char *role;
	lease_cb *cb;
	void *arg;
	struct loop_timer timer, expiry; /* expiry: of another's */
	bool held, asking, again, resigned, closing;
	bool outdated; /* the schema is newer than we know: another program leads */
	int64_t epoch, since, asked_us, until_us; /* times: loop_now() */
};

static void lease_ask(struct lease *l);
static void lease_on_answer(void *arg, const struct db_rows *rows, const struct err *e);
static void give_back(struct lease *l);
static void lease_on_released(void *arg, const struct db_rows *rows, const struct err *e);

static void set_held(struct lease *l, bool held)
{
	if (l->held == held)
		return;
	l->held = held;
	if (held)
		l->since = loop_now(l->app->loop);
	log_info(held ? "leading" : "not leading any more", LOG_S("role", l->role),
		LOG_I("epoch", l->epoch));
	l->cb(l->arg, held);
}

static void lease_on_tick(void *arg)
{
	struct lease *l = arg;

	if (l->held && loop_now(l->app->loop) > l->until_us)
		set_held(l, false);
	lease_look(l);
}

static void lease_on_expiry(void *arg)
{
	struct lease *l = arg;

	if (!l->held)
		lease_look(l);
}

void lease_look(struct lease *l)
{
	if (l->asking)
		l->again = true;
	else if (!l->resigned)
		lease_ask(l);
}

struct lease *lease_new(struct app *app, const char *role, lease_cb *cb, void *arg)
{
	struct lease *l = mem_new_of(struct lease);

	*l = (struct lease){ .app = app, .role = role, .cb = cb, .arg = arg };
	loop_timer_init(&l->timer, app->loop, lease_on_tick, l);
	loop_timer_init(&l->expiry, app->loop, lease_on_expiry, l);
	loop_timer_every(&l->timer, TICK_MS);
	lease_ask(l);
	return l;
}

void lease_resign(struct lease *l)
{
	if (l->resigned)
		return;
	l->resigned = true;
	loop_timer_cancel(&l->timer);
	loop_timer_cancel(&l->expiry);
	set_held(l, false);
	/* A question that is on its way may still win the lease: it is given back after that. */
	if (!l->asking)
		give_back(l);
}

/* Whatever we had: of a lease that is another's now, or has run out, nothing changes. */
static void give_back(struct lease *l)
{
	struct db_unit *u = db_unit(l->app->db, NULL);

	l->asking = true;
	sched_store_release(u, l->role, l->app->instance, l->epoch);
	db_send(u, DB_WRITE, lease_on_released, l);
}

static void lease_on_released(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct lease *l = arg;

	(void)rows;
	(void)e;
	l->asking = false;
	if (l->closing)
		mem_free(l);
}

void lease_free(struct lease *l)
{
	if (l == NULL)
		return;
	lease_resign(l);
	l->closing = true;
	if (!l->asking)
		mem_free(l);
}

bool lease_held(const struct lease *l)
{
	return l->held;
}

int64_t lease_epoch(const struct lease *l)
{
	return l->epoch;
}

int64_t lease_age(const struct lease *l)
{
	return loop_now(l->app->loop) - l->since;
}

static void lease_ask(struct lease *l)
{
	struct db_unit *u = db_unit(l->app->db, NULL);

	l->asking = true;
	l->again = false;
	l->asked_us = loop_now(l->app->loop);
	if (l->held)
		sched_store_renew(u, l->role, l->app->instance, l->epoch, l->app->schema);
	else
		sched_store_acquire(u, l->role, l->app->instance, l->app->schema);
	db_send(u, DB_WRITE, lease_on_answer, l);
}

/* The lease is another's, and for how long at most was told. */
static void wait_for_expiry(struct lease *l, const struct db_rows *row)
{
	if (row->n != 0 && row->cols == 3 && !db_is_null(row, 0, 1) && db_int(row, 0, 1) > 0)
		loop_timer_set(&l->expiry, db_int(row, 0, 1) / 1000 + AFTER_MS);
}

/* A server of the next release has brought the schema forward. What we have left of the lease is
 * given back at once, so that it need not wait for its end. */
static void say_outdated(struct lease *l, const struct db_rows *row)
{
	if (l->outdated || row->n == 0 || row->cols != 3 || db_is_null(row, 0, 2))
		return;
	l->outdated = true;
	log_error("the database has a newer schema than this program knows: it does not lead any "
		  "more, use a newer one",
		LOG_S("role", l->role), LOG_I("schema", db_int(row, 0, 2)),
		LOG_I("known", l->app->schema));
	give_back(l);
}

static void lease_on_answer(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct lease *l = arg;

	bool won = e->code == ERR_OK && rows[0].n != 0 && !db_is_null(&rows[0], 0, 0);

	l->asking = false;
	if (won) {
		l->epoch = db_int(&rows[0], 0, 0);
		l->until_us = l->asked_us + TRUST_US;
		/* We may have been stopped with the answer in the socket. */
		won = loop_now(l->app->loop) <= l->until_us;
	}
	if (l->resigned) {
		give_back(l);
		return;
	}
	if (e->code != ERR_OK)
		return; /* the tick decides, by the time that has passed */
	if (!won)
		wait_for_expiry(l, &rows[0]);
	bool lost = l->held && !won;
	set_held(l, won);
	if (!won)
		say_outdated(l, &rows[0]);
	if ((l->again || lost) && !l->held)
		lease_look(l);
}
