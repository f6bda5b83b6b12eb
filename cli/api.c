/*
 * One request after the other over lib/fetch, with the program waiting. What may be repeated is
 * repeated with growing pauses for half a minute in all: a server or a database that restarts is
 * back within that time. What is waited for is said at the first failure.
 */
#include "cli/api.h"

#include "api/route.h"
#include "cli/config.h"
#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"
#include "lib/fetch/retry.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"

#include <poll.h>
#include <unistd.h>

enum { PATH_MAX_BYTES = 16384, BODY_MAX = 64 << 20, HEAD_MAX = 65536, SILENT_MS = 2000 };
#define TRY_FOR (30 * CLOCK_SECOND)

/* libcurl would say of one that cannot be read that the server's certificate is no good. */
static int check_ca_file(const struct cli *c, struct err *e)
{
	int64_t size;
	int fd;

	if (c->ca_file.n == 0)
		return 0;
	if (cli_open(c->ca_file.p, &size, &fd, e) < 0)
		return -1;
	(void)close(fd);
	return 0;
}

int api_open(struct cli *c, struct err *e)
{
	struct fetch_options o = { .ca_file = c->ca_file.n != 0 ? c->ca_file.p : NULL };

	if (c->client != NULL)
		return 0;
	if (c->server.n == 0)
		return err_set(e, ERR_UNAUTHENTICATED,
			"no server is known: run 'tidemill auth login --server URL', or set "
			"TIDEMILL_SERVER");
	if (config_check_server(c, c->server, e) < 0 || check_ca_file(c, e) < 0)
		return -1;
	while (c->server.n > 0 && c->server.p[c->server.n - 1] == '/')
		c->server.n--;
	o.base_url = arena_dup(c->arena, c->server);
	o.token = c->token.n != 0 ? arena_dup(c->arena, c->token) : NULL;
	c->loop = loop_new();
	loop_serves_nobody(c->loop);
	c->client = fetch_client_new(c->loop, &o, e);
	return c->client != NULL ? 0 : -1;
}

void api_close(struct cli *c)
{
	fetch_client_free(c->client);
	loop_free(c->loop);
	c->client = NULL;
	c->loop = NULL;
}

void api_sleep(int64_t us)
{
	(void)poll(NULL, 0, (int)(us / 1000));
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void add_escaped(struct buf *out, struct str s, bool keep_slash)
{
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < s.n; i++) {
		unsigned char ch = (unsigned char)s.p[i];
		bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
			     (ch >= '0' && ch <= '9') || ch == '-' || ch == '.' || ch == '_' ||
			     ch == '~' || (keep_slash && ch == '/');
		if (plain) {
			buf_addc(out, (char)ch);
		} else {
			buf_addc(out, '%');
			buf_addc(out, hex[ch >> 4]);
			buf_addc(out, hex[ch & 15]);
		}
	}
}

/* A segment that a server or a proxy would take for "here" or "above". */
static bool is_dots(struct str s)
{
	return str_is(s, ".") || str_is(s, "..");
}

int api_path(const char *pattern, struct str project, const struct str *params, struct buf *out,
	struct err *e)
{
	struct str rest = str_c(pattern), piece;
	size_t n = 0;

	(void)str_next(&rest, '/', &piece); /* before the first slash */
	while (str_next(&rest, '/', &piece)) {
		buf_addc(out, '/');
		if (piece.n < 2 || piece.p[0] != '{') {
			buf_add(out, piece);
			continue;
		}
		bool all = piece.p[piece.n - 2] == '*';
		struct str name = str_slice(piece, 1, piece.n - 2);
		struct str value = str_is(name, "project") ? project : params[n++];
		if (value.n == 0 && str_is(name, "project"))
			return cli_usage(e,
				"which project? Give --project, set TIDEMILL_PROJECT, or "
				"log in with --project");
		if (value.n == 0 || is_dots(value))
			return cli_usage(e, "'%.*s' cannot be the name of a %.*s", STR_ARG(value),
				STR_ARG(name));
		add_escaped(out, value, all);
	}
	return 0;
}

void api_query(const struct api_pair *pairs, size_t n, struct buf *out)
{
	char separator = '?';

	for (size_t i = 0; i < n; i++) {
		if (pairs[i].value.p == NULL || pairs[i].name == NULL)
			continue;
		buf_addc(out, separator);
		buf_adds(out, pairs[i].name);
		buf_addc(out, '=');
		add_escaped(out, pairs[i].value, false);
		separator = '&';
	}
}

/* ---- one request ----------------------------------------------------------------------------- */

/* Header lines of a request; they live while it is tried. */
struct heads {
	char type[128], key[64], match[128], last[96], accept[64];
};

static void add_head(struct fetch_request *r, const char *line)
{
	size_t n = 0;

	while (r->headers[n] != NULL)
		n++;
	BUG_ON(n + 1 >= FETCH_MAX_HEADERS);
	r->headers[n] = line;
}

static void fill_heads(const struct api_call *q, const struct route *route, struct heads *h,
	struct fetch_request *r)
{
	char hex[ID_HEX + 1];

	if (q->body.n != 0 || q->has_fd) {
		(void)str_print(h->type, sizeof h->type, "Content-Type: %s",
			q->content_type != NULL ? q->content_type : "application/json");
		add_head(r, h->type);
	}
	if (route->flags & ROUTE_IDEMPOTENT) {
		(void)str_print(h->key, sizeof h->key, "Idempotency-Key: %s", id_hex(hex));
		add_head(r, h->key);
	}
	if (q->if_match.n != 0 &&
		str_print(h->match, sizeof h->match, "If-Match: %.*s", STR_ARG(q->if_match)))
		add_head(r, h->match);
	if (q->last_event.n != 0 &&
		str_print(h->last, sizeof h->last, "Last-Event-ID: %.*s", STR_ARG(q->last_event)))
		add_head(r, h->last);
	if (q->accept != NULL) {
		(void)str_print(h->accept, sizeof h->accept, "Accept: %s", q->accept);
		add_head(r, h->accept);
	}
}

static bool is_safe(const struct route *route)
{
	return strcmp(route->method, "POST") != 0 || (route->flags & ROUTE_IDEMPOTENT);
}

static void remember(struct cli *c, const struct fetch_reply *r)
{
	struct str id = fetch_header(r, "X-Request-Id");

	c->status = r->status;
	if (str_has_control(id) ||
		!str_print(c->request_id, sizeof c->request_id, "%.*s", STR_ARG(id)))
		c->request_id[0] = '\0';
}

/* The start of the next try: files are sent and written from where they began. */
static int rewind_files(const struct api_call *q, off_t in, off_t out, struct err *e)
{
	if (q->has_fd && lseek(q->fd, in, SEEK_SET) < 0)
		return err_errno(e, "rewind", "the file that is sent");
	if (q->to_fd && (ftruncate(q->out_fd, out) < 0 || lseek(q->out_fd, out, SEEK_SET) < 0))
		return err_errno(e, "rewind", "the file that is written");
	return 0;
}

static void on_silence(void *arg)
{
	const struct cli *c = arg;

	cli_say(c, "Waiting for an answer of %.*s", STR_ARG(c->server));
}

/* Sends and waits. A person is told when an answer is long in coming; streams and files come when
 * they can. */
static int send_once(struct cli *c, const struct fetch_request *r, struct fetch_reply *reply,
	struct buf *memory, struct err *e)
{
	struct loop_timer silence;
	bool is_short = r->timeout >= 0 && r->idle_timeout == 0 && c->note == NULL;

	loop_timer_init(&silence, c->loop, on_silence, c);
	if (is_short && isatty(STDERR_FILENO) == 1)
		loop_timer_set(&silence, SILENT_MS);
	int rc = fetch_sync(c->client, r, reply, memory, e);
	loop_timer_cancel(&silence);
	remember(c, reply);
	return rc == 0 ? fetch_problem(reply, e) : -1;
}

/* The pause before the next try, or -1 when there is to be none. */
static int64_t pause_before_next(struct cli *c, struct retry *retry, int64_t until,
	const struct fetch_reply *reply, const struct err *failed)
{
	struct err none = { .code = ERR_OK };
	int64_t left = until - clock_elapsed(&clock_real);
	uint64_t random;

	if (!retry_useful(reply->status == 0 ? failed : &none, reply->status))
		return -1;
	id_random(&random, sizeof random);
	int64_t wait = retry_next(retry, random, fetch_retry_after(reply, clock_now(&clock_real)));
	if (wait < 0 || wait >= left)
		return -1;
	if (!c->waits)
		cli_say(c, "%s; trying again for up to %lld s", failed->msg,
			(long long)(left / CLOCK_SECOND));
	c->waits = true;
	return wait;
}

/* Sends until it works, it makes no sense any more, or the time is up. */
static int attempt(struct cli *c, const struct api_call *q, const struct fetch_request *r,
	bool may_repeat, struct fetch_reply *reply, struct api_reply *ret, struct err *e)
{
	struct retry retry = { .first = CLOCK_SECOND / 4, .cap = 4 * CLOCK_SECOND };
	struct fetch_request one = *r;
	int64_t until = clock_elapsed(&clock_real) + TRY_FOR;
	off_t in = q->has_fd ? lseek(q->fd, 0, SEEK_CUR) : 0;
	off_t out = q->to_fd ? lseek(q->out_fd, 0, SEEK_CUR) : 0;

	for (;;) {
		struct err failed = { .code = ERR_OK };

		buf_init(&ret->memory, BODY_MAX + HEAD_MAX);
		*reply = (struct fetch_reply){ .status = 0 };
		if (send_once(c, &one, reply, &ret->memory, &failed) == 0) {
			c->waits = false;
			return 0;
		}
		int64_t wait =
			may_repeat ? pause_before_next(c, &retry, until, reply, &failed) : -1;
		buf_done(&ret->memory);
		if (wait < 0) {
			*e = failed;
			return -1;
		}
		api_sleep(wait);
		if (rewind_files(q, in, out, e) < 0)
			return -1;
		int64_t left = until - clock_elapsed(&clock_real);
		if (q->timeout == 0) /* else it is a wait of the server's, or a file */
			one.timeout = left > CLOCK_SECOND ? left : CLOCK_SECOND;
	}
}

static int read_json(const struct fetch_reply *reply, struct api_reply *ret, struct err *e)
{
	if (!str_starts(reply->content_type, STR("application/json")) || reply->body.n == 0)
		return 0;
	if (jsn_parse_answer(reply->body, &ret->doc, e) == 0) {
		ret->root = jsn_root(ret->doc);
		return 0;
	}
	char why[sizeof e->msg];
	(void)str_print(why, sizeof why, "%s", e->msg);
	return err_set(e, ERR_NETWORK, "the server's answer is not JSON: %.200s", why);
}

int api_do(struct cli *c, const struct api_call *q, struct api_reply *ret, struct err *e)
{
	const struct route *route = route_find(q->route);
	struct fetch_request r = { .body = q->body,
		.has_fd = q->has_fd,
		.fd = q->fd,
		.length = q->length,
		.to_fd = q->to_fd,
		.out_fd = q->out_fd,
		.push = q->push,
		.arg = q->arg,
		.timeout = q->timeout,
		.idle_timeout = q->idle,
		.max_body = BODY_MAX };
	struct fetch_reply reply;
	struct heads heads;
	struct buf path;
	int rc = -1;

	BUG_ON(route == NULL);
	*ret = (struct api_reply){ .status = 0 };
	if (api_open(c, e) < 0)
		return -1;
	buf_init(&path, PATH_MAX_BYTES);
	if (api_path(route->path, c->project, q->params, &path, e) == 0) {
		api_query(q->query, API_QUERY, &path);
		r.method = route->method;
		r.path = path.p;
		fill_heads(q, route, &heads, &r);
		if (buf_failed(&path))
			(void)cli_usage(
				e, "the address would be longer than %d bytes", PATH_MAX_BYTES);
		else
			rc = attempt(c, q, &r, !q->once && (q->repeatable || is_safe(route)),
				&reply, ret, e);
	}
	buf_done(&path);
	if (rc < 0)
		return -1;
	ret->status = reply.status;
	ret->body = reply.body;
	ret->etag = reply.etag;
	if (read_json(&reply, ret, e) == 0)
		return 0;
	api_done(ret);
	return -1;
}

void api_done(struct api_reply *r)
{
	jsn_doc_free(r->doc);
	buf_done(&r->memory);
	*r = (struct api_reply){ .status = 0 };
}

int api_raw(struct cli *c, const char *method, const char *path, struct str body,
	struct api_reply *ret, struct err *e)
{
	struct fetch_request r = {
		.method = method, .path = path, .body = body, .max_body = BODY_MAX
	};
	struct fetch_reply reply;

	*ret = (struct api_reply){ .status = 0 };
	if (api_open(c, e) < 0)
		return -1;
	if (body.n != 0)
		add_head(&r, "Content-Type: application/json");
	buf_init(&ret->memory, BODY_MAX + HEAD_MAX);
	if (fetch_sync(c->client, &r, &reply, &ret->memory, e) < 0) {
		remember(c, &reply);
		buf_done(&ret->memory);
		return -1;
	}
	remember(c, &reply);
	ret->status = reply.status;
	ret->body = reply.body;
	return fetch_problem(&reply, e);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* One page; *ret_n counts its items, *ret_next is copied. */
static int page(struct cli *c, const struct api_call *q, api_item_cb *fn, void *arg, int64_t *left,
	struct str *ret_next, struct err *e)
{
	struct api_reply r;
	int rc = 0;

	if (api_do(c, q, &r, e) < 0)
		return -1;
	const struct jsn *items = jsn_get(r.root, "items");
	struct str next = jsn_get_str(jsn_get(r.root, "next_cursor"));
	for (size_t i = 0; rc == 0 && *left > 0 && i < jsn_count(items); i++) {
		rc = fn(arg, jsn_at(items, i), e);
		(*left)--;
	}
	*ret_next = next.n != 0 ? arena_str(c->arena, next) : STR_NONE;
	api_done(&r);
	return rc;
}

int api_each(struct cli *c, const struct api_call *q, int64_t limit, api_item_cb *fn, void *arg,
	struct str *ret_more, struct err *e)
{
	struct api_call one = *q;
	const struct route *route = route_find(q->route);
	int64_t left = limit > 0 ? limit : INT64_MAX;
	size_t at = 0;
	char count[24];

	while (at < API_QUERY && one.query[at].name != NULL)
		at++;
	BUG_ON(at + 2 > API_QUERY || route == NULL);
	bool paged = route->query != NULL && field_find(route->query, STR("limit")) != NULL;
	struct str next = STR_NONE;
	do {
		(void)str_print(
			count, sizeof count, "%d", left < API_PAGE ? (int)left : (int)API_PAGE);
		if (paged) {
			one.query[at] = (struct api_pair){ "limit", str_c(count) };
			one.query[at + 1] = (struct api_pair){ "cursor", next };
		}
		if (page(c, &one, fn, arg, &left, &next, e) < 0)
			return -1;
	} while (next.n != 0 && left > 0);
	*ret_more = next;
	return 0;
}
