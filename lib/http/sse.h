/*
 * Server-sent events. An event is formatted once and shared by all its receivers (counted). A
 * stream whose client lets more than the limit pile up is cut: the client comes back with
 * Last-Event-ID. A comment is sent every heartbeat, so that dead peers are noticed. A stream costs
 * about 1 KiB while idle: sse_begin() gives the request's arena back at the end of the turn, so
 * whatever the handler still needs must be its own by then.
 */
#ifndef LIB_HTTP_SSE_H
#define LIB_HTTP_SSE_H
#include "lib/http/req.h"

struct sse;
struct sse_event;

/* id and name may be empty; data may have several lines. Control characters in id or name, and more
 * than SSE_EVENT_MAX bytes in all, are a bug. Starts with one count. */
enum { SSE_EVENT_MAX = 4 << 20 };
struct sse_event *sse_event_new(struct str id, struct str name, struct str data)
	__attribute__((returns_nonnull));
void sse_event_hold(struct sse_event *ev);
void sse_event_drop(struct sse_event *ev); /* NULL is fine */

/* Answers the request with a stream. on_close is called once, in a later turn, when the client has
 * left or was cut; the stream is gone after it. It is not called after sse_end(). */
struct sse *sse_begin(struct http_req *q, void (*on_close)(void *arg), void *arg)
	__attribute__((returns_nonnull));
/* Holds the event itself as long as needed. A client for which more would wait than may is cut. */
void sse_send(struct sse *s, struct sse_event *ev);
void sse_allow(
	struct sse *s, size_t backlog); /* bytes that may wait, instead of the server's limit */
void sse_end(struct sse *s);
size_t sse_waiting(const struct sse *s); /* bytes not yet given to the kernel */

#endif
