/* What must hold in the database at any time, as a table of checks. */
#ifndef SERVER_STORE_FSCK_STORE_H
#define SERVER_STORE_FSCK_STORE_H
#include "lib/db/row.h"

struct fsck_check {
	const char *name, *doc;
	unsigned statement;
};
extern const struct fsck_check fsck_checks[]; /* ends with name NULL */

/* Rows: subject, wrong; up to 100 of what does not hold. */
void fsck_store_check(struct db_unit *u, const struct fsck_check *check);
/* Rows: digest, size; in the order of the digests, behind `after`. */
void fsck_store_blobs(struct db_unit *u, struct str after, int64_t count);
/* Rows: attempt_id, made, length, digest of final logs; in the order of the attempts, behind
 * `after`. */
void fsck_store_logs(struct db_unit *u, struct str after, int64_t count);
/* A row when the blob is still there. */
void fsck_store_blob(struct db_unit *u, struct str digest);

#endif
