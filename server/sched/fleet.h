/*
 * The workers as this server meets them: which of them has a request parked here, and when each was
 * last heard of. Sightings are kept in memory and flushed in batches. A parked request is woken
 * when something about its worker has changed; the waker does not say what, the sync looks for
 * itself.
 */
#ifndef SERVER_SCHED_FLEET_H
#define SERVER_SCHED_FLEET_H
#include "server/sched/assignment.h"

struct app;
struct fleet;
struct fleet_wait;

/* replaced: the worker has parked another request, which it is told everything by from now on. */
typedef void fleet_cb(void *arg, bool replaced);

struct fleet *fleet_new(struct app *app);
void fleet_free(struct fleet *f); /* nothing may be parked any more; NULL is fine */

/* The worker was heard of now. */
void fleet_seen(struct fleet *f, struct str worker_id);
/* Whether the database knows that it was heard of a moment ago: only then may it be told anything,
 * because a worker takes each answer for a word that its attempts may go on, and they are given up
 * by what the database knows. `asked` (loop_now()): before the write was sent. */
bool fleet_is_stored(const struct fleet *f, struct str worker_id);
void fleet_note_stored(struct fleet *f, struct str worker_id, int64_t asked);
/* What this server has stored of a worker, so that it is not stored again with every sync: a hash
 * of its inventory, and the last reported state of each of its attempts. `note` functions are
 * called after the write; what another server has stored is not known here, and is stored again.
 * An inventory is, too, after a minute and when its worker's row has changed: it may have told
 * another server another one in between. */
bool fleet_knows_inventory(const struct fleet *f, struct str worker_id, uint64_t hash);
void fleet_note_inventory(struct fleet *f, struct str worker_id, uint64_t hash);
bool fleet_knows_state(
	const struct fleet *f, struct str worker_id, struct str attempt_id, int state);
void fleet_note_state(struct fleet *f, struct str worker_id, struct str attempt_id, int state);
/* The worker holds these now: states of others, which it may have ended elsewhere, are forgotten.
 */
void fleet_keep_states(struct fleet *f, struct str worker_id, const struct str *attempts, size_t n);
/* When this server last heard of it (wall time), 0: never. */
int64_t fleet_seen_at(const struct fleet *f, struct str worker_id);
/* The later of that and of what is stored; a pool_seen, the argument being the fleet. */
int64_t fleet_last_seen(void *fleet, struct str worker_id, int64_t stored);
/* What worker and server have found to agree on, so that not every exchange reads it again: the
 * attempts that the worker named, all right and all there was, when it had been woken `wakes`
 * times. What it is handed counts, too. It lasts until the worker is woken for another reason, and
 * for less than the time that a request is parked. attempts: struct sync_attempt. */
void fleet_agreed(
	struct fleet *f, struct str worker_id, uint64_t wakes, const struct list *attempts);
bool fleet_agrees(const struct fleet *f, struct str worker_id, const struct list *attempts);
/* Parks: cb runs once, in a later turn, on a wake or after ms. One parked request per worker: a
 * second one takes the place of the first, which ends as replaced. */
struct fleet_wait *fleet_park(
	struct fleet *f, struct str worker_id, int64_t ms, fleet_cb *cb, void *arg);
void fleet_unpark(struct fleet_wait *w); /* without a callback; the client has gone */
void fleet_wake(struct fleet *f, struct str worker_id);
bool fleet_is_parked(const struct fleet *f, struct str worker_id);
/* Wakes a worker with an assignment of its own in hand; a is held until it has been taken. One that
 * is not parked, or gets more than goes into one reply, is only woken: it looks for itself. */
void fleet_hand(struct fleet *f, struct str worker_id, struct arena *a,
	const struct assignment *given, struct assignment_size size);
/* What was handed over since the last time, in the arena. */
struct list fleet_take(struct fleet *f, struct str worker_id, struct arena *a);
/* How often the worker was woken, parked or not: who looks, and then parks, must not have missed a
 * wake in between. */
uint64_t fleet_wakes(struct fleet *f, struct str worker_id);
/* Of the requests of a worker that may be parked: a number for the one that has just come, and
 * whether none has come since. An older one must not take the place of a newer one. */
uint64_t fleet_turn(struct fleet *f, struct str worker_id);
bool fleet_is_last(const struct fleet *f, struct str worker_id, uint64_t turn);
void fleet_wake_all(struct fleet *f); /* the server is about to end */
size_t fleet_parked(const struct fleet *f);

#endif
