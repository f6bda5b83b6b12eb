/*
 * What a handler sees of a request, and how it takes the body. All strings live in the request's
 * arena. A request is answered exactly once (reply.h), at once or later; until its answer is
 * complete the handler may use it, also when the client has left or a deadline has passed: what it
 * answers then is dropped. After the answer it lives until the end of the loop's turn.
 *
 * The order of events: the head arrives, the route is found, the auth hook is asked, and only then
 * is `100 Continue` sent and a byte of the body read.
 */
#ifndef LIB_HTTP_REQ_H
#define LIB_HTTP_REQ_H
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/ip.h"

enum { HTTP_PARAMS_MAX = 8, HTTP_ID_MAX = 64 };

struct http_req;
typedef void http_handler(struct http_req *q);

enum http_body {
	HTTP_BODY_NONE, /* a body is refused; the handler is called after the head */
	HTTP_BODY_WHOLE, /* up to max_body bytes; the handler is called when they are there */
	HTTP_BODY_STREAM, /* the handler is called after the head, and then takes the bytes */
};

/* One row of the caller's table. A pattern is a path whose segments may be "{name}" (one segment,
 * not empty) and whose last may be "{name*}" (all the rest, with its slashes). A fixed segment is
 * preferred to a parameter. GET also serves HEAD. */
struct http_route {
	const char *method, *pattern;
	http_handler *handler;
	enum http_body body;
	uint64_t max_body; /* bytes; 0 for a stream: no limit */
	const void *data; /* the caller's own */
};

struct http_pair {
	struct str name, value;
};

struct http_req {
	struct arena *arena;
	void *app; /* of struct http_config */
	void *user; /* the server's own, set by its auth hook */
	const struct http_route *route; /* NULL in the fallback handler */
	struct str method, path, query, host; /* path and query as sent, still percent-encoded */
	struct str decoded_path;
	struct http_pair *headers, *args; /* args: the query, decoded; names may repeat */
	size_t n_headers, n_args;
	struct str params[HTTP_PARAMS_MAX]; /* decoded, in the order of the pattern */
	struct str body; /* HTTP_BODY_WHOLE */
	int64_t body_size; /* as declared; 0: none; -1: not known before its end */
	const char *id; /* X-Request-Id, theirs when it is well formed, else ours */
	const char *peer; /* address as text */
	struct ip peer_ip;
	bool tls;
	int64_t start_us; /* loop_now() when the head was complete */
};

/* Value of a header by its name in any case; p is NULL when there is none. Of several the first. */
struct str http_header(const struct http_req *q, const char *name);
size_t http_header_count(const struct http_req *q, const char *name);
/* Value of a path parameter; a name that the route does not have is a bug. */
struct str http_param(const struct http_req *q, const char *name);
/* Value of the nth (from 0) query argument of that name; p is NULL when there is none. */
struct str http_arg(const struct http_req *q, const char *name, size_t nth);

/* The auth hook's yes: the request goes on. Its no is a reply. Either may come later. */
void http_auth_ok(struct http_req *q);

/* Called once, in a later turn, when the client has gone before the answer was complete. The
 * handler lets go of what it holds and still ends the request, by http_drop() or any reply. A
 * client that sends more than 16 KiB behind a request that is held counts as gone. */
typedef void http_close_cb(void *arg);
void http_on_close(struct http_req *q, http_close_cb *fn, void *arg);
bool http_gone(const struct http_req *q);
void http_drop(struct http_req *q); /* ends the request without an answer; closes the connection */

/* How a HTTP_BODY_STREAM handler takes the body. Nothing is read before http_body_take(). Bytes are
 * lent for the call. Exactly one of on_end and on_abort follows, unless the request is answered
 * before: then nothing is called any more. on_abort's request must still be ended. */
struct http_sink {
	void (*on_body)(void *arg, struct str bytes);
	void (*on_end)(void *arg);
	void (*on_abort)(void *arg, const struct err *why);
};
void http_body_take(struct http_req *q, const struct http_sink *sink, void *arg);
/* No on_body() between pause and resume; the client is held back by TCP. */
void http_body_pause(struct http_req *q);
void http_body_resume(struct http_req *q);

#endif
