/*
 * The whole answer to "why does it wait", of one step: what the database knows of it (its needs,
 * its group, its retries, its preparation), and where it stands among the workers.
 */
#ifndef SERVER_SCHED_WAITS_H
#define SERVER_SCHED_WAITS_H
#include "api/queue.h"
#include "lib/base/arena.h"
#include "server/sched/why.h"
#include "server/store/wait_store.h"

/* Whether the answer needs a view of the workers. */
bool wait_wants_view(const struct wait_facts *f, int64_t now);
/* v may be NULL when it is not wanted. `deep`: also what would let the step start, and when, which
 * takes milliseconds. The result borrows from facts and view, and lives in the arena. */
void wait_explain(const struct wait_facts *f, const struct why_view *v, int64_t now, bool deep,
	struct arena *a, struct step_wait *ret);

#endif
