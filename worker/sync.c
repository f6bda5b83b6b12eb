#include "worker/sync.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/fetch/fetch.h"
#include "lib/fetch/retry.h"
#include "lib/loop/timer.h"
#include "worker/agent.h"
#include "worker/holds.h"
#include "worker/reply.h"

enum {
	ARENA_MAX = 96 << 20,
	BODY_MAX = 4 << 20,
	REPLY_MAX = 32 << 20,
	QUICK_MS = 200,
	EMPTY_MAX = 3,
	STORING_MS = 5
};
#define PAUSE_FIRST  (CLOCK_SECOND / 4)
#define PAUSE_MOST   (15 * CLOCK_SECOND)
#define WAIT_TIMEOUT (40 * CLOCK_SECOND) /* the server holds a request for 25 s */
#define TELL_TIMEOUT (10 * CLOCK_SECOND) /* a server without its database gives up sooner */
#define TELL_LEAST   (2 * CLOCK_SECOND)

/* A lane is one kind of request, of which one at most is in flight. */
struct lane {
	struct sync *s;
	bool wait; /* may be parked */
	bool news; /* the last reply brought some */
	int empty; /* replies in a row that came at once and brought nothing */
	struct fetch *request;
	struct buf body;
	struct loop_timer next;
	int64_t sent_at;
	uint64_t holds; /* the turn of what this host holds that was told; 0: it was not */
};

struct sync {
	struct agent *agent;
	struct lane park, tell;
	bool changed, stopped, down;
	unsigned failures;
	uint64_t holds; /* the turn that the server knows */
	struct loop_timer renew;
};

/* Send → apply the reply → send again. */
static void lane_send(void *arg);
static void lane_on_reply(void *arg, const struct fetch_reply *reply, const struct err *e);
static void lane_failed(struct lane *l, const struct fetch_reply *reply, const struct err *e);

static void on_renew(void *arg)
{
	struct sync *s = arg;

	sync_changed(s);
}

static void lane_init(struct lane *l, struct sync *s, bool wait)
{
	l->s = s;
	l->wait = wait;
	buf_init(&l->body, BODY_MAX);
	loop_timer_init(&l->next, s->agent->loop, lane_send, l);
}

struct sync *sync_new(struct agent *g)
{
	struct sync *s = mem_new_of(struct sync);

	s->agent = g;
	lane_init(&s->park, s, true);
	lane_init(&s->tell, s, false);
	loop_timer_init(&s->renew, g->loop, on_renew, s);
	/* The first one does not wait: it tells the server what we have, and brings what is due. */
	sync_changed(s);
	return s;
}

void sync_stop(struct sync *s)
{
	s->stopped = true;
	loop_timer_cancel(&s->park.next);
	loop_timer_cancel(&s->tell.next);
	loop_timer_cancel(&s->renew);
}

void sync_free(struct sync *s)
{
	if (s == NULL)
		return;
	sync_stop(s);
	BUG_ON(s->park.request != NULL || s->tell.request != NULL);
	buf_done(&s->park.body);
	buf_done(&s->tell.body);
	mem_free(s);
}

void sync_changed(struct sync *s)
{
	s->changed = true;
	if (!s->stopped && s->tell.request == NULL && !loop_timer_armed(&s->tell.next))
		loop_timer_set(&s->tell.next, 0);
}

/* What ends itself without a word from the server must not wait for one that hangs while another
 * would answer. */
static int64_t tell_timeout(const struct agent *g)
{
	int64_t renew = agent_renew_every(g) * 1000;

	if (renew == 0 || renew > TELL_TIMEOUT)
		return TELL_TIMEOUT;
	return renew > TELL_LEAST ? renew : TELL_LEAST;
}

static void lane_send(void *arg)
{
	struct lane *l = arg;
	struct agent *g = l->s->agent;
	struct arena *a;
	struct sync_request has;

	if (l->request != NULL || l->s->stopped)
		return;
	if (l->wait && agent_storing(g)) {
		/* It would be given again what it has just been given. */
		loop_timer_set(&l->next, STORING_MS);
		return;
	}
	a = arena_new(ARENA_MAX);
	l->sent_at = loop_now(g->loop);
	agent_report(g, a, &has);
	has.wait = l->wait;
	l->holds = holds_turn(g->holds, l->sent_at);
	has.has_holds = l->holds != l->s->holds;
	if (has.has_holds)
		holds_report(g->holds, a, &has.holds);
	buf_clear(&l->body);
	field_encode(sync_request_fields, &has, &l->body);
	arena_drop(a);
	if (!l->wait)
		l->s->changed = false;
	const struct fetch_request q = { .method = "POST",
		.path = "/api/v1/workers/self/sync",
		.headers = { "Content-Type: application/json" },
		.body = buf_str(&l->body),
		.max_body = REPLY_MAX,
		.timeout = l->wait ? WAIT_TIMEOUT : tell_timeout(g) };
	l->request = fetch_start(g->http, &q, lane_on_reply, l);
}

static int apply(struct lane *l, const struct fetch_reply *reply, struct err *e)
{
	struct arena *a = arena_new(ARENA_MAX);
	struct sync_reply want;
	struct list bad;
	int rc = reply_read(reply->body, a, &want, &bad, e);

	if (rc == 0) {
		agent_renewed(l->s->agent, l->sent_at);
		agent_reached(l->s->agent, reply->from);
		for (size_t i = 0; i < bad.n; i++) {
			const struct bad_assignment *b = list_at(&bad, struct bad_assignment, i);
			agent_refuse(l->s->agent, b->attempt, b->epoch, &b->why);
		}
		l->news = agent_apply(l->s->agent, &want);
	}
	arena_drop(a);
	return rc;
}

/* When is the next one due? A parked one at once, unless the server does not hold it any more. */
static void lane_next(struct lane *l)
{
	struct sync *s = l->s;
	int64_t took = (loop_now(s->agent->loop) - l->sent_at) / 1000;
	int64_t renew = agent_renew_every(s->agent);

	l->empty = took < QUICK_MS && !l->news ? l->empty + 1 : 0;
	if (l->wait)
		loop_timer_set(&l->next, l->empty > EMPTY_MAX ? QUICK_MS - took : 0);
	else if (s->changed)
		loop_timer_set(&l->next, 0);
	if (s->park.request == NULL && !loop_timer_armed(&s->park.next))
		loop_timer_set(&s->park.next, 0);
	if (renew > 0)
		loop_timer_set(&s->renew, renew);
}

static void lane_on_reply(void *arg, const struct fetch_reply *reply, const struct err *failed)
{
	struct lane *l = arg;
	struct sync *s = l->s;
	struct err e = *failed;

	l->request = NULL;
	if (s->stopped)
		return;
	if (e.code != ERR_OK || fetch_problem(reply, &e) < 0 || apply(l, reply, &e) < 0) {
		lane_failed(l, reply, &e);
		return;
	}
	if (s->down)
		log_info("the server is there again");
	s->down = false;
	s->failures = 0;
	s->holds = l->holds;
	lane_next(l);
}

static void lane_failed(struct lane *l, const struct fetch_reply *reply, const struct err *e)
{
	struct sync *s = l->s;
	int64_t wait = PAUSE_FIRST, at_least = 0, renew = agent_renew_every(s->agent) * 1000;
	int64_t most = renew > 0 && renew < PAUSE_MOST ? renew : PAUSE_MOST;
	uint64_t random;

	if (!s->down)
		log_warn("no word from the server", LOG_E(e), LOG_I("status", reply->status),
			LOG_S("field", e->field));
	s->down = true;
	if (!l->wait)
		s->changed = true;
	for (unsigned i = 0; i < s->failures && wait < PAUSE_MOST; i++)
		wait *= 2;
	if (wait > most)
		wait = most;
	s->failures++;
	if (reply->status != 0)
		at_least = fetch_retry_after(reply, clock_now(&clock_real));
	/* 0.5 to 1.5 times that, so that many workers do not come back at once. */
	id_random(&random, sizeof random);
	wait = wait / 2 + (int64_t)(random % (uint64_t)wait);
	if (wait < at_least)
		wait = at_least;
	loop_timer_set(&l->next, wait / 1000);
}
