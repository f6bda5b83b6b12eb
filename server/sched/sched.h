/*
 * The scheduler: while this server leads, it keeps the queue, the workers and the open attempts in
 * memory, hands steps out as server/core/place decides, and gives attempts up whose workers have
 * been silent for too long. Every write is guarded by the lease's epoch. Memory is fed by the hub
 * and checked against the database now and then.
 */
#ifndef SERVER_SCHED_SCHED_H
#define SERVER_SCHED_SCHED_H
#include "lib/base/str.h"

struct app;
struct queue_rows;
struct sched;

struct sched *sched_new(struct app *app);
void sched_free(struct sched *s); /* gives the lease back; NULL is fine */
/* These steps were queued by this server just now (committed): a leader need not wait for their
 * events. s may be NULL. */
void sched_queued(struct sched *s, const struct queue_rows *rows);
/* A quota or a pool was changed by this server just now (committed): what is queued from here on is
 * placed by the new one. */
void sched_rules_changed(struct sched *s);
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
