/* From an assignment to what a runtime is asked to run: environment, folders, limits. Pure. */
#ifndef WORKER_TASK_H
#define WORKER_TASK_H
#include "api/worker.h"
#include "worker/conf.h"
#include "worker/runtime/runtime.h"

enum { TASK_GRACE_S = 10 };

struct task_spec_args {
	const struct assignment *task;
	const struct worker_conf *conf;
	const struct runtime *runtime;
	const char *dir, *ctl, *secrets_dir; /* of the attempt */
};

/* Everything lies in the arena or is borrowed from the assignment. */
void task_spec(const struct task_spec_args *in, struct arena *a, struct runtime_spec *ret);

/* "TIDEMILL_DATASET_" + the name in upper case, '-' and '.' as '_'. */
const char *task_variable(struct arena *a, const char *prefix, struct str name);

#endif
