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
	c->fourth += e * e * e * e;
	c->error += e;
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
	c->fourth += other->fourth;
	c->error += other->error;
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

double stats_regression_bias(const struct stats_regression *c)
{
	return c->n == 0 ? (double)NAN : c->error / (double)c->n;
}

double stats_regression_error(const struct stats_regression *c, enum stats_score s)
{
	double n = (double)c->n, mae = c->abs / n, mse = c->square / n, mse_error;

	if (c->n < 2)
		return (double)NAN;
	if (s == STATS_MAE)
		return sqrt(fmax(mse - mae * mae, 0) / (n - 1));
	mse_error = sqrt(fmax(c->fourth / n - mse * mse, 0) / (n - 1));
	if (s == STATS_MSE)
		return mse_error;
	if (s == STATS_RMSE)
		return mse > 0 ? mse_error / (2 * sqrt(mse)) : 0;
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

double stats_classes_auc_bound(const struct stats_classes *c)
{
	struct class_totals t = totals_of(c);
	double tied = 0;

	if (!(t.positive > 0 && t.negative > 0))
		return (double)NAN;
	for (size_t b = 0; b < STATS_SCORE_BINS; b++)
		tied += (double)c->positive[b] / t.positive * ((double)c->negative[b] / t.negative);
	return tied / 2;
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

size_t stats_regression_encode(
	const struct stats_regression *c, uint8_t out[STATS_REGRESSION_BYTES])
{
	struct codec w;

	codec_write(&w, out, STATS_REGRESSION_BYTES, CODEC_REGRESSION);
	codec_put_u64(&w, c->n);
	codec_put_u64(&w, c->skipped);
	codec_put_f64(&w, c->abs);
	codec_put_f64(&w, c->square);
	codec_put_f64(&w, c->fourth);
	codec_put_f64(&w, c->error);
	codec_put_f64(&w, c->mean);
	codec_put_f64(&w, c->spread);
	return codec_finish(&w);
}

int stats_regression_decode(const uint8_t *p, size_t n, struct stats_regression *ret, struct err *e)
{
	struct stats_regression v = { 0 };
	struct codec c;

	if (!codec_read(&c, p, n, CODEC_REGRESSION))
		return err_set(e, ERR_CORRUPT,
			"the stored performance counters are damaged or of another version");
	v.n = codec_get_u64(&c);
	v.skipped = codec_get_u64(&c);
	v.abs = codec_get_f64(&c);
	v.square = codec_get_f64(&c);
	v.fourth = codec_get_f64(&c);
	v.error = codec_get_f64(&c);
	v.mean = codec_get_f64(&c);
	v.spread = codec_get_f64(&c);
	if (!codec_ended(&c) || !(v.abs >= 0 && v.square >= 0 && v.fourth >= 0 && v.spread >= 0) ||
		isnan(v.error) || isnan(v.mean))
		return err_set(
			e, ERR_CORRUPT, "the stored performance counters contradict themselves");
	*ret = v;
	return 0;
}

size_t stats_classes_encode(const struct stats_classes *c, uint8_t out[STATS_CLASSES_BYTES])
{
	struct codec w;

	codec_write(&w, out, STATS_CLASSES_BYTES, CODEC_CLASSES);
	codec_put_u64(&w, c->n);
	codec_put_u64(&w, c->skipped);
	codec_put_u64(&w, c->correct);
	codec_put_u64(&w, c->tp);
	codec_put_u64(&w, c->fp);
	codec_put_u64(&w, c->fn);
	codec_put_u64(&w, c->tn);
	codec_put_u64(&w, c->scored);
	codec_put_f64(&w, c->log_loss);
	codec_put_f64(&w, c->brier);
	for (size_t b = 0; b < STATS_SCORE_BINS; b++) {
		codec_put_u64(&w, c->positive[b]);
		codec_put_u64(&w, c->negative[b]);
	}
	return codec_finish(&w);
}

int stats_classes_decode(const uint8_t *p, size_t n, struct stats_classes *ret, struct err *e)
{
	uint64_t scored = 0;
	struct codec c;

	if (!codec_read(&c, p, n, CODEC_CLASSES))
		return err_set(e, ERR_CORRUPT,
			"the stored performance counters are damaged or of another version");
	ret->n = codec_get_u64(&c);
	ret->skipped = codec_get_u64(&c);
	ret->correct = codec_get_u64(&c);
	ret->tp = codec_get_u64(&c);
	ret->fp = codec_get_u64(&c);
	ret->fn = codec_get_u64(&c);
	ret->tn = codec_get_u64(&c);
	ret->scored = codec_get_u64(&c);
	ret->log_loss = codec_get_f64(&c);
	ret->brier = codec_get_f64(&c);
	for (size_t b = 0; b < STATS_SCORE_BINS; b++) {
		ret->positive[b] = codec_get_u64(&c);
		ret->negative[b] = codec_get_u64(&c);
		scored += ret->positive[b] + ret->negative[b];
	}
	if (!codec_ended(&c) || scored != ret->scored || ret->scored > ret->n ||
		ret->tp + ret->fp + ret->fn + ret->tn != ret->n || ret->correct > ret->n ||
		!(ret->log_loss >= 0 && ret->brier >= 0))
		return err_set(
			e, ERR_CORRUPT, "the stored performance counters contradict themselves");
	return 0;
}
