#include "server/sched/lease.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/db/row.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "server/app.h"
#include "server/store/sched_store.h"

/* We trust the lease for a second less than the database does, from before the question was sent.
 */
enum { TICK_MS = 1000, TRUST_US = 4000000 };

struct lease {
	struct app *app;
	const char *role;
	lease_cb *cb;
	void *arg;
	struct loop_timer timer;
	bool held, asking, closing;
	int64_t epoch, since, asked_us, until_us; /* asked, until: loop_now() */
};

static void lease_ask(struct lease *l);
static void lease_on_answer(void *arg, const struct db_rows *rows, const struct err *e);

static void set_held(struct lease *l, bool held)
{
	if (l->held == held)
		return;
	l->held = held;
	if (held)
		l->since = clock_now(l->app->clock);
	log_info(held ? "leading" : "not leading any more", LOG_S("role", l->role),
		LOG_I("epoch", l->epoch));
	l->cb(l->arg, held);
}

static void lease_on_tick(void *arg)
{
	struct lease *l = arg;

	if (l->held && loop_now(l->app->loop) > l->until_us)
		set_held(l, false);
	if (!l->asking)
		lease_ask(l);
}

struct lease *lease_new(struct app *app, const char *role, lease_cb *cb, void *arg)
{
	struct lease *l = mem_new_of(struct lease);

	*l = (struct lease){ .app = app, .role = role, .cb = cb, .arg = arg };
	loop_timer_init(&l->timer, app->loop, lease_on_tick, l);
	loop_timer_every(&l->timer, TICK_MS);
	lease_ask(l);
	return l;
}

void lease_free(struct lease *l)
{
	if (l == NULL)
		return;
	loop_timer_cancel(&l->timer);
	if (l->held) {
		struct db_unit *u = db_unit(l->app->db, NULL);
		sched_store_release(u, l->role, l->app->instance, l->epoch);
		db_send(u, DB_WRITE, NULL, NULL);
	}
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

int64_t lease_since(const struct lease *l)
{
	return l->since;
}

static void lease_ask(struct lease *l)
{
	struct db_unit *u = db_unit(l->app->db, NULL);

	l->asking = true;
	l->asked_us = loop_now(l->app->loop);
	if (l->held)
		sched_store_renew(u, l->role, l->app->instance, l->epoch);
	else
		sched_store_acquire(u, l->role, l->app->instance);
	db_send(u, DB_WRITE, lease_on_answer, l);
}

static void lease_on_answer(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct lease *l = arg;

	l->asking = false;
	if (l->closing) {
		mem_free(l);
		return;
	}
	if (e->code != ERR_OK)
		return; /* the tick decides, by the time that has passed */
	if (rows[0].n != 0) {
		l->epoch = db_int(&rows[0], 0, 0);
		l->until_us = l->asked_us + TRUST_US;
	}
	set_held(l, rows[0].n != 0);
}
