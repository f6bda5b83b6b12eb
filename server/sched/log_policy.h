/*
 * Log policies: what a step wants done when a line of its log matches a pattern, and what Tidemill
 * itself looks for unless `logs.defaults` is false. The worker looks at the lines as it ships them,
 * masked, and tells which policies matched; here they are checked, put together for it, and what it
 * told is judged when the attempt has failed.
 */
#ifndef SERVER_SCHED_LOG_POLICY_H
#define SERVER_SCHED_LOG_POLICY_H
#include "api/pipeline.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

/* Whether all patterns can be read; errors begin with /steps. */
int log_policy_check(const struct pipeline_spec *spec, struct arena *a, struct err *e) MUST_CHECK;

/* The step's own, then Tidemill's: struct log_policy, in the arena. */
struct list log_policy_all(const struct log_spec *logs, struct arena *a);

struct log_verdict {
	struct str stop; /* why the command is not tried again; "" when nothing says so */
	bool avoid; /* the worker is not to have the step again */
};
/* Of an attempt's matches, a JSON list of struct log_match; "" is none. */
void log_policy_judge(struct str matches_json, struct arena *a, struct log_verdict *ret);

#endif
