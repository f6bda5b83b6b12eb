#include "lib/base/mem.h"
#include "lib/stats/bootstrap.h"
#include "lib/stats/codec.h"
#include "lib/stats/metric.h"
#include "lib/stats/perf.h"
#include "lib/stats/sample.h"
#include "lib/stats/special.h"
#include "lib/stats/type.h"
#include "tests/unit/unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static void near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))) && !(isinf(got) && got == want))
		fail_msg("%.17g is not %.17g", got, want);
}

static double uniform(struct stats_random *r)
{
	return 0x1p-53 * (double)(stats_random_next(r) >> 11);
}

static double bell(struct stats_random *r)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(r);
	return sum;
}

/* A value of one of several shapes: 0 bell, 1 heavy tail, 2 many zeros, 3 small integers, 4 holes.
 */
static double shaped(struct stats_random *r, int shape)
{
	double u = uniform(r);

	if (shape == 1)
		return 1 / (1 - u);
	if (shape == 2)
		return u < 0.6 ? 0 : u;
	if (shape == 3)
		return floor(u * 7) - 3;
	if (shape == 4)
		return u < 0.05 ? (double)NAN : u < 0.06 ? HUGE_VAL : u < 0.07 ? -HUGE_VAL : u;
	return bell(r);
}

static double *sample(size_t n, int shape, double scale, double shift, uint64_t seed)
{
	double *v = mem_new(n + 1, sizeof(*v));
	struct stats_random r;

	stats_random_seed(&r, seed);
	for (size_t i = 0; i < n; i++)
		v[i] = shaped(&r, shape) * scale + shift;
	return v;
}

static struct stats_profile *build(const double *v, size_t n, uint64_t nulls, uint32_t bins)
{
	struct stats_profile *p = mem_new_of(struct stats_profile);
	double *work = mem_new(2 * n + 1, sizeof(*work));
	struct err e;

	assert_int_equal(
		stats_profile_build(&(struct stats_profile_args){ v, n, nulls, bins, work }, p, &e),
		0);
	mem_free(work);
	return p;
}

static struct stats_counts *count(const struct stats_profile *p, const double *v, size_t n)
{
	struct stats_counts *c = mem_new_of(struct stats_counts);

	stats_counts_init(c, p);
	stats_counts_add(c, p, v, n);
	return c;
}

/* ---- special functions: values of scipy 1.10 ------------------------------------------------ */
void test_stats__special_functions_match_reference_values(void **state)
{
	(void)state;
	near(special_normal_cdf(-8), 6.22096057427178e-16, 1e-25);
	assert_true(fabs(special_normal_cdf(-8) / 6.22096057427178e-16 - 1) < 1e-11);
	near(special_normal_quantile(0.975), 1.959963984540054, 1e-14);
	near(special_normal_quantile(1e-10), -6.361340902404056, 1e-13);
	near(special_chi2_sf(12.5, 1), 0.00040695201744495946, 1e-14);
	near(special_chi2_quantile(0.95, 9), 16.918977604620448, 1e-13);
	near(special_chi2_quantile(0.99, 239), 292.78175984974627, 1e-13);
	assert_true(fabs(special_chi2_quantile(0.01, 0.5) / 1.349939585911692e-08 - 1) < 1e-12);
	near(special_kolmogorov(0.5), 0.9639452436648751, 1e-13);
	near(special_kolmogorov(1.36), 0.04948587675537788, 1e-13);
}

void test_stats__special_functions_stay_in_their_domain(void **state)
{
	(void)state;
	assert_true(isnan(special_normal_quantile(-0.1)));
	assert_true(isinf(special_normal_quantile(1)));
	assert_true(isnan(special_chi2_quantile(1, 3)));
	assert_true(isnan(special_chi2_quantile(0.5, 0)));
	assert_true(isnan(special_gamma_p(0, 1)));
	assert_true(isnan(special_kolmogorov((double)NAN)));
	near(special_gamma_q(3, HUGE_VAL), 0, 0);
	near(special_kolmogorov(0), 1, 0);
	near(special_kolmogorov(30), 0, 0);
	for (double p = 0.001; p < 1; p += 0.013)
		for (double dof = 0.7; dof < 300; dof *= 2.9)
			near(special_chi2_cdf(special_chi2_quantile(p, dof), dof), p, 1e-11);
}

/* ---- profiles ---------------------------------------------------------------------------------
 */
void test_stats__edges_follow_the_quantile_and_atom_rules(void **state)
{
	double edge[STATS_BINS];
	const double four[] = { 1, 2, 3, 4 }, same[] = { 5, 5, 5 };
	const double atom[] = { 0, 0, 0, 0, 0, 0, 1, 2, 3, 4 };

	(void)state;
	assert_int_equal(stats_edges(four, 4, 2, edge), 1);
	near(edge[0], 2.5, 0);
	assert_int_equal(stats_edges(same, 3, 10, edge), 2);
	assert_true(edge[0] == nextafter(5, -1) && edge[1] == 5);
	assert_int_equal(stats_edges(atom, 10, 10, edge), 6);
	assert_true(edge[0] == -DBL_TRUE_MIN && edge[1] == 0);
	near(edge[2], 0.4, 1e-15);
	assert_int_equal(stats_edges(four, 0, 10, edge), 0);
	assert_int_equal(stats_edges(four, 1, 10, edge), 2);
}

static void check_bins(const double *v, size_t n, uint32_t bins)
{
	struct stats_profile *p = build(v, n, 0, bins);
	uint64_t total = 0, naive[STATS_BINS] = { 0 };

	assert_in_range(p->bins, 1, bins == 0 ? STATS_BINS : bins);
	for (uint32_t j = 1; j + 1 < p->bins; j++)
		assert_true(p->edge[j] > p->edge[j - 1]);
	for (size_t i = 0; i < n; i++) {
		size_t j = 0;

		if (!isfinite(v[i]))
			continue;
		while (j + 1 < p->bins && v[i] > p->edge[j])
			j++;
		naive[j]++;
	}
	for (uint32_t j = 0; j < p->bins; j++) {
		assert_int_equal(p->ref.count[j], naive[j]);
		total += naive[j];
	}
	assert_int_equal(total, p->ref.finite);
	assert_int_equal(stats_counts_rows(&p->ref), n);
	assert_int_equal(p->ref.below + p->ref.above, 0);
	mem_free(p);
}

void test_stats__every_value_lands_in_the_bin_that_holds_it(void **state)
{
	static const size_t sizes[] = { 0, 1, 2, 7, 8, 9, 100, 2047, 2048, 2049, 5003 };
	static const uint32_t bins[] = { 0, 10, 20, 60, 240 };

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
		for (int shape = 0; shape < 5; shape++) {
			double *v = sample(sizes[s], shape, 3, 1, 7 * s + (size_t)shape);

			check_bins(v, sizes[s], bins[s % 5]);
			mem_free(v);
		}
}

void test_stats__decile_edges_are_among_the_fine_ones(void **state)
{
	(void)state;
	for (int shape = 0; shape < 4; shape++) {
		double *v = sample(3000, shape, 1, 0, 5), *work = mem_new(3000, sizeof(*work));
		double decile[STATS_BINS];
		struct stats_profile *p = build(v, 3000, 0, 240);
		size_t n, found = 0;

		stats_sort(v, 3000, work);
		n = stats_edges(v, 3000, 10, decile);
		for (uint32_t j = 0; j + 1 < p->bins; j++)
			if (found < n && p->edge[j] == decile[found]) {
				assert_int_equal(p->group[j] + 1, p->group[j + 1]);
				found++;
			} else {
				assert_int_equal(p->group[j], p->group[j + 1]);
			}
		assert_int_equal(found, n);
		assert_int_equal(p->groups, n + 1);
		mem_free(p);
		mem_free(v);
		mem_free(work);
	}
}

void test_stats__sorting_is_right_for_all_doubles(void **state)
{
	double v[] = { 3, -1, -0.0, 0.0, DBL_MAX, -DBL_MAX, DBL_TRUE_MIN, -DBL_TRUE_MIN, 1e-300 };
	double work[9];

	(void)state;
	stats_sort(v, 9, work);
	for (int i = 1; i < 9; i++)
		assert_true(v[i - 1] <= v[i]);
	for (int i = 0; i < 9; i++)
		assert_false(v[i] == 0 && signbit(v[i]));
	stats_sort(v, 0, work);
}

void test_stats__special_values_are_counted_apart(void **state)
{
	double *ref = sample(1000, 0, 1, 0, 3), *v = sample(9000, 0, 1, 0, 4);
	struct stats_profile *p = build(ref, 1000, 5, 0);
	struct stats_counts *c;
	struct stats_moments m;
	size_t n = 0, nans = 0, up = 0, down = 0;
	double sum = 0, below = 0;

	(void)state;
	for (size_t i = 0; i < 9000; i++)
		if (i > 2000 && i < 7000 && i % 3 == 0)
			v[i] = i % 9 == 0 ? (double)NAN : i % 9 == 3 ? HUGE_VAL : -HUGE_VAL;
	for (size_t i = 2001; i < 7000; i++) {
		nans += i % 9 == 0;
		up += i % 9 == 3;
		down += i % 9 == 6;
	}
	c = count(p, v, 9000);
	stats_counts_add_nulls(c, 11);
	for (size_t i = 0; i < 9000; i++)
		if (isfinite(v[i])) {
			n++;
			sum += v[i];
			below += v[i] < p->ref.min;
		}
	assert_int_equal(c->finite, n);
	assert_int_equal(stats_counts_rows(c), 9011);
	assert_int_equal(c->nans, nans);
	assert_int_equal(c->pos_inf, up);
	assert_int_equal(c->neg_inf, down);
	assert_int_equal(stats_counts_missing(c), nans + 11);
	assert_int_equal(c->below, (uint64_t)below);
	m = stats_counts_moments(p, c);
	near(m.mean, sum / (double)n, 1e-12);
	assert_int_equal(stats_counts_missing(&p->ref), 5);
	mem_free(c);
	mem_free(p);
	mem_free(ref);
	mem_free(v);
}

void test_stats__moments_do_not_cancel(void **state)
{
	double *v = sample(4000, 0, 2, 1e9, 3);
	struct stats_profile *p = build(v, 4000, 0, 0);
	struct stats_moments m = stats_counts_moments(p, &p->ref);
	double mean = stats_mean(v, 4000), third = 0, fourth = 0, sd = stats_deviation(v, 4000);

	(void)state;
	for (int i = 0; i < 4000; i++) {
		third += pow((v[i] - mean) / sd, 3) / 4000;
		fourth += pow((v[i] - mean) / sd, 4) / 4000;
	}
	near(m.mean, mean, 1e-15);
	near(m.variance, sd * sd, 1e-9);
	near(m.skewness, third, 1e-6);
	near(m.kurtosis, fourth, 1e-6);
	near(stats_counts_quantile(p, &p->ref, 0.5), 1e9, 1e-9);
	near(stats_counts_quantile(p, &p->ref, 0), p->ref.min, 0);
	near(stats_counts_quantile(p, &p->ref, 1), p->ref.max, 0);
	mem_free(p);
	mem_free(v);
}

void test_stats__merging_equals_counting_all_at_once(void **state)
{
	struct stats_random r;
	struct err e;

	(void)state;
	stats_random_seed(&r, 9);
	for (int shape = 0; shape < 5; shape++) {
		double *ref = sample(2000, shape, 1, 0, 1), *v = sample(30000, shape, 1.3, 0.2, 2);
		struct stats_profile *p = build(ref, 2000, 0, 0);
		struct stats_counts *all = count(p, v, 30000), *sum = count(p, v, 0);
		struct stats_counts other;

		for (size_t at = 0; at < 30000;) {
			size_t n = stats_random_row(&r, 6000) + 1;
			struct stats_counts *part;

			n = n < 30000 - at ? n : 30000 - at;
			part = count(p, v + at, n);
			assert_int_equal(stats_counts_merge(sum, part, &e), 0);
			mem_free(part);
			at += n;
		}
		assert_memory_equal(sum->count, all->count, sizeof(all->count));
		assert_int_equal(sum->below, all->below);
		assert_int_equal(sum->above, all->above);
		assert_int_equal(sum->nans, all->nans);
		assert_true(sum->min == all->min && sum->max == all->max);
		for (uint32_t b = 0; b < p->bins; b++)
			near(sum->sum[b], all->sum[b], 1e-12);
		near(sum->moment[1], all->moment[1], 1e-12);
		other = *sum;
		other.edges_id++;
		assert_int_equal(stats_counts_merge(sum, &other, &e), -1);
		assert_int_equal(e.code, ERR_CONFLICT);
		mem_free(all);
		mem_free(sum);
		mem_free(p);
		mem_free(ref);
		mem_free(v);
	}
}

void test_stats__profiles_are_refused_when_sizes_are_wrong(void **state)
{
	double v[] = { 1, 2, 3 }, work[6];
	struct stats_profile p;
	struct err e;

	(void)state;
	for (uint32_t bins = 1; bins < 300; bins++) {
		int want = bins % 10 == 0 && bins <= 240 ? 0 : -1;

		assert_int_equal(
			stats_profile_build(
				&(struct stats_profile_args){ v, 3, 0, bins, work }, &p, &e),
			want);
		if (want != 0)
			assert_int_equal(e.code, ERR_INVALID);
	}
}

void test_stats__huge_values_break_nothing(void **state)
{
	double v[400];
	struct stats_profile *p;
	struct stats_counts *c, back;
	struct stats_compare m;
	struct stats_options o = STATS_OPTIONS_DEFAULT;
	uint8_t bytes[STATS_COUNTS_BYTES_MAX];
	struct err e;

	(void)state;
	for (int i = 0; i < 400; i++)
		v[i] = i % 4 == 0 ? DBL_MAX : i % 4 == 1 ? -DBL_MAX : i;
	p = build(v, 400, 0, 0);
	c = count(p, v, 400);
	assert_int_equal(c->finite, 400);
	assert_memory_equal(c->count, p->ref.count, sizeof(c->count));
	stats_compare_numeric(p, c, &o, &m);
	near(m.metric[STATS_METRIC_PSI].value, 0, 0);
	near(m.metric[STATS_METRIC_KS].value, 0, 0);
	assert_int_equal(stats_counts_decode(bytes, stats_counts_encode(c, bytes), &back, &e), 0);
	mem_free(c);
	mem_free(p);
}

/* ---- stored forms ------------------------------------------------------------------------------
 */
void test_stats__profile_and_counts_survive_their_stored_form(void **state)
{
	(void)state;
	for (int shape = 0; shape < 5; shape++) {
		double *v = sample(3001, shape, 2, 1, 8);
		static struct stats_profile back;
		struct stats_profile *p = build(v, 3001, 4, shape == 1 ? 60 : 0);
		static struct stats_counts counts;
		struct stats_counts *c = count(p, v, 1234);
		static uint8_t bytes[STATS_PROFILE_BYTES_MAX], again[STATS_PROFILE_BYTES_MAX];
		size_t n = stats_profile_encode(p, bytes);
		struct err e;

		assert_in_range(n, 1, STATS_PROFILE_BYTES_MAX);
		assert_int_equal(stats_profile_decode(bytes, n, &back, &e), 0);
		assert_int_equal(stats_profile_encode(&back, again), n);
		assert_memory_equal(bytes, again, n);
		assert_memory_equal(back.edge, p->edge, sizeof(p->edge));
		n = stats_counts_encode(c, bytes);
		assert_int_equal(stats_counts_decode(bytes, n, &counts, &e), 0);
		assert_memory_equal(&counts, c, sizeof(counts));
		assert_int_equal(stats_counts_merge(&counts, &back.ref, &e), 0);
		mem_free(p);
		mem_free(c);
		mem_free(v);
	}
}

typedef int decoder(const uint8_t *p, size_t n, struct err *e);

/* Every changed bit of every third byte, and every length but the right one. */
static void refuses_damage(uint8_t *bytes, size_t n, decoder *decode)
{
	struct err e;

	assert_int_equal(decode(bytes, n, &e), 0);
	for (size_t i = 0; i < n; i += 3)
		for (unsigned bit = 0; bit < 8; bit++) {
			bytes[i] ^= (uint8_t)(1u << bit);
			assert_int_equal(decode(bytes, n, &e), -1);
			assert_int_equal(e.code, ERR_CORRUPT);
			bytes[i] ^= (uint8_t)(1u << bit);
		}
	for (size_t short_n = 0; short_n < n; short_n += 1 + n / 700)
		assert_int_equal(decode(bytes, short_n, &e), -1);
	assert_int_equal(decode(NULL, 0, &e), -1);
	assert_int_equal(decode(bytes, n, &e), 0);
}

static int decode_profile(const uint8_t *p, size_t n, struct err *e)
{
	struct stats_profile v;

	return stats_profile_decode(p, n, &v, e);
}

static int decode_counts(const uint8_t *p, size_t n, struct err *e)
{
	struct stats_counts v;

	return stats_counts_decode(p, n, &v, e);
}

void test_stats__damaged_bytes_are_refused(void **state)
{
	double *v = sample(500, 0, 1, 0, 8);
	struct stats_profile *p = build(v, 500, 0, 20);
	uint8_t bytes[STATS_PROFILE_BYTES_MAX];

	(void)state;
	refuses_damage(bytes, stats_profile_encode(p, bytes), decode_profile);
	refuses_damage(bytes, stats_counts_encode(&p->ref, bytes), decode_counts);
	/* One kind is not taken for the other. */
	assert_int_equal(
		decode_profile(bytes, stats_counts_encode(&p->ref, bytes), &(struct err){ 0 }), -1);
	mem_free(p);
	mem_free(v);
}

static void refuse_counts(const struct stats_counts *c)
{
	uint8_t bytes[STATS_COUNTS_BYTES_MAX];

	assert_int_equal(
		decode_counts(bytes, stats_counts_encode(c, bytes), &(struct err){ 0 }), -1);
}

static void refuse_profile(const struct stats_profile *p)
{
	uint8_t bytes[STATS_PROFILE_BYTES_MAX];

	assert_int_equal(
		decode_profile(bytes, stats_profile_encode(p, bytes), &(struct err){ 0 }), -1);
}

void test_stats__contradicting_contents_are_refused(void **state)
{
	double *v = sample(500, 0, 1, 0, 8);
	static struct stats_profile bad;
	struct stats_profile *p = build(v, 500, 0, 20);
	struct stats_counts c;

	(void)state;
	c = p->ref;
	c.finite++;
	refuse_counts(&c);
	c = p->ref;
	c.min = c.max + 1;
	refuse_counts(&c);
	c = p->ref;
	c.max = HUGE_VAL;
	refuse_counts(&c);
	c = p->ref;
	c.moment[1] = -1;
	refuse_counts(&c);
	c = p->ref;
	c.count[0] = UINT64_MAX;
	c.count[1] = 501 - c.finite;
	refuse_counts(&c);
	bad = *p;
	bad.edge[3] = bad.edge[4];
	refuse_profile(&bad);
	bad = *p;
	bad.group[5] = 9;
	refuse_profile(&bad);
	bad = *p;
	bad.shift += 1;
	refuse_profile(&bad);
	bad = *p;
	bad.ref.edges_id++;
	refuse_profile(&bad);
	mem_free(p);
	mem_free(v);
}

/* ---- metrics ------------------------------------------------------------------------------------
 */
void test_stats__binned_metrics_bound_the_exact_ones(void **state)
{
	(void)state;
	for (int shape = 0; shape < 4; shape++)
		for (int drift = 0; drift < 3; drift++) {
			size_t n = 3000, m = 2000;
			double *a = sample(n, shape, 1, 0, 11), *work = mem_new(n, sizeof(*work));
			double *b = sample(m, shape, 1 + 0.2 * drift, 0.1 * drift, 12), w, ks;
			struct stats_profile *p = build(a, n, 0, 0);
			struct stats_counts *c = count(p, b, m);
			struct stats_options o = STATS_OPTIONS_DEFAULT;
			struct stats_compare r;
			struct stats_samples s = { a, n, b, m };

			stats_compare_numeric(p, c, &o, &r);
			stats_sort(a, n, work);
			stats_sort(b, m, work);
			ks = stats_ks(s);
			w = stats_transport(s).wasserstein;
			assert_true(r.metric[STATS_METRIC_KS].value <= ks + 1e-12);
			assert_true(r.metric[STATS_METRIC_KS].value + r.ks_bound >= ks - 1e-12);
			assert_true(r.wasserstein <= w * (1 + 1e-9) + 1e-12);
			assert_true(r.wasserstein >= (shape < 2 ? 0.99 : 0.85) * w);
			near(r.metric[STATS_METRIC_MEAN_SHIFT].value,
				fabs(stats_mean(b, m) - stats_mean(a, n)) / stats_deviation(a, n),
				1e-9);
			mem_free(a);
			mem_free(b);
			mem_free(work);
			mem_free(p);
			mem_free(c);
		}
}

void test_stats__distances_of_equal_and_disjoint_cells(void **state)
{
	const uint64_t a[] = { 10, 20, 30, 0 }, b[] = { 20, 40, 60, 0 }, far[] = { 0, 0, 0, 7 },
		       none[] = { 0, 0, 0, 0 };
	struct stats_cells same = { a, b, 4 }, apart = { a, far, 4 }, empty = { a, none, 4 };

	(void)state;
	near(stats_psi(same, STATS_FILL_DEFAULT), 0, 1e-15);
	near(stats_js(same), 0, 0);
	near(stats_hellinger(same), 0, 1e-15);
	near(stats_tvd(same), 0, 1e-15);
	near(stats_chi2(same).p, 1, 1e-15);
	near(stats_js(apart), 1, 1e-12);
	near(stats_hellinger(apart), 1, 1e-12);
	near(stats_tvd(apart), 1, 1e-12);
	near(stats_ks_cells(apart), 1, 1e-12);
	assert_true(isinf(stats_kl_strict(apart)));
	assert_true(isfinite(stats_psi(apart, STATS_FILL_DEFAULT)));
	assert_true(isnan(stats_psi(empty, STATS_FILL_DEFAULT)) && isnan(stats_js(empty)));
	assert_true(isnan(stats_kl(empty, STATS_FILL_DEFAULT)) && isnan(stats_kl_strict(empty)));
	assert_true(isnan(stats_chi2(empty).p) && isnan(stats_g(empty).p));
	assert_int_equal(stats_cells_used(same), 3);
}

void test_stats__drift_needs_effect_and_significance(void **state)
{
	struct stats_options o = { 100, 50, 0.01, 20, 1, STATS_FILL_DEFAULT };
	double *a = sample(5000, 0, 1, 0, 1);
	struct stats_profile *p = build(a, 5000, 0, 0);
	int raw = 0, verdicts = 0;

	(void)state;
	/* Without drift, 100 rows: PSI passes 0.1 in every other window, the verdict does not. */
	for (uint64_t i = 0; i < 200; i++) {
		double *b = sample(100, 0, 1, 0, 1000 + i);
		struct stats_counts *c = count(p, b, 100);
		struct stats_compare r;

		stats_compare_numeric(p, c, &o, &r);
		raw += r.metric[STATS_METRIC_PSI].value >= 0.1;
		verdicts += stats_drifted(&r, STATS_METRIC_PSI, 0.1, &o);
		mem_free(b);
		mem_free(c);
	}
	assert_in_range(raw, 50, 150);
	assert_in_range(verdicts, 0, 4);
	/* A tiny shift in many rows is significant, and too small to matter. */
	{
		double *b = sample(200000, 0, 1, 0.12, 77);
		struct stats_counts *c = count(p, b, 200000);
		struct stats_compare r;

		stats_compare_numeric(p, c, &o, &r);
		assert_true(
			r.metric[STATS_METRIC_PSI].value > r.metric[STATS_METRIC_PSI].critical ||
			r.metric[STATS_METRIC_KS].value > r.metric[STATS_METRIC_KS].critical);
		assert_false(stats_drifted(&r, STATS_METRIC_PSI, 0.1, &o));
		mem_free(b);
		mem_free(c);
	}
	/* A shift of one deviation in 200 rows is both. */
	{
		double *b = sample(200, 0, 1, 1, 78);
		struct stats_counts *c = count(p, b, 200);
		struct stats_compare r;

		stats_compare_numeric(p, c, &o, &r);
		for (int k = STATS_METRIC_PSI; k <= STATS_METRIC_KL; k++)
			assert_true(stats_drifted(&r, (enum stats_metric_kind)k, 0.1, &o));
		o.design_effect = 50;
		stats_compare_numeric(p, c, &o, &r);
		assert_false(stats_drifted(&r, STATS_METRIC_PSI, 0.1, &o));
		mem_free(b);
		mem_free(c);
	}
	mem_free(p);
	mem_free(a);
}

void test_stats__statuses_never_fail(void **state)
{
	struct stats_options o = STATS_OPTIONS_DEFAULT;
	double *a = sample(500, 0, 1, 0, 1), nan3[] = { NAN, NAN, NAN }, inf2[] = { HUGE_VAL, 1 };
	struct stats_profile *p = build(a, 500, 0, 0), *none = build(nan3, 3, 2, 0);
	struct stats_counts *c = count(p, a, 0);
	struct stats_compare r;

	(void)state;
	stats_compare_numeric(p, c, &o, &r);
	assert_int_equal(r.status, STATS_NO_DATA);
	assert_true(isnan(r.metric[STATS_METRIC_PSI].value));
	assert_false(stats_drifted(&r, STATS_METRIC_MISSING_RATE, 0, &o));
	stats_counts_add(c, p, nan3, 3);
	stats_counts_add_nulls(c, 300);
	stats_compare_numeric(p, c, &o, &r);
	assert_int_equal(r.status, STATS_ALL_MISSING);
	assert_true(stats_drifted(&r, STATS_METRIC_MISSING_RATE, 0.02, &o));
	stats_counts_add(c, p, inf2, 2);
	stats_compare_numeric(p, c, &o, &r);
	assert_int_equal(r.status, STATS_INSUFFICIENT);
	assert_true(r.metric[STATS_METRIC_PSI].value >= 0);
	assert_false(stats_drifted(&r, STATS_METRIC_PSI, 0.1, &o));
	mem_free(c);
	c = count(none, a, 500);
	assert_int_equal(none->bins, 1);
	stats_compare_numeric(none, c, &o, &r);
	assert_int_equal(r.status, STATS_INSUFFICIENT);
	near(r.ref_missing_rate, 1, 0);
	assert_true(isnan(r.metric[STATS_METRIC_WASSERSTEIN].value));
	stats_compare_numeric(p, c, &o, &r);
	assert_int_equal(r.status, STATS_TYPE_CHANGED);
	stats_compare_type_changed(&r);
	assert_string_equal(stats_status_name(r.status), "type_changed");
	mem_free(c);
	mem_free(p);
	mem_free(none);
	mem_free(a);
}

void test_stats__a_constant_reference_is_said(void **state)
{
	struct stats_options o = { 1, 1, 0.01, 1, 1, STATS_FILL_DEFAULT };
	double five[300], six[300];
	struct stats_profile *p;
	struct stats_counts *c;
	struct stats_compare r;

	(void)state;
	for (int i = 0; i < 300; i++) {
		five[i] = 5;
		six[i] = 6;
	}
	p = build(five, 300, 0, 0);
	c = count(p, five, 300);
	stats_compare_numeric(p, c, &o, &r);
	assert_int_equal(r.status, STATS_CONSTANT);
	assert_true(r.zero_variance);
	assert_false(stats_drifted(&r, STATS_METRIC_PSI, 0.1, &o));
	mem_free(c);
	c = count(p, six, 300);
	stats_compare_numeric(p, c, &o, &r);
	assert_int_equal(r.status, STATS_CONSTANT);
	assert_true(stats_drifted(&r, STATS_METRIC_PSI, 0.1, &o));
	assert_true(stats_drifted(&r, STATS_METRIC_OUT_OF_RANGE_RATE, 0.02, &o));
	near(r.metric[STATS_METRIC_MEAN_SHIFT].value, 1000, 1e-12);
	mem_free(c);
	mem_free(p);
}

void test_stats__names_of_scores_parse_back(void **state)
{
	enum stats_score s;

	(void)state;
	for (int i = 0; i < STATS_SCORE_COUNT; i++) {
		assert_true(stats_score_parse(str_c(stats_score_name((enum stats_score)i)), &s));
		assert_int_equal(s, i);
	}
	assert_false(stats_score_parse(STR(""), &s));
}

void test_stats__exact_ks_p_agrees_with_its_limit_and_with_tiny_tails(void **state)
{
	double *work = mem_new(3001, sizeof(*work));

	(void)state;
	near(stats_ks_exact_p(100, 100, 0.19, work), 0.05390207893129876, 1e-13);
	near(stats_ks_exact_p(3000, 3000, 0.03, work), stats_ks_limit_p(3000, 3000, 0.03), 3e-3);
	/* Disjoint samples: 2 paths of binomial(40, 20) = 137846528820. */
	near(stats_ks_exact_p(20, 20, 1, work) * 137846528820.0, 2, 1e-12);
	near(stats_ks_exact_p(7, 5, 0, work), 1, 0);
	assert_true(isnan(stats_ks_exact_p(100000, 100000, 0.1, work)));
	near(stats_ks_stephens_p(500, 300, stats_ks_critical(500, 300, 0.01)), 0.01, 1e-10);
	mem_free(work);
}

/* ---- categories
 * ----------------------------------------------------------------------------------- */
static struct stats_categories *categories(
	struct stats_category_in *in, size_t n, uint64_t nulls, uint64_t *seen, size_t room)
{
	struct stats_categories *c = mem_new_of(struct stats_categories);
	struct err e;

	assert_int_equal(
		stats_categories_build(
			&(struct stats_categories_args){ in, n, nulls, seen, room }, c, &e),
		0);
	return c;
}

static char many_names[400][8];

static size_t many(struct stats_category_in *in)
{
	for (size_t i = 0; i < 400; i++) {
		str_print(many_names[i], sizeof(many_names[i]), "c%03zu", (i * 7) % 400);
		in[i] = (struct stats_category_in){ str_c(many_names[i]), 400 - (i * 7) % 400 };
	}
	return 400;
}

void test_stats__categories_beyond_the_top_are_other_and_the_rest_is_new(void **state)
{
	static struct stats_category_in in[400];
	uint64_t seen[200], cell_ref[STATS_CELLS], cell_cur[STATS_CELLS];
	struct stats_categories *ref = categories(in, many(in), 9, seen, 200), *w;
	struct stats_options o = STATS_OPTIONS_DEFAULT;
	struct stats_compare r;

	(void)state;
	assert_int_equal(ref->n, STATS_TOP);
	assert_int_equal(ref->n_seen, 145);
	assert_int_equal(ref->rows, 400 * 401 / 2 + 9);
	assert_int_equal(ref->other, 145 * 146 / 2);
	assert_true(str_is(stats_category_name(ref, 0), "c000"));
	assert_true(str_is(stats_category_name(ref, 254), "c254"));
	w = mem_new_of(struct stats_categories);
	stats_categories_init(w, ref);
	stats_categories_add(w, ref, STR("c003"), 5);
	stats_categories_add(w, ref, STR("c300"), 4);
	stats_categories_add(w, ref, STR("new"), 3);
	stats_categories_add(w, ref, STR("new"), 3);
	stats_categories_add(w, ref, STR(""), 1);
	stats_categories_add_nulls(w, 2);
	assert_int_equal(w->other, 4);
	assert_int_equal(stats_categories_fresh(w), 7);
	assert_int_equal(w->rows, 18);
	assert_int_equal(stats_categories_cells(ref, w, cell_ref, cell_cur), STATS_TOP + 3);
	stats_compare_categories(ref, w, &o, &r);
	assert_int_equal(r.status, STATS_INSUFFICIENT);
	near(r.metric[STATS_METRIC_NEW_CATEGORY_RATE].value, 7.0 / 16, 1e-15);
	for (int i = 0; i < 100; i++) {
		char name[16];

		str_print(name, sizeof(name), "fresh%d", i);
		stats_categories_add(w, ref, str_c(name), 1);
	}
	assert_int_equal(w->n, STATS_NAMES);
	assert_int_equal(w->fresh, 38);
	assert_int_equal(stats_categories_fresh(w), 107);
	mem_free(ref);
	mem_free(w);
}

void test_stats__equal_counts_are_ordered_by_bytes_and_sums_of_rows_are_kept(void **state)
{
	struct stats_category_in in[] = { { STR("b"), 1 }, { STR("a"), 1 }, { STR("b"), 1 },
		{ STR("ab"), 2 }, { STR("a"), 1 } };
	struct stats_categories *c = categories(in, 5, 0, NULL, 0);

	(void)state;
	assert_int_equal(c->n, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(c->item[i].count, 2);
	assert_true(str_is(stats_category_name(c, 0), "a"));
	assert_true(str_is(stats_category_name(c, 1), "ab"));
	mem_free(c);
}

void test_stats__long_names_are_cut_between_code_points_and_stay_apart(void **state)
{
	char a[300], b[300];
	struct stats_category_in in[2];
	struct stats_categories *c, *w = mem_new_of(struct stats_categories);

	(void)state;
	for (int i = 0; i < 300; i += 3)
		memcpy(a + i, "\xe2\x82\xac", 3);
	memcpy(b, a, 300);
	b[299] = '\xad';
	in[0] = (struct stats_category_in){ { a, 300 }, 3 };
	in[1] = (struct stats_category_in){ { b, 300 }, 4 };
	c = categories(in, 2, 0, NULL, 0);
	assert_int_equal(c->n, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_in_range(stats_category_name(c, i).n, 100, STATS_NAME_MAX);
		assert_true(str_utf8_valid(stats_category_name(c, i)));
	}
	stats_categories_init(w, c);
	stats_categories_add(w, c, (struct str){ a, 300 }, 2);
	stats_categories_add(w, c, (struct str){ b, 300 }, 5);
	assert_int_equal(stats_categories_fresh(w), 0);
	assert_int_equal(w->item[0].count + w->item[1].count, 7);
	mem_free(c);
	mem_free(w);
}

void test_stats__categories_merge_by_name(void **state)
{
	struct stats_category_in in[] = { { STR("a"), 5 }, { STR("b"), 5 } },
				 others[] = { { STR("z"), 5 } };
	struct stats_categories *ref = categories(in, 2, 0, NULL, 0),
				*other = categories(others, 1, 0, NULL, 0),
				*x = mem_new_of(struct stats_categories),
				*y = mem_new_of(struct stats_categories);
	struct err e;

	(void)state;
	stats_categories_init(x, ref);
	stats_categories_init(y, ref);
	stats_categories_add(x, ref, STR("new"), 1);
	stats_categories_add(y, ref, STR("newer"), 2);
	stats_categories_add(y, ref, STR("new"), 3);
	stats_categories_add(y, ref, STR("b"), 4);
	assert_int_equal(stats_categories_merge(x, y, &e), 0);
	assert_int_equal(x->rows, 10);
	assert_int_equal(stats_categories_fresh(x), 6);
	assert_int_equal(x->item[1].count, 4);
	assert_int_equal(x->n, 4);
	assert_int_equal(x->item[2].count, 4);
	stats_categories_init(y, other);
	assert_int_equal(stats_categories_merge(x, y, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	{
		struct stats_compare r;
		struct stats_options o = STATS_OPTIONS_DEFAULT;

		stats_compare_categories(other, x, &o, &r);
		assert_int_equal(r.status, STATS_TYPE_CHANGED);
	}
	mem_free(ref);
	mem_free(other);
	mem_free(x);
	mem_free(y);
}

static uint64_t seen_room[200];

static int decode_categories(const uint8_t *p, size_t n, struct err *e)
{
	struct stats_categories *c = mem_new_of(struct stats_categories);
	int rc = stats_categories_decode(
		p, n, (struct stats_categories_room){ seen_room, 200 }, c, e);

	mem_free(c);
	return rc;
}

void test_stats__categories_survive_their_stored_form_and_damage_is_refused(void **state)
{
	struct stats_category_in in[400], few[] = { { STR("a"), 5 }, { STR(""), 5 } };
	uint64_t seen[200], back_seen[200];
	struct stats_categories *ref = categories(in, many(in), 9, seen, 200),
				*small = categories(few, 2, 1, NULL, 0),
				*back = mem_new_of(struct stats_categories);
	size_t n = stats_categories_bytes(ref);
	uint8_t *bytes = mem_new(n, 1), *again = mem_new(n, 1);
	struct err e;

	(void)state;
	assert_int_equal(stats_categories_encode(ref, bytes, n), n);
	assert_int_equal(stats_categories_encode(ref, again, n - 1), 0);
	assert_int_equal(stats_categories_decode(bytes, n,
				 (struct stats_categories_room){ back_seen, 200 }, back, &e),
		0);
	assert_int_equal(stats_categories_encode(back, again, n), n);
	assert_memory_equal(bytes, again, n);
	assert_int_equal(stats_categories_decode(bytes, n,
				 (struct stats_categories_room){ back_seen, 144 }, back, &e),
		-1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	n = stats_categories_encode(small, bytes, n);
	assert_int_equal(n, stats_categories_bytes(small));
	refuses_damage(bytes, n, decode_categories);
	small->rows++;
	n = stats_categories_encode(small, bytes, n);
	assert_int_equal(decode_categories(bytes, n, &e), -1);
	mem_free(ref);
	mem_free(small);
	mem_free(back);
	mem_free(bytes);
	mem_free(again);
}

void test_stats__too_many_categories_are_an_error(void **state)
{
	size_t n = STATS_DISTINCT_MAX + 1;
	struct stats_category_in *in = mem_new(n, sizeof(*in)), few[400];
	char(*names)[8] = mem_new(n, 8);
	struct stats_categories *c = mem_new_of(struct stats_categories);
	uint64_t seen[10];
	struct err e;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		str_print(names[i], 8, "%zx", i);
		in[i] = (struct stats_category_in){ str_c(names[i]), 1 };
	}
	assert_int_equal(
		stats_categories_build(&(struct stats_categories_args){ in, n, 0, NULL, 0 }, c, &e),
		-1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	assert_int_equal(
		stats_categories_build(
			&(struct stats_categories_args){ few, many(few), 0, seen, 10 }, c, &e),
		-1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	mem_free(in);
	mem_free(names);
	mem_free(c);
}

void test_stats__types_follow_from_the_values(void **state)
{
	struct stats_facts few = { STATS_IS_INTEGER, 1000, 20, 0 },
			   lots = { STATS_IS_INTEGER, 1000, 21, 0 },
			   prose = { STATS_IS_STRING, 1000, 501, 33 },
			   code = { STATS_IS_STRING, 1000, 501, 32 };

	(void)state;
	assert_int_equal(stats_type_choose(&few, STATS_FEW_INTEGERS), STATS_CATEGORY);
	assert_int_equal(stats_type_choose(&lots, STATS_FEW_INTEGERS), STATS_NUMERIC);
	assert_int_equal(stats_type_choose(&prose, STATS_FEW_INTEGERS), STATS_TEXT);
	assert_int_equal(stats_type_choose(&code, STATS_FEW_INTEGERS), STATS_CATEGORY);
	assert_int_equal(stats_hour_block(-1), 3);
}

/* ---- performance
 * ---------------------------------------------------------------------------------- */
void test_stats__regression_counters_merge(void **state)
{
	double *y = sample(1000, 0, 3, 1e6, 1), *e = sample(1000, 0, 1, 0.5, 2), sse = 0, sst = 0;
	struct stats_regression all = { 0 }, a = { 0 }, b = { 0 }, none = { 0 };
	double mean = stats_mean(y, 1000), sae = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		stats_regression_add(&all, y[i], y[i] + e[i]);
		stats_regression_add(i % 3 == 0 ? &a : &b, y[i], y[i] + e[i]);
		sae += fabs((y[i] + e[i]) - y[i]);
		sse += pow((y[i] + e[i]) - y[i], 2);
		sst += pow(y[i] - mean, 2);
	}
	stats_regression_add(&a, NAN, 1);
	stats_regression_add(&a, 1, HUGE_VAL);
	stats_regression_add(&a, -1e308, 1e308);
	stats_regression_add(&a, 1e76, 1e76);
	stats_regression_merge(&none, &a);
	stats_regression_merge(&none, &b);
	assert_int_equal(none.n, 1000);
	assert_int_equal(none.skipped, 4);
	near(stats_regression_score(&none, STATS_MAE), sae / 1000, 1e-12);
	near(stats_regression_score(&none, STATS_RMSE), sqrt(sse / 1000), 1e-12);
	near(stats_regression_score(&none, STATS_R2), 1 - sse / sst, 1e-9);
	near(stats_regression_score(&all, STATS_R2), 1 - sse / sst, 1e-9);
	assert_true(isnan(stats_regression_score(&none, STATS_F1)));
	memset(&b, 0, sizeof(b));
	assert_true(isnan(stats_regression_score(&b, STATS_MAE)));
	mem_free(y);
	mem_free(e);
}

/* The largest that are taken leave everything finite. */
void test_stats__large_errors_overflow_nothing(void **state)
{
	struct stats_regression c = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		stats_regression_add(&c, i % 2 == 0 ? STATS_VALUE_MAX : -STATS_VALUE_MAX, 0);
	assert_int_equal(c.n, 1000);
	near(stats_regression_score(&c, STATS_MAE), STATS_VALUE_MAX, 1e-9 * STATS_VALUE_MAX);
	near(stats_regression_score(&c, STATS_RMSE), STATS_VALUE_MAX, 1e-9 * STATS_VALUE_MAX);
	near(stats_regression_score(&c, STATS_R2), 0, 1e-9);
}

void test_stats__classification_counters_match_closed_forms(void **state)
{
	static const double truth[] = { 1, 1, 1, 0, 0 }, said[] = { 1, 0, 1, 0, 0 },
			    score[] = { 0.9, 0.3, 0.6, 0.4, 0.1 };
	struct stats_classes *c = mem_new(3, sizeof(*c));

	(void)state;
	for (int i = 0; i < 5; i++)
		stats_classes_add(&c[1 + i % 2], truth[i], said[i], score[i]);
	stats_classes_add(&c[1], (double)NAN, 1, 0.5);
	stats_classes_merge(&c[0], &c[1]);
	stats_classes_merge(&c[0], &c[2]);
	near(stats_classes_score(c, STATS_ACCURACY), 0.8, 1e-12);
	near(stats_classes_score(c, STATS_PRECISION), 1, 1e-12);
	near(stats_classes_score(c, STATS_RECALL), 2.0 / 3, 1e-12);
	near(stats_classes_score(c, STATS_F1), 0.8, 1e-12);
	near(stats_classes_score(c, STATS_AUC), 5.0 / 6, 1e-12);
	near(stats_classes_score(c, STATS_LOG_LOSS), 0.487269016634714, 1e-12);
	near(stats_classes_score(c, STATS_BRIER), 0.166, 1e-12);
	assert_int_equal(c->skipped, 1);
	mem_free(c);
}

void test_stats__auc_from_bins_is_within_its_bound(void **state)
{
	struct stats_classes *c = mem_new_of(struct stats_classes);
	static double pos[800], neg[1200], work[1200];
	double exact;
	struct stats_random r;

	(void)state;
	stats_random_seed(&r, 6);
	for (int i = 0; i < 800; i++)
		stats_classes_add(c, 1, 1, pos[i] = sqrt(uniform(&r)));
	for (int i = 0; i < 1200; i++)
		stats_classes_add(c, 0, 1, neg[i] = uniform(&r));
	stats_sort(pos, 800, work);
	stats_sort(neg, 1200, work);
	exact = stats_auc((struct stats_samples){ neg, 1200, pos, 800 });
	assert_true(fabs(exact - stats_classes_score(c, STATS_AUC)) < 1e-3);
	mem_free(c);
}

/* ---- bootstrap
 * ------------------------------------------------------------------------------------ */
void test_stats__the_generator_gives_its_published_numbers(void **state)
{
	struct stats_random r = { { 1, 2, 3, 4 } };

	(void)state;
	assert_int_equal(stats_random_next(&r), 11520);
	assert_int_equal(stats_random_next(&r), 0);
	assert_int_equal(stats_random_next(&r), 1509978240);
	assert_int_equal(stats_random_next(&r), UINT64_C(1215971899390074240));
	stats_random_seed(&r, 0);
	assert_int_equal(r.s[0], UINT64_C(0xe220a8397b1dcdaf));
	assert_int_equal(r.s[1], UINT64_C(0x6e789e6aa1b965f4));
	for (int i = 0; i < 1000; i++)
		assert_in_range(stats_random_row(&r, 7), 0, 6);
}

void test_stats__bootstrap_is_reproducible_and_finds_what_is_there(void **state)
{
	static double work[4000];
	double *a = sample(300, 0, 1, 10, 1), *b = sample(300, 0, 1, 9.5, 2);
	struct stats_bootstrap_args args = { a, b, 300, false, 2000, 0.95, 42, work };
	struct stats_bootstrap x, y, z;
	struct err e;

	(void)state;
	assert_int_equal(stats_bootstrap(&args, &x, &e), 0);
	assert_int_equal(stats_bootstrap(&args, &y, &e), 0);
	assert_memory_equal(&x, &y, sizeof(x));
	args.seed = 43;
	assert_int_equal(stats_bootstrap(&args, &z, &e), 0);
	assert_true(z.low != x.low);
	near(z.low, x.low, 0.03);
	assert_true(x.low > 0.2 && x.high < 0.8 && x.low < x.improvement && x.improvement < x.high);
	/* The width that the central limit theorem gives. */
	near(x.high - x.low,
		2 * 1.96 *
			sqrt((pow(stats_deviation(a, 300), 2) + pow(stats_deviation(b, 300), 2)) /
				300),
		0.1);
	near(x.p, 1.0 / 2001, 1e-12);
	args.challenger = a;
	args.root = true;
	assert_int_equal(stats_bootstrap(&args, &x, &e), 0);
	near(x.low, 0, 0);
	near(x.high, 0, 0);
	near(x.p, 1, 0);
	near(x.champion, sqrt(stats_mean(a, 300)), 1e-12);
	mem_free(a);
	mem_free(b);
}

void test_stats__bootstrap_refuses_what_it_cannot_do(void **state)
{
	double a[] = { 1, 2 }, bad[] = { 1, NAN }, work[400];
	struct stats_bootstrap_args args = { a, a, 2, false, 200, 0.95, 42, work };
	struct stats_bootstrap x;
	struct err e;

	(void)state;
	assert_int_equal(stats_bootstrap(&args, &x, &e), 0);
	args.n = 0;
	assert_int_equal(stats_bootstrap(&args, &x, &e), -1);
	args.n = 2;
	args.draws = 99;
	assert_int_equal(stats_bootstrap(&args, &x, &e), -1);
	assert_string_equal(e.field, "/draws");
	args.draws = 200;
	args.confidence = 1;
	assert_int_equal(stats_bootstrap(&args, &x, &e), -1);
	args.confidence = 0.9;
	args.challenger = bad;
	assert_int_equal(stats_bootstrap(&args, &x, &e), -1);
}

/* Bytes that somebody has changed and signed again: refused, or read as a sound value, never more.
 */
static void survives_forgery(uint8_t *bytes, size_t n, decoder *decode, uint64_t seed)
{
	uint8_t *forged = mem_new(n, 1);
	struct stats_random r;

	stats_random_seed(&r, seed);
	for (int round = 0; round < 1500; round++) {
		size_t cut = round % 5 == 0 ? stats_random_row(&r, n - 4) + 4 : n;
		uint32_t crc;

		memcpy(forged, bytes, n);
		for (size_t k = stats_random_row(&r, 4) + 1; k > 0; k--)
			forged[8 + stats_random_row(&r, round % 2 == 0 ? 40 : n - 12)] =
				(uint8_t)stats_random_next(&r);
		crc = codec_crc(0, forged, cut - 4);
		for (unsigned b = 0; b < 4; b++)
			forged[cut - 4 + b] = (uint8_t)(crc >> (8 * b));
		(void)!decode(forged, cut, &(struct err){ 0 });
	}
	mem_free(forged);
}

void test_stats__forged_bytes_break_nothing(void **state)
{
	static struct stats_category_in in[400];
	uint64_t seen[200];
	double *v = sample(500, 0, 1, 0, 8);
	struct stats_profile *p = build(v, 500, 0, 240);
	struct stats_categories *c = categories(in, many(in), 9, seen, 200);
	size_t n = stats_categories_bytes(c);
	uint8_t *bytes = mem_new(n < STATS_PROFILE_BYTES_MAX ? STATS_PROFILE_BYTES_MAX : n, 1);

	(void)state;
	survives_forgery(bytes, stats_profile_encode(p, bytes), decode_profile, 1);
	survives_forgery(bytes, stats_counts_encode(&p->ref, bytes), decode_counts, 2);
	survives_forgery(bytes, stats_categories_encode(c, bytes, n), decode_categories, 3);
	mem_free(bytes);
	mem_free(c);
	mem_free(p);
	mem_free(v);
}
