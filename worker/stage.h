/* Inside the workspace: puts the files of an assignment from the cache to where the step reads
 * them. Blocking: for a work thread. */
#ifndef WORKER_STAGE_H
#define WORKER_STAGE_H
#include "api/worker.h"
#include "lib/base/arena.h"
#include "worker/cache.h"
#include "worker/holds.h"

#include <stdatomic.h>

struct stage {
	const struct cache *cache;
	const struct assignment *task;
	const char *dir; /* the attempt's folder */
	const char *kept; /* folder of the checkpoints that wait for their steps' next attempts */
	bool link;
	bool from_server; /* the checkpoint is not here: it is staged */
	bool resumed; /* there is a checkpoint to go on from */
	atomic_bool stop;
	struct arena *files; /* of lists that came as text; NULL: none did */
	const struct file **missing; /* what the cache lacks; mem_free */
	size_t n_missing, missing_room;
	struct hold_data *held; /* the data sets of the last round; mem_free */
	size_t n_held;
	struct err err; /* ERR_OK, also when something is missing */
};

/* Empties and makes the folders of the attempt. */
void stage_prepare(struct stage *s);
/* Places what is not placed yet. */
void stage_run(struct stage *s);
void stage_done(struct stage *s);

#endif
