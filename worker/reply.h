/* What the server's answer says. An assignment that cannot be read does not take the others with
 * it. Pure. */
#ifndef WORKER_REPLY_H
#define WORKER_REPLY_H
#include "api/worker.h"
#include "lib/base/err.h"

struct bad_assignment {
	struct str attempt;
	int64_t epoch;
	struct err why;
};

/* ret_bad: struct bad_assignment. An assignment that does not even say whose it is is left out. */
int reply_read(struct str body, struct arena *a, struct sync_reply *ret, struct list *ret_bad,
	struct err *e) MUST_CHECK;

#endif
