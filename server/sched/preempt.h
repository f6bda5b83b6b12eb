/* What a pass of placement wants to be ended for steps that go first, as rows to be written, and
 * what has become of that. */
#ifndef SERVER_SCHED_PREEMPT_H
#define SERVER_SCHED_PREEMPT_H
#include "server/core/place.h"
#include "server/store/sched_store.h"

struct fleet;
struct pool;

/* Copies, in the arena. */
void preempt_fill(const struct place_snapshot *s, const struct place_result *r, struct arena *a,
	struct preempt_rows *ret);
/* Into the memory; the workers are told. rows: of sched_store_preempt. */
void preempt_take_over(const struct preempt_rows *asked, const struct db_rows *rows,
	struct pool *pool, struct fleet *fleet, int64_t now);

#endif
