/*
 * Performance counters that merge by addition, so that labels which come late are added to their
 * window instead of recomputing it. Rows with a value that is not finite are counted as skipped,
 * and so are those of a regression whose truth or error is greater than STATS_VALUE_MAX: no sum of
 * 10^8 rows overflows, and no mean is drowned by one row of garbage.
 *
 * The variance of the truth is kept as mean and squared deviation and merged by T. Chan, G. Golub,
 * R. LeVeque (1979), which does not cancel. AUC comes from 1024 bins of the score per class: its
 * error is at most half the sum over the bins of (share of positives x share of negatives).
 */
#ifndef LIB_STATS_PERF_H
#define LIB_STATS_PERF_H
#include "lib/base/str.h"

/*       name       code        lower is better */
#define STATS_SCORES(X)                                                                            \
	X(MAE, "mae", 1)                                                                           \
	X(RMSE, "rmse", 1)                                                                         \
	X(MSE, "mse", 1)                                                                           \
	X(R2, "r2", 0)                                                                             \
	X(ACCURACY, "accuracy", 0)                                                                 \
	X(PRECISION, "precision", 0)                                                               \
	X(RECALL, "recall", 0)                                                                     \
	X(F1, "f1", 0)                                                                             \
	X(LOG_LOSS, "log_loss", 1)                                                                 \
	X(BRIER, "brier", 1)                                                                       \
	X(AUC, "auc", 0)

enum stats_score {
#define X(name, code, lower) STATS_##name,
	STATS_SCORES(X)
#undef X
		STATS_SCORE_COUNT
};
const char *stats_score_name(enum stats_score s);
bool stats_score_parse(struct str name, enum stats_score *ret);
bool stats_score_lower(enum stats_score s); /* lower is better */
bool stats_score_of_regression(enum stats_score s);

#define STATS_VALUE_MAX 1e75

struct stats_regression {
	uint64_t n, skipped;
	double abs, square; /* sums of |e| and e^2, e = prediction - truth */
	double mean, spread; /* of the truth: mean, sum of squared deviations */
};

void stats_regression_add(struct stats_regression *c, double truth, double prediction);
void stats_regression_merge(struct stats_regression *c, const struct stats_regression *other);
/* NaN without rows, for a score of classification, and for R2 of a constant truth. */
double stats_regression_score(const struct stats_regression *c, enum stats_score s);

enum { STATS_SCORE_BINS = 1024 };
/* Any number of classes for accuracy; the rest is for truth 1 against anything else. */
struct stats_classes {
	uint64_t n, skipped, correct;
	uint64_t tp, fp, fn, tn;
	uint64_t scored; /* rows with a score in [0, 1] */
	double log_loss,
		brier; /* sums over the scored rows; the chance is kept off 0 and 1 by 1e-15 */
	uint64_t positive[STATS_SCORE_BINS], negative[STATS_SCORE_BINS];
};

/* score: the predicted chance of class 1, NaN when there is none. */
void stats_classes_add(struct stats_classes *c, double truth, double prediction, double score);
void stats_classes_merge(struct stats_classes *c, const struct stats_classes *other);
/* NaN without rows (without scores), 0 where precision, recall or F1 divide by nothing. */
double stats_classes_score(const struct stats_classes *c, enum stats_score s);

#endif
