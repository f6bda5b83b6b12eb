/* What the files of lib/loop share; for no one else. */
#ifndef LIB_LOOP_INSIDE_H
#define LIB_LOOP_INSIDE_H
#include "lib/loop/defer.h"
#include "lib/loop/timer.h"

struct event;
struct event_base;
struct work_pool;

struct loop_deferred {
	loop_defer_cb *fn;
	void *arg;
};

struct loop {
	struct event_base *base;
	bool stop;
	int64_t turn_us; /* when the first callback of this turn began; 0 between turns */
	uint64_t slow_turns;
	bool serves_nobody;
	struct event *tick; /* for the earliest timer */
	int64_t tick_us; /* when it will fire; INT64_MAX: not armed */
	struct loop_timer **heap; /* 1 … timers; slot 0 is not used */
	size_t timers, heap_cap;
	struct loop_deferred *queue;
	size_t queued, queue_cap;
	struct work_pool *work;
};

void loop_enter(struct loop *l); /* at the start of every callback from libevent */
void timers_arm(struct loop *l); /* before waiting */
void timers_run(struct loop *l);
void timers_done(struct loop *l);
void work_drain(struct loop *l); /* waits for all jobs, runs their done(), ends the threads */

#endif
