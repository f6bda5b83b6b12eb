/* What the launchers of steps on several workers want: docs/distributed.md has them in a table. */
#ifndef WORKER_LAUNCHER_H
#define WORKER_LAUNCHER_H
#include "api/worker.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "worker/rank.h"

struct launcher_args {
	const struct assignment *task;
	const struct list *ranks; /* struct rank_place, in order */
	const struct rank_address *here;
	const char *hostfile; /* its path, as the step sees it */
	bool rdma; /* there is such hardware */
};

/* The variables, each ended by a NUL. Those that the step's own environment has are left out, but
 * for TIDEMILL_*. */
void launcher_env(const struct launcher_args *args, struct arena *a, struct buf *out);
/* Lines for mpirun: ADDRESS slots=N. */
void launcher_hostfile(const struct assignment *t, const struct list *ranks, struct buf *out);
/* The command of the rank, ended by NULL: what the step says, or what its launcher puts around it.
 */
const char *const *launcher_argv(struct arena *a, const struct assignment *t);

#endif
