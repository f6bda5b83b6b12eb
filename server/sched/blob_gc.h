/*
 * The collector of the blob store: removes bytes that nothing refers to and nobody has asked for
 * during the time of grace (setting blob-grace), files without a row, and what interrupted uploads
 * left behind. Shelf by shelf: lock, delete the rows, remove the files, unlock; rows that come into
 * use meanwhile stay. May run on several servers at once.
 */
#ifndef SERVER_SCHED_BLOB_GC_H
#define SERVER_SCHED_BLOB_GC_H
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct app;

struct blob_gc_report {
	int64_t blobs, bytes; /* removed, or, in a dry run, what would be */
	int64_t skipped; /* shelves where an upload was being finished; next time */
};
/* e->code is ERR_OK on success; the report is always valid and counts what has been done. */
typedef void blob_gc_cb(void *arg, const struct blob_gc_report *r, const struct err *e);

/* One pass; the callback runs once, later, from the loop. Ends early (ERR_CANCELLED) when the
 * server is draining. */
void blob_gc_run(struct app *app, bool dry_run, blob_gc_cb *cb, void *arg);

/* A pass every blob-gc-interval, until it is freed. */
struct blob_gc;
struct blob_gc *blob_gc_new(struct app *app);
void blob_gc_free(struct blob_gc *g); /* before the loop; NULL is fine */

#endif
