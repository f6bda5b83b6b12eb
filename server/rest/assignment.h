/*
 * What a worker is told of an attempt that it should have. A worker reads replies of at most
 * FIELD_NODES_MAX values and 32 MiB: assignment_read refuses an assignment that would not even fit
 * alone, and whoever sends several counts them by assignment_values and assignment_bytes.
 */
#ifndef SERVER_REST_ASSIGNMENT_H
#define SERVER_REST_ASSIGNMENT_H
#include "api/worker.h"
#include "server/rest/call.h"

enum { ASSIGNMENT_VALUES_MAX = FIELD_NODES_MAX - 100, ASSIGNMENT_BYTES_MAX = 16 << 20 };

/* From the row of sync_assignment, in the call's arena. ERR_INVALID, ERR_TOO_LARGE: no worker can
 * take it. */
int assignment_read(struct call *c, const struct db_rows *row, struct assignment *ret,
	struct err *e) MUST_CHECK;
size_t assignment_values(const struct assignment *a); /* of JSON, never less than there are */
size_t assignment_bytes(const struct assignment *a); /* of JSON */

#endif
