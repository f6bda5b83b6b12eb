/* What the files of a spec share: spec.c reads and checks, spec_render.c fills in. */
#ifndef SERVER_SCHED_SPEC_INSIDE_H
#define SERVER_SCHED_SPEC_INSIDE_H
#include "server/sched/spec.h"

bool spec_is_shell(struct str run_json); /* `run` is one text */
bool spec_is_blank(struct str s);
/* The days of training data, as far as they are filled in. */
int spec_check_training(const struct training_data *t, struct err *e) MUST_CHECK;

#endif
