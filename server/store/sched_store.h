/* What the scheduler reads and writes: the lease, the queue, workers and open attempts. */
#ifndef SERVER_STORE_SCHED_STORE_H
#define SERVER_STORE_SCHED_STORE_H
#include "lib/db/row.h"

/* schema: the newest that this program knows; under a newer one it does not lead. Columns as in
 * schema/queries/sched.sql. */
void sched_store_acquire(struct db_unit *u, const char *role, const char *holder, int64_t schema);
void sched_store_renew(
	struct db_unit *u, const char *role, const char *holder, int64_t epoch, int64_t schema);
void sched_store_release(struct db_unit *u, const char *role, const char *holder, int64_t epoch);

/* Columns as in schema/queries/sched.sql. */
/* All that the scheduler remembers, for pool_read: SCHED_MEMORY statements. */
enum { SCHED_MEMORY = 5 };
void sched_store_memory(struct db_unit *u);
void sched_store_queue_some(struct db_unit *u, const struct str *step_ids, size_t n);
void sched_store_workers_some(struct db_unit *u, const struct str *ids, size_t n);

struct assign_rows {
	struct str *step_ids, *attempt_ids, *worker_ids, *runtimes, *devices, *token_ids,
		*token_macs;
	int64_t *ranks;
	bool *delivered; /* its worker is waiting here and will be told */
	size_t n;
};
/* Rows of those that were still in the queue; none when the holder does not lead any more: ord,
 * from 1, and the columns of an assignment; plain: with spec, nothing else is needed to run it. */
void sched_store_assign(
	struct db_unit *u, const char *holder, int64_t epoch, const struct assign_rows *rows);
/* Attempts that are to end, and the steps for which they are; workers: ids with commas between. */
struct preempt_rows {
	struct str *attempt_ids, *by_steps, *whys;
	struct str *step_ids, *workers;
	size_t attempts_n, steps_n;
};
/* Rows: id, worker_id, preempted_by of those that are asked to end now. */
void sched_store_preempt(
	struct db_unit *u, const char *holder, int64_t epoch, const struct preempt_rows *rows);
/* Rows: id, run_id, worker_id, step_id, project_id of the attempts that were given up. led_us: for
 * how long the holder has led; offline_us: after which silence a worker counts as offline. */
void sched_store_lose(
	struct db_unit *u, const char *holder, int64_t epoch, int64_t led_us, int64_t offline_us);
void sched_store_silent(struct db_unit *u, int64_t silent_for_us); /* row: silent, workers */
/* Why steps wait, for those that are still in the queue, while the holder leads; with an event for
 * each whose kind is another than before. */
struct blocked_rows {
	struct str *step_ids, *kinds, *messages;
	bool *unsatisfiable;
	size_t n;
};
void sched_store_block(
	struct db_unit *u, const char *holder, int64_t epoch, const struct blocked_rows *rows);
void sched_store_queue_late(struct db_unit *u); /* rows: run_id */

#endif
