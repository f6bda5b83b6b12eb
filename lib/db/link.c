/*
 * The life of a link: WAITING (timer) → LOOKUP (work thread, only for host names) → CONNECTING
 * (PQconnectPoll says what to wait for; the socket may be another after each call, so the watcher
 * is made anew) → UP → WAITING …
 */
#include "lib/db/link.h"

#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/loop/work.h"

#include <libpq-fe.h>

enum { DELAY_FIRST_MS = 50, DELAY_MAX_MS = 1000, CONNECT_MS = 5000 };

struct link_lookup {
	struct link *link; /* NULL when it has gone meanwhile */
	struct conninfo_hosts hosts;
};

static void link_attempt(void *arg);
static void link_on_looked_up(void *arg);
static void link_connect(struct link *l, const struct conninfo_hosts *hosts);
static void link_on_progress(void *arg, int what);
static void link_established(struct link *l);
static void link_on_ready(void *arg, int what);
static void link_on_late(void *arg);

void link_init(struct link *l, struct loop *loop, const struct conninfo *info,
	const struct link_ops *ops, void *arg)
{
	*l = (struct link){ .loop = loop, .info = info, .ops = ops, .arg = arg, .label = "pool" };
	loop_timer_init(&l->timer, loop, link_attempt, l);
}

static void link_close(struct link *l)
{
	loop_timer_cancel(&l->timer);
	loop_fd_free(l->fd);
	l->fd = NULL;
	if (l->pg != NULL)
		PQfinish(l->pg);
	l->pg = NULL;
	l->blocked = false;
	if (l->lookup != NULL)
		l->lookup->link = NULL;
	l->lookup = NULL;
}

/* Half of the delay is random, so that a fleet does not come back in step. */
static void link_wait(struct link *l)
{
	unsigned shift = l->failures < 8 ? l->failures : 8;
	int64_t ms = DELAY_FIRST_MS << shift;
	uint32_t r;

	if (ms > DELAY_MAX_MS)
		ms = DELAY_MAX_MS;
	id_random(&r, sizeof r);
	l->failures++;
	l->state = LINK_WAITING;
	loop_timer_init(&l->timer, l->loop, link_attempt, l);
	loop_timer_set(&l->timer, ms / 2 + (int64_t)(r % (uint32_t)(ms / 2 + 1)));
}

/* libpq's messages have several lines; the first says it. They hold no password. */
static void link_note(struct link *l, const char *why)
{
	struct str rest = str_c(why), first;

	if (!str_next(&rest, '\n', &first))
		first = STR("unknown");
	(void)str_print(l->why, sizeof l->why, "%.*s", STR_ARG(first));
}

static void link_failed(struct link *l, const char *why)
{
	link_note(l, why);
	if (l->failures == 0)
		log_warn("no database connection", LOG_S("for", l->label), LOG_S("why", l->why));
	link_close(l);
	link_wait(l);
}

void link_start(struct link *l)
{
	BUG_ON(l->state != LINK_OFF);
	l->state = LINK_WAITING;
	loop_timer_set(&l->timer, 0);
}

static void lookup_run(void *arg)
{
	struct link_lookup *job = arg;

	conninfo_resolve(&job->hosts);
}

static void link_attempt(void *arg)
{
	struct link *l = arg;
	struct conninfo_hosts hosts;
	struct link_lookup *job;
	struct err e;

	if (!conninfo_needs_lookup(l->info, &hosts)) {
		link_connect(l, NULL);
		return;
	}
	job = mem_new_of(struct link_lookup);
	*job = (struct link_lookup){ l, hosts };
	if (work_submit(l->loop, lookup_run, link_on_looked_up, job, &e) < 0) {
		conninfo_hosts_done(&job->hosts);
		mem_free(job);
		link_failed(l, e.msg);
		return;
	}
	l->state = LINK_LOOKUP;
	l->lookup = job;
}

static void link_on_looked_up(void *arg)
{
	struct link_lookup *job = arg;
	struct link *l = job->link;

	if (l != NULL) {
		l->lookup = NULL;
		if (job->hosts.err.code != ERR_OK)
			link_failed(l, job->hosts.err.msg);
		else
			link_connect(l, &job->hosts);
	}
	conninfo_hosts_done(&job->hosts);
	mem_free(job);
}

static void link_connect(struct link *l, const struct conninfo_hosts *hosts)
{
	l->state = LINK_CONNECTING;
	l->pg = conninfo_connect_start(l->info, hosts);
	BUG_ON(l->pg == NULL); /* out of memory */
	if (PQstatus(l->pg) == CONNECTION_BAD) {
		link_failed(l, PQerrorMessage(l->pg));
		return;
	}
	loop_timer_init(&l->timer, l->loop, link_on_late, l);
	loop_timer_set(&l->timer, CONNECT_MS);
	l->fd = loop_fd_new(l->loop, PQsocket(l->pg), LOOP_WRITE, link_on_progress, l);
}

static void link_on_late(void *arg)
{
	link_failed(arg, "the server does not answer");
}

static void link_on_progress(void *arg, int what)
{
	struct link *l = arg;
	PostgresPollingStatusType next = PQconnectPoll(l->pg);

	(void)what;
	loop_fd_free(l->fd);
	l->fd = NULL;
	switch (next) {
	case PGRES_POLLING_OK: link_established(l); break;
	case PGRES_POLLING_READING:
		l->fd = loop_fd_new(l->loop, PQsocket(l->pg), LOOP_READ, link_on_progress, l);
		break;
	case PGRES_POLLING_WRITING:
		l->fd = loop_fd_new(l->loop, PQsocket(l->pg), LOOP_WRITE, link_on_progress, l);
		break;
	case PGRES_POLLING_ACTIVE:
	case PGRES_POLLING_FAILED:
	default: link_failed(l, PQerrorMessage(l->pg)); break;
	}
}

static void silence(void *arg, const PGresult *notice)
{
	(void)arg, (void)notice;
}

static void link_established(struct link *l)
{
	loop_timer_cancel(&l->timer);
	if (PQsetnonblocking(l->pg, 1) != 0) {
		link_failed(l, PQerrorMessage(l->pg));
		return;
	}
	(void)PQsetNoticeReceiver(l->pg, silence, NULL);
	l->fd = loop_fd_new(l->loop, PQsocket(l->pg), LOOP_READ, link_on_ready, l);
	l->state = LINK_UP;
	if (l->failures > 1 || l->losses > 0)
		log_info("database connection made again", LOG_S("for", l->label));
	l->failures = 0;
	l->connects++;
	l->why[0] = '\0';
	l->ops->on_up(l->arg);
}

static void link_on_ready(void *arg, int what)
{
	struct link *l = arg;

	if ((what & LOOP_WRITE) != 0 && !link_flush(l))
		return;
	if ((what & LOOP_READ) == 0)
		return;
	if (PQconsumeInput(l->pg) == 0) {
		/* What has arrived before the end may still say why. */
		l->ops->on_input(l->arg);
		if (l->state == LINK_UP)
			link_drop(l, PQerrorMessage(l->pg));
		return;
	}
	l->ops->on_input(l->arg);
}

bool link_flush(struct link *l)
{
	int rc = PQflush(l->pg);

	if (rc < 0) {
		link_drop(l, PQerrorMessage(l->pg));
		return false;
	}
	l->blocked = rc == 1;
	loop_fd_want(l->fd, l->blocked ? LOOP_READ | LOOP_WRITE : LOOP_READ);
	return true;
}

void link_drop(struct link *l, const char *why)
{
	BUG_ON(l->state != LINK_UP);
	link_note(l, why);
	log_warn("database connection lost", LOG_S("for", l->label), LOG_S("why", l->why));
	l->losses++;
	link_close(l);
	link_wait(l);
	l->ops->on_down(l->arg);
}

void link_done(struct link *l)
{
	link_close(l);
	l->state = LINK_OFF;
}
