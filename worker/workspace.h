/*
 * Makes an attempt ready to start: its folders, the checkout at the exact commit, and the staged
 * files, below the attempt's folder:
 *
 *     code/  the checkout; given to the step's user by the runtime
 *     in/datasets/NAME/…, in/models/NAME/…, in/inputs/STEP/…   read-only
 *     out/   what the step leaves; in out/.checkpoint what an earlier attempt has left
 *
 * Trouble with the network is tried again without end; who waits cancels when it takes too long.
 */
#ifndef WORKER_WORKSPACE_H
#define WORKER_WORKSPACE_H
#include "api/run.h"
#include "api/worker.h"
#include "worker/cache.h"
#include "worker/conf.h"
#include "worker/holds.h"

struct workspace;

/* REASON_NONE: ready. Else why not: REASON_CHECKOUT_FAILED, REASON_STAGING_FAILED,
 * REASON_DISK_FULL, REASON_SUPERSEDED, REASON_CANCELLED. Once, never inside a call. */
typedef void workspace_cb(void *arg, enum reason reason, const char *message);

struct workspace_args {
	struct loop *loop;
	struct cache *cache;
	struct hold_list *holds; /* is told of the data that was staged */
	const struct worker_conf *conf;
	const struct assignment *task; /* borrowed */
	const char *dir; /* the attempt's folder, which is there; borrowed */
	const char *kept; /* of checkpoints, see checkpoint.h; borrowed */
	bool *ret_resumed; /* there is a checkpoint to go on from */
	workspace_cb *done;
	void *arg;
};

struct workspace *workspace_start(const struct workspace_args *a) __attribute__((returns_nonnull));
void workspace_cancel(struct workspace *w); /* done comes soon, with REASON_CANCELLED */

#endif
