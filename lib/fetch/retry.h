/*
 * How long to wait before the next try: exponential backoff with full jitter (M. Brooker,
 * "Exponential Backoff And Jitter", 2015): uniformly random in [0, min(cap, first * 2^n)]. Pure:
 * the caller brings the randomness. Microseconds.
 */
#ifndef LIB_FETCH_RETRY_H
#define LIB_FETCH_RETRY_H
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct retry {
	int64_t first, cap; /* > 0 */
	unsigned max_tries; /* 0: no end */
	unsigned tries; /* failures so far; zeroed by the caller after a success */
};

/* Counts one failure. Returns the wait, never less than `at_least` (a Retry-After; 0: none), or -1
 * when the tries are used up. */
int64_t retry_next(struct retry *r, uint64_t random, int64_t at_least);
/* Whether the outcome of a request may be different next time: the error, or else the status. */
bool retry_useful(const struct err *e, int status);

#endif
