/*
 * Paired bootstrap (B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", 1993, 13.3): rows
 * are drawn with replacement, both models keep the same rows, and the difference of their losses is
 * taken each time; the interval lies between percentiles (type 7) of the differences.
 *
 * The same seed gives the same numbers on every machine: the generator is xoshiro256** of D.
 * Blackman and S. Vigna (2018), its state filled by splitmix64 from the seed, a row is
 * floor(high 32 bits x n / 2^32), and rows are drawn one after another, draw by draw.
 */
#ifndef LIB_STATS_BOOTSTRAP_H
#define LIB_STATS_BOOTSTRAP_H
#include "lib/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stats_random {
	uint64_t s[4];
};

static inline void stats_random_seed(struct stats_random *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

		z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
		r->s[i] = z ^ (z >> 31);
	}
}

static inline uint64_t stats_random_next(struct stats_random *r)
{
	uint64_t *s = r->s, x = s[1] * 5, out = ((x << 7) | (x >> 57)) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return out;
}

/* n below 2^32. */
static inline size_t stats_random_row(struct stats_random *r, size_t n)
{
	return (size_t)(((stats_random_next(r) >> 32) * n) >> 32);
}

enum { STATS_DRAWS_MIN = 100, STATS_DRAWS_MAX = 100000 };

struct stats_bootstrap_args {
	/* Loss of each row, lower is better: |e| for mae, e^2 for mse and rmse, 1 or 0 (wrong or
	 * right) for accuracy, minus the log of the chance for log loss. */
	const double *champion, *challenger;
	size_t n; /* 1 to 2^32 - 1 */
	bool root; /* compare the roots of the mean losses: rmse */
	uint32_t draws;
	double confidence; /* of the two-sided interval: 0.95 */
	uint64_t seed;
	double *work; /* 2 x draws values */
};

struct stats_bootstrap {
	double champion, challenger; /* mean loss, or its root */
	double improvement; /* champion - challenger: positive when the challenger is better */
	double low, high; /* interval of the improvement */
	double p; /* (draws without improvement + 1) / (draws + 1) */
};

/* ERR_INVALID for sizes out of bounds, a confidence not in (0, 1) or a loss that is not finite. */
MUST_CHECK int stats_bootstrap(
	const struct stats_bootstrap_args *a, struct stats_bootstrap *ret, struct err *e);

#endif
