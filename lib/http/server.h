/*
 * The HTTP/1.1 server: listeners, connections with their limits and absolute deadlines, and an
 * orderly end. Used from the loop's thread. The config is copied; what it points to is the caller's
 * and outlives the server.
 */
#ifndef LIB_HTTP_SERVER_H
#define LIB_HTTP_SERVER_H
#include "lib/http/req.h"

struct loop;
struct http_server;
struct http_tls;

/* Zero takes the default. */
struct http_limits {
	size_t request_line; /* 8 KiB, without its line end */
	size_t header; /* 8 KiB: one field line, without its line end */
	size_t head; /* 32 KiB: all field lines, with line ends */
	size_t headers; /* 64, and never more */
	size_t requests; /* 1000 on one connection */
	size_t pipelined; /* 16 answered in one go before others have their turn */
	size_t connections; /* 10000 */
	size_t per_ip; /* 256; IPv6 by /64 */
	size_t sse_backlog; /* 256 KiB */
};

/* Milliseconds; zero takes the default. */
struct http_deadlines {
	int64_t handshake; /* 10 s: the whole TLS handshake */
	int64_t head; /* 10 s: the whole head, from its first byte */
	int64_t body; /* 30 s: in each such window body_rate × window bytes must come */
	int64_t body_rate; /* 1024 bytes a second */
	int64_t write; /* 30 s without any byte taken by the client */
	int64_t idle; /* 75 s between requests */
	int64_t linger; /* 2 s for reading what a refused client still sends */
	int64_t heartbeat; /* 15 s between comments on an idle SSE stream */
};

/* What is told when a request is over. */
struct http_done {
	const struct http_req *q;
	int status; /* 0: no answer was begun */
	uint64_t sent; /* bytes of body */
	int64_t took_us;
	bool complete; /* the whole answer was handed to the kernel or queued */
};

struct http_config {
	void *app;
	const struct http_route *routes; /* ends with a row whose pattern is NULL */
	http_handler *auth; /* NULL: all may pass */
	http_handler
		*fallback; /* GET and HEAD of paths without a route (static files); NULL: 404 */
	/* Answers in its own words (true) what no route takes; NULL or false: problem+json. */
	bool (*refuse)(struct http_req *q, const struct err *why);
	bool (*host_ok)(void *app, struct str host); /* Host without port; NULL: every host */
	/* Proxies that stand in front: from these peers the last X-Forwarded-For is taken as the
	 * client's address, and X-Forwarded-Proto: https as TLS; from others never. Their
	 * connections carry those of many clients and are bounded by limits.connections only. */
	const struct ip_net *proxies;
	size_t n_proxies;
	void (*on_done)(void *app, const struct http_done *d); /* for metrics; NULL: none */
	struct http_limits limits;
	struct http_deadlines deadlines;
};

struct http_server *http_server_new(struct loop *l, const struct http_config *c)
	__attribute__((returns_nonnull));
/* Listens on a numeric address ("127.0.0.1", "::") and port (0: any). tls may be NULL; it is held
 * by the caller as long as the server lives. */
int http_server_listen(struct http_server *s, const char *address, int port, struct http_tls *tls,
	int *ret_port, struct err *e) MUST_CHECK;
size_t http_server_connections(const struct http_server *s);
/* Stops listening, closes idle connections and lets running requests end; then, or after the
 * time, calls on_done in a later turn. Streams without an end (SSE) are closed at once. */
typedef void http_drained_cb(void *arg);
void http_server_drain(struct http_server *s, int64_t ms, http_drained_cb *on_done, void *arg);
/* Cuts what is left. Requests whose handlers still hold them end when those let go, which must be
 * before the loop ends. NULL is fine. */
void http_server_free(struct http_server *s);

#endif
