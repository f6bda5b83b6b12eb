#include "lib/db/listen.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/db/link.h"
#include "lib/loop/defer.h"

#include <libpq-fe.h>

enum { ANSWER_MS = 5000, CHANNEL_MAX = 63, COMMAND_MAX = 8192 };

struct db_listen {
	struct conninfo info;
	struct link link;
	struct db_listen_conf conf;
	struct buf command; /* LISTEN for every channel */
	struct loop_timer timer; /* the next sign of life, or the end of waiting for it */
	bool asked, synced, closed;
};

static void listen_on_up(void *arg);
static void listen_on_input(void *arg);
static void listen_on_down(void *arg);
static void listen_on_timer(void *arg);

static const struct link_ops ops = { listen_on_up, listen_on_input, listen_on_down };

static void check_channel(const char *z)
{
	size_t n = strspn(z, "abcdefghijklmnopqrstuvwxyz0123456789_");

	BUG_ON(n == 0 || n > CHANNEL_MAX || z[n] != '\0');
}

struct db_listen *db_listen_new(struct loop *loop, const struct db_listen_conf *conf)
{
	struct db_listen *l = mem_new_of(struct db_listen);
	struct err e;

	l->conf = *conf;
	if (l->conf.ping <= 0)
		l->conf.ping = 15 * CLOCK_SECOND;
	buf_init(&l->command, COMMAND_MAX);
	for (const char *const *c = conf->channels; *c != NULL; c++) {
		check_channel(*c);
		buf_addf(&l->command, "LISTEN %s;", *c);
	}
	buf_adds(&l->command, "SELECT 1");
	BUG_ON(buf_failed(&l->command));
	if (conninfo_parse(&l->info, conf->conninfo,
		    conf->name != NULL ? conf->name : "tidemill-listen",
		    "-c statement_timeout=5000", &e) < 0)
		bug_at(e.file, e.line, e.msg);
	loop_timer_init(&l->timer, loop, listen_on_timer, l);
	link_init(&l->link, loop, &l->info, &ops, l);
	l->link.label = "listen";
	link_start(&l->link);
	return l;
}

static void listen_destroy(void *arg)
{
	struct db_listen *l = arg;

	conninfo_done(&l->info);
	buf_done(&l->command);
	mem_free(l);
}

void db_listen_free(struct db_listen *l)
{
	if (l == NULL)
		return;
	l->closed = true;
	loop_timer_cancel(&l->timer);
	link_done(&l->link);
	loop_defer(l->link.loop, listen_destroy, l);
}

bool db_listen_is_up(const struct db_listen *l)
{
	return l->synced;
}

static void ask(struct db_listen *l, const char *command)
{
	if (PQsendQuery(l->link.pg, command) != 1) {
		link_drop(&l->link, PQerrorMessage(l->link.pg));
		return;
	}
	l->asked = true;
	loop_timer_set(&l->timer, ANSWER_MS);
	if (!link_flush(&l->link))
		return; /* on_down has run */
}

static void listen_on_up(void *arg)
{
	struct db_listen *l = arg;

	ask(l, buf_str(&l->command).p);
}

static void answered(struct db_listen *l)
{
	l->asked = false;
	loop_timer_set(&l->timer, l->conf.ping / 1000);
	if (l->synced)
		return;
	l->synced = true;
	l->conf.on_resync(l->conf.arg);
}

/* False when the connection is gone or the owner has freed us. */
static bool take_answer(struct db_listen *l)
{
	while (l->asked && PQisBusy(l->link.pg) == 0) {
		PGresult *res = PQgetResult(l->link.pg);
		ExecStatusType st = PQresultStatus(res);

		if (res == NULL) {
			answered(l);
			return !l->closed;
		}
		PQclear(res);
		if (st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK) {
			link_drop(&l->link, PQerrorMessage(l->link.pg));
			return false;
		}
	}
	return true;
}

static void listen_on_input(void *arg)
{
	struct db_listen *l = arg;
	PGnotify *n;

	if (!take_answer(l))
		return;
	while (!l->closed && l->link.state == LINK_UP && (n = PQnotifies(l->link.pg)) != NULL) {
		l->conf.on_notify(l->conf.arg, n->relname, str_c(n->extra));
		PQfreemem(n);
	}
}

static void listen_on_down(void *arg)
{
	struct db_listen *l = arg;

	l->asked = l->synced = false;
	loop_timer_cancel(&l->timer);
}

static void listen_on_timer(void *arg)
{
	struct db_listen *l = arg;

	if (l->asked)
		link_drop(&l->link, "the server does not answer any more");
	else
		ask(l, "SELECT 1");
}
