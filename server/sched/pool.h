/*
 * The scheduler's memory: steps that wait, workers, and what open attempts hold of them. Owns
 * copies of everything. Not a cache of decisions: it can be thrown away and read again at any time.
 */
#ifndef SERVER_SCHED_POOL_H
#define SERVER_SCHED_POOL_H
#include "lib/db/row.h"
#include "server/core/place.h"

struct pool;
struct queue_rows;

struct pool *pool_new(void);
void pool_free(struct pool *p); /* NULL is fine */

/* Rows of schema/queries/sched.sql. */
void pool_add_steps(struct pool *p, const struct db_rows *rows);
/* All of it into an empty memory: the rows of sched_store_memory. */
void pool_read(struct pool *p, const struct db_rows rows[]);
/* The same steps, by who queued them; queued_at: wall time. */
void pool_queue_steps(struct pool *p, const struct queue_rows *rows, int64_t queued_at);
void pool_remove_step(struct pool *p, struct str step_id);
size_t pool_steps(const struct pool *p);
/* Replaces all workers by the rows. */
void pool_set_workers(struct pool *p, const struct db_rows *rows);
/* Of these ids; those without a row are gone. */
void pool_put_workers(struct pool *p, const struct str *ids, size_t n, const struct db_rows *rows);
void pool_close_worker(struct pool *p, struct str id); /* it gets nothing until it is put again */
/* What it holds of images and data; keys as in goods.h. */
void pool_worker_holds(struct pool *p, struct str worker_id, struct str keys);
void pool_set_projects(struct pool *p, const struct db_rows *rows); /* quotas; of all */
void pool_set_rules(struct pool *p, const struct db_rows *rows); /* of pools; of all */
void pool_set_attempts(struct pool *p, const struct db_rows *rows);
/* A step was handed out: its attempt holds what it asked for, one for each rank of a gang. Then it
 * is to be removed. spared (struct str): the steps for which it was ended before. */
struct pool_given {
	struct str step_id, attempt_id, worker_id;
	const struct list *gpus, *spared; /* struct str */
};
void pool_assigned(struct pool *p, const struct pool_given *g);
void pool_attempt_ended(struct pool *p, struct str attempt_id);
/* The attempt was asked to end for the step; or could not be, since it ends anyway. */
void pool_preempted(struct pool *p, struct str attempt_id, struct str by_step, int64_t now);
void pool_not_preempted(struct pool *p, struct str attempt_id);
/* Others are ended for the step on these workers (struct str: ids). */
void pool_cleared(struct pool *p, struct str step_id, const struct list *workers);

/* When each worker was last heard of; wall time. */
typedef int64_t pool_seen(void *arg, struct str worker_id, int64_t stored);
/* A snapshot for place_pass; it borrows from the pool and lives in the arena. Steps that may not
 * start before later are left out; *ret_next is when the first of them may, or 0. */
void pool_snapshot(struct pool *p, int64_t now, int64_t offline_after, pool_seen *seen, void *arg,
	struct arena *a, struct place_snapshot *ret, int64_t *ret_next);
/* Adds what attempts hold; right after pool_snapshot. What has not started, as far as we know, has
 * its whole time before it. */
void pool_add_running(struct pool *p, int64_t now, struct arena *a, struct place_snapshot *ret);
/* What a pass has kept for steps, for the next one. */
void pool_keep(struct pool *p, const struct place_snapshot *s, const struct place_result *r);

/* Steps that the snapshot leaves out, since they may not start yet; by time. */
struct pool_later {
	struct str step_id, project_id, pool;
	int64_t not_before;
};
struct pool_later *pool_list_later(struct pool *p, int64_t now, struct arena *a, size_t *ret_n);
/* Everything that a snapshot borrows stays as long as the arena does. */
void pool_hold(struct pool *p, struct arena *a);

/* What is stored of why a queued step waits: 0 while nothing is, else pool_blocked_hash() of it;
 * NULL when the step is not in the queue. To be set by whoever stores something else. */
uint64_t *pool_blocked(struct pool *p, struct str step_id);
uint64_t pool_blocked_hash(struct str kind, bool unsatisfiable, struct str message);

#endif
