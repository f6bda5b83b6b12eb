/*
 * The inside of units. For lib/db only.
 *
 * A unit's values are encoded when they are added, into one buffer of its own, so that it can be
 * sent again without its maker.
 */
#ifndef LIB_DB_UNIT_H
#define LIB_DB_UNIT_H
#include "lib/base/buf.h"
#include "lib/db/db.h"
#include "lib/db/plan.h"
#include "lib/loop/timer.h"

#include <sys/queue.h>

enum { UNIT_BYTES_MAX = 256 << 20, UNIT_STMTS_MAX = 10000, UNIT_TRIES = 3 };
#define UNIT_DYNAMIC UINT32_MAX /* a statement that is not of the table */

struct unit_value {
	size_t at;
	int n; /* -1: NULL */
};

struct unit_stmt {
	uint32_t id;
	const char *name;
	char *text; /* of a dynamic statement */
	uint32_t *types; /* of a dynamic statement */
	struct db_plan *plans; /* of a dynamic statement */
	size_t first; /* of its values */
	int nparams;
	bool prepares; /* is prepared by this unit */
};

enum unit_state { UNIT_NEW, UNIT_WAITING, UNIT_DELAYED, UNIT_SENT, UNIT_DONE };

struct db_unit {
	TAILQ_ENTRY(db_unit) link; /* in the queue, pipeline or list that its state says */
	struct db *db;
	struct arena *arena;
	db_cb *cb;
	void *arg;
	enum db_lane lane;
	enum unit_state state;
	struct unit_stmt *stmts;
	size_t nstmts, stmts_cap;
	struct unit_value *values;
	size_t nvalues, values_cap;
	struct buf bytes;
	struct loop_timer timer;
	int64_t wait_max, queued_at, sent_at, due;
	unsigned tries;
	bool resend; /* after its sync: not failed for good */
	bool cancelled;
	/* What has come back. */
	struct db_rows *rows;
	size_t nprepares, pos, syncs; /* prepares sent before; results and syncs taken */
	struct err err;
	struct db_fault fault;
};
TAILQ_HEAD(units, db_unit);

/* Pointers for libpq, valid until the next call. */
struct unit_scratch {
	const char **values;
	int *lengths, *formats;
	size_t cap;
};
void unit_scratch_fill(struct unit_scratch *s, const struct db_unit *u, const struct unit_stmt *st);
void unit_scratch_done(struct unit_scratch *s);

/* Forgets the results, before it is sent (again). */
void unit_reset(struct db_unit *u);
void unit_take(struct db_unit *u, size_t stmt, struct pg_result *res); /* owns the result now */
/* Runs the callback and frees everything. */
void unit_complete(struct db_unit *u);

#endif
