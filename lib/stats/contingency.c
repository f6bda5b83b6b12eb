#include "lib/stats/distance.h"
#include "lib/stats/special.h"

#include <math.h>

/* Tests of counts: the reference and the current sample are the two rows of a 2 x k table. */
struct table {
	double ref, cur, all;
	size_t used;
};

static struct table table_of(struct stats_cells c)
{
	struct table t = { .used = stats_cells_used(c) };

	for (size_t j = 0; j < c.k; j++) {
		t.ref += (double)c.ref[j];
		t.cur += (double)c.cur[j];
	}
	t.all = t.ref + t.cur;
	return t;
}

static struct stats_test no_test(void)
{
	return (struct stats_test){ (double)NAN, (double)NAN, (double)NAN };
}

static struct stats_test by_chi2(double statistic, double dof)
{
	struct stats_test r = { statistic, dof, 1 };

	if (dof > 0)
		r.p = special_chi2_sf(statistic, dof);
	return r;
}

/* Sum over the table of (|O - E| - correction)^2 / E. */
static double pearson(struct stats_cells c, struct table t, double correction)
{
	double sum = 0;

	for (size_t j = 0; j < c.k; j++) {
		double column = (double)c.ref[j] + (double)c.cur[j];
		double expect_ref = column * t.ref / t.all, expect_cur = column * t.cur / t.all, d;

		if (!(column > 0))
			continue;
		d = fabs((double)c.ref[j] - expect_ref);
		d -= fmin(correction, d);
		sum += d * d / expect_ref + d * d / expect_cur;
	}
	return sum;
}

struct stats_test stats_chi2(struct stats_cells c)
{
	struct table t = table_of(c);

	if (!(t.ref > 0 && t.cur > 0))
		return no_test();
	return by_chi2(pearson(c, t, 0), (double)t.used - 1);
}

struct stats_test stats_chi2_yates(struct stats_cells c)
{
	struct table t = table_of(c);

	if (!(t.ref > 0 && t.cur > 0) || t.used > 2)
		return no_test();
	return by_chi2(pearson(c, t, 0.5), (double)t.used - 1);
}

struct stats_test stats_chi2_fit(struct stats_cells c)
{
	struct table t = table_of(c);
	double sum = 0;

	if (!(t.ref > 0 && t.cur > 0))
		return no_test();
	for (size_t j = 0; j < c.k; j++) {
		double expect = (double)c.ref[j] * t.cur / t.ref, d = (double)c.cur[j] - expect;

		if (c.ref[j] == 0 && c.cur[j] == 0)
			continue;
		if (c.ref[j] == 0)
			return (struct stats_test){ HUGE_VAL, (double)t.used - 1, 0 };
		sum += d * d / expect;
	}
	return by_chi2(sum, (double)t.used - 1);
}

struct stats_test stats_g(struct stats_cells c)
{
	struct table t = table_of(c);
	double sum = 0;

	if (!(t.ref > 0 && t.cur > 0))
		return no_test();
	for (size_t j = 0; j < c.k; j++) {
		double ref = (double)c.ref[j], cur = (double)c.cur[j], column = ref + cur;

		if (ref > 0)
			sum += 2 * ref * log(ref * t.all / (column * t.ref));
		if (cur > 0)
			sum += 2 * cur * log(cur * t.all / (column * t.cur));
	}
	return by_chi2(fmax(sum, 0), (double)t.used - 1);
}

double stats_cramers_v(struct stats_cells c)
{
	struct table t = table_of(c);

	if (!(t.ref > 0 && t.cur > 0))
		return (double)NAN;
	/* A table of two rows: min(r - 1, k - 1) is 1, or 0 with a single column. */
	return t.used < 2 ? 0 : sqrt(pearson(c, t, 0) / t.all);
}

static double log_choose(double n, double k)
{
	int sign;

	return lgamma_r(n + 1, &sign) - lgamma_r(k + 1, &sign) - lgamma_r(n - k + 1, &sign);
}

double stats_fisher(const uint64_t ref[2], const uint64_t cur[2])
{
	double row = (double)ref[0] + (double)ref[1], other = (double)cur[0] + (double)cur[1];
	double column = (double)ref[0] + (double)cur[0], all = row + other;
	double low = fmax(0, column - other), high = fmin(row, column);
	double base = log_choose(all, column), seen, p = 0;

	if (!(row > 0 && other > 0) || high - low > 1e6)
		return (double)NAN;
	seen = log_choose(row, (double)ref[0]) + log_choose(other, (double)cur[0]) - base;
	/* All tables with the same margins that are no likelier than the one seen. */
	for (double x = low; x <= high; x++) {
		double here = log_choose(row, x) + log_choose(other, column - x) - base;

		if (here <= seen + 1e-7)
			p += exp(here);
	}
	return fmin(p, 1);
}

struct stats_test stats_two_shares(struct stats_share ref, struct stats_share cur)
{
	struct stats_test r = { 0, (double)NAN, 1 };
	double n = (double)ref.rows, m = (double)cur.rows, pooled;

	if (ref.rows == 0 || cur.rows == 0)
		return no_test();
	pooled = ((double)ref.hits + (double)cur.hits) / (n + m);
	if (pooled > 0 && pooled < 1) {
		double error = sqrt(pooled * (1 - pooled) * (1 / n + 1 / m));

		r.statistic = ((double)cur.hits / m - (double)ref.hits / n) / error;
		r.p = special_normal_two_sided(r.statistic);
	}
	return r;
}
