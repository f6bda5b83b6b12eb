/* How the steps of a run that failed ended, and what that rests on. */
#ifndef CLI_ENDED_H
#define CLI_ENDED_H
#include "cli/api.h"

/* On a terminal, below the run: each failed step with its last attempt's evidence. */
int ended_show(struct cli *c, const struct jsn *run, struct err *e) MUST_CHECK;

#endif
