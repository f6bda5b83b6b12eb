/* What db.c, unit.c and conn.c share. For lib/db only. */
#ifndef LIB_DB_POOL_H
#define LIB_DB_POOL_H
#include "lib/db/conn.h"
#include "lib/db/unit.h"

struct lane {
	struct db *db;
	struct conninfo info;
	struct conn *conns;
	unsigned nconns, depth;
	struct units waiting, delayed;
	size_t nwaiting;
	bool read_only; /* its units may be sent again after a connection loss */
	int64_t stall_us; /* silence after which a connection counts as dead */
	struct db_stats stats;
};

struct db {
	struct loop *loop;
	const struct sql *table;
	size_t count;
	struct lane lanes[DB_LANE_COUNT];
	size_t queue_max;
	int64_t deadline;
	struct db_plan **plans; /* one list for each statement */
	struct unit_scratch scratch;
	struct units done; /* to be completed at the end of the turn */
	bool finish_posted, finishing, pump_wanted, closed;
};

/* A unit that is over: its error is set. Its callback runs at the end of the turn. */
void pool_unit_over(struct db_unit *u);
/* A unit that shall be sent again, after a random delay of up to delay_ms. */
void pool_unit_again(struct db_unit *u, unsigned delay_ms);
/* Units may have found a place. */
void pool_pump_soon(struct db *db);

#endif
