/*
 * What the files of lib/http share; for no one else.
 *
 * A conn is one socket. A call is one request on it, with the answer under way; a conn has at most
 * one. conn_process() is the only place that moves either forward: whatever happens elsewhere (an
 * answer from a handler, a resumed body) changes the call and asks for it by conn_kick(), so that
 * no handler is ever called inside another one's stack. A call whose conn is gone has conn == NULL.
 */
#ifndef LIB_HTTP_INSIDE_H
#define LIB_HTTP_INSIDE_H
#include "lib/base/buf.h"
#include "lib/http/h1.h"
#include "lib/http/reply.h"
#include "lib/http/server.h"
#include "lib/loop/timer.h"

#include <sys/types.h>

struct evbuffer;
struct router;
struct map;
struct ssl_st;
struct http_listener;

enum { READ_MAX = 256 << 10, IN_ROOM = 4095, IN_WAITING_MAX = 16384, SMALL_BODY = 16384 };
#define NEVER INT64_MAX

struct http_server {
	struct loop *loop;
	struct http_config cfg;
	struct router *router;
	struct http_listener *listeners;
	struct conn *conns;
	size_t n_conns;
	struct map *by_ip; /* struct ip_count */
	char *scratch; /* READ_MAX bytes; for the time of one callback */
	struct buf text; /* heads being written; for the time of one call */
	int64_t date_s;
	char date[40];
	int spare_fd; /* given up to refuse a connection when there are no descriptors left */
	bool draining, freeing;
	struct loop_timer drain_timer;
	http_drained_cb *on_drained;
	void *drained_arg;
	size_t n_calls; /* also those without a conn */
};

enum conn_state {
	CONN_HANDSHAKE,
	CONN_IDLE, /* between requests */
	CONN_HEAD, /* the first byte of a head has come */
	CONN_CALL, /* there is a call */
	CONN_LINGER, /* all is said; reading what the client still sends */
	CONN_DEAD, /* closed; freed at the end of the turn */
};

struct conn {
	struct http_server *server;
	struct conn *prev, *next;
	struct loop_fd *watch;
	struct ssl_st *ssl; /* NULL: plain */
	struct buf in; /* read and not yet used */
	struct evbuffer *out;
	struct h1_head *head; /* in CONN_HEAD */
	struct http_call *call;
	struct loop_timer timer; /* at the earlier of the two, or before */
	int64_t in_due, out_due; /* on loop_now()'s clock; NEVER */
	uint64_t window; /* bytes of body in the running window */
	size_t requests, lingered;
	struct ip ip;
	int fd;
	enum conn_state state;
	bool keep_alive, processing, kicked, eof, closing, read_wants_write;
	bool yielded; /* pipelined requests wait for the next turn */
	bool parting; /* was idle as the server went down: nothing of ours is on its way */
};

enum call_phase {
	CALL_ASKED, /* the auth hook decides */
	CALL_ALLOWED,
	CALL_WHOLE, /* the whole body is being read */
	CALL_READY, /* the handler is to be called */
	CALL_RUNNING, /* the handler has been called */
	CALL_DISCARD, /* answered; the rest of a small body is read to keep the connection */
};

struct reply_header {
	struct reply_header *next;
	const char *name;
	struct str value;
};

struct http_call {
	struct http_req q; /* first: the call is found from it */
	struct http_server *server;
	struct conn *conn; /* NULL: gone */
	enum call_phase phase;
	unsigned refs; /* the open call's and its arena's */
	char peer[IP_TEXT_MAX], id[HTTP_ID_MAX + 1];
	/* body */
	struct h1_body body;
	bool body_over, paused, expects, aborted;
	uint64_t taken;
	struct buf whole;
	const struct http_sink *sink;
	void *sink_arg;
	/* answer */
	struct reply_header *extra;
	bool has_cache_control, begun, chunked, no_body, ended, finished, refused, unending;
	int minor, status;
	uint64_t sent;
	int64_t length;
	bool drain_queued;
	http_drain_cb *on_drain;
	http_close_cb *on_close;
	void *drain_arg, *close_arg;
};

static inline struct http_call *http_call_of(const struct http_req *q)
{
	/* The request is the first member; handlers are given it as writable. */
	union {
		const struct http_req *in;
		struct http_call *out;
	} u = { .in = q };
	return u.out;
}

/* conn.c */
void conn_process(struct conn *c);
void conn_new(struct http_server *s, int fd, const struct ip *ip, struct ssl_st *ssl);
void conn_kick(struct conn *c); /* conn_process() at the end of this turn */
void conn_close(struct conn *c); /* at once; a call is told */
/* Whether the connection can go on after this call's answer, as far as is known now. */
bool conn_can_keep(const struct conn *c, const struct http_call *k);
void conn_due(struct conn *c, int64_t *due, int64_t ms); /* ms from now; NEVER: none */
void conn_refuse(struct conn *c, enum err_code code, const char *why);
/* conn_io.c */
ssize_t conn_read_bytes(struct conn *c, char *p, size_t n); /* > 0; 0: end; -1: later; -2: broken */
void conn_flush(struct conn *c); /* writes what the socket takes; closes on failure */

/* call.c */
struct http_call *http_call_new(struct conn *c);
void http_call_begin(struct http_call *k, const struct h1_head *h, struct str bytes);
bool http_call_step(struct http_call *k); /* false: nothing more can be done now */
bool http_call_wants_body(const struct http_call *k);
/* Gives bytes to the body; returns how many were used. The call may have ended after it. */
size_t http_call_feed(struct http_call *k, struct str p);
void http_call_body_broken(struct http_call *k, enum err_code code, const char *why);
void http_call_gone(struct http_call *k); /* the conn is going away */
void http_call_note_later(
	struct http_call *k); /* tells the handler of a call without a conn, once */
void http_call_finish(struct http_call *k); /* the log line and on_done, once */
void http_call_over(struct http_call *k); /* the handler has let go of a call without a conn */
void http_call_drained(struct http_call *k); /* output has gone out: on_drain, if it is time */
void http_call_free_later(struct http_call *k);

/* reply.c, stream.c */
void reply_simple(struct http_call *k, int status, const char *type, struct str body, bool fixed);
/* Ends the head of an answer in s->text; length -1: chunked or until the end. */
void reply_head(struct http_call *k, int status, const char *type, int64_t length);
/* Adds a piece by reference; `release` is called when it is no longer needed, also on failure. The
 * bytes carry their chunk framing already when framed. */
struct stream_ref {
	const char *p;
	size_t n;
	void (*release)(const void *p, size_t n, void *arg);
	void *arg;
	bool framed;
};
bool stream_add(struct http_call *k, const struct stream_ref *r);
void http_call_end(struct http_call *k); /* marks the answer complete and kicks the conn */

/* server.c */
bool server_is_proxy(const struct http_server *s, const struct ip *ip);
void server_count(struct http_server *s, const struct ip *ip, int by);
void server_note_gone(struct http_server *s); /* after a conn or a call went: is the drain over? */
const char *server_date(struct http_server *s);

/* tls.c */
struct ssl_st *tls_accept(struct http_tls *t, int fd);
enum tls_result { TLS_DONE, TLS_WANT_READ, TLS_WANT_WRITE, TLS_FAILED };
enum tls_result tls_handshake(struct ssl_st *s);
ssize_t tls_read(
	struct ssl_st *s, char *p, size_t n, bool *ret_wants_write); /* as conn_read_bytes */
ssize_t tls_write(struct ssl_st *s, const char *p, size_t n); /* bytes; -1: later; -2: broken */
bool tls_pending(const struct ssl_st *s);
void tls_say_end(struct ssl_st *s);
void tls_drop(struct ssl_st *s);

#endif
