/*
 * A connection in pipeline mode: units go in at one end, and their results come back in order at
 * the other. Statements are prepared within the first unit that uses them. For lib/db only.
 */
#ifndef LIB_DB_CONN_H
#define LIB_DB_CONN_H
#include "lib/db/link.h"
#include "lib/db/unit.h"

struct lane;

struct conn {
	struct link link;
	struct lane *lane;
	struct units sent;
	size_t nsent;
	uint8_t *prepared; /* by statement id */
	bool retiring; /* takes nothing more; a new session follows when it is empty */
	struct loop_timer stall;
	int64_t heard_us; /* last input */
};

void conn_init(struct conn *c, struct lane *lane);
void conn_done(struct conn *c); /* the units that are in flight are over with ERR_CANCELLED */
bool conn_can_take(const struct conn *c);
void conn_send(struct conn *c, struct db_unit *u);

#endif
