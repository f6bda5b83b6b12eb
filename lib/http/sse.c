#include "lib/http/sse.h"

#include "lib/base/mem.h"
#include "lib/http/inside.h"
#include "lib/loop/defer.h"

#include <event2/buffer.h>

/*
 * An event is kept as a finished chunk of the chunked coding ("<hex>\r\n<event>\r\n"), which all
 * receivers share by reference; the rare HTTP/1.0 client is given the middle only.
 */

struct sse_event {
	unsigned refs;
	size_t skip, payload; /* the event within the chunk */
	struct buf chunk;
};

struct sse {
	struct http_call *call;
	struct loop_timer heartbeat;
	void (*on_close)(void *arg);
	void *arg;
	size_t backlog; /* bytes that may wait */
	bool over;
};

static void add_lines(struct buf *b, const char *field, struct str s)
{
	struct str line;

	while (str_next(&s, '\n', &line)) {
		if (str_ends(line, STR("\r")))
			line.n--;
		buf_adds(b, field);
		/* A bare CR would end the line for the receiver. */
		for (size_t i = 0; i < line.n; i++)
			buf_add(b, line.p[i] == '\r' ? STR(" ") : str_slice(line, i, 1));
		buf_addc(b, '\n');
	}
}

struct sse_event *sse_event_new(struct str id, struct str name, struct str data)
{
	struct sse_event *ev = mem_new_of(struct sse_event);
	char size[24];
	struct buf b;

	BUG_ON(str_has_control(id) || str_has_control(name));
	buf_init(&b, SSE_EVENT_MAX);
	if (id.n != 0)
		add_lines(&b, "id: ", id);
	if (name.n != 0)
		add_lines(&b, "event: ", name);
	add_lines(&b, "data: ", data.p != NULL ? data : STR(""));
	buf_addc(&b, '\n');
	BUG_ON(buf_failed(&b));
	str_print(size, sizeof size, "%zx\r\n", b.n);
	ev->refs = 1;
	ev->skip = strlen(size);
	ev->payload = b.n;
	buf_init(&ev->chunk, SSE_EVENT_MAX + 64);
	buf_adds(&ev->chunk, size);
	buf_add(&ev->chunk, buf_str(&b));
	buf_adds(&ev->chunk, "\r\n");
	buf_done(&b);
	return ev;
}

void sse_event_hold(struct sse_event *ev)
{
	ev->refs++;
}

void sse_event_drop(struct sse_event *ev)
{
	if (ev == NULL || --ev->refs > 0)
		return;
	buf_done(&ev->chunk);
	mem_free(ev);
}

static void event_release(const void *p, size_t n, void *arg)
{
	(void)p, (void)n;
	sse_event_drop(arg);
}

static void sse_free(void *arg)
{
	mem_free(arg);
}

static void sse_finish(struct sse *s)
{
	s->over = true;
	loop_timer_cancel(&s->heartbeat);
	loop_defer(s->call->server->loop, sse_free, s);
}

static void on_gone(void *arg)
{
	struct sse *s = arg;

	if (s->over)
		return;
	sse_finish(s);
	http_drop(&s->call->q);
	s->on_close(s->arg);
}

static void on_heartbeat(void *arg)
{
	struct sse *s = arg;

	if (!http_gone(&s->call->q))
		http_stream_write(&s->call->q, STR(": hb\n\n"));
}

/* The head of the request is not needed any more: a stream may live for days. */
static void request_forget(void *arg)
{
	struct http_call *k = arg;
	struct arena *a = k->q.arena;

	if (a == NULL)
		return;
	k->q.method = STR("GET");
	k->q.path = str_c(k->q.route != NULL ? k->q.route->pattern : "/");
	k->q.decoded_path = k->q.query = k->q.host = STR("");
	k->q.headers = k->q.args = NULL;
	k->q.n_headers = k->q.n_args = 0;
	memset(k->q.params, 0, sizeof k->q.params);
	k->extra = NULL;
	k->q.arena = NULL;
	arena_drop(a);
}

struct sse *sse_begin(struct http_req *q, void (*on_close)(void *arg), void *arg)
{
	struct sse *s = mem_new_of(struct sse);
	struct http_call *k = http_call_of(q);

	s->call = k;
	s->on_close = on_close;
	s->arg = arg;
	s->backlog = k->server->cfg.limits.sse_backlog;
	k->unending = true;
	if (k->conn != NULL) {
		k->conn->keep_alive = false;
		buf_clear(&k->conn->in);
	}
	http_reply_header(q, "X-Accel-Buffering", STR("no"));
	http_stream_begin(q, 200, "text/event-stream; charset=utf-8", -1);
	http_stream_write(q, STR("retry: 2000\n\n"));
	loop_timer_init(&s->heartbeat, k->server->loop, on_heartbeat, s);
	loop_timer_every(&s->heartbeat, k->server->cfg.deadlines.heartbeat);
	http_on_close(q, on_gone, s);
	loop_defer(k->server->loop, request_forget, k);
	/* HEAD has its answer; it is written before this runs. */
	if (k->no_body)
		loop_defer(k->server->loop, on_gone, s);
	return s;
}

void sse_allow(struct sse *s, size_t backlog)
{
	s->backlog = backlog;
}

void sse_send(struct sse *s, struct sse_event *ev)
{
	struct http_call *k = s->call;
	bool framed = k->chunked;

	if (s->over || k->conn == NULL)
		return;
	if (http_stream_waiting(&k->q) + ev->chunk.n > s->backlog) {
		conn_close(k->conn); /* on_gone follows */
		return;
	}
	sse_event_hold(ev);
	stream_add(k, &(struct stream_ref){ .p = ev->chunk.p + (framed ? 0 : ev->skip),
			      .n = framed ? ev->chunk.n : ev->payload,
			      .release = event_release,
			      .arg = ev,
			      .framed = framed });
}

void sse_end(struct sse *s)
{
	if (s->over)
		return;
	sse_finish(s);
	s->call->on_close = NULL;
	http_stream_end(&s->call->q);
}

size_t sse_waiting(const struct sse *s)
{
	return s->over ? 0 : http_stream_waiting(&s->call->q);
}
