#include "lib/stats/compat.h"
#include "tests/tools/drift_case/case.h"

#include <math.h>
#include <stdlib.h>

const char *psi_numeric(struct test_case *t)
{
	struct column a = column_of(t->ref), b = column_of(t->cur);
	struct stats_profile *p = profile_of(&a, STATS_BINS);
	struct stats_counts *w = window_counts(p, &b);
	uint64_t ref[STATS_GROUPS], cur[STATS_GROUPS];
	uint32_t k = stats_counts_groups(p, &p->ref, ref);
	struct stats_options o = options();
	struct stats_compare c;
	double first = NAN, last = NAN;

	stats_counts_groups(p, w, cur);
	stats_compare_numeric(p, w, &o, &c);
	for (uint32_t j = 1; j < p->bins; j++)
		if (p->group[j] != p->group[j - 1]) {
			first = isnan(first) ? p->edge[j - 1] : first;
			last = p->edge[j - 1];
		}
	put(t->r, "statistic", c.metric[STATS_METRIC_PSI].value);
	put_int(t->r, "n_bins", k);
	put_int(t->r, "n_bins_used", stats_cells_used((struct stats_cells){ ref, cur, k }));
	put_counts(t->r, "ref_counts", ref, k);
	put_counts(t->r, "cur_counts", cur, k);
	put(t->r, "first_edge", first);
	put(t->r, "last_edge", last);
	put(t->r, "null_mean", c.psi_null);
	put(t->r, "critical_95", c.metric[STATS_METRIC_PSI].critical);
	free(p);
	free(w);
	free(a.v);
	free(b.v);
	return NULL;
}

const char *psi_evidently(struct test_case *t)
{
	struct column a = column_of(t->ref), b = column_of(t->cur);
	struct column x = sorted_of(&a), y = sorted_of(&b);
	struct compat_psi p = compat_psi_evidently(samples_of(&x, &y));

	put(t->r, "statistic", p.statistic);
	put_int(t->r, "n_bins", p.bins);
	put(t->r, "first_edge", p.first_edge);
	put(t->r, "last_edge", p.last_edge);
	free(a.v);
	free(b.v);
	free(x.v);
	free(y.v);
	return NULL;
}

const char *ks_2samp(struct test_case *t)
{
	struct column a = column_of(t->ref), b = column_of(t->cur);
	struct column x = sorted_of(&a), y = sorted_of(&b);
	struct stats_samples s = samples_of(&x, &y);
	const char *method = json_string_value(json_object_get(t->params, "method"));
	double d = stats_ks(s), n = (double)x.n, m = (double)y.n;

	put(t->r, "statistic", d);
	put(t->r, "p_value_limit", stats_ks_limit_p(n, m, d));
	put(t->r, "p_value_stephens", stats_ks_stephens_p(n, m, d));
	if (method == NULL || strcmp(method, "exact") == 0)
		put(t->r, "p_value", exact_p(s, d));
	free(a.v);
	free(b.v);
	free(x.v);
	free(y.v);
	return NULL;
}

const char *wasserstein(struct test_case *t)
{
	struct column a = column_of(t->ref), b = column_of(t->cur);
	struct column x = sorted_of(&a), y = sorted_of(&b);
	struct stats_transport w = stats_transport(samples_of(&x, &y));
	double sd = stats_deviation(x.v, x.n);

	put(t->r, "statistic", w.wasserstein);
	put(t->r, "normed", w.wasserstein / fmax(sd, 0.001));
	put(t->r, "ref_std", sd);
	put(t->r, "mean_difference", stats_mean(b.v, b.n) - stats_mean(a.v, a.n));
	put(t->r, "energy_distance", w.energy);
	free(a.v);
	free(b.v);
	free(x.v);
	free(y.v);
	return NULL;
}

static void clip(struct column *c, double most)
{
	for (size_t i = 0; i < c->n; i++)
		c->v[i] = c->v[i] < most ? c->v[i] : most;
}

const char *wasserstein_binned(struct test_case *t)
{
	struct column a = column_of(t->ref), b = column_of(t->cur), x, y;
	struct stats_options o = options();
	struct stats_compare c;
	struct stats_profile *p;
	struct stats_counts *w;

	clip(&a, number(t->params, "clip_max", HUGE_VAL));
	clip(&b, number(t->params, "clip_max", HUGE_VAL));
	x = sorted_of(&a);
	y = sorted_of(&b);
	p = profile_of(&a, (uint32_t)number(t->params, "bins", STATS_BINS));
	w = window_counts(p, &b);
	stats_compare_numeric(p, w, &o, &c);
	put(t->r, "statistic", c.wasserstein);
	put(t->r, "exact_from_samples", stats_transport(samples_of(&x, &y)).wasserstein);
	put(t->r, "ks_from_bins", c.metric[STATS_METRIC_KS].value);
	put(t->r, "ks_exact", stats_ks(samples_of(&x, &y)));
	put(t->r, "ks_error_bound", c.ks_bound);
	free(p);
	free(w);
	free(a.v);
	free(b.v);
	free(x.v);
	free(y.v);
	return NULL;
}

const char *domain_auc(struct test_case *t)
{
	const json_t *labels = json_object_get(t->ref, "labels"),
		     *scores = json_object_get(t->ref, "scores"), *v;
	struct column neg = { need(json_array_size(labels), sizeof(double)), 0, 0 };
	struct column pos = { need(json_array_size(labels), sizeof(double)), 0, 0 }, x, y;
	size_t i;
	double auc;

	json_array_foreach (labels, i, v) {
		struct column *c = json_integer_value(v) == 1 ? &pos : &neg;

		c->v[c->n++] = json_number_value(json_array_get(scores, i));
	}
	x = sorted_of(&neg);
	y = sorted_of(&pos);
	auc = stats_auc(samples_of(&x, &y));
	put(t->r, "statistic", auc);
	put(t->r, "drift_score", fmax(2 * auc - 1, 0));
	free(neg.v);
	free(pos.v);
	free(x.v);
	free(y.v);
	return NULL;
}

static json_t *counters(const struct stats_counts *c)
{
	json_t *r = json_object();

	put_int(r, "n", stats_counts_rows(c));
	put_int(r, "null", c->nulls);
	put_int(r, "nan", c->nans);
	put_int(r, "pos_inf", c->pos_inf);
	put_int(r, "neg_inf", c->neg_inf);
	put_int(r, "finite", c->finite);
	return r;
}

const char *quality(struct test_case *t)
{
	struct column a = column_of(t->ref), b = column_of(t->cur), x = sorted_of(&a),
		      y = sorted_of(&b);
	struct column rows = column_of(json_object_get(t->params, "row_history"));
	double now = number(t->params, "row_current", 0), d = stats_ks(samples_of(&x, &y));
	struct stats_profile *p = profile_of(&a, STATS_BINS);
	struct stats_counts *w = window_counts(p, &b);
	struct stats_options o = options();
	struct stats_compare c;
	struct stats_test z;

	stats_compare_numeric(p, w, &o, &c);
	z = stats_two_shares((struct stats_share){ stats_counts_missing(&p->ref), c.rows_ref },
		(struct stats_share){ stats_counts_missing(w), c.rows_cur });
	json_object_set_new(t->r, "ref", counters(&p->ref));
	json_object_set_new(t->r, "cur", counters(w));
	put(t->r, "ref_missing_rate", c.ref_missing_rate);
	put(t->r, "cur_missing_rate", c.metric[STATS_METRIC_MISSING_RATE].value);
	put(t->r, "missing_z", z.statistic);
	put(t->r, "missing_z_p_value", c.metric[STATS_METRIC_MISSING_RATE].p);
	put(t->r, "out_of_range_rate", c.metric[STATS_METRIC_OUT_OF_RANGE_RATE].value);
	put(t->r, "ks_statistic", d);
	put(t->r, "ks_p_value", exact_p(samples_of(&x, &y), d));
	put(t->r, "row_count_z", stats_rows_z(rows.v, rows.n, now));
	put(t->r, "row_count_ratio", now / stats_mean(rows.v, rows.n));
	free(a.v);
	free(b.v);
	free(x.v);
	free(y.v);
	free(rows.v);
	free(p);
	free(w);
	return NULL;
}

const char *constant_columns(struct test_case *t)
{
	struct column a = column_of(t->ref);
	struct stats_profile *p = profile_of(&a, (uint32_t)number(t->params, "bins", 10));
	struct stats_options o = options();
	const char *key;
	json_t *v;

	put_reals(t->r, "edges", p->edge, p->bins - 1);
	json_object_foreach ((json_t *)(uintptr_t)t->cur, key, v) {
		struct column b = column_of(v);
		struct stats_counts *w = window_counts(p, &b);
		struct stats_compare c;
		json_t *r = json_object();

		stats_compare_numeric(p, w, &o, &c);
		put(r, "psi", c.metric[STATS_METRIC_PSI].value);
		put(r, "ks", c.metric[STATS_METRIC_KS].value);
		put(r, "wasserstein_normed", c.metric[STATS_METRIC_WASSERSTEIN].value);
		json_object_set_new(t->r, key, r);
		free(w);
		free(b.v);
	}
	free(p);
	free(a.v);
	return NULL;
}

const char *status_rules(struct test_case *t)
{
	struct column a = column_of(t->ref);
	struct stats_profile *p = profile_of(&a, STATS_BINS);
	struct stats_options o = options();
	json_t *rows = json_object(), *missing = json_object(), *v;
	const char *key;

	o.min_cur = (uint64_t)number(t->params, "min_samples", 200);
	json_object_foreach ((json_t *)(uintptr_t)t->cur, key, v) {
		struct column b = column_of(v);
		struct stats_counts *w = window_counts(p, &b);
		struct stats_compare c;

		stats_compare_numeric(p, w, &o, &c);
		json_object_set_new(t->r, key, json_string(stats_status_name(c.status)));
		put_int(rows, key, c.rows_cur);
		if (c.status == STATS_ALL_MISSING)
			put(missing, key, c.metric[STATS_METRIC_MISSING_RATE].value);
		free(w);
		free(b.v);
	}
	json_object_set_new(t->r, "row_count", rows);
	json_object_set_new(t->r, "missing_rate", missing);
	free(p);
	free(a.v);
	return NULL;
}

const char *multiple_testing(struct test_case *t)
{
	struct column p = column_of(json_object_get(t->cur, "p_values"));
	static const char *const names[] = { "bonferroni", "holm", "bh" };
	static const char *const rejected[] = { "rejected_bonferroni", "rejected_holm",
		"rejected_bh" };
	double alpha = number(t->params, "alpha", 0.05), *adjusted = need(p.n, sizeof(double));
	size_t *order = need(p.n, sizeof(size_t));
	uint64_t plain = 0;

	for (int how = 0; how < 3; how++) {
		uint64_t hits = 0;

		stats_adjust_p(p.v, p.n, (enum stats_adjust)how, order, adjusted);
		put_reals(t->r, names[how], adjusted, p.n);
		for (size_t i = 0; i < p.n; i++)
			hits += adjusted[i] <= alpha;
		put_int(t->r, rejected[how], hits);
	}
	for (size_t i = 0; i < p.n; i++)
		plain += p.v[i] <= alpha;
	put_int(t->r, "rejected_none", plain);
	free(p.v);
	free(adjusted);
	free(order);
	return NULL;
}
