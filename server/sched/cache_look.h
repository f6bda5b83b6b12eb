/* Looking steps up in the cache: their keys, and which steps of the project have the same and have
 * succeeded. */
#ifndef SERVER_SCHED_CACHE_LOOK_H
#define SERVER_SCHED_CACHE_LOOK_H
#include "server/sched/plan.h"

struct app;

typedef void cache_look_cb(void *arg, const struct err *e);
/* Fills in run->steps[].cached of the steps that are wanted (struct plan_cache_want); e->code is
 * ERR_OK when that is done. Once, from the loop. Everything must live until then. */
void cache_look(struct app *app, struct arena *a, struct plan_run *run, const struct list *wants,
	cache_look_cb *cb, void *arg);

#endif
