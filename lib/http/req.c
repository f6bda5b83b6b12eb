#include "lib/http/req.h"

#include "lib/http/inside.h"

struct str http_header(const struct http_req *q, const char *name)
{
	for (size_t i = 0; i < q->n_headers; i++)
		if (str_eq_nocase(q->headers[i].name, str_c(name)))
			return q->headers[i].value;
	return STR_NONE;
}

size_t http_header_count(const struct http_req *q, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < q->n_headers; i++)
		n += str_eq_nocase(q->headers[i].name, str_c(name)) ? 1 : 0;
	return n;
}

struct str http_param(const struct http_req *q, const char *name)
{
	struct str rest = str_c(q->route->pattern), seg;
	size_t i = 0;

	while (str_next(&rest, '/', &seg)) {
		if (seg.n < 3 || seg.p[0] != '{')
			continue;
		seg = str_slice(seg, 1, seg.n - 2);
		if (str_ends(seg, STR("*")))
			seg.n--;
		if (str_is(seg, name))
			return q->params[i];
		i++;
	}
	bug_at(__FILE__, __LINE__, name);
}

struct str http_arg(const struct http_req *q, const char *name, size_t nth)
{
	for (size_t i = 0; i < q->n_args; i++)
		if (str_is(q->args[i].name, name) && nth-- == 0)
			return q->args[i].value;
	return STR_NONE;
}

void http_auth_ok(struct http_req *q)
{
	struct http_call *k = http_call_of(q);

	BUG_ON(k->phase != CALL_ASKED || k->begun);
	k->phase = CALL_ALLOWED;
	/* Nobody waits for the answer any more: the handler is never called. */
	if (k->conn == NULL)
		http_call_over(k);
	else
		conn_kick(k->conn);
}

void http_on_close(struct http_req *q, http_close_cb *fn, void *arg)
{
	struct http_call *k = http_call_of(q);

	k->on_close = fn;
	k->close_arg = arg;
	/* A client that has closed its side while a handler holds the answer is taken as gone. */
	if (k->conn == NULL)
		http_call_note_later(k);
	else if (fn != NULL && k->conn->eof)
		conn_close(k->conn);
}

bool http_gone(const struct http_req *q)
{
	return http_call_of(q)->conn == NULL;
}

void http_drop(struct http_req *q)
{
	struct http_call *k = http_call_of(q);

	k->on_close = NULL;
	k->sink = NULL;
	if (k->conn != NULL)
		conn_close(k->conn);
	http_call_over(k);
}

void http_body_take(struct http_req *q, const struct http_sink *sink, void *arg)
{
	struct http_call *k = http_call_of(q);

	BUG_ON(q->route == NULL || q->route->body != HTTP_BODY_STREAM || k->sink != NULL);
	k->sink = sink;
	k->sink_arg = arg;
	if (k->conn == NULL)
		http_call_note_later(k);
	else
		conn_kick(k->conn);
}

void http_body_pause(struct http_req *q)
{
	http_call_of(q)->paused = true;
}

void http_body_resume(struct http_req *q)
{
	struct http_call *k = http_call_of(q);

	k->paused = false;
	if (k->conn != NULL)
		conn_kick(k->conn);
}
