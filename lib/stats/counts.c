#include "lib/stats/codec.h"
#include "lib/stats/profile.h"

#include <math.h>
#include <string.h>

/*
 * The hot path. Values come in blocks: moments first (a block whose sum is not finite is filtered,
 * since NaN and infinities may enter neither bins nor sums), then a branch-free binary search over
 * 256 padded edges, several values at a time so that their loads overlap. Four sub-histograms keep
 * equal neighbours from waiting for each other's store. Sums are kept per block before they are
 * added, which keeps their error independent of the number of rows.
 */
enum { BLOCK = 2048, PART = 1024, LANES = 4, WIDE = 8 };

struct block_sums {
	double moment[4], min, max;
};

void stats_counts_init(struct stats_counts *c, const struct stats_profile *p)
{
	memset(c, 0, sizeof(*c));
	c->edges_id = p->edges_id;
	c->bins = p->bins;
	c->min = HUGE_VAL;
	c->max = -HUGE_VAL;
}

/* Vectorised by the compiler: independent lanes, no reassociation of a single sum. */
static struct block_sums block_moments(const double *restrict x, size_t n, double shift)
{
	double s1[WIDE] = { 0 }, s2[WIDE] = { 0 }, s3[WIDE] = { 0 }, s4[WIDE] = { 0 };
	double low[WIDE], high[WIDE];
	struct block_sums r = { .min = HUGE_VAL, .max = -HUGE_VAL };
	size_t i = 0;

	for (int l = 0; l < WIDE; l++) {
		low[l] = HUGE_VAL;
		high[l] = -HUGE_VAL;
	}
	for (; i + WIDE <= n; i += WIDE)
		for (int l = 0; l < WIDE; l++) {
			double v = x[i + (size_t)l], d = v - shift, q = d * d;

			s1[l] += d;
			s2[l] += q;
			s3[l] += q * d;
			s4[l] += q * q;
			low[l] = v < low[l] ? v : low[l];
			high[l] = v > high[l] ? v : high[l];
		}
	for (int l = 0; i < n; i++, l++) {
		double v = x[i], d = v - shift, q = d * d;

		s1[l] += d;
		s2[l] += q;
		s3[l] += q * d;
		s4[l] += q * q;
		low[l] = v < low[l] ? v : low[l];
		high[l] = v > high[l] ? v : high[l];
	}
	for (int l = 0; l < WIDE; l++) {
		r.moment[0] += s1[l];
		r.moment[1] += s2[l];
		r.moment[2] += s3[l];
		r.moment[3] += s4[l];
		r.min = low[l] < r.min ? low[l] : r.min;
		r.max = high[l] > r.max ? high[l] : r.max;
	}
	return r;
}

static inline size_t bin_of(const double *edge, double v)
{
	size_t j = 0;

	for (size_t step = STATS_SEARCH / 2; step != 0; step /= 2)
		j += edge[j + step - 1] < v ? step : 0;
	return j;
}

static void block_bins(
	struct stats_counts *c, const double *restrict edge, const double *restrict x, size_t n)
{
	uint32_t count[LANES][STATS_SEARCH];
	double sum[LANES][STATS_SEARCH];
	size_t i = 0;

	memset(count, 0, sizeof(count));
	memset(sum, 0, sizeof(sum));
	for (; i + WIDE <= n; i += WIDE) {
		size_t j[WIDE] = { 0 };

		for (size_t step = STATS_SEARCH / 2; step != 0; step /= 2)
			for (size_t l = 0; l < WIDE; l++)
				j[l] += edge[j[l] + step - 1] < x[i + l] ? step : 0;
		for (size_t l = 0; l < WIDE; l++) {
			count[l % LANES][j[l]]++;
			sum[l % LANES][j[l]] += x[i + l];
		}
	}
	for (; i < n; i++) {
		size_t j = bin_of(edge, x[i]);

		count[0][j]++;
		sum[0][j] += x[i];
	}
	for (size_t b = 0; b < c->bins; b++) {
		c->count[b] += (uint64_t)count[0][b] + count[1][b] + count[2][b] + count[3][b];
		c->sum[b] += (sum[0][b] + sum[1][b]) + (sum[2][b] + sum[3][b]);
	}
}

/* Counts outside of the reference's range; only blocks that reach beyond it pay for this. */
static void block_range(
	struct stats_counts *c, const struct stats_counts *ref, const double *restrict x, size_t n)
{
	uint32_t below = 0, above = 0;

	for (size_t i = 0; i < n; i++) {
		below += x[i] < ref->min;
		above += x[i] > ref->max;
	}
	c->below += below;
	c->above += above;
}

static void block_finite(struct stats_counts *c, const struct stats_profile *p, const double *x,
	size_t n, const struct block_sums *s)
{
	for (int k = 0; k < 4; k++)
		c->moment[k] += s->moment[k];
	if (s->min < p->ref.min || s->max > p->ref.max)
		block_range(c, &p->ref, x, n);
	c->min = s->min < c->min ? s->min : c->min;
	c->max = s->max > c->max ? s->max : c->max;
	c->finite += n;
	block_bins(c, p->edge, x, n);
}

static __attribute__((noinline)) void block_mixed(
	struct stats_counts *c, const struct stats_profile *p, const double *x, size_t n)
{
	double keep[PART];
	size_t kept = 0;
	struct block_sums s;

	for (size_t i = 0; i < n; i++) {
		if (isfinite(x[i]))
			keep[kept++] = x[i];
		else if (isnan(x[i]))
			c->nans++;
		else if (x[i] > 0)
			c->pos_inf++;
		else
			c->neg_inf++;
	}
	if (kept == 0)
		return;
	s = block_moments(keep, kept, p->shift);
	block_finite(c, p, keep, kept, &s);
}

void stats_counts_add(
	struct stats_counts *c, const struct stats_profile *p, const double *values, size_t n)
{
	BUG_ON(c->edges_id != p->edges_id);
	while (n > 0) {
		size_t block = n < BLOCK ? n : BLOCK;
		struct block_sums s = block_moments(values, block, p->shift);

		if (isfinite(s.moment[0])) {
			block_finite(c, p, values, block, &s);
		} else {
			size_t part = block < PART ? block : PART;

			block_mixed(c, p, values, part);
			block_mixed(c, p, values + part, block - part);
		}
		values += block;
		n -= block;
	}
}

void stats_counts_add_nulls(struct stats_counts *c, uint64_t n)
{
	c->nulls += n;
}

int stats_counts_merge(struct stats_counts *c, const struct stats_counts *other, struct err *e)
{
	if (c->edges_id != other->edges_id || c->bins != other->bins)
		return err_set(e, ERR_CONFLICT,
			"the counts belong to different references and cannot be merged");
	c->nulls += other->nulls;
	c->nans += other->nans;
	c->pos_inf += other->pos_inf;
	c->neg_inf += other->neg_inf;
	c->finite += other->finite;
	c->below += other->below;
	c->above += other->above;
	c->min = other->min < c->min ? other->min : c->min;
	c->max = other->max > c->max ? other->max : c->max;
	for (int k = 0; k < 4; k++)
		c->moment[k] += other->moment[k];
	for (size_t b = 0; b < c->bins; b++) {
		c->count[b] += other->count[b];
		c->sum[b] += other->sum[b];
	}
	return 0;
}

uint64_t stats_counts_rows(const struct stats_counts *c)
{
	return c->nulls + c->nans + c->pos_inf + c->neg_inf + c->finite;
}

uint64_t stats_counts_missing(const struct stats_counts *c)
{
	return c->nulls + c->nans;
}

uint32_t stats_counts_groups(const struct stats_profile *p, const struct stats_counts *c,
	uint64_t ret_group[STATS_GROUPS])
{
	memset(ret_group, 0, STATS_GROUPS * sizeof(*ret_group));
	for (size_t b = 0; b < c->bins; b++)
		ret_group[p->group[b]] += c->count[b];
	return p->groups;
}

struct stats_moments stats_counts_moments(
	const struct stats_profile *p, const struct stats_counts *c)
{
	double nan = (double)NAN, n = (double)c->finite, a, b, third, fourth;
	struct stats_moments m = { nan, nan, nan, nan };

	if (c->finite == 0)
		return m;
	a = c->moment[0] / n;
	b = c->moment[1] / n;
	m.mean = p->shift + a;
	m.variance = c->min >= c->max ? 0 : fmax(b - a * a, 0);
	if (!(m.variance > 0) || isinf(m.variance))
		return m;
	third = c->moment[2] / n - 3 * a * b + 2 * a * a * a;
	fourth = c->moment[3] / n - 4 * a * c->moment[2] / n + 6 * a * a * b - 3 * a * a * a * a;
	m.skewness = third / (m.variance * sqrt(m.variance));
	m.kurtosis = fourth / (m.variance * m.variance);
	return m;
}

double stats_counts_quantile(const struct stats_profile *p, const struct stats_counts *c, double q)
{
	double rank = q * (double)c->finite, seen = 0;

	if (c->finite == 0 || !(q >= 0 && q <= 1))
		return (double)NAN;
	for (size_t b = 0; b < c->bins; b++) {
		double here = (double)c->count[b], low, high;

		if (c->count[b] == 0 || seen + here < rank) {
			seen += here;
			continue;
		}
		low = b == 0 ? c->min : fmax(p->edge[b - 1], c->min);
		high = b + 1 == c->bins ? c->max : fmin(p->edge[b], c->max);
		return low + (high - low) * (rank - seen) / here;
	}
	return c->max;
}

size_t stats_counts_encode(const struct stats_counts *c, uint8_t out[STATS_COUNTS_BYTES_MAX])
{
	struct codec w;

	codec_write(&w, out, STATS_COUNTS_BYTES_MAX, CODEC_COUNTS);
	codec_put_u32(&w, c->edges_id);
	codec_put_u32(&w, c->bins);
	codec_put_u64(&w, c->nulls);
	codec_put_u64(&w, c->nans);
	codec_put_u64(&w, c->pos_inf);
	codec_put_u64(&w, c->neg_inf);
	codec_put_u64(&w, c->finite);
	codec_put_u64(&w, c->below);
	codec_put_u64(&w, c->above);
	codec_put_f64(&w, c->min);
	codec_put_f64(&w, c->max);
	for (int k = 0; k < 4; k++)
		codec_put_f64(&w, c->moment[k]);
	for (size_t b = 0; b < c->bins; b++)
		codec_put_u64(&w, c->count[b]);
	for (size_t b = 0; b < c->bins; b++)
		codec_put_f64(&w, c->sum[b]);
	return codec_finish(&w);
}

static bool counts_sound(const struct stats_counts *c)
{
	uint64_t total = 0;

	for (size_t b = 0; b < c->bins; b++) {
		if (__builtin_add_overflow(total, c->count[b], &total) ||
			(c->count[b] == 0 && fabs(c->sum[b]) > 0))
			return false;
	}
	if (total != c->finite || c->below > total || c->above > total)
		return false;
	if (total == 0)
		return c->min >= HUGE_VAL && c->max <= -HUGE_VAL;
	return isfinite(c->min) && isfinite(c->max) && c->min <= c->max && c->moment[1] >= 0 &&
	       c->moment[3] >= 0;
}

int stats_counts_decode(const uint8_t *p, size_t n, struct stats_counts *ret, struct err *e)
{
	struct stats_counts v;
	struct codec c;

	memset(&v, 0, sizeof(v));
	if (!codec_read(&c, p, n, CODEC_COUNTS))
		return err_set(
			e, ERR_CORRUPT, "the stored counts are damaged or of another version");
	v.edges_id = codec_get_u32(&c);
	v.bins = codec_get_u32(&c);
	if (v.bins < 1 || v.bins > STATS_BINS)
		return err_set(e, ERR_CORRUPT, "the stored counts have %u bins", v.bins);
	v.nulls = codec_get_u64(&c);
	v.nans = codec_get_u64(&c);
	v.pos_inf = codec_get_u64(&c);
	v.neg_inf = codec_get_u64(&c);
	v.finite = codec_get_u64(&c);
	v.below = codec_get_u64(&c);
	v.above = codec_get_u64(&c);
	v.min = codec_get_f64(&c);
	v.max = codec_get_f64(&c);
	for (int k = 0; k < 4; k++)
		v.moment[k] = codec_get_f64(&c);
	for (size_t b = 0; b < v.bins; b++)
		v.count[b] = codec_get_u64(&c);
	for (size_t b = 0; b < v.bins; b++)
		v.sum[b] = codec_get_f64(&c);
	if (!codec_ended(&c) || !counts_sound(&v))
		return err_set(e, ERR_CORRUPT, "the stored counts contradict themselves");
	*ret = v;
	return 0;
}
