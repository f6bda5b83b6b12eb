/*
 * What a step leaves in TIDEMILL_CHECKPOINT_DIR, between its attempts on this host.
 *
 * The folder is OUT/.checkpoint of the running attempt. When an attempt ends without success, its
 * folder goes to WORK/checkpoints/STEP/NUMBER, by a rename, before the server is told of the end;
 * the next attempt of the step on this host gets it back by a rename, unless an attempt on another
 * host has brought a later one to the server, which is then staged as a copy. A folder that is not
 * empty is whole: what is staged grows under another name first.
 *
 * (blocks) All but the two names; for work threads.
 */
#ifndef WORKER_CHECKPOINT_H
#define WORKER_CHECKPOINT_H
#include "lib/base/err.h"
#include "lib/base/str.h"

#define CHECKPOINT_DIR  ".checkpoint" /* below out/ */
#define CHECKPOINT_PART ".checkpoint.part"

/* What is in a folder, by names, sizes and times: differs when somebody has written. */
struct checkpoint_state {
	uint64_t sum; /* 0: nothing is there */
	size_t files;
	int64_t bytes;
};
int checkpoint_look(const char *dir, struct checkpoint_state *ret, struct err *e) MUST_CHECK;

/* Puts what an earlier attempt left here into `out`, when it is of attempt number `least` or later.
 * False in *ret_found when there is none. Nothing is lost when it is interrupted. */
int checkpoint_take(const char *kept, const char *step, int64_t least, const char *out,
	bool *ret_found, struct err *e) MUST_CHECK;
/* Makes the staged part the checkpoint. */
int checkpoint_settle(const char *out, struct err *e) MUST_CHECK;
/* Keeps the folder of an attempt that is over. False in *ret_kept when it was empty. */
int checkpoint_keep(const char *kept, const char *step, int64_t number, const char *out,
	bool *ret_kept, struct err *e) MUST_CHECK;
int checkpoint_discard(const char *kept, const char *step, struct err *e) MUST_CHECK;

#endif
