/*
 * A small pool of threads for work that blocks or computes for long: git, hashing, compression,
 * files. run() is called in a thread and may touch only what arg leads to; done() is called on the
 * loop afterwards, exactly once for each accepted job, never inside work_submit(). loop_free()
 * waits until every accepted job is done.
 */
#ifndef LIB_LOOP_WORK_H
#define LIB_LOOP_WORK_H
#include "lib/base/err.h"
#include "lib/loop/loop.h"

#include <stddef.h>

enum { WORK_THREADS = 4, WORK_QUEUE_MAX = 1024 };

typedef void work_run_cb(void *arg);
typedef void work_done_cb(void *arg);

/* Other numbers than the defaults above; before the first work_submit() of the loop. */
void work_setup(struct loop *l, size_t threads, size_t queue_max);
/* ERR_UNAVAILABLE when queue_max jobs are waiting already. */
int work_submit(
	struct loop *l, work_run_cb *run, work_done_cb *done, void *arg, struct err *e) MUST_CHECK;
size_t work_pending(const struct loop *l); /* accepted and not yet done */

#endif
