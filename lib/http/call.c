#include "lib/http/inside.h"

#include "lib/base/id.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/http/router.h"
#include "lib/loop/defer.h"

#include <event2/buffer.h>

/*
 * One request. http_call_begin() copies the head into the arena and finds the route;
 * http_call_step() moves it from phase to phase; the answer may come in any of them and sets
 * `ended`, after which nothing here calls the handler again. When the client leaves, the call is
 * cut from its conn and lives on until its handler lets go of it.
 */

/* The limit is a net under bugs: bodies and heads are bounded long before. */
enum { ARENA_LIMIT = 256 << 20, ARGS_MAX = 1000 };

/* A call lives until its conn and handler are done with it and its arena is gone. */
static void call_release(void *arg)
{
	struct http_call *k = arg;

	if (--k->refs > 0)
		return;
	buf_done(&k->whole);
	mem_free(k);
}

static void call_free(void *arg)
{
	struct http_call *k = arg;
	struct http_server *s = k->server;

	s->n_calls--;
	arena_drop(k->q.arena);
	call_release(k);
	server_note_gone(s);
}

void http_call_free_later(struct http_call *k)
{
	loop_defer(k->server->loop, call_free, k);
}

struct http_call *http_call_new(struct conn *c)
{
	struct http_call *k = mem_new_of(struct http_call);
	struct http_server *s = c->server;

	k->server = s;
	k->conn = c;
	k->minor = 1;
	k->body_over = true;
	k->q = (struct http_req){ .arena = arena_new(ARENA_LIMIT), .app = s->cfg.app };
	/* An operation may hold the arena longer, and reach the call and its body by it. */
	k->refs = 2;
	arena_defer(k->q.arena, call_release, k);
	k->q.peer = ip_format(k->peer, &c->ip);
	k->q.peer_ip = c->ip;
	k->q.tls = c->ssl != NULL;
	k->q.id = k->id;
	k->q.start_us = loop_now(s->loop);
	id_new(k->id, "req", &clock_real);
	c->call = k;
	c->state = CONN_CALL;
	c->in_due = NEVER;
	s->n_calls++;
	return k;
}

/* ---- the head ---- */

static bool id_acceptable(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			c != '-' && c != '_' && c != '.')
			return false;
	}
	return s.n >= 1 && s.n <= HTTP_ID_MAX;
}

static int arg_decode(struct http_req *q, struct str s, struct str *ret, struct err *e)
{
	char *out = arena_alloc(q->arena, s.n + 1);
	const char *why;
	size_t n = 0;

	why = router_decode(s, true, out, &n);
	if (why != NULL)
		return err_set(e, ERR_MALFORMED, "The query %s", why);
	*ret = (struct str){ out, n };
	return 0;
}

static int args_decode(struct http_req *q, struct err *e)
{
	struct str rest = q->query, piece;
	size_t max = 1;

	if (q->query.n == 0)
		return 0;
	for (size_t i = 0; i < q->query.n; i++)
		max += q->query.p[i] == '&' ? 1 : 0;
	if (max > ARGS_MAX)
		return err_set(e, ERR_MALFORMED, "The query has more than %d arguments", ARGS_MAX);
	q->args = arena_array_of(q->arena, struct http_pair, max);
	while (str_next(&rest, '&', &piece)) {
		ptrdiff_t eq = str_find_char(piece, '=');
		size_t n = eq < 0 ? piece.n : (size_t)eq;
		struct http_pair *p = &q->args[q->n_args];

		if (piece.n == 0)
			continue;
		p->value = STR("");
		if (arg_decode(q, str_slice(piece, 0, n), &p->name, e) < 0)
			return -1;
		if (eq >= 0 &&
			arg_decode(q, str_slice(piece, n + 1, piece.n - n - 1), &p->value, e) < 0)
			return -1;
		q->n_args++;
	}
	return 0;
}

/* What a proxy in front says of the client. Only its last word counts: what stands before that
 * came from the client. */
static void take_forwarded(struct http_call *k)
{
	struct http_req *q = &k->q;
	struct str last = STR_NONE, rest, piece;
	struct ip ip;

	if (!server_is_proxy(k->server, &q->peer_ip))
		return;
	for (size_t i = 0; i < q->n_headers; i++)
		if (str_eq_nocase(q->headers[i].name, STR("x-forwarded-for")))
			last = q->headers[i].value;
	rest = last;
	while (rest.p != NULL && str_next(&rest, ',', &piece))
		last = str_trim(piece);
	if (last.p != NULL && ip_parse(last, &ip)) {
		q->peer_ip = ip;
		ip_format(k->peer, &ip);
	}
	q->tls = q->tls || str_is(http_header(q, "x-forwarded-proto"), "https");
}

static void head_copy(struct http_call *k, const struct h1_head *h, struct str bytes)
{
	struct http_req *q = &k->q;
	struct str p = arena_str(q->arena, str_slice(bytes, 0, h->size)), id;

	q->method = h1_span_str(p, h->method);
	q->path = h1_span_str(p, h->path);
	q->query = h1_span_str(p, h->query);
	q->host = h1_span_str(p, h->host);
	q->n_headers = h->n_fields;
	q->headers = arena_array_of(q->arena, struct http_pair, h->n_fields + 1);
	for (size_t i = 0; i < h->n_fields; i++) {
		q->headers[i].name = h1_span_str(p, h->fields[i].name);
		q->headers[i].value = h1_span_str(p, h->fields[i].value);
	}
	k->minor = h->minor;
	k->expects = h->expect_continue;
	k->no_body = str_is(q->method, "HEAD");
	h1_body_init(&k->body, h->framing, h->length);
	k->body_over = h->framing == H1_BODY_NONE;
	q->body_size = h->framing == H1_BODY_CHUNKED ? -1 : (int64_t)h->length;
	take_forwarded(k);
	id = http_header(q, "x-request-id");
	if (id_acceptable(id)) {
		memcpy(k->id, id.p, id.n);
		k->id[id.n] = '\0';
	}
}

static struct str host_name(struct str host)
{
	ptrdiff_t at;

	if (host.n != 0 && host.p[0] == '[') {
		at = str_find_char(host, ']');
		return str_slice(host, 0, (size_t)at + 1);
	}
	at = str_find_char(host, ':');
	return at < 0 ? host : str_slice(host, 0, (size_t)at);
}

static int find_route(struct http_call *k, struct err *e)
{
	const struct http_config *cfg = &k->server->cfg;
	struct http_req *q = &k->q;
	struct router_found f;
	bool readable = str_is(q->method, "GET") || str_is(q->method, "HEAD");

	if (cfg->host_ok != NULL && !cfg->host_ok(cfg->app, host_name(q->host)))
		return err_set(e, ERR_MISDIRECTED, "This server is not known as %.*s",
			STR_ARG(str_slice(q->host, 0, 100)));
	if (args_decode(q, e) < 0)
		return -1;
	if (router_match(k->server->router, q->arena, q->method, q->path, &f, e) < 0) {
		q->decoded_path = f.decoded_path;
		if (f.allow.n != 0)
			http_reply_header(q, "Allow", f.allow);
		return e->code == ERR_NOT_FOUND && readable && cfg->fallback != NULL ? 0 : -1;
	}
	q->route = f.route;
	q->decoded_path = f.decoded_path;
	memcpy(q->params, f.params, sizeof q->params);
	return 0;
}

void http_call_begin(struct http_call *k, const struct h1_head *h, struct str bytes)
{
	struct err e;

	head_copy(k, h, bytes);
	k->phase = CALL_ASKED;
	if (find_route(k, &e) < 0) {
		const struct http_config *cfg = &k->server->cfg;

		k->phase = CALL_RUNNING;
		if (cfg->refuse == NULL || !cfg->refuse(&k->q, &e))
			http_reply_err(&k->q, &e);
	} else if (k->q.route == NULL || k->server->cfg.auth == NULL) {
		k->phase = CALL_ALLOWED;
	} else {
		k->server->cfg.auth(&k->q);
	}
}

/* ---- the body ---- */

static uint64_t body_max(const struct http_call *k)
{
	const struct http_route *r = k->q.route;

	if (r == NULL || r->body == HTTP_BODY_NONE)
		return 0;
	return r->body == HTTP_BODY_STREAM && r->max_body == 0 ? H1_BODY_MAX : r->max_body;
}

static int too_large(const struct http_call *k, struct err *e)
{
	if (body_max(k) == 0)
		return err_set(e, ERR_MALFORMED, "This address takes no body");
	return err_set(e, ERR_TOO_LARGE, "The body is larger than %llu bytes",
		(unsigned long long)body_max(k));
}

static void say_continue(struct http_call *k)
{
	if (k->expects && k->conn != NULL && k->conn->in.n == 0)
		evbuffer_add(k->conn->out, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	k->expects = false;
}

static void allowed(struct http_call *k)
{
	struct err e;

	if (!k->body_over && (body_max(k) == 0 || (k->q.body_size > 0 && (uint64_t)k->q.body_size >
										 body_max(k)))) {
		too_large(k, &e);
		k->conn->keep_alive = false;
		k->phase = CALL_RUNNING;
		http_reply_err(&k->q, &e);
		return;
	}
	if (k->body_over || k->q.route->body == HTTP_BODY_STREAM) {
		k->phase = CALL_READY;
		return;
	}
	buf_init(&k->whole, (size_t)body_max(k));
	say_continue(k);
	k->phase = CALL_WHOLE;
}

bool http_call_wants_body(const struct http_call *k)
{
	if (k->body_over)
		return false;
	if (k->phase == CALL_WHOLE || k->phase == CALL_DISCARD)
		return true;
	return k->sink != NULL && !k->paused && !k->ended && k->phase == CALL_RUNNING;
}

void http_call_body_broken(struct http_call *k, enum err_code code, const char *why)
{
	struct err e;

	err_set(&e, code, "%s", why);
	if (k->conn != NULL)
		k->conn->keep_alive = false;
	k->aborted = true;
	if (k->ended) { /* while discarding: there is nothing left to say */
		k->phase = CALL_RUNNING;
		return;
	}
	if (k->sink != NULL) {
		const struct http_sink *sink = k->sink;

		k->sink = NULL;
		sink->on_abort(k->sink_arg, &e);
		return;
	}
	k->phase = CALL_RUNNING;
	http_reply_err(&k->q, &e);
}

static void deliver(struct http_call *k, struct str data)
{
	struct err e;

	k->taken += data.n;
	if (k->phase == CALL_DISCARD)
		return;
	if (k->taken > body_max(k)) {
		too_large(k, &e);
		http_call_body_broken(k, e.code, e.msg);
		return;
	}
	if (k->phase == CALL_WHOLE)
		buf_add(&k->whole, data);
	else
		k->sink->on_body(k->sink_arg, data);
}

static void body_complete(struct http_call *k)
{
	k->body_over = true;
	if (k->phase == CALL_WHOLE) {
		k->phase = CALL_READY;
		k->q.body = buf_str(&k->whole);
	} else if (k->phase == CALL_RUNNING && k->sink != NULL && !k->ended) {
		const struct http_sink *sink = k->sink;

		k->sink = NULL;
		sink->on_end(k->sink_arg);
	}
}

size_t http_call_feed(struct http_call *k, struct str p)
{
	struct conn *c = k->conn;
	size_t at = 0;

	while (at < p.n && http_call_wants_body(k)) {
		struct str data;
		size_t used;
		enum h1_status st =
			h1_body_feed(&k->body, str_slice(p, at, p.n - at), &used, &data);

		at += used;
		c->window += used;
		if (data.n != 0)
			deliver(k, data);
		if (k->conn == NULL)
			return p.n;
		if (st == H1_BAD)
			http_call_body_broken(k, ERR_MALFORMED, k->body.why);
		else if (st == H1_DONE && !k->aborted)
			body_complete(k);
	}
	return at;
}

/* ---- moving on ---- */

static void run_handler(struct http_call *k)
{
	k->phase = CALL_RUNNING;
	if (k->q.route != NULL)
		k->q.route->handler(&k->q);
	else
		k->server->cfg.fallback(&k->q);
}

bool http_call_step(struct http_call *k)
{
	if (k->ended)
		return false;
	switch (k->phase) {
	case CALL_ALLOWED: allowed(k); return true;
	case CALL_READY: run_handler(k); return true;
	case CALL_RUNNING:
		if (k->sink == NULL || (!k->expects && !k->body_over))
			return false;
		if (k->body_over) /* an empty one: it was over before it was taken */
			body_complete(k);
		else
			say_continue(k);
		return true;
	case CALL_ASKED:
	case CALL_WHOLE:
	case CALL_DISCARD: break;
	}
	return false;
}

static void run_drain(void *arg)
{
	struct http_call *k = arg;
	http_drain_cb *fn = k->on_drain;

	k->drain_queued = false;
	if (fn == NULL || k->ended || k->conn == NULL)
		return;
	k->on_drain = NULL;
	fn(k->drain_arg);
}

void http_call_drained(struct http_call *k)
{
	if (k->on_drain == NULL || k->drain_queued || k->ended ||
		http_stream_waiting(&k->q) >= HTTP_STREAM_LOW)
		return;
	k->drain_queued = true;
	loop_defer(k->server->loop, run_drain, k);
}

/* ---- the end ---- */

static void access_line(const struct http_call *k, int64_t took)
{
	bool quiet = k->status >= 200 && k->status < 300 &&
		     (str_is(k->q.method, "GET") || str_is(k->q.method, "HEAD"));
	const struct log_pair pairs[] = { LOG_STR("method", k->q.method),
		LOG_STR("path", k->q.path), LOG_I("status", k->status), LOG_I("bytes", k->sent),
		LOG_I("us", took), LOG_S("peer", k->peer), LOG_S("request_id", k->id) };

	log_write(quiet ? LOG_DEBUG : LOG_INFO, "request", pairs, sizeof pairs / sizeof pairs[0]);
}

void http_call_finish(struct http_call *k)
{
	const struct http_config *cfg = &k->server->cfg;
	int64_t took = loop_now(k->server->loop) - k->q.start_us;

	if (k->finished)
		return;
	k->finished = true;
	access_line(k, took);
	if (cfg->on_done != NULL)
		cfg->on_done(cfg->app, &(struct http_done){ .q = &k->q,
					       .status = k->status,
					       .sent = k->sent,
					       .took_us = took,
					       .complete = k->ended && k->conn != NULL });
}

void http_call_over(struct http_call *k)
{
	k->ended = true;
	http_call_finish(k);
	http_call_free_later(k);
}

/* Runs in a later turn than the loss: the handler may have ended the call meanwhile, but then its
 * memory is still there, since frees are queued behind this. */
static void call_note(void *arg)
{
	struct http_call *k = arg;
	const struct http_sink *sink = k->sink;
	http_close_cb *fn = k->on_close;
	struct err e;

	k->sink = NULL;
	k->on_close = NULL;
	if (k->ended)
		return;
	if (sink != NULL && !k->body_over && !k->aborted) {
		err_set(&e, ERR_CANCELLED, "The client has gone");
		sink->on_abort(k->sink_arg, &e);
	}
	if (fn != NULL)
		fn(k->close_arg);
	/* No handler has it yet: nobody else will end it. */
	if (!k->ended &&
		(k->phase == CALL_ALLOWED || k->phase == CALL_WHOLE || k->phase == CALL_READY))
		http_call_over(k);
}

void http_call_note_later(struct http_call *k)
{
	loop_defer(k->server->loop, call_note, k);
}

void http_call_gone(struct http_call *k)
{
	k->conn = NULL;
	if (k->ended)
		http_call_over(k);
	else
		http_call_note_later(k);
}
