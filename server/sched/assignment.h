/*
 * What a worker is told of an attempt that it should have. A worker reads replies of at most
 * FIELD_NODES_MAX values and 32 MiB: assignment_read refuses an assignment that would not even fit
 * alone, and whoever sends several adds up their sizes.
 */
#ifndef SERVER_SCHED_ASSIGNMENT_H
#define SERVER_SCHED_ASSIGNMENT_H
#include "api/worker.h"
#include "lib/db/row.h"

struct app;

enum { ASSIGNMENT_VALUES_MAX = FIELD_NODES_MAX - 100, ASSIGNMENT_BYTES_MAX = 16 << 20 };

/* Of the JSON; never less than there are. */
struct assignment_size {
	size_t values, bytes;
};

/* The row is of sync_assignment or, when it is plain, of sched_assign; everything is copied.
 * ERR_INVALID, ERR_TOO_LARGE: no worker can take it. */
int assignment_read(struct app *app, const struct db_rows *r, size_t row, struct arena *a,
	struct assignment *ret, struct assignment_size *ret_size, struct err *e) MUST_CHECK;

#endif
