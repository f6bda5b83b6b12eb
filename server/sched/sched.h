/*
 * The scheduler: while this server leads, it keeps the queue, the workers and the open attempts in
 * memory, hands steps out as server/core/place decides, and gives attempts up whose workers have
 * been silent for too long. Every write is guarded by the lease's epoch. Memory is fed by the hub
 * and checked against the database now and then.
 */
#ifndef SERVER_SCHED_SCHED_H
#define SERVER_SCHED_SCHED_H
#include "lib/base/err.h"
#include "lib/base/str.h"

struct app;
struct db_rows;
struct db_unit;
struct pass;
struct queue_rows;
struct sched;

struct sched *sched_new(struct app *app);
void sched_free(struct sched *s); /* gives the lease back; NULL is fine */
/* These steps were queued by this server just now (committed): a leader need not wait for their
 * events. s may be NULL. */
void sched_queued(struct sched *s, const struct queue_rows *rows);
/* The unit queues these steps: what can be placed at once is taken from the queue by one more
 * statement of it, so that it is queued and assigned by one commit. To be called when all else is
 * in the unit. NULL: nothing was added. s may be NULL. */
struct pass *sched_claim(struct sched *s, struct db_unit *u, const struct queue_rows *rows);
/* The unit has failed, and by what the claim added to it. p may be NULL. */
bool sched_claim_failed(const struct pass *p, const struct db_rows *rows);
/* The unit is back, rows are those of all its statements; after sched_queued for what it has
 * queued. To be called once for each claim. */
void sched_claimed(struct pass *p, const struct db_rows *rows, const struct err *e);
/* A quota or a pool was changed by this server just now (committed): what is queued from here on is
 * placed by the new one. */
void sched_rules_changed(struct sched *s);
/* A worker was drained or deleted by this server just now (committed): what is queued from here on
 * does not go there. s may be NULL. */
void sched_worker_closed(struct sched *s, struct str worker_id);
/* What the worker holds of images and data, as it has told just now; keys as in goods.h. s may be
 * NULL.
 */
void sched_worker_holds(struct sched *s, struct str worker_id, struct str keys);
bool sched_leading(const struct sched *s);
/* Another server has given up the lead; s may be NULL. */
void sched_lead_free(struct sched *s);
/* Gives up the lead for good, since this server is about to end; s may be NULL. */
void sched_resign(struct sched *s);
/* The leader's memory, for this turn; NULL while this server does not lead, or has not read it. */
struct pool *sched_pool(const struct sched *s);
size_t sched_pending(
	const struct sched *s); /* steps that wait for a worker, as far as the leader knows */

#endif
