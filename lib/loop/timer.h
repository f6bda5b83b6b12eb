/*
 * Timers, embedded in their owner. Milliseconds on CLOCK_BOOTTIME; zero fires in the next turn. A
 * timer may be set, cancelled or freed with its owner inside its own callback. Setting an armed
 * timer moves it. Cost: O(log n).
 */
#ifndef LIB_LOOP_TIMER_H
#define LIB_LOOP_TIMER_H
#include "lib/loop/loop.h"

#include <stddef.h>

typedef void loop_timer_cb(void *arg);

struct loop_timer { /* private */
	struct loop *loop;
	loop_timer_cb *fn;
	void *arg;
	int64_t due_us, period_us;
	size_t slot; /* place in the loop's heap, counted from 1; 0: not armed */
};

void loop_timer_init(struct loop_timer *t, struct loop *l, loop_timer_cb *fn, void *arg);
void loop_timer_set(struct loop_timer *t, int64_t ms); /* once */
void loop_timer_every(struct loop_timer *t, int64_t ms); /* ms > 0; a late tick is not repeated */
void loop_timer_at(
	struct loop_timer *t, int64_t due_us); /* once, at a time on loop_now()'s clock */
/* Also for a timer that is not armed or is zeroed memory; must be called before the owner is freed
 * while the timer is armed. */
void loop_timer_cancel(struct loop_timer *t);
bool loop_timer_armed(const struct loop_timer *t);

#endif
