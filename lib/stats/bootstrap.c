#include "lib/stats/bootstrap.h"

#include "lib/stats/profile.h"
#include "lib/stats/sample.h"

#include <math.h>

static double level(double mean, bool root)
{
	return root ? sqrt(mean) : mean;
}

static double draw(const struct stats_bootstrap_args *a, struct stats_random *r)
{
	double champion = 0, challenger = 0;

	for (size_t i = 0; i < a->n; i++) {
		size_t row = stats_random_row(r, a->n);

		champion += a->champion[row];
		challenger += a->challenger[row];
	}
	return level(champion / (double)a->n, a->root) - level(challenger / (double)a->n, a->root);
}

static double percentile(const double *sorted, size_t n, double q)
{
	double pos = q * (double)(n - 1), base = floor(pos);
	size_t i = (size_t)base;

	return i + 1 < n ? sorted[i] + (pos - base) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

static int check(const struct stats_bootstrap_args *a, struct err *e)
{
	if (a->n == 0 || a->n >= UINT32_MAX)
		return err_set(
			e, ERR_INVALID, "a bootstrap needs 1 to 4294967294 rows, not %zu", a->n);
	if (a->draws < STATS_DRAWS_MIN || a->draws > STATS_DRAWS_MAX)
		return err_field(e, "/draws", "draws must be %d to %d, not %u", STATS_DRAWS_MIN,
			STATS_DRAWS_MAX, a->draws);
	if (!(a->confidence > 0 && a->confidence < 1))
		return err_field(e, "/alpha", "alpha must lie between 0 and 1");
	for (size_t i = 0; i < a->n; i++)
		if (!isfinite(a->champion[i]) || !isfinite(a->challenger[i]))
			return err_set(e, ERR_INVALID, "the loss of row %zu is not finite", i);
	return 0;
}

int stats_bootstrap(
	const struct stats_bootstrap_args *a, struct stats_bootstrap *ret, struct err *e)
{
	struct stats_bootstrap v = { 0 };
	struct stats_random r;
	uint32_t worse = 0;

	if (check(a, e) != 0)
		return -1;
	stats_random_seed(&r, a->seed);
	for (uint32_t d = 0; d < a->draws; d++) {
		a->work[d] = draw(a, &r);
		worse += !(a->work[d] > 0);
	}
	stats_sort(a->work, a->draws, a->work + a->draws);
	v.champion = level(stats_mean(a->champion, a->n), a->root);
	v.challenger = level(stats_mean(a->challenger, a->n), a->root);
	v.improvement = v.champion - v.challenger;
	v.low = percentile(a->work, a->draws, (1 - a->confidence) / 2);
	v.high = percentile(a->work, a->draws, 1 - (1 - a->confidence) / 2);
	v.p = ((double)worse + 1) / ((double)a->draws + 1);
	*ret = v;
	return 0;
}
