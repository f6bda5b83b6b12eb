#include "lib/stats/perf.h"
#include "lib/stats/sample.h"
#include "tests/unit/stats_sample.h"

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
