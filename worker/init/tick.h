/* The two clocks of the init, in microseconds: what a calendar shows, and what elapses (counting
 * suspended time, never set by anybody). */
#ifndef WORKER_INIT_TICK_H
#define WORKER_INIT_TICK_H
#include <stdint.h>
#include <time.h>

#define TICK_SECOND INT64_C(1000000)

static inline int64_t tick_of(clockid_t clock)
{
	struct timespec t = { 0 };

	(void)clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * TICK_SECOND + t.tv_nsec / 1000;
}

static inline int64_t tick_real(void)
{
	return tick_of(CLOCK_REALTIME);
}

static inline int64_t tick_elapsed(void)
{
	return tick_of(CLOCK_BOOTTIME);
}

#endif
