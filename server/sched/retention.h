/*
 * Takes away what projects keep no longer (project.retention): ended runs with all that is theirs,
 * logs, artifacts of ended runs, rows of closed windows. In batches, each a transaction, on the
 * lane for maintenance. The leader does it for all projects once a day; the same pass removes
 * events older than 30 days, old idempotency keys and sessions, makes the partitions of the time to
 * come, and drops those of logs that are all removed. Bytes of blobs are the collector's
 * (blob_gc.h).
 */
#ifndef SERVER_SCHED_RETENTION_H
#define SERVER_SCHED_RETENTION_H
#include "api/auth.h"
#include "lib/base/err.h"

struct app;

/* One project, and then the collector of blobs. In a dry run nothing is removed.
 * The callback runs once, later, from the loop; the report counts what was done. ERR_CANCELLED when
 * the server is draining. */
typedef void retention_cb(void *arg, const struct retention_report *r, const struct err *e);
void retention_run(
	struct app *app, struct str project_id, bool dry_run, retention_cb *cb, void *arg);

struct retention_daily;
struct retention_daily *retention_daily_new(struct app *app);
void retention_daily_free(
	struct retention_daily *r); /* before the database is closed; NULL is fine */

#endif
