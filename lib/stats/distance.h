/*
 * Distances between two distributions given as counts of the same cells (p reference, q current),
 * and the tests on such counts. Shares are p_j = ref[j] / sum(ref). k is at most STATS_CELLS_MAX.
 * Every function gives NaN when a side is empty.
 *
 * Noise: without drift PSI follows (1/n + 1/m) chi2 with one degree of freedom less than there are
 * cells used by either side (B. Yurdakul, "Statistical Properties of Population Stability Index",
 * 2018). The same expansion to second order gives KL a half, squared Hellinger and Jensen-Shannon
 * (in nats) an eighth of that.
 */
#ifndef LIB_STATS_DISTANCE_H
#define LIB_STATS_DISTANCE_H
#include <stddef.h>
#include <stdint.h>

enum { STATS_CELLS_MAX = 512 };

enum stats_smoothing {
	STATS_FLOOR, /* a zero share becomes `amount` on either side, nothing is renormalised */
	STATS_ADDITIVE, /* `amount` is added to every count */
	STATS_EVIDENTLY, /* zero becomes 1e-4, or a millionth of the smallest share up to 1e-4 */
};

struct stats_fill {
	enum stats_smoothing kind;
	double amount;
};
#define STATS_FILL_DEFAULT ((struct stats_fill){ STATS_FLOOR, 1e-4 })

struct stats_cells {
	const uint64_t *ref, *cur;
	size_t k;
};

size_t stats_cells_used(struct stats_cells c); /* cells with a row on either side */

/* sum (q - p) ln(q / p). */
double stats_psi(struct stats_cells c, struct stats_fill fill);
/* sum p ln(p / q) of the filled shares, renormalised to 1. */
double stats_kl(struct stats_cells c, struct stats_fill fill);
/* sum q ln(q / p) without any fill: +Inf when a cell is empty in the reference only. */
double stats_kl_strict(struct stats_cells c);
/* Square root of the Jensen-Shannon divergence to base 2: 0 to 1. */
double stats_js(struct stats_cells c);
double stats_hellinger(struct stats_cells c); /* sqrt(1 - sum sqrt(p q)) */
double stats_tvd(struct stats_cells c); /* half the sum of |p - q| */
double stats_l_infinity(struct stats_cells c); /* max |p - q| */
/* max |F - G| over the cells in their order: a lower bound of the KS statistic of the samples. */
double stats_ks_cells(struct stats_cells c);

/* A test statistic with its law. */
struct stats_test {
	double statistic, dof, p;
};
/* Pearson's chi-square of the 2 x k table; cells that are empty on both sides are left out. */
struct stats_test stats_chi2(struct stats_cells c);
struct stats_test stats_chi2_yates(struct stats_cells c); /* 2 x 2, continuity corrected */
/* Against the reference's shares as if exact; +Inf and p = 0 for a cell the reference lacks. */
struct stats_test stats_chi2_fit(struct stats_cells c);
struct stats_test stats_g(struct stats_cells c); /* likelihood ratio of the 2 x k table */
double stats_cramers_v(struct stats_cells c);
/* p of the two-sided Fisher exact test of a 2 x 2 table; NaN beyond a million possible tables. */
double stats_fisher(const uint64_t ref[2], const uint64_t cur[2]);

/* Pooled two-proportion z of b/m against a/n, two-sided p; z = 0, p = 1 when all or none have it.
 */
struct stats_share {
	uint64_t hits, rows;
};
struct stats_test stats_two_shares(struct stats_share ref, struct stats_share cur);

/* (c - mean) / sqrt(max(population variance, mean, 1)) over a history of row counts; the mean is
 * the floor that the Poisson law sets. NaN without a history. */
double stats_rows_z(const double *history, size_t n, double current);

/* Adjusted p-values of n tests, in place of their order. `order` is room for n indices. */
enum stats_adjust { STATS_BONFERRONI, STATS_HOLM, STATS_BH };
void stats_adjust_p(const double *p, size_t n, enum stats_adjust how, size_t *order, double *ret);

#endif
