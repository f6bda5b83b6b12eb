#include "lib/stats/perf.h"

#include "lib/stats/codec.h"

#include <math.h>

/* Two families of counters that share their names of scores. */
static const struct {
	const char *name;
	bool lower;
} scores[STATS_SCORE_COUNT] = {
#define X(name, code, lower) { code, lower },
	STATS_SCORES(X)
#undef X
};

const char *stats_score_name(enum stats_score s)
{
	return s < STATS_SCORE_COUNT ? scores[s].name : "unknown";
}

bool stats_score_parse(struct str name, enum stats_score *ret)
{
	for (int s = 0; s < STATS_SCORE_COUNT; s++)
		if (str_is(name, scores[s].name)) {
			*ret = (enum stats_score)s;
			return true;
		}
	return false;
}

bool stats_score_lower(enum stats_score s)
{
	return s < STATS_SCORE_COUNT && scores[s].lower;
}

bool stats_score_of_regression(enum stats_score s)
{
	return s <= STATS_R2;
}

void stats_regression_add(struct stats_regression *c, double truth, double prediction)
{
	double e = prediction - truth, d = truth - c->mean;

	if (!(fabs(e) <= STATS_VALUE_MAX) || !(fabs(truth) <= STATS_VALUE_MAX)) {
		c->skipped++;
		return;
	}
	c->n++;
	c->abs += fabs(e);
	c->square += e * e;
	c->mean += d / (double)c->n;
	c->spread += d * (truth - c->mean);
}

void stats_regression_merge(struct stats_regression *c, const struct stats_regression *other)
{
	double n = (double)c->n, m = (double)other->n, d = other->mean - c->mean;

	c->skipped += other->skipped;
	if (other->n == 0)
		return;
	c->n += other->n;
	c->abs += other->abs;
	c->square += other->square;
	c->spread += other->spread + d * d * n * m / (n + m);
	c->mean += d * m / (n + m);
}

double stats_regression_score(const struct stats_regression *c, enum stats_score s)
{
	double n = (double)c->n;

	if (c->n == 0)
		return (double)NAN;
	if (s == STATS_MAE)
		return c->abs / n;
	if (s == STATS_MSE)
		return c->square / n;
	if (s == STATS_RMSE)
		return sqrt(c->square / n);
	if (s == STATS_R2 && c->spread > 0)
		return 1 - c->square / c->spread;
	return (double)NAN;
}

static bool same(double a, double b)
{
	return !(a < b) && !(a > b);
}

void stats_classes_add(struct stats_classes *c, double truth, double prediction, double score)
{
	bool positive = same(truth, 1), said = same(prediction, 1);

	if (!isfinite(truth) || !isfinite(prediction)) {
		c->skipped++;
		return;
	}
	c->n++;
	c->correct += same(truth, prediction);
	c->tp += positive && said;
	c->fp += !positive && said;
	c->fn += positive && !said;
	c->tn += !positive && !said;
	if (score >= 0 && score <= 1) {
		size_t bin = score < 1 ? (size_t)(score * STATS_SCORE_BINS) : STATS_SCORE_BINS - 1;
		double held = fmin(fmax(score, 1e-15), 1 - 1e-15), miss = score - positive;

		c->scored++;
		c->log_loss -= positive ? log(held) : log1p(-held);
		c->brier += miss * miss;
		if (positive)
			c->positive[bin]++;
		else
			c->negative[bin]++;
	}
}

void stats_classes_merge(struct stats_classes *c, const struct stats_classes *other)
{
	c->n += other->n;
	c->skipped += other->skipped;
	c->correct += other->correct;
	c->tp += other->tp;
	c->fp += other->fp;
	c->fn += other->fn;
	c->tn += other->tn;
	c->scored += other->scored;
	c->log_loss += other->log_loss;
	c->brier += other->brier;
	for (size_t b = 0; b < STATS_SCORE_BINS; b++) {
		c->positive[b] += other->positive[b];
		c->negative[b] += other->negative[b];
	}
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

struct class_totals {
	double positive, negative;
};

static struct class_totals totals_of(const struct stats_classes *c)
{
	struct class_totals t = { 0, 0 };

	for (size_t b = 0; b < STATS_SCORE_BINS; b++) {
		t.positive += (double)c->positive[b];
		t.negative += (double)c->negative[b];
	}
	return t;
}

static double auc_of(const struct stats_classes *c)
{
	struct class_totals t = totals_of(c);
	double below = 0, pairs = 0;

	if (!(t.positive > 0 && t.negative > 0))
		return (double)NAN;
	for (size_t b = 0; b < STATS_SCORE_BINS; b++) {
		pairs += (double)c->positive[b] * (below + (double)c->negative[b] / 2);
		below += (double)c->negative[b];
	}
	return pairs / t.positive / t.negative;
}

double stats_classes_score(const struct stats_classes *c, enum stats_score s)
{
	double tp = (double)c->tp, fp = (double)c->fp, fn = (double)c->fn;

	if (c->n == 0)
		return (double)NAN;
	switch (s) {
	case STATS_ACCURACY: return (double)c->correct / (double)c->n;
	case STATS_PRECISION: return ratio(tp, tp + fp);
	case STATS_RECALL: return ratio(tp, tp + fn);
	case STATS_F1: return ratio(2 * tp, 2 * tp + fp + fn);
	case STATS_LOG_LOSS: return c->scored > 0 ? c->log_loss / (double)c->scored : (double)NAN;
	case STATS_BRIER: return c->scored > 0 ? c->brier / (double)c->scored : (double)NAN;
	case STATS_AUC: return auc_of(c);
	case STATS_MAE:
	case STATS_RMSE:
	case STATS_MSE:
	case STATS_R2:
	case STATS_SCORE_COUNT: break;
	}
	return (double)NAN;
}
