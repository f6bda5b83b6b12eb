/*
 * What the ranks of a gang's newest attempt are to its step: one state and one reason, and what is
 * to be done with them. All start together, one that fails ends all, and a worker that is lost, or
 * another fault of ours, counts before what others then failed with. Pure.
 */
#ifndef SERVER_SCHED_GANG_H
#define SERVER_SCHED_GANG_H
#include "api/run.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

struct gang_rank {
	struct str id, worker_id, worker, reason, message;
	int state; /* enum attempt_state */
	int64_t started_at, ended_at; /* 0: not yet */
	bool ready, released; /* its command could begin, may begin */
	bool stopping; /* it has been asked to stop */
};

struct gang {
	struct list ranks; /* struct gang_rank, in order */
	bool led; /* the success of rank 0 is that of all: the others only serve it */
};

struct gang_verdict {
	int state; /* as an attempt that is no gang would have it */
	struct str reason, message;
	int64_t started_at;
	bool stop; /* those that are open and not stopping must */
	bool release; /* all are ready, and none may begin yet */
};

/* ranks, led: as engine_looks has them. */
int gang_read(
	struct str ranks, bool led, struct arena *a, struct gang *ret, struct err *e) MUST_CHECK;
void gang_judge(const struct gang *g, struct arena *a, struct gang_verdict *ret);
bool gang_rank_ended(const struct gang_rank *r);

#endif
