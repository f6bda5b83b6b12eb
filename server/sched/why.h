/*
 * Why steps wait, as this server can tell it: a pass of placement over the queue, the workers and
 * what attempts hold, of which nothing is written. The leader looks at its own memory; another
 * server reads the same rows from the database. A view is shared by all who ask within a second,
 * so that asking costs a pass now and then, however many ask.
 */
#ifndef SERVER_SCHED_WHY_H
#define SERVER_SCHED_WHY_H
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "server/core/place_why.h"

struct app;
struct why;
struct pool;

struct why_view {
	struct arena *arena; /* to be held by whoever keeps the view */
	struct place_snapshot snapshot;
	struct place_result result;
	uint32_t *position; /* of each that waits: among those of its pool, from 1 */
	uint32_t *of; /* … and how many those are */
	struct pool_later *later; /* those that wait for their time, the next one first */
	size_t later_n;
	int64_t at; /* wall time */
};

struct why *why_new(struct app *app);
void why_free(struct why *w); /* who still waits for an answer is told ERR_CANCELLED */

/* From the leader's memory, at once. */
const struct why_view *why_view_of(struct why *w, struct pool *pool);

/* The view, or why there is none; once, in a later turn. Lent for the call. */
typedef void why_cb(void *arg, const struct why_view *v, const struct err *e);
void why_ask(struct why *w, why_cb *cb, void *arg);

/* Where a step of the view stands: its position in result.waiting, or in result.placed; -1 each. */
struct why_place {
	ptrdiff_t waiting, placed;
};
struct why_place why_find(const struct why_view *v, struct str step_id);

#endif
