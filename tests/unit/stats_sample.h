/* Samples of several shapes, and what is made of them. */
#ifndef TESTS_UNIT_STATS_SAMPLE_H
#define TESTS_UNIT_STATS_SAMPLE_H
#include "lib/base/mem.h"
#include "lib/stats/bootstrap.h"
#include "lib/stats/category.h"
#include "lib/stats/metric.h"
#include "tests/unit/unit.h"

#include <math.h>

static inline void near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))) && !(isinf(got) && got == want))
		fail_msg("%.17g is not %.17g", got, want);
}

static inline double uniform(struct stats_random *r)
{
	return 0x1p-53 * (double)(stats_random_next(r) >> 11);
}

static inline double bell(struct stats_random *r)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(r);
	return sum;
}

/* A value of one of several shapes: 0 bell, 1 heavy tail, 2 many zeros, 3 small integers, 4 holes.
 */
static inline double shaped(struct stats_random *r, int shape)
{
	double u = uniform(r);

	if (shape == 1)
		return 1 / (1 - u);
	if (shape == 2)
		return u < 0.6 ? 0 : u;
	if (shape == 3)
		return floor(u * 7) - 3;
	if (shape == 4)
		return u < 0.05 ? (double)NAN : u < 0.06 ? HUGE_VAL : u < 0.07 ? -HUGE_VAL : u;
	return bell(r);
}

static inline double *sample(size_t n, int shape, double scale, double shift, uint64_t seed)
{
	double *v = mem_new(n + 1, sizeof(*v));
	struct stats_random r;

	stats_random_seed(&r, seed);
	for (size_t i = 0; i < n; i++)
		v[i] = shaped(&r, shape) * scale + shift;
	return v;
}

static inline struct stats_profile *build(const double *v, size_t n, uint64_t nulls, uint32_t bins)
{
	struct stats_profile *p = mem_new_of(struct stats_profile);
	double *work = mem_new(2 * n + 1, sizeof(*work));
	struct err e;

	assert_int_equal(
		stats_profile_build(&(struct stats_profile_args){ v, n, nulls, bins, work }, p, &e),
		0);
	mem_free(work);
	return p;
}

static inline struct stats_counts *count(const struct stats_profile *p, const double *v, size_t n)
{
	struct stats_counts *c = mem_new_of(struct stats_counts);

	stats_counts_init(c, p);
	stats_counts_add(c, p, v, n);
	return c;
}

static inline struct stats_categories *categories(
	struct stats_category_in *in, size_t n, uint64_t nulls, uint64_t *seen, size_t room)
{
	struct stats_categories *c = mem_new_of(struct stats_categories);
	struct err e;

	assert_int_equal(
		stats_categories_build(
			&(struct stats_categories_args){ in, n, nulls, seen, room }, c, &e),
		0);
	return c;
}

static inline size_t many(struct stats_category_in *in)
{
	static char names[400][8];

	for (size_t i = 0; i < 400; i++) {
		str_print(names[i], sizeof(names[i]), "c%03zu", (i * 7) % 400);
		in[i] = (struct stats_category_in){ str_c(names[i]), 400 - (i * 7) % 400 };
	}
	return 400;
}

#endif
