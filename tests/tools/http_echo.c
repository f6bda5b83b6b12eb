/*
 * A small server around lib/http for tests and benchmarks.
 *
 *     http_echo [--tls CERT KEY] [--file PATH] [--set LIMIT_OR_DEADLINE=N] … [--behind NETWORK]
 * [--port N]
 *
 * Prints "port=N" and serves until SIGTERM, then drains. Routes:
 *     GET  /ping                      {"ok":true}
 *     POST /echo                      the body, up to 64 KiB
 *     PUT  /upload                    {"bytes":N,"sum":S} of a streamed body; ?pause=MS after each
 *                                     MiB; ?early=N answers after N bytes
 *     GET  /wait                      held until POST /wake, or the client leaves
 *     GET  /stats {"gone":…,"aborted":…,"connections":…,"waiting":…,"handled":…} GET  /big?bytes=N
 * N bytes in pieces; with chunked=1 without a length GET  /file                      the file, with
 * ranges GET  /events, POST /publish?n=N&size=S GET  /private                   needs
 * "Authorization: Bearer ok"; PUT /private-upload too GET  /params/{a}/{rest*}        what the
 * router made of it
 */
#include "lib/base/buf.h"
#include "lib/base/fs.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/http/reply.h"
#include "lib/http/server.h"
#include "lib/http/sse.h"
#include "lib/http/static.h"
#include "lib/http/tls.h"
#include "lib/loop/defer.h"
#include "lib/loop/signal.h"
#include "lib/loop/timer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 64 << 10 };

struct parked {
	struct parked *next, *prev;
	struct http_req *q;
};

struct stream_of {
	struct stream_of *next, *prev;
	struct sse *sse;
};

struct app {
	struct loop *loop;
	struct http_server *server;
	struct http_tls *tls;
	struct static_files *files;
	const char *file;
	struct parked *parked;
	struct stream_of *streams;
	int64_t gone, aborted, handled, waiting, event_id, n_streams, authorized;
};

static struct app app;

static int64_t arg_int(const struct http_req *q, const char *name, int64_t by_default)
{
	int64_t v = by_default;

	if (!num_parse_i64(http_arg(q, name, 0), 0, INT64_MAX, &v))
		return by_default;
	return v;
}

static void ping(struct http_req *q)
{
	app.handled++;
	http_reply_json(q, 200, STR("{\"ok\":true}"));
}

static void echo(struct http_req *q)
{
	app.handled++;
	http_reply_bytes(q, 200, "application/octet-stream", q->body);
}

/* ---- uploads ---- */

struct upload {
	struct http_req *q;
	struct loop_timer timer;
	int64_t bytes, next_pause, pause_ms, early;
	uint64_t sum;
};

static void upload_reply(struct upload *u)
{
	http_reply_json(u->q, 200,
		arena_printf(u->q->arena, "{\"bytes\":%" PRId64 ",\"sum\":%" PRIu64 "}", u->bytes,
			u->sum));
}

static void upload_resume(void *arg)
{
	http_body_resume(((struct upload *)arg)->q);
}

static void upload_on_body(void *arg, struct str bytes)
{
	struct upload *u = arg;

	u->bytes += (int64_t)bytes.n;
	for (size_t i = 0; i < bytes.n; i += 4096)
		u->sum = u->sum * 31 + (unsigned char)bytes.p[i];
	if (u->early > 0 && u->bytes >= u->early) {
		upload_reply(u);
	} else if (u->pause_ms > 0 && u->bytes >= u->next_pause) {
		u->next_pause += 1 << 20;
		http_body_pause(u->q);
		loop_timer_set(&u->timer, u->pause_ms);
	}
}

static void upload_on_end(void *arg)
{
	app.handled++;
	upload_reply(arg);
}

static void upload_on_abort(void *arg, const struct err *why)
{
	struct upload *u = arg;

	app.aborted++;
	http_reply_err(u->q, why);
}

static void upload_cleanup(void *arg)
{
	loop_timer_cancel(&((struct upload *)arg)->timer);
}

static void upload(struct http_req *q)
{
	static const struct http_sink sink = { upload_on_body, upload_on_end, upload_on_abort };
	struct upload *u = arena_new_of(q->arena, struct upload);

	u->q = q;
	u->pause_ms = arg_int(q, "pause", 0);
	u->early = arg_int(q, "early", 0);
	u->next_pause = 1 << 20;
	loop_timer_init(&u->timer, app.loop, upload_resume, u);
	arena_defer(q->arena, upload_cleanup, u);
	if (q->body_size == 0)
		upload_reply(u);
	else
		http_body_take(q, &sink, u);
}

/* ---- long polls ---- */

static void unpark(struct parked *p)
{
	if (p->prev != NULL)
		p->prev->next = p->next;
	else
		app.parked = p->next;
	if (p->next != NULL)
		p->next->prev = p->prev;
	app.waiting--;
}

static void wait_on_close(void *arg)
{
	struct parked *p = arg;

	app.gone++;
	unpark(p);
	http_drop(p->q);
}

static void wait_for(struct http_req *q)
{
	struct parked *p = arena_new_of(q->arena, struct parked);

	p->q = q;
	p->next = app.parked;
	if (p->next != NULL)
		p->next->prev = p;
	app.parked = p;
	app.waiting++;
	http_on_close(q, wait_on_close, p);
}

static void wake(struct http_req *q)
{
	while (app.parked != NULL) {
		struct parked *p = app.parked;

		unpark(p);
		http_reply_json(p->q, 200, STR("{\"woken\":true}"));
	}
	http_reply_empty(q, 204);
}

static void stats(struct http_req *q)
{
	http_reply_json(q, 200,
		arena_printf(q->arena,
			"{\"gone\":%" PRId64 ",\"aborted\":%" PRId64 ",\"connections\":%zu,"
			"\"waiting\":%" PRId64 ",\"handled\":%" PRId64 ",\"streams\":%" PRId64
			",\"slow_turns\":%" PRIu64 "}",
			app.gone, app.aborted, http_server_connections(app.server), app.waiting,
			app.handled, app.n_streams, loop_slow_turns(app.loop)));
}

/* ---- downloads ---- */

struct big {
	struct http_req *q;
	int64_t left;
	char *piece;
};

static void big_more(void *arg)
{
	struct big *b = arg;

	while (b->left > 0) {
		size_t n = b->left < PIECE ? (size_t)b->left : PIECE;

		b->left -= (int64_t)n;
		if (!http_stream_write(b->q, (struct str){ b->piece, n })) {
			http_stream_on_drain(b->q, big_more, b);
			return;
		}
	}
	http_stream_end(b->q);
}

static void big_on_close(void *arg)
{
	app.gone++;
	http_drop(((struct big *)arg)->q);
}

static void big(struct http_req *q)
{
	struct big *b = arena_new_of(q->arena, struct big);

	b->q = q;
	b->left = arg_int(q, "bytes", 0);
	b->piece = arena_alloc(q->arena, PIECE);
	memset(b->piece, 'x', PIECE);
	http_on_close(q, big_on_close, b);
	http_stream_begin(
		q, 200, "application/octet-stream", arg_int(q, "chunked", 0) != 0 ? -1 : b->left);
	big_more(b);
}

static void file(struct http_req *q)
{
	struct stat st;
	struct http_file f = { .type = "application/octet-stream",
		.etag = STR("v1"),
		.download_name = STR("a \"file\".bin") };

	f.fd = open(app.file != NULL ? app.file : "/dev/null", O_RDONLY | O_CLOEXEC);
	if (f.fd < 0 || fstat(f.fd, &st) < 0)
		abort();
	f.size = st.st_size;
	http_reply_file(q, &f);
}

/* ---- events ---- */

static void events_on_close(void *arg)
{
	struct stream_of *s = arg;

	app.gone++;
	app.n_streams--;
	if (s->prev != NULL)
		s->prev->next = s->next;
	else
		app.streams = s->next;
	if (s->next != NULL)
		s->next->prev = s->prev;
	mem_free(s);
}

static void events(struct http_req *q)
{
	struct stream_of *s = mem_new_of(struct stream_of);

	s->next = app.streams;
	if (s->next != NULL)
		s->next->prev = s;
	app.streams = s;
	app.n_streams++;
	s->sse = sse_begin(q, events_on_close, s);
}

static void publish(struct http_req *q)
{
	int64_t n = arg_int(q, "n", 1);
	size_t size = (size_t)arg_int(q, "size", 10);
	char *data = arena_alloc(q->arena, size + 1);

	memset(data, 'e', size);
	for (int64_t i = 0; i < n; i++) {
		struct sse_event *ev =
			sse_event_new(arena_printf(q->arena, "%" PRId64, ++app.event_id),
				STR("tick"), (struct str){ data, size });

		for (struct stream_of *s = app.streams; s != NULL; s = s->next)
			sse_send(s->sse, ev);
		sse_event_drop(ev);
	}
	http_reply_empty(q, 204);
}

/* ---- the rest ---- */

static void params(struct http_req *q)
{
	struct str a = http_param(q, "a"), rest = http_param(q, "rest");

	http_reply_bytes(q, 200, "text/plain",
		arena_printf(q->arena, "a=%.*s rest=%.*s x=%.*s peer=%s tls=%d", STR_ARG(a),
			STR_ARG(rest), STR_ARG(http_arg(q, "x", 0)), q->peer, q->tls));
}

static void two_faults(struct http_req *q)
{
	struct err e[2];

	err_field(&e[0], "/name", "must not be \"%s\"\n", "x\x01\xff");
	err_field(&e[1], "/count", "must be at most 5");
	if (http_reply_header(q, "X-Bad", STR("a\r\nSet-Cookie: b")))
		abort();
	http_reply_errs(q, e, 2);
}

static void auth_later(void *arg)
{
	http_auth_ok(arg);
}

static void auth(struct http_req *q)
{
	struct err e;

	if (q->route->data == NULL) {
		http_auth_ok(q);
	} else if (!str_is(http_header(q, "authorization"), "Bearer ok")) {
		err_set(&e, ERR_UNAUTHENTICATED, "The token is not valid");
		http_reply_err(q, &e);
	} else {
		app.authorized++;
		loop_defer(app.loop, auth_later, q); /* as if a database had been asked */
	}
}

static bool host_ok(void *arg, struct str host)
{
	(void)arg;
	return str_is(host, "127.0.0.1") || str_is(host, "localhost") || str_is(host, "a");
}

static void fallback(struct http_req *q)
{
	static const char *const pages[] = { "/page/{name}/part", NULL };

	static_files_reply(app.files, pages, q);
}

static const char private_mark[] = "private";
static const struct http_route routes[] = {
	{ "GET", "/ping", ping, HTTP_BODY_NONE, 0, NULL },
	{ "POST", "/echo", echo, HTTP_BODY_WHOLE, 65536, NULL },
	{ "PUT", "/upload", upload, HTTP_BODY_STREAM, 0, NULL },
	{ "PUT", "/upload-small", upload, HTTP_BODY_STREAM, 1000, NULL },
	{ "GET", "/wait", wait_for, HTTP_BODY_NONE, 0, NULL },
	{ "POST", "/wake", wake, HTTP_BODY_WHOLE, 100, NULL },
	{ "GET", "/stats", stats, HTTP_BODY_NONE, 0, NULL },
	{ "GET", "/big", big, HTTP_BODY_NONE, 0, NULL },
	{ "GET", "/file", file, HTTP_BODY_NONE, 0, NULL },
	{ "GET", "/events", events, HTTP_BODY_NONE, 0, NULL },
	{ "POST", "/publish", publish, HTTP_BODY_WHOLE, 100, NULL },
	{ "GET", "/private", ping, HTTP_BODY_NONE, 0, private_mark },
	{ "PUT", "/private-upload", upload, HTTP_BODY_STREAM, 0, private_mark },
	{ "POST", "/private-echo", echo, HTTP_BODY_WHOLE, 65536, private_mark },
	{ "GET", "/params/{a}/{rest*}", params, HTTP_BODY_NONE, 0, NULL },
	{ "GET", "/faults", two_faults, HTTP_BODY_NONE, 0, NULL },
	{ .pattern = NULL },
};

static const char page[] = "<!doctype html><title>page</title>", script[] = "let a = 1;";
static const struct static_asset assets[] = {
	{ "/index.html", "text/html; charset=utf-8", "aa", page, page + sizeof page - 1 },
	{ "/assets/app.1234.js", "text/javascript; charset=utf-8", "bb", script,
		script + sizeof script - 1 },
};

static void on_drained(void *arg)
{
	(void)arg;
	http_server_free(app.server);
	loop_stop(app.loop);
}

static void on_signal(void *arg, int signo)
{
	struct err e;

	(void)arg;
	if (signo == SIGHUP) {
		if (app.tls != NULL && http_tls_reload(app.tls, &e) < 0)
			log_error("reload failed", LOG_E(&e));
		return;
	}
	http_server_drain(app.server, 3000, on_drained, NULL);
}

struct knob {
	const char *name;
	size_t *size;
	int64_t *ms;
};

static void set(struct http_config *c, const char *text)
{
	const struct knob knobs[] = { { "request_line", &c->limits.request_line, NULL },
		{ "header", &c->limits.header, NULL }, { "head", &c->limits.head, NULL },
		{ "headers", &c->limits.headers, NULL }, { "requests", &c->limits.requests, NULL },
		{ "pipelined", &c->limits.pipelined, NULL },
		{ "connections", &c->limits.connections, NULL },
		{ "per_ip", &c->limits.per_ip, NULL },
		{ "sse_backlog", &c->limits.sse_backlog, NULL },
		{ "handshake", NULL, &c->deadlines.handshake },
		{ "head_ms", NULL, &c->deadlines.head }, { "body", NULL, &c->deadlines.body },
		{ "body_rate", NULL, &c->deadlines.body_rate },
		{ "write", NULL, &c->deadlines.write }, { "idle", NULL, &c->deadlines.idle },
		{ "linger", NULL, &c->deadlines.linger },
		{ "heartbeat", NULL, &c->deadlines.heartbeat } };
	struct str rest = str_c(text), name;
	int64_t v = 0;

	if (!str_next(&rest, '=', &name) || !num_parse_i64(rest, 1, INT64_MAX, &v))
		exit(2);
	for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++)
		if (str_is(name, knobs[i].name)) {
			if (knobs[i].size != NULL)
				*knobs[i].size = (size_t)v;
			else
				*knobs[i].ms = v;
			return;
		}
	exit(2);
}

static void die(const struct err *e)
{
	fprintf(stderr, "http_echo: %s\n", e->msg);
	exit(1);
}

int main(int argc, char **argv)
{
	struct http_config c = { .app = &app,
		.routes = routes,
		.auth = auth,
		.fallback = fallback,
		.host_ok = host_ok };
	struct loop_signal *term, *hup;
	struct ip_net proxy;
	int64_t port = 0;
	int bound = 0;
	struct err e;

	log_set_level(LOG_WARN);
	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "--tls") == 0 && i + 2 < argc) {
			app.tls = http_tls_new(argv[i + 1], argv[i + 2], &e);
			if (app.tls == NULL)
				die(&e);
			i += 2;
		} else if (strcmp(argv[i], "--behind") == 0) {
			if (ip_net_parse(str_c(argv[++i]), &proxy, &e) < 0)
				die(&e);
			c.proxies = &proxy;
			c.n_proxies = 1;
		} else if (strcmp(argv[i], "--file") == 0) {
			app.file = argv[++i];
		} else if (strcmp(argv[i], "--set") == 0) {
			set(&c, argv[++i]);
		} else if (strcmp(argv[i], "--port") == 0) {
			if (!num_parse_i64(str_c(argv[++i]), 0, 65535, &port))
				exit(2);
		}
	}
	app.loop = loop_new();
	app.files = static_files_new(assets, sizeof assets / sizeof assets[0]);
	app.server = http_server_new(app.loop, &c);
	if (http_server_listen(app.server, "127.0.0.1", (int)port, app.tls, &bound, &e) < 0)
		die(&e);
	term = loop_signal_new(app.loop, SIGTERM, on_signal, NULL);
	hup = loop_signal_new(app.loop, SIGHUP, on_signal, NULL);
	printf("port=%d\n", bound);
	fflush(stdout);
	loop_run(app.loop);
	loop_signal_free(term);
	loop_signal_free(hup);
	loop_free(app.loop);
	static_files_free(app.files);
	http_tls_free(app.tls);
	return 0;
}
