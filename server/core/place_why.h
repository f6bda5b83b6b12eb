/*
 * Why a step waits, after a pass of placement: what is in its way, what would let it start, and
 * when what others hold may be free. Pure, like the pass: the same snapshot gives the same answer,
 * in whatever order it is asked.
 *
 * Blockers come in three groups, of which a step has one. `never`: no worker could take the step
 * even if all were online, well-disposed and idle; only another fleet or another step helps. Gone:
 * those that could are offline or are drained. Else it waits for what others hold.
 *
 * `waiting` below is a position in the result's waiting. Answers live in the result's arena, and
 * are shared by steps that want the same.
 */
#ifndef SERVER_CORE_PLACE_WHY_H
#define SERVER_CORE_PLACE_WHY_H
#include "server/core/place.h"

enum place_blocker_kind {
	PLACE_NO_POOL, /* no worker belongs to the pool */
	PLACE_SENSITIVITY, /* the pool does not allow what the step is; what = that */
	PLACE_RUNTIME, /* none of the workers offers a runtime of the step's; what = their names */
	PLACE_ISOLATED, /* … lets the ranks of a gang reach each other; what = names of runtimes */
	PLACE_REQUIRES, /* … has all labels; what, value = the one that most of them lack */
	PLACE_AVOIDS, /* … is free of labels to be avoided; what, value = the most common one */
	PLACE_GPUS, /* GPUs of one worker that match; what = "H100, 40 GiB or more each", or "" */
	PLACE_MEMORY, /* bytes */
	PLACE_CPUS, /* need, most_free and most_all are thousandths of a core */
	PLACE_DISK, /* bytes; a worker tells what is free only, so never `never` */
	PLACE_TOGETHER, /* each is there, but not on one worker: the one that comes closest meets
			   most_free of `need` wants; what = those it lacks */
	PLACE_NODES, /* `need` workers at once, each with `what` ("2 GPUs, 8 CPUs"): most_free have
			that free now, most_all have it in all, of which `workers` are online and
			take work, and `isolated` more are of no use to a gang; never: most_all are
			too few */
	PLACE_KEPT, /* what it needs is free on `worker`, and kept for the step `what` before it;
		       until `until`, when that is known and a time limit that ends by then would do
		     */
	PLACE_PREEMPTING, /* `workers` attempts are being ended for it, on `worker` and, for a gang,
			     others; until `until` at the latest */
	PLACE_QUOTA, /* it would be more than the quota of the project `what`, of GPUs or, where
			need is 0, of running steps: most_all = nominal + borrow, most_free = what
			is left; or that is kept for its step `value`, whose turn is earlier */
	PLACE_OFFLINE, /* `workers` could take it and are offline, the first being `worker` */
	PLACE_DRAINING, /* … take no new work */
	PLACE_BLOCKER_KINDS
};

struct place_blocker {
	enum place_blocker_kind kind;
	bool never;
	struct str pool, what, value;
	uint32_t workers; /* that were looked at: each is kept from taking the step by this */
	uint32_t pool_workers; /* in the pool */
	uint32_t nodes; /* PLACE_QUOTA: that the step wants at once */
	uint32_t unwell; /* GPUs of `largest` that are not well */
	uint32_t isolated; /* PLACE_NODES: workers where ranks do not reach each other */
	int64_t need, most_free, most_all;
	int64_t until;
	struct str worker, worker_name; /* the one with most_free */
	struct str largest, largest_name; /* the one with most_all */
};

/* At least one, the most telling first. */
const struct place_blocker *place_blockers(
	const struct place_result *r, size_t waiting, uint32_t *ret_n);

extern const char *const place_sensitivity_names[PLACE_SENSITIVITIES];
/* "gpus": stable, for the API. */
const char *place_blocker_name(enum place_blocker_kind k);
/* A sentence for people: "needs 8 GPUs on one worker; the largest free block is 5, on gpu-07".
 * Without `numbers` it leaves out what changes as work comes and goes. Returns out. */
enum { PLACE_TEXT_MAX = 512 };
const char *place_explain(char out[PLACE_TEXT_MAX], const struct place_blocker *b, bool numbers);

/* ---- what would let it start now ------------------------------------------------------------ */

enum place_edit_kind {
	PLACE_EDIT_NODES, /* ask for `to` workers instead of `from`; the only one of its change,
			     which then names no worker */
	PLACE_EDIT_GPUS, /* ask for `to` instead of `from` */
	PLACE_EDIT_MEMORY,
	PLACE_EDIT_CPUS,
	PLACE_EDIT_DISK,
	PLACE_EDIT_TIME_LIMIT, /* end within `to` microseconds; from 0: it has no time limit */
	PLACE_EDIT_GPU_MODEL, /* accept the GPU model `what` */
	PLACE_EDIT_REQUIRES, /* do not require the label what=value */
	PLACE_EDIT_AVOIDS, /* do not avoid it */
	PLACE_EDIT_RUNTIME, /* accept the runtime `what` */
	PLACE_EDIT_POOL, /* be placed in the pool `what` */
	PLACE_EDIT_RESUME, /* let the worker take work again */
	PLACE_EDIT_KINDS
};
struct place_edit {
	enum place_edit_kind kind;
	struct str what, value;
	int64_t from, to;
};
enum { PLACE_EDITS_MAX = 3 };
struct place_change {
	struct str worker, worker_name;
	struct place_edit edits[PLACE_EDITS_MAX];
	uint32_t edits_n;
};

/* The smallest change after which a worker would take the step at once: the fewest edits, then the
 * mildest kinds, then the least that is given up. Amounts are cut to a tenth at most. False: there
 * is none. */
bool place_change(const struct place_result *r, size_t waiting, struct place_change *ret);
const char *place_edit_name(enum place_edit_kind k);
/* "on gpu-07, if it asked for 5 GPUs instead of 8". Returns out. */
const char *place_change_text(char out[PLACE_TEXT_MAX], const struct place_change *c);

/* ---- when it may start ---------------------------------------------------------------------- */

/* When the step would start if everything that runs took its whole time limit, and nothing new
 * came before it: microseconds, or 0 when that cannot be told. What has no time limit is never
 * counted on. The scratch arena needs place_start_room(). */
int64_t place_start(
	const struct place_result *r, size_t waiting, int64_t now, struct arena *scratch);
size_t place_start_room(const struct place_result *r);

#endif
