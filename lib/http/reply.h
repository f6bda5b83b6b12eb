/*
 * Answers. Each request gets exactly one: one of http_reply_*(), or http_stream_begin() with
 * http_stream_end() or http_stream_abort(), or a file, or SSE (sse.h). Bytes are copied unless it
 * says otherwise. Every answer carries X-Request-Id, X-Content-Type-Options: nosniff and, unless
 * the handler has set its own, Cache-Control: no-store. For HEAD the body is left out by itself.
 */
#ifndef LIB_HTTP_REPLY_H
#define LIB_HTTP_REPLY_H
#include "lib/http/req.h"

/* An extra header for the answer to come. False, and nothing is added, when the value holds a
 * control character or is longer than 4 KiB. The name is ours and never comes from a user. */
bool http_reply_header(struct http_req *q, const char *name, struct str value);

void http_reply_json(struct http_req *q, int status, struct str json);
void http_reply_text(struct http_req *q, int status, const char *text);
void http_reply_bytes(struct http_req *q, int status, const char *type, struct str bytes);
void http_reply_empty(struct http_req *q, int status);
/* The same for bytes that stay where they are for the life of the process: they are not copied. */
void http_reply_const(struct http_req *q, int status, const char *type, struct str bytes);

/* problem+json (RFC 9457) with the status of the error's code: type, title, status, detail, code,
 * request_id, and errors[] of {pointer, code, detail} when a field is to blame. */
void http_reply_err(struct http_req *q, const struct err *e);
/* The same, and says where the culprit stands: "body" (the pointer is into it, "" all of it), or
 * "query", "path" or "header" (the pointer is "/" and the parameter's name). */
void http_reply_fault(struct http_req *q, const struct err *e, const char *in);
/* The same for several faults of one request; the first gives status and detail. n >= 1. */
void http_reply_errs(struct http_req *q, const struct err *all, size_t n);

/* An answer in pieces. Without a length (-1) it is chunked. A piece is taken whole; false says that
 * more than HTTP_STREAM_HIGH bytes wait: stop until on_drain, which is called in a later turn when
 * less than HTTP_STREAM_LOW wait. A client that takes nothing for the write deadline is cut off. */
enum { HTTP_STREAM_HIGH = 1 << 20, HTTP_STREAM_LOW = 256 << 10 };
typedef void http_drain_cb(void *arg);
void http_stream_begin(struct http_req *q, int status, const char *type, int64_t length);
bool http_stream_write(struct http_req *q, struct str bytes);
size_t http_stream_waiting(const struct http_req *q); /* bytes not yet given to the kernel */
void http_stream_on_drain(struct http_req *q, http_drain_cb *fn, void *arg);
void http_stream_end(struct http_req *q); /* with a length: all bytes must have been written */
void http_stream_abort(struct http_req *q); /* the client sees a cut answer, never a whole one */

/* Sees the pieces of a whole file in their order, in a thread of the pool; `last` with the last
 * one, which is not sent before. -1 cuts the answer, so that the client never has all of it. */
typedef int http_inspect_cb(void *arg, struct str piece, bool last);

/* Part of a file, with Range (one range), If-Range, If-None-Match. Read by the work pool in pieces.
 * The descriptor is ours from now on. */
struct http_file {
	int fd;
	int64_t size;
	const char *type;
	struct str etag; /* without quotes; empty: none */
	struct str download_name; /* not empty: Content-Disposition: attachment */
	http_inspect_cb *inspect; /* not called for a part, nor for an empty file; NULL: none */
	void *inspect_arg; /* lives as long as the request's arena */
	/* Answers a range that lies outside, instead of a problem; NULL: none. */
	void (*refuse)(void *arg, const struct err *e);
	void *refuse_arg;
};
void http_reply_file(struct http_req *q, const struct http_file *f);

#endif
