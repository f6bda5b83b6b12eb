/* The outbox: every change of state adds its event in the same unit. */
#ifndef SERVER_STORE_EVENT_STORE_H
#define SERVER_STORE_EVENT_STORE_H
#include "api/event.h"
#include "lib/db/row.h"

struct event_new {
	struct str project_id;
	const char *type; /* "run.succeeded" */
	struct str subject, parent, actor;
	struct str data; /* a JSON object; empty: {} */
};
void event_store_add(struct db_unit *u, const struct event_new *ev);
/* Events after `from`, none of a transaction that may still be open. Ids grow with time but are not
 * told in their order: a position is the id of the last event that was told. */
void event_store_after(struct db_unit *u, int64_t from, int64_t limit);
void event_store_horizon(struct db_unit *u); /* one row: low, high */
void event_store_last(struct db_unit *u); /* one row: id of the newest that may be read */
/* One row when the event is still kept: whether it comes no later than `until`. */
void event_store_known(struct db_unit *u, int64_t id, int64_t until);
/* For a stream that resumes: events of one project after one and up to another, which has been
 * told.
 */
void event_store_of_project(
	struct db_unit *u, struct str project_id, int64_t from, int64_t until, int64_t limit);

#endif
