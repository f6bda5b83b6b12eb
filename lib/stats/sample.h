/*
 * Statistics of two samples at hand, both finite and sorted ascending (stats_sort): exact where the
 * binned metrics are bounds. For small windows, tests, and checks of the binned ones.
 */
#ifndef LIB_STATS_SAMPLE_H
#define LIB_STATS_SAMPLE_H
#include <stddef.h>

struct stats_samples {
	const double *ref;
	size_t n;
	const double *cur;
	size_t m;
};

/* max |F - G|, ties as steps: exact in integers up to the last division. NaN when a side is empty.
 */
double stats_ks(struct stats_samples s);
/* The share of lattice paths from (0, 0) to (n, m) that reach |i m - j n| >= D n m (J. Hodges,
 * Arkiv foer Matematik 3, 1958); O(n m), conservative with ties. work: m + 1 values. NaN when
 * n m is above STATS_KS_EXACT_MAX or a side is empty. */
#define STATS_KS_EXACT_MAX 25000000
double stats_ks_exact_p(size_t n, size_t m, double d, double *work);
/* Kolmogorov's law at sqrt(en) D, en = n m / (n + m), and with the correction of M. Stephens (JRSS
 * B 32, 1970): (sqrt(en) + 0.12 + 0.11 / sqrt(en)) D. */
double stats_ks_limit_p(double n, double m, double d);
double stats_ks_stephens_p(double n, double m, double d);
/* The D whose p by Stephens is alpha. */
double stats_ks_critical(double n, double m, double alpha);

/* Wasserstein distance: integral of |F - G|; and energy distance: sqrt(2 integral (F - G)^2). */
struct stats_transport {
	double wasserstein, energy;
};
struct stats_transport stats_transport(struct stats_samples s);

/* Chance that a value of cur is above one of ref, ties one half: the area under the ROC curve when
 * ref holds the scores of the negatives and cur those of the positives. */
double stats_auc(struct stats_samples s);

double stats_mean(const double *v, size_t n);
double stats_deviation(const double *v, size_t n); /* of the population: divided by n */

#endif
