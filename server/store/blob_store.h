/* Rows of the blob store: what there is, who has sent it, when it was last wanted. Digests are the
 * 32 bytes, not hex. */
#ifndef SERVER_STORE_BLOB_STORE_H
#define SERVER_STORE_BLOB_STORE_H
#include "lib/base/arena.h"
#include "lib/db/row.h"

/* The row of bytes that are on the disk, for a project that has sent them. Two statements. */
void blob_store_put(struct db_unit *u, struct str project_id, struct str digest, int64_t size);
/* One row (digest in hex, size) when the project has sent them. */
void blob_store_head(struct db_unit *u, struct str project_id, struct str digest);
/* Keeps them for another time of grace; in each unit that makes references. */
void blob_store_touch(struct db_unit *u, const struct str *digests, size_t n);
/* One row (ord from 1, size or NULL) for the first that the project cannot refer to. */
void blob_store_missing(struct db_unit *u, struct str project_id, const struct str *digests,
	const int64_t *sizes, size_t n);

/* For the collector; rows of digest and size. The shelf is the first byte. */
void blob_store_unreferenced(struct db_unit *u, unsigned shelf, int64_t before_us);
void blob_store_collect(struct db_unit *u, unsigned shelf, int64_t before_us);
void blob_store_known(struct db_unit *u, const struct str *digests, size_t n);

/* The 32 bytes of 64 hex digits, in the arena; for digests that have been checked. */
struct str blob_digest_bytes(struct arena *a, struct str hex);

#endif
