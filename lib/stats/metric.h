/*
 * Drift metrics of one column: a window against its reference, all at once. Every metric has a
 * value, a critical value that noise alone passes with probability alpha / tests at these sample
 * sizes, and a p-value; critical and p are NaN where no law is known. A feature counts as drifted
 * only when the value reaches both its threshold and its critical value (stats_drifted).
 *
 * A column that cannot be tested has a status and never an error: no_data (no row), all_missing
 * (only null and NaN), insufficient (too few finite values on a side; the values are still given
 * when they exist), type_changed. `constant` says that the reference has a single value: distances
 * are given and are finite, and normed Wasserstein rests on the floor of the deviation.
 */
#ifndef LIB_STATS_METRIC_H
#define LIB_STATS_METRIC_H
#include "lib/stats/category.h"
#include "lib/stats/distance.h"
#include "lib/stats/profile.h"

enum stats_status {
	STATS_OK,
	STATS_NO_DATA,
	STATS_INSUFFICIENT,
	STATS_ALL_MISSING,
	STATS_CONSTANT,
	STATS_TYPE_CHANGED,
	STATS_STATUS_COUNT
};
const char *stats_status_name(enum stats_status s); /* "ok", "no_data", ... */

/*       name            code */
#define STATS_METRICS(X)                                                                           \
	X(PSI, "psi")                                                                              \
	X(KS, "ks")                                                                                \
	X(JS, "jensen_shannon")                                                                    \
	X(WASSERSTEIN, "wasserstein") /* normed by the reference's deviation */                    \
	X(HELLINGER, "hellinger")                                                                  \
	X(KL, "kl")                                                                                \
	X(TVD, "tvd")                                                                              \
	X(L_INFINITY, "l_infinity")                                                                \
	X(CHI2, "chi2") /* of the 2 x k table */                                                   \
	X(MEAN_SHIFT, "mean_shift") /* in deviations of the reference */                           \
	X(MISSING_RATE, "missing_rate")                                                            \
	X(OUT_OF_RANGE_RATE, "out_of_range_rate")                                                  \
	X(NEW_CATEGORY_RATE, "new_category_rate")

enum stats_metric_kind {
#define X(name, code) STATS_METRIC_##name,
	STATS_METRICS(X)
#undef X
		STATS_METRIC_COUNT
};
const char *stats_metric_name(enum stats_metric_kind k);

struct stats_metric {
	double value, critical, p; /* NaN: not defined for this column */
};

struct stats_compare {
	enum stats_status status;
	uint64_t n_ref, n_cur; /* values that were compared */
	uint64_t rows_ref, rows_cur;
	bool zero_variance;
	double psi_null; /* what PSI is on average without drift */
	double ks_bound; /* KS of the samples lies in [value, value + bound] */
	double wasserstein; /* not normed */
	double ref_missing_rate; /* out-of-range and new-category rates of the reference are 0 */
	struct stats_metric metric[STATS_METRIC_COUNT];
};

struct stats_options {
	uint64_t min_ref, min_cur; /* values needed on a side */
	double alpha; /* per window, divided by `tests` */
	uint32_t tests; /* features tested together; 0 is 1 */
	double design_effect; /* of rows that come in clusters: multiplies 1/n + 1/m; 0 is 1 */
	struct stats_fill fill;
};
#define STATS_OPTIONS_DEFAULT ((struct stats_options){ 100, 200, 0.01, 1, 1, STATS_FILL_DEFAULT })

/* cur must have the edges (names) of ref; otherwise the status is type_changed. */
void stats_compare_numeric(const struct stats_profile *ref, const struct stats_counts *cur,
	const struct stats_options *o, struct stats_compare *ret);
void stats_compare_categories(const struct stats_categories *ref,
	const struct stats_categories *cur, const struct stats_options *o,
	struct stats_compare *ret);
/* What a column of another type gets. */
void stats_compare_type_changed(struct stats_compare *ret);

/* value >= threshold and value >= critical, for statuses ok and constant. Rates instead need to
 * differ from the reference's by the threshold, at least by 0.02, with p below alpha / tests. */
bool stats_drifted(const struct stats_compare *c, enum stats_metric_kind k, double threshold,
	const struct stats_options *o);

/* Not normed (the metric divides by max(deviation of the reference, 0.001)). From counts and
 * per-bin sums: the sum of |signed area of each bin| with A_j = [e_j F_j - e_(j-1) F_(j-1) - S_j /
 * n] less the same of the other side; exact unless F and G cross inside of a bin, never above the
 * truth. */
double stats_wasserstein(const struct stats_profile *ref, const struct stats_counts *cur);

#endif
