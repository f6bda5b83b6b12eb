/* `tidemill-worker check`: what this host offers, for people. */
#ifndef WORKER_CHECK_H
#define WORKER_CHECK_H
#include "worker/agent.h"

/* Prints what it finds. ERR_UNAVAILABLE when no runtime can be used. */
int check_run(struct agent *g, struct err *e) MUST_CHECK;

#endif
