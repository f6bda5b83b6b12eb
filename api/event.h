/* Events: the outbox as a list and as one multiplexed stream. */
#ifndef API_EVENT_H
#define API_EVENT_H
#include "lib/json/field.h"

struct event {
	int64_t id, at;
	struct str project, type, subject, parent, actor, data;
};
extern const struct field event_fields[];

/* GET …/events: topics are ids (the object and what belongs to it) or "project". */
struct event_query {
	struct list topic; /* struct str */
	int64_t from; /* an event id; also Last-Event-ID */
	bool has_from;
};
extern const struct field event_query_fields[];

#endif
