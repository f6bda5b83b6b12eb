/*
 * events.stream: the events of one project as one stream of server-sent events, named by their
 * types, with their ids and the event itself as JSON. The hub tells each event once; it is written
 * once for all who want it. A stream that comes back with Last-Event-ID (or `from`) first gets what
 * it has missed out of the table; when its position is not kept any more, it gets the event `reset`
 * and goes on from now. Callers are looked at again (access.h).
 */
#ifndef SERVER_REST_EVENTS_H
#define SERVER_REST_EVENTS_H
#include <stddef.h>
#include <stdint.h>

struct app;
struct streams;

struct streams *streams_new(struct app *app); /* after the hub */
void streams_stop(struct streams *s); /* before the hub is closed; NULL is fine */
void streams_free(struct streams *s); /* after the loop; NULL is fine */
size_t streams_count(const struct streams *s);
uint64_t streams_told(const struct streams *s); /* events that the hub has told since the start */

#endif
