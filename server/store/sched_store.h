/* What the scheduler reads and writes: the lease, the queue, workers and open attempts. */
#ifndef SERVER_STORE_SCHED_STORE_H
#define SERVER_STORE_SCHED_STORE_H
#include "lib/db/row.h"

void sched_store_acquire(struct db_unit *u, const char *role, const char *holder); /* row: epoch */
void sched_store_renew(struct db_unit *u, const char *role, const char *holder, int64_t epoch);
void sched_store_release(struct db_unit *u, const char *role, const char *holder, int64_t epoch);

/* Columns as in schema/queries/sched.sql. */
void sched_store_queue_all(struct db_unit *u);
void sched_store_queue_some(struct db_unit *u, const struct str *step_ids, size_t n);
void sched_store_workers(struct db_unit *u);
void sched_store_worker(struct db_unit *u, struct str id);
void sched_store_attempts(struct db_unit *u);

struct assign_rows {
	struct str *step_ids, *attempt_ids, *worker_ids, *runtimes, *devices, *token_ids,
		*token_macs;
	size_t n;
};
/* Rows: step_id, attempt_id, worker_id of those that were still in the queue; none when the holder
 * does not lead any more. */
void sched_store_assign(
	struct db_unit *u, const char *holder, int64_t epoch, const struct assign_rows *rows);
/* Rows: id, run_id, worker_id, step_id, project_id of the attempts that were given up. */
void sched_store_lose(struct db_unit *u, const char *holder, int64_t epoch, int64_t leader_since);
void sched_store_silent(struct db_unit *u, int64_t silent_for_us); /* row: silent, workers */
void sched_store_queue_late(struct db_unit *u); /* rows: run_id */

#endif
