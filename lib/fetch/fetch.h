/*
 * Asynchronous HTTP/1.1 client on the loop (libcurl's multi interface).
 *
 * A client is one trust domain: one pool of connections, one set of credentials, one idea of which
 * addresses may be reached; it follows no redirect, obeys no proxy variable, reads no .netrc and
 * speaks http and https only. A request completes exactly once, from the loop, never inside
 * fetch_start (fetch_client_free is the one exception). A status of 400 or more is not an error by
 * itself: see fetch_problem. Bodies of such replies never reach fd or push; up to 64 KiB of them
 * are kept in reply->body. Loop thread only. Times are microseconds, 0 = none.
 *
 * Errors: ERR_NETWORK (cannot reach, broken, TLS), ERR_TIMEOUT, ERR_TOO_LARGE (reply past its
 * limit), ERR_FORBIDDEN (address refused by the guard), ERR_INVALID (a request that cannot be
 * sent), ERR_CANCELLED, and whatever a callback of the caller reports.
 */
#ifndef LIB_FETCH_FETCH_H
#define LIB_FETCH_FETCH_H
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/ip.h"

struct loop;
struct fetch_client;
struct fetch;

/* Strings are copied. */
struct fetch_options {
	const char *base_url; /* "https://host[:port][/prefix]"; NULL: only absolute addresses */
	const char *unix_socket; /* connect there, whatever the address says */
	const char *ca_file; /* NULL: the system's */
	const char *token; /* bearer token; only with base_url */
	const char *token_file; /* read anew for each request, so that it may rotate */
	const char *user_agent; /* NULL: "tidemill/VERSION" */
	bool https_only;
	bool guard; /* refuse addresses that are not public … */
	const struct ip_net
		*allow; /* … nor in one of these; ports other than 80 and 443 need it too */
	size_t n_allow;
	int64_t connect_timeout; /* default 5 s */
	int64_t timeout; /* of a whole request that names none itself; default 60 s */
	unsigned max_connections; /* held, busy ones too; 0: by the most requests there were at once
				   */
};

struct fetch_client *fetch_client_new(
	struct loop *loop, const struct fetch_options *o, struct err *e) MUST_CHECK;
/* Requests still in flight complete with ERR_CANCELLED inside this call. NULL is fine; never from a
 * callback of this client. */
void fetch_client_free(struct fetch_client *c);

struct fetch_reply {
	int status; /* 0 when the request failed before a reply */
	struct str body; /* what was kept in memory */
	struct str content_type, location, etag, retry_after;
	struct str head; /* all header lines, CRLF-separated; for fetch_header */
	uint64_t received; /* bytes of body, wherever they went */
	char from[IP_TEXT_MAX]; /* this host's address of the connection; "": of none */
};

/* e->code is ERR_OK when a whole reply has arrived. The reply's views end with the callback. */
typedef void fetch_done_cb(void *arg, const struct fetch_reply *reply, const struct err *e);
/* Bytes of the reply, of a status below 400, as they arrive. -1 ends the request with *e. To stop
 * the flow, call fetch_pause before returning. */
typedef int fetch_push_cb(void *arg, struct str bytes, struct err *e);
/* Fills at most n bytes of the request's body. Returns the count; 0 at the end; FETCH_LATER when
 * nothing is there yet (fetch_resume calls again); -1 ends the request with *e. */
enum { FETCH_LATER = -2 };
typedef ptrdiff_t fetch_pull_cb(void *arg, char *out, size_t n, struct err *e);
/* The status line and the headers are complete (once, before any push). */
typedef void fetch_head_cb(void *arg, const struct fetch_reply *reply);

enum { FETCH_MAX_HEADERS = 32 };
struct fetch_request {
	const char *method; /* NULL: GET */
	const char
		*path; /* "/api/v1/…?…" below base_url, or an absolute address; encoded already */
	const char *headers[FETCH_MAX_HEADERS]; /* "Name: value"; copied; up to the first NULL */

	/* Request body: one of these. */
	struct str body; /* borrowed until completion */
	bool has_fd; /* from fd, from its current position; borrowed */
	int fd;
	fetch_pull_cb *pull; /* called with arg */
	int64_t length; /* of fd or pull; -1 with pull: chunked */

	/* Reply body: memory unless one of these. */
	size_t max_body; /* limit of the kept bytes; 0: 1 MiB */
	bool to_fd; /* written to out_fd (a regular file); borrowed */
	int out_fd;
	fetch_push_cb *push; /* called with arg */
	uint64_t max_bytes; /* limit for fd and push; 0: none */
	fetch_head_cb *on_head; /* may be NULL; called with arg */
	void *arg; /* of pull, push and on_head */

	int64_t timeout; /* whole request; 0: the client's; -1: none (streams) */
	int64_t idle_timeout; /* no byte in either direction for so long; whole seconds */
	uint64_t min_rate; /* bytes per second, below which idle_timeout counts; 0: 1 */
};

/* Everything in *q but the borrowed parts is copied. The handle is valid until done is called. */
struct fetch *fetch_start(struct fetch_client *c, const struct fetch_request *q,
	fetch_done_cb *done, void *done_arg) __attribute__((returns_nonnull));
/* Completes with ERR_CANCELLED, from the loop. Fine in every state; repeated calls do nothing. */
void fetch_cancel(struct fetch *f);
void fetch_pause(struct fetch *f); /* no more pushes after the current one */
void fetch_resume(struct fetch *f); /* pushes and pulls go on, from the loop */

/* First value of a header, or STR_NONE; the name is compared without case. */
struct str fetch_header(const struct fetch_reply *reply, const char *name);
/* 0 for a status below 400. Else -1 and *e from the reply's problem+json, or from the status. */
int fetch_problem(const struct fetch_reply *reply, struct err *e) MUST_CHECK;
/* Seconds or an HTTP date, which counts from the reply's own, or from `now` where it has none;
 * microseconds (0 when absent or past), at most an hour. */
int64_t fetch_retry_after(const struct fetch_reply *reply, int64_t now);

/* For programs without a loop of their own: runs the client's loop until the reply is there. The
 * reply's views live in *memory, which the caller initialises and frees. */
int fetch_sync(struct fetch_client *c, const struct fetch_request *q, struct fetch_reply *ret,
	struct buf *memory, struct err *e) MUST_CHECK;

#endif
