#include "server/rest/events.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/http/sse.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "server/rest/access.h"
#include "server/rest/handlers.h"
#include "server/sched/hub.h"
#include "server/store/event_store.h"

#include <sys/queue.h>

enum { BATCH = 200, TOLD_MAX = 1000, EVENT_MAX = 1 << 20, EVENT_ARENA = 4 << 20, TOPIC_MAX = 64 };
enum { WAITING_MAX = 64 << 10, PACE_MS = 10 };

struct event_stream {
	TAILQ_ENTRY(event_stream) link;
	struct streams *all;
	struct sse *sse;
	struct access_watch *watch;
	char project_id[ID_MAX];
	char (*topics)[TOPIC_MAX];
	size_t n_topics;
	/* Catching up from the table. */
	bool live, reading, closed;
	bool first; /* the position has still to be looked for */
	int64_t position, until; /* the table is read after the one and up to the other, */
	struct sse_event **told; /* and what the hub tells meanwhile comes behind that */
	size_t n_told;
	bool overflow; /* too much was told: read on, up to a later event */
	struct loop_timer timer;
};
TAILQ_HEAD(event_streams, event_stream);

struct streams {
	struct app *app;
	struct hub_listener *listener;
	struct event_streams list;
	size_t n;
	uint64_t told;
	bool stopping;
};

static void events_start(struct call *c);
static void stream_catch_up(struct event_stream *s);
static void stream_read(struct event_stream *s);
static void stream_on_rows(void *arg, const struct db_rows *rows, const struct err *e);

/* ---- what the hub tells ---- */

static struct sse_event *format(const struct event *ev)
{
	char id[24];
	struct buf b;
	struct sse_event *out;

	buf_init(&b, EVENT_MAX);
	field_encode(event_fields, ev, &b);
	(void)str_print(id, sizeof id, "%lld", (long long)ev->id);
	if (buf_failed(&b) || str_has_control(ev->type)) {
		log_error("an event is too large to be told", LOG_I("event", ev->id));
		buf_done(&b);
		return NULL;
	}
	out = sse_event_new(str_c(id), ev->type, buf_str(&b));
	buf_done(&b);
	return out;
}

static bool wants(const struct event_stream *s, const struct event *ev)
{
	for (size_t i = 0; i < s->n_topics; i++)
		if (str_is(ev->subject, s->topics[i]) || str_is(ev->parent, s->topics[i]) ||
			strcmp(s->topics[i], "project") == 0)
			return true;
	return s->n_topics == 0;
}

static void told_clear(struct event_stream *s)
{
	for (size_t i = 0; i < s->n_told; i++)
		sse_event_drop(s->told[i]);
	s->n_told = 0;
}

static void told_keep(struct event_stream *s, struct sse_event *text)
{
	if (s->overflow)
		return;
	if (s->told == NULL)
		s->told = mem_new(TOLD_MAX, sizeof(struct sse_event *));
	if (s->n_told == TOLD_MAX) {
		s->overflow = true;
		told_clear(s);
		return;
	}
	sse_event_hold(text);
	s->told[s->n_told++] = text;
}

static void on_event(void *arg, const struct event *ev, struct str project_id)
{
	struct streams *all = arg;
	struct event_stream *s;
	struct sse_event *text = NULL;

	all->told++;
	TAILQ_FOREACH (s, &all->list, link) {
		if (!str_is(project_id, s->project_id) || !wants(s, ev))
			continue;
		if (text == NULL && (text = format(ev)) == NULL)
			return;
		if (s->live)
			sse_send(s->sse, text);
		else
			told_keep(s, text);
	}
	sse_event_drop(text);
}

struct streams *streams_new(struct app *app)
{
	struct streams *all = mem_new_of(struct streams);

	all->app = app;
	TAILQ_INIT(&all->list);
	all->listener = hub_listen(app->hub, on_event, all);
	return all;
}

size_t streams_count(const struct streams *all)
{
	return all->n;
}

uint64_t streams_told(const struct streams *all)
{
	return all->told;
}

/* ---- a stream's life ---- */

static void stream_free(struct event_stream *s)
{
	told_clear(s);
	mem_free(s->told);
	mem_free(s->topics);
	mem_free(s);
}

static void stream_close(struct event_stream *s)
{
	s->closed = true;
	loop_timer_cancel(&s->timer);
	access_unwatch(s->watch);
	TAILQ_REMOVE(&s->all->list, s, link);
	s->all->n--;
	if (!s->reading)
		stream_free(s);
}

static void stream_on_close(void *arg)
{
	stream_close(arg);
}

static void stream_cut(void *arg)
{
	struct event_stream *s = arg;

	sse_end(s->sse);
	stream_close(s);
}

void streams_stop(struct streams *all)
{
	struct event_stream *s;

	if (all == NULL)
		return;
	all->stopping = true;
	while ((s = TAILQ_FIRST(&all->list)) != NULL)
		stream_cut(s);
	hub_unlisten(all->listener);
}

void streams_free(struct streams *all)
{
	mem_free(all);
}

static void stream_on_timer(void *arg)
{
	struct event_stream *s = arg;

	if (s->until < 0)
		stream_catch_up(s);
	else
		stream_read(s);
}

static void topics_take(struct event_stream *s, const struct event_query *q)
{
	s->topics = mem_new(q->topic.n + 1, sizeof *s->topics);
	for (size_t i = 0; i < q->topic.n; i++)
		(void)str_print(s->topics[s->n_topics++], TOPIC_MAX, "%.*s",
			STR_ARG(*list_at(&q->topic, struct str, i)));
}

/* Prefixes of the ids that a project's events are about. */
static const char *const subjects[] = { "run", "st", "at", "pl", "ds", "dsv", "mdl", "mv", "mon",
	"win", "dec", "prj" };

static bool is_topic(struct str t)
{
	if (str_is(t, "project"))
		return true;
	for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
		struct str prefix = str_c(subjects[i]);
		if (t.n > prefix.n + 1 && str_starts(t, prefix) && t.p[prefix.n] == '_')
			return true;
	}
	return false;
}

static void refuse_topic(struct call *c, struct str t)
{
	char all[128] = "";
	size_t n = 0;

	for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++, n = strlen(all))
		(void)str_print(all + n, sizeof all - n, "%s%s_", i == 0 ? "" : ", ", subjects[i]);
	call_invalid(c, "/topic",
		"%.*s is neither the word \"project\" nor the id of an object: those begin with %s",
		STR_ARG(t), all);
}

/* A topic that nothing can be about would be listened to in vain. */
static bool topics_ok(struct call *c)
{
	const struct event_query *q = c->query;

	for (size_t i = 0; i < q->topic.n; i++) {
		struct str t = *list_at(&q->topic, struct str, i);
		if (!is_topic(t)) {
			refuse_topic(c, t);
			return false;
		}
	}
	return true;
}

static void events_start(struct call *c)
{
	const struct event_query *q = c->query;
	struct streams *all = c->app->streams;
	struct str last = http_header(c->req, "Last-Event-ID");
	int64_t from = q->from;
	bool has_from = q->has_from;
	struct event_stream *s;

	if (!topics_ok(c))
		return;
	if (last.p != NULL && last.n != 0) {
		has_from = true;
		if (!num_parse_i64(last, 0, INT64_MAX, &from))
			from = INT64_MAX; /* not ours: reset */
	}
	s = mem_new_of(struct event_stream);
	s->all = all;
	(void)str_print(s->project_id, sizeof s->project_id, "%.*s", STR_ARG(c->project_id));
	topics_take(s, q);
	loop_timer_init(&s->timer, c->app->loop, stream_on_timer, s);
	s->watch = access_watch(c, stream_cut, s);
	s->live = !has_from;
	s->position = from;
	s->first = from != 0;
	TAILQ_INSERT_TAIL(&all->list, s, link);
	all->n++;
	s->sse = sse_begin(c->req, stream_on_close, s);
	if (!s->live)
		stream_catch_up(s);
}

/* ---- catching up ---- */

/* Up to what the hub has told by now; the rest it tells from here on. */
static void stream_catch_up(struct event_stream *s)
{
	s->until = hub_position(s->all->app->hub);
	s->overflow = false;
	told_clear(s); /* that comes out of the table now */
	if (s->until < 0) /* it does not know yet where it stands */
		loop_timer_set(&s->timer, PACE_MS);
	else
		stream_read(s);
}

static void stream_read(struct event_stream *s)
{
	struct db_unit *u = db_unit(s->all->app->db, NULL);

	event_store_of_project(u, str_c(s->project_id), s->position, s->until, BATCH);
	if (s->first)
		event_store_known(u, s->position, s->until);
	s->reading = true;
	db_send(u, DB_READ, stream_on_rows, s);
}

static void stream_reset(struct event_stream *s)
{
	char id[24];
	struct sse_event *ev;

	(void)str_print(id, sizeof id, "%lld", (long long)hub_position(s->all->app->hub));
	ev = sse_event_new(str_c(id), STR("reset"), STR("{}"));
	sse_send(s->sse, ev);
	sse_event_drop(ev);
	told_clear(s); /* from before that position, or told by the hub behind it */
	s->live = true;
}

static void stream_send(struct event_stream *s, const struct event *ev)
{
	struct sse_event *text = wants(s, ev) ? format(ev) : NULL;

	if (text != NULL)
		sse_send(s->sse, text);
	sse_event_drop(text);
	s->position = ev->id;
}

static int stream_send_rows(struct event_stream *s, const struct db_rows *r, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < r->n; i++) {
		struct arena *a = arena_new(EVENT_ARENA);
		struct event ev = { 0 };
		rc = db_row_decode(r, i, event_fields, a, &ev, e);
		if (rc == 0)
			stream_send(s, &ev);
		arena_drop(a);
	}
	return rc;
}

static void stream_go_on(struct event_stream *s, bool all)
{
	if (!all) {
		loop_timer_set(&s->timer, sse_waiting(s->sse) > WAITING_MAX ? PACE_MS : 0);
	} else if (s->overflow) {
		s->position = s->until > s->position ? s->until : s->position;
		stream_catch_up(s);
	} else {
		for (size_t i = 0; i < s->n_told; i++)
			sse_send(s->sse, s->told[i]);
		told_clear(s);
		s->live = true;
	}
}

static void stream_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct event_stream *s = arg;
	bool first = s->first;
	struct err why = *e;

	s->reading = s->first = false;
	if (s->closed) {
		stream_free(s);
		return;
	}
	if (e->code != ERR_OK || s->all->stopping) {
		stream_cut(s); /* it comes back by itself */
		return;
	}
	if (first && rows[1].n == 0) {
		stream_reset(s);
		return;
	}
	if (first && !db_bool(&rows[1], 0, 0)) {
		/* Another server has told it that; ours is not there yet. */
		s->first = true;
		s->until = -1;
		loop_timer_set(&s->timer, PACE_MS);
		return;
	}
	if (stream_send_rows(s, &rows[0], &why) < 0) {
		log_error("an event cannot be read", LOG_E(&why));
		stream_cut(s);
		return;
	}
	stream_go_on(s, rows[0].n < BATCH);
}

const struct binding event_bindings[] = {
	{ "events.stream", events_start },
	{ 0 },
};
