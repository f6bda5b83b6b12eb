#include "lib/http/reply.h"

#include "lib/base/mem.h"
#include "lib/http/inside.h"

#include <event2/buffer.h>

/*
 * Every answer passes reply_head(). A small body is put behind its head into one piece, so that one
 * write (and one TLS record) carries both.
 */

enum { HEADER_VALUE_MAX = 4096, TYPE_MAX = 255 };

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} table[] = { { 200, "OK" }, { 201, "Created" }, { 202, "Accepted" }, { 204, "No Content" },
		{ 206, "Partial Content" }, { 301, "Moved Permanently" }, { 302, "Found" },
		{ 303, "See Other" }, { 304, "Not Modified" }, { 307, "Temporary Redirect" },
		{ 308, "Permanent Redirect" }, { 400, "Bad Request" }, { 401, "Unauthorized" },
		{ 403, "Forbidden" }, { 404, "Not Found" }, { 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" }, { 408, "Request Timeout" }, { 409, "Conflict" },
		{ 410, "Gone" }, { 411, "Length Required" }, { 412, "Precondition Failed" },
		{ 413, "Content Too Large" }, { 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" }, { 416, "Range Not Satisfiable" },
		{ 421, "Misdirected Request" }, { 422, "Unprocessable Content" },
		{ 428, "Precondition Required" }, { 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" }, { 500, "Internal Server Error" },
		{ 501, "Not Implemented" }, { 502, "Bad Gateway" }, { 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" }, { 507, "Insufficient Storage" } };

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (table[i].status == status)
			return table[i].text;
	return "Status";
}

bool http_reply_header(struct http_req *q, const char *name, struct str value)
{
	struct http_call *k = http_call_of(q);
	struct reply_header *h;

	BUG_ON(k->begun);
	if (value.n > HEADER_VALUE_MAX || str_has_control(value))
		return false;
	h = arena_new_of(q->arena, struct reply_header);
	h->name = name;
	h->value = arena_str(q->arena, value);
	h->next = k->extra;
	k->extra = h;
	if (str_eq_nocase(str_c(name), STR("Cache-Control")))
		k->has_cache_control = true;
	return true;
}

static bool has_no_length(int status)
{
	return status == 204 || status == 304 || status < 200;
}

/* How the client finds the end of the body, and whether the connection goes on after it. */
static void add_framing(struct http_call *k, struct buf *b)
{
	struct conn *c = k->conn;

	k->chunked = k->length < 0 && k->minor == 1 && !has_no_length(k->status);
	k->no_body = k->no_body || has_no_length(k->status);
	c->keep_alive = conn_can_keep(c, k) && (k->length >= 0 || k->minor == 1);
	if (k->chunked)
		buf_adds(b, "Transfer-Encoding: chunked\r\n");
	else if (k->length >= 0 && !has_no_length(k->status))
		buf_addf(b, "Content-Length: %lld\r\n", (long long)k->length);
	if (!c->keep_alive)
		buf_adds(b, "Connection: close\r\n");
	else if (k->minor == 0)
		buf_adds(b, "Connection: keep-alive\r\n");
}

void reply_head(struct http_call *k, int status, const char *type, int64_t length)
{
	struct http_server *s = k->server;
	struct buf *b = &s->text;

	BUG_ON(k->begun);
	k->begun = true;
	k->status = status;
	k->length = length;
	buf_clear(b);
	buf_addf(b, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, reason(status), server_date(s));
	/* Types of stored files were once said by a user. */
	if (type != NULL && (str_has_control(str_c(type)) || strlen(type) > TYPE_MAX))
		type = "application/octet-stream";
	if (type != NULL)
		buf_addf(b, "Content-Type: %s\r\n", type);
	add_framing(k, b);
	buf_addf(b, "X-Request-Id: %s\r\nX-Content-Type-Options: nosniff\r\n", k->id);
	if (!k->has_cache_control)
		buf_adds(b, "Cache-Control: no-store\r\n");
	for (const struct reply_header *h = k->extra; h != NULL; h = h->next)
		buf_addf(b, "%s: %.*s\r\n", h->name, STR_ARG(h->value));
	buf_adds(b, "\r\n");
	BUG_ON(buf_failed(b));
}

void http_call_end(struct http_call *k)
{
	BUG_ON(k->ended);
	if (k->conn == NULL) {
		http_call_over(k);
		return;
	}
	k->ended = true;
	conn_kick(k->conn);
}

/* A call without a conn is answered into the void. */
static bool nobody_there(struct http_call *k, int status)
{
	if (k->conn != NULL)
		return false;
	k->status = status;
	http_call_end(k);
	return true;
}

void reply_simple(struct http_call *k, int status, const char *type, struct str body, bool fixed)
{
	struct buf *b = &k->server->text;

	if (nobody_there(k, status))
		return;
	k->sink = NULL;
	reply_head(k, status, type, (int64_t)body.n);
	if (k->no_body)
		body.n = 0;
	if (body.n <= SMALL_BODY)
		buf_add(b, body);
	evbuffer_add(k->conn->out, b->p, b->n);
	if (body.n > SMALL_BODY && fixed)
		evbuffer_add_reference(k->conn->out, body.p, body.n, NULL, NULL);
	else if (body.n > SMALL_BODY)
		evbuffer_add(k->conn->out, body.p, body.n);
	k->sent = body.n;
	http_call_end(k);
}

void http_reply_bytes(struct http_req *q, int status, const char *type, struct str bytes)
{
	reply_simple(http_call_of(q), status, type, bytes, false);
}

void http_reply_const(struct http_req *q, int status, const char *type, struct str bytes)
{
	reply_simple(http_call_of(q), status, type, bytes, true);
}

void http_reply_json(struct http_req *q, int status, struct str json)
{
	http_reply_bytes(q, status, "application/json", json);
}

void http_reply_text(struct http_req *q, int status, const char *text)
{
	http_reply_bytes(q, status, "text/plain; charset=utf-8", str_c(text));
}

void http_reply_empty(struct http_req *q, int status)
{
	http_reply_bytes(q, status, NULL, STR(""));
}

/* ---- problems ---- */

static void add_json(struct buf *b, struct str s)
{
	bool utf8 = str_utf8_valid(s);

	buf_addc(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\')
			buf_addf(b, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			buf_addf(b, "\\u%04x", c);
		else if (c >= 0x80 && !utf8)
			buf_adds(b, "\\ufffd");
		else
			buf_addc(b, (char)c);
	}
	buf_addc(b, '"');
}

static void add_member(struct buf *b, const char *before, const char *value)
{
	buf_adds(b, before);
	add_json(b, str_c(value));
}

static void add_place(struct buf *b, const struct err *e, const char *in)
{
	struct str rest = str_c(e->field), name = STR("");
	char text[sizeof e->field];

	add_member(b, ",\"in\":", in);
	if (strcmp(in, "body") == 0)
		return;
	(void)str_next(&rest, '/', &name); /* before the first slash */
	(void)str_next(&rest, '/', &name);
	(void)str_print(text, sizeof text, "%.*s", STR_ARG(name));
	add_member(b, ",\"parameter\":", text);
}

static void add_culprits(struct buf *b, const struct err *all, size_t n, const char *in)
{
	const char *comma = "";

	buf_adds(b, ",\"errors\":[");
	for (size_t i = 0; i < n; i++) {
		if (all[i].field[0] == '\0' && in == NULL)
			continue;
		buf_adds(b, comma);
		add_member(b, "{\"pointer\":", all[i].field);
		if (in != NULL)
			add_place(b, &all[i], in);
		add_member(b, ",\"code\":", err_name(all[i].code));
		add_member(b, ",\"detail\":", all[i].msg);
		buf_addc(b, '}');
		comma = ",";
	}
	buf_addc(b, ']');
}

static void reply_problem(struct http_req *q, const struct err *all, size_t n, const char *in)
{
	const struct err *e = &all[0];
	int status = err_http(e->code);
	struct buf b;

	buf_init(&b, 4 << 20);
	add_member(&b, "{\"type\":\"about:blank\",\"title\":", err_title(e->code));
	buf_addf(&b, ",\"status\":%d", status);
	add_member(&b, ",\"detail\":", e->msg);
	add_member(&b, ",\"code\":", err_name(e->code));
	add_member(&b, ",\"request_id\":", q->id);
	if (e->field[0] != '\0' || n > 1 || in != NULL)
		add_culprits(&b, all, n, in);
	buf_addc(&b, '}');
	BUG_ON(buf_failed(&b));
	if (!http_call_of(q)->begun && status == 401)
		http_reply_header(q, "WWW-Authenticate", STR("Bearer"));
	if (!http_call_of(q)->begun && (status == 429 || status == 503))
		http_reply_header(q, "Retry-After", STR("1"));
	http_reply_bytes(q, status, "application/problem+json", buf_str(&b));
	buf_done(&b);
}

void http_reply_errs(struct http_req *q, const struct err *all, size_t n)
{
	reply_problem(q, all, n, NULL);
}

void http_reply_err(struct http_req *q, const struct err *e)
{
	reply_problem(q, e, 1, NULL);
}

void http_reply_fault(struct http_req *q, const struct err *e, const char *in)
{
	reply_problem(q, e, 1, in);
}
