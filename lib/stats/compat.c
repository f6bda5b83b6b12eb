#include "lib/stats/compat.h"

#include "lib/stats/distance.h"

#include <math.h>
#include <stdint.h>

/* Counts of [e_j, e_(j+1)), the last bin closed, as numpy.histogram. */
static void histogram(
	const double *sorted, size_t n, const double *edge, size_t bins, uint64_t *ret_count)
{
	size_t i = 0;

	for (size_t j = 0; j < bins; j++) {
		size_t from = i;

		while (i < n && (j + 1 == bins || sorted[i] < edge[j + 1]))
			i++;
		ret_count[j] = i - from;
	}
}

struct compat_psi compat_psi_evidently(struct stats_samples s)
{
	struct compat_psi r = { (double)NAN, (double)NAN, (double)NAN, 0 };
	double edge[COMPAT_BINS_MAX + 1], low, high, width;
	uint64_t ref[COMPAT_BINS_MAX], cur[COMPAT_BINS_MAX];

	if (s.n == 0 || s.m == 0)
		return r;
	low = fmin(s.ref[0], s.cur[0]);
	high = fmax(s.ref[s.n - 1], s.cur[s.m - 1]);
	if (!(high > low)) {
		low -= 0.5;
		high += 0.5;
	}
	width = (high - low) / (log2((double)s.n + (double)s.m) + 1);
	r.bins = (size_t)fmin(ceil((high - low) / width), COMPAT_BINS_MAX);
	for (size_t j = 0; j < r.bins; j++)
		edge[j] = (double)j * ((high - low) / (double)r.bins) + low;
	edge[r.bins] = high;
	histogram(s.ref, s.n, edge, r.bins, ref);
	histogram(s.cur, s.m, edge, r.bins, cur);
	r.statistic = stats_psi((struct stats_cells){ ref, cur, r.bins },
		(struct stats_fill){ STATS_EVIDENTLY, 0 });
	r.first_edge = edge[0];
	r.last_edge = edge[r.bins];
	return r;
}
