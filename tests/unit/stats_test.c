#include "lib/stats/sample.h"
#include "lib/stats/special.h"
#include "tests/unit/stats_sample.h"

#include <float.h>

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
