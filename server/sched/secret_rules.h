/* What the field tables cannot check of the secrets that steps name. */
#ifndef SERVER_SCHED_SECRET_RULES_H
#define SERVER_SCHED_SECRET_RULES_H
#include "api/pipeline.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

/* No two may become the same variable; errors begin with /steps. */
int secret_rules_check(const struct pipeline_spec *spec, struct arena *a, struct err *e) MUST_CHECK;

#endif
