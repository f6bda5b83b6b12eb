/* Inside worker/ship: finding and digesting the files of declared outputs. Blocking: for a work
 * thread. */
#ifndef WORKER_SHIP_COLLECT_H
#define WORKER_SHIP_COLLECT_H
#include "api/run.h"
#include "api/worker.h"

#include <stdatomic.h>

struct collect {
	const char *root;
	const struct list *outputs; /* struct assigned_output */
	struct arena *a; /* holds all that is found */
	atomic_bool stop; /* set by others: end soon */

	struct file *files; /* all of them, as they are committed: paths below the root; mem_free */
	size_t n;
	struct output_files *found; /* one for each output, in the arena */
	enum reason reason; /* REASON_NONE when all is well */
	struct err err;
};

void collect_run(struct collect *c);
void collect_done(struct collect *c); /* frees `files` */

#endif
