#include "lib/http/inside.h"

#include <event2/buffer.h>

/*
 * Answers in pieces. Pieces are only queued here; they are written at the end of the turn, so that
 * many small ones become one write.
 */

void http_stream_begin(struct http_req *q, int status, const char *type, int64_t length)
{
	struct http_call *k = http_call_of(q);

	BUG_ON(k->begun);
	if (k->conn == NULL) {
		k->begun = true;
		k->status = status;
		return;
	}
	reply_head(k, status, type, length);
	evbuffer_add(k->conn->out, k->server->text.p, k->server->text.n);
	conn_kick(k->conn);
}

/* Counts n bytes more of the answer; false when they are not to be sent. */
static bool count(struct http_call *k, size_t n)
{
	BUG_ON(!k->begun || k->ended);
	if (k->conn == NULL)
		return false;
	BUG_ON(k->length >= 0 && n > (uint64_t)k->length - k->sent);
	k->sent += n;
	conn_kick(k->conn);
	return !k->no_body && n != 0;
}

static bool below_high(const struct http_call *k)
{
	return http_stream_waiting(&k->q) < HTTP_STREAM_HIGH;
}

bool http_stream_write(struct http_req *q, struct str bytes)
{
	struct http_call *k = http_call_of(q);

	if (!count(k, bytes.n))
		return true;
	if (k->chunked)
		evbuffer_add_printf(k->conn->out, "%zx\r\n", bytes.n);
	evbuffer_add(k->conn->out, bytes.p, bytes.n);
	if (k->chunked)
		evbuffer_add(k->conn->out, "\r\n", 2);
	return below_high(k);
}

bool stream_add(struct http_call *k, const struct stream_ref *r)
{
	bool framing = k->chunked && !r->framed;

	if (!count(k, r->n)) {
		r->release(r->p, r->n, r->arg);
		return true;
	}
	if (framing)
		evbuffer_add_printf(k->conn->out, "%zx\r\n", r->n);
	/* Fails only without memory; then the answer is cut, never wrong. */
	if (evbuffer_add_reference(k->conn->out, r->p, r->n, r->release, r->arg) < 0) {
		r->release(r->p, r->n, r->arg);
		conn_close(k->conn);
		return true;
	}
	if (framing)
		evbuffer_add(k->conn->out, "\r\n", 2);
	return below_high(k);
}

size_t http_stream_waiting(const struct http_req *q)
{
	const struct http_call *k = http_call_of(q);

	return k->conn != NULL ? evbuffer_get_length(k->conn->out) : 0;
}

void http_stream_on_drain(struct http_req *q, http_drain_cb *fn, void *arg)
{
	struct http_call *k = http_call_of(q);

	k->on_drain = fn;
	k->drain_arg = arg;
	if (k->conn != NULL)
		http_call_drained(k);
}

void http_stream_end(struct http_req *q)
{
	struct http_call *k = http_call_of(q);

	BUG_ON(!k->begun);
	if (k->conn != NULL) {
		BUG_ON(k->length >= 0 && k->sent != (uint64_t)k->length);
		if (k->chunked && !k->no_body)
			evbuffer_add(k->conn->out, "0\r\n\r\n", 5);
	}
	http_call_end(k);
}

void http_stream_abort(struct http_req *q)
{
	http_drop(q);
}
