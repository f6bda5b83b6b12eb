#include "lib/stats/profile.h"

#include "lib/stats/codec.h"

#include <math.h>
#include <string.h>

/*
 * Building sorts a copy, cuts the edges and counts the same values on them. The order of work is:
 * finite values first (they decide the edges), mean, then all values as one window about that mean.
 */
size_t stats_edges(const double *sorted, size_t n, uint32_t bins, double ret_edge[STATS_BINS])
{
	size_t used = 0;
	double last = 0;
	bool atom = false;

	if (n == 0)
		return 0;
	for (uint32_t k = 1; k < bins; k++) {
		uint64_t pos = (uint64_t)(n - 1) * k, i = pos / bins, rest = pos % bins;
		double v = sorted[i];

		if (rest != 0) {
			double f = (double)rest / bins, gap = sorted[i + 1] - sorted[i];

			v = isfinite(gap) ? v + f * gap : v * (1 - f) + sorted[i + 1] * f;
		}
		if (k > 1 && !(v > last)) {
			if (atom)
				continue;
			atom = true;
			/* prev(v) may already be there: then the atom has its bin. */
			if (used >= 2 && ret_edge[used - 2] >= nextafter(last, -HUGE_VAL))
				continue;
			ret_edge[used - 1] = nextafter(last, -HUGE_VAL);
			ret_edge[used++] = last;
			continue;
		}
		atom = false;
		last = v;
		ret_edge[used++] = v;
	}
	return used;
}

static uint64_t sort_key(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static void sort_pass(const double *from, double *to, size_t n, unsigned shift, uint32_t at[256])
{
	uint32_t sum = 0;

	for (int b = 0; b < 256; b++) {
		uint32_t here = at[b];

		at[b] = sum;
		sum += here;
	}
	for (size_t i = 0; i < n; i++)
		to[at[sort_key(from[i]) >> shift & 255]++] = from[i];
}

void stats_sort(double *values, size_t n, double *work)
{
	uint32_t at[8][256];
	double *from = values, *to = work;

	memset(at, 0, sizeof(at));
	for (size_t i = 0; i < n; i++) {
		uint64_t key;

		values[i] += 0.0;
		key = sort_key(values[i]);
		for (unsigned b = 0; b < 8; b++)
			at[b][key >> (8 * b) & 255]++;
	}
	for (unsigned b = 0; n != 0 && b < 8; b++) {
		double *swap = from;

		if (at[b][sort_key(from[0]) >> (8 * b) & 255] == n)
			continue;
		sort_pass(from, to, n, 8 * b, at[b]);
		from = to;
		to = swap;
	}
	if (from != values)
		memcpy(values, from, n * sizeof(*values));
}

static void profile_empty(struct stats_profile *p)
{
	memset(p, 0, sizeof(*p));
	for (int i = 0; i < STATS_SEARCH; i++)
		p->edge[i] = HUGE_VAL;
}

static void profile_cut(struct stats_profile *p, const double *sorted, size_t n, uint32_t bins)
{
	double decile[STATS_BINS];
	size_t edges = stats_edges(sorted, n, bins, p->edge), deciles, d = 0;

	deciles = stats_edges(sorted, n, STATS_GROUPS, decile);
	p->bins = (uint32_t)edges + 1;
	p->groups = (uint32_t)deciles + 1;
	for (size_t j = 0; j <= edges; j++) {
		while (d < deciles && j > 0 && decile[d] <= p->edge[j - 1])
			d++;
		p->group[j] = (uint8_t)d;
	}
}

/* Mean of sorted values by blocks: the error does not grow with n. */
static double sorted_mean(const double *v, size_t n)
{
	double mean = 0;
	size_t done = 0;

	while (done < n) {
		size_t block = n - done < 2048 ? n - done : 2048;
		double sum = 0;

		for (size_t i = 0; i < block; i++)
			sum += v[done + i] - mean;
		done += block;
		mean += sum / (double)done;
	}
	return mean;
}

static uint32_t edges_id(const struct stats_profile *p)
{
	uint8_t bytes[8 + 8 * STATS_SEARCH + STATS_BINS + 64];
	struct codec c;

	codec_write(&c, bytes, sizeof(bytes), CODEC_PROFILE);
	codec_put_f64(&c, p->shift);
	codec_put_f64(&c, p->ref.min);
	codec_put_f64(&c, p->ref.max);
	for (uint32_t i = 0; i + 1 < p->bins; i++)
		codec_put_f64(&c, p->edge[i]);
	codec_put_bytes(&c, p->group, p->bins);
	return codec_crc(0, bytes, c.at);
}

int stats_profile_build(
	const struct stats_profile_args *a, struct stats_profile *ret, struct err *e)
{
	uint32_t bins = a->bins == 0 ? STATS_BINS : a->bins;
	double *finite = a->work;
	size_t n = 0;

	if (bins > STATS_BINS || bins % STATS_GROUPS != 0)
		return err_set(e, ERR_INVALID, "bins must be a multiple of %d up to %d, not %u",
			STATS_GROUPS, STATS_BINS, bins);
	if (a->n >= UINT32_MAX)
		return err_set(e, ERR_INVALID, "a profile is built from fewer than 2^32 values");
	for (size_t i = 0; i < a->n; i++)
		if (isfinite(a->values[i]))
			finite[n++] = a->values[i];
	stats_sort(finite, n, a->work + a->n);
	profile_empty(ret);
	profile_cut(ret, finite, n, bins);
	ret->shift = sorted_mean(finite, n);
	if (!isfinite(ret->shift))
		ret->shift = 0;
	ret->ref.min = n > 0 ? finite[0] : HUGE_VAL;
	ret->ref.max = n > 0 ? finite[n - 1] : -HUGE_VAL;
	ret->edges_id = edges_id(ret);
	stats_counts_init(&ret->ref, ret);
	stats_counts_add(&ret->ref, ret, a->values, a->n);
	stats_counts_add_nulls(&ret->ref, a->nulls);
	ret->ref.below = ret->ref.above = 0;
	return 0;
}

size_t stats_profile_encode(const struct stats_profile *p, uint8_t out[STATS_PROFILE_BYTES_MAX])
{
	uint8_t counts[STATS_COUNTS_BYTES_MAX];
	size_t n = stats_counts_encode(&p->ref, counts);
	struct codec c;

	codec_write(&c, out, STATS_PROFILE_BYTES_MAX, CODEC_PROFILE);
	codec_put_u32(&c, p->edges_id);
	codec_put_u32(&c, p->bins);
	codec_put_u32(&c, p->groups);
	codec_put_f64(&c, p->shift);
	for (uint32_t i = 0; i + 1 < p->bins; i++)
		codec_put_f64(&c, p->edge[i]);
	codec_put_bytes(&c, p->group, p->bins);
	codec_put_bytes(&c, counts, n);
	return codec_finish(&c);
}

static bool profile_sound(const struct stats_profile *p)
{
	if (!isfinite(p->shift) || p->group[0] != 0 || p->ref.bins != p->bins ||
		p->ref.edges_id != p->edges_id || p->ref.below != 0 || p->ref.above != 0 ||
		p->edges_id != edges_id(p) || (uint32_t)p->group[p->bins - 1] + 1 != p->groups)
		return false;
	for (uint32_t i = 0; i + 1 < p->bins; i++)
		if (!isfinite(p->edge[i]) || (i > 0 && !(p->edge[i] > p->edge[i - 1])) ||
			p->group[i + 1] < p->group[i] || p->group[i + 1] > p->group[i] + 1)
			return false;
	return true;
}

int stats_profile_decode(const uint8_t *p, size_t n, struct stats_profile *ret, struct err *e)
{
	struct stats_profile v;
	const uint8_t *group, *counts;
	struct codec c;

	profile_empty(&v);
	if (!codec_read(&c, p, n, CODEC_PROFILE))
		return err_set(
			e, ERR_CORRUPT, "the stored profile is damaged or of another version");
	v.edges_id = codec_get_u32(&c);
	v.bins = codec_get_u32(&c);
	v.groups = codec_get_u32(&c);
	v.shift = codec_get_f64(&c);
	if (v.bins < 1 || v.bins > STATS_BINS || v.groups < 1 || v.groups > STATS_GROUPS)
		return err_set(e, ERR_CORRUPT, "the stored profile has %u bins in %u groups",
			v.bins, v.groups);
	for (uint32_t i = 0; i + 1 < v.bins; i++)
		v.edge[i] = codec_get_f64(&c);
	group = codec_get_bytes(&c, v.bins);
	if (group != NULL)
		memcpy(v.group, group, v.bins);
	counts = c.in + c.at;
	if (c.failed || stats_counts_decode(counts, c.n - c.at, &v.ref, e) != 0)
		return err_set(e, ERR_CORRUPT, "the counts of the stored profile are damaged");
	if (!profile_sound(&v))
		return err_set(e, ERR_CORRUPT, "the stored profile contradicts itself");
	*ret = v;
	return 0;
}
