/*
 * drift_case FILE: one drift vector in, its result out. Samples come as arrays (null, "NaN",
 * "Infinity", "-Infinity" allowed) or as generators. Everything that is computed comes from the
 * product's own functions.
 */
#include "lib/stats/category.h"
#include "lib/stats/compat.h"
#include "lib/stats/metric.h"
#include "lib/stats/perf.h"
#include "lib/stats/sample.h"
#include "lib/stats/type.h"
#include "server/core/policy.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct column {
	double *v; /* without nulls */
	size_t n, nulls;
};

static void die(const char *what)
{
	fprintf(stderr, "drift_case: %s\n", what);
	exit(2);
}

static void *need(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	if (p == NULL)
		die("out of memory");
	return p;
}

/* ---- generators -------------------------------------------------------------------------- */
struct lcg {
	uint64_t s;
};

static double next_u(struct lcg *g)
{
	g->s = g->s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(g->s >> 11) * 0x1p-53;
}

static double number(const json_t *o, const char *key, double otherwise)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : otherwise;
}

static double generate(struct lcg *g, const char *dist, const json_t *o)
{
	if (strcmp(dist, "ih12") == 0) {
		double sum = 0;

		for (int i = 0; i < 12; i++)
			sum += next_u(g);
		return number(o, "mean", 0) + number(o, "sd", 1) * (sum - 6);
	}
	if (strcmp(dist, "uniform") == 0) {
		double a = number(o, "a", 0), b = number(o, "b", 1);

		return a + (b - a) * next_u(g);
	}
	if (strcmp(dist, "pareto1") == 0)
		return number(o, "scale", 1) / (1 - next_u(g));
	if (strcmp(dist, "int") == 0)
		return floor(next_u(g) * number(o, "k", 1)) + number(o, "offset", 0);
	if (strcmp(dist, "zero_inflated") == 0) {
		double a = next_u(g), b = next_u(g);

		return a < number(o, "p0", 0) ? 0 : b * number(o, "scale", 1);
	}
	if (strcmp(dist, "bernoulli") == 0)
		return next_u(g) < number(o, "p", 0.5) ? 1 : 0;
	die("unknown generator");
	return 0;
}

static void append_generated(struct column *c, const json_t *o)
{
	struct lcg g = { (uint64_t)json_integer_value(json_object_get(o, "seed")) };
	size_t n = (size_t)json_integer_value(json_object_get(o, "n"));
	double *all = need(c->n + n, sizeof(double));

	memcpy(all, c->v, c->n * sizeof(double));
	for (size_t i = 0; i < n; i++)
		all[c->n + i] = generate(&g, json_string_value(json_object_get(o, "dist")), o);
	free(c->v);
	c->v = all;
	c->n += n;
}

static double special_number(const json_t *v)
{
	const char *s = json_string_value(v);

	if (json_is_number(v))
		return json_number_value(v);
	if (s != NULL && strcmp(s, "NaN") == 0)
		return (double)NAN;
	if (s != NULL && strcmp(s, "Infinity") == 0)
		return HUGE_VAL;
	if (s != NULL && strcmp(s, "-Infinity") == 0)
		return -HUGE_VAL;
	die("not a number");
	return 0;
}

static struct column column_of(const json_t *o)
{
	struct column c = { need(0, sizeof(double)), 0, 0 };
	const json_t *v;
	size_t i;

	if (json_is_object(o) && json_object_get(o, "concat") != NULL) {
		json_array_foreach (json_object_get(o, "concat"), i, v)
			append_generated(&c, v);
		return c;
	}
	if (json_is_object(o)) {
		append_generated(&c, o);
		return c;
	}
	free(c.v);
	c.v = need(json_array_size(o), sizeof(double));
	json_array_foreach (o, i, v) {
		if (json_is_null(v))
			c.nulls++;
		else
			c.v[c.n++] = special_number(v);
	}
	return c;
}

/* ---- helpers ----------------------------------------------------------------------------- */
static json_t *real(double v)
{
	if (isnan(v))
		return json_string("NaN");
	if (isinf(v))
		return json_string(v > 0 ? "Infinity" : "-Infinity");
	return json_real(v);
}

static void put(json_t *r, const char *key, double v)
{
	json_object_set_new(r, key, real(v));
}

static void put_int(json_t *r, const char *key, uint64_t v)
{
	json_object_set_new(r, key, json_integer((json_int_t)v));
}

static void put_counts(json_t *r, const char *key, const uint64_t *v, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_integer((json_int_t)v[i]));
	json_object_set_new(r, key, a);
}

static void put_reals(json_t *r, const char *key, const double *v, size_t n)
{
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, real(v[i]));
	json_object_set_new(r, key, a);
}

static struct stats_profile *profile_of(const struct column *c, uint32_t bins)
{
	struct stats_profile *p = need(1, sizeof(*p));
	double *work = need(2 * c->n, sizeof(double));
	struct err e;

	if (stats_profile_build(
		    &(struct stats_profile_args){ c->v, c->n, c->nulls, bins, work }, p, &e) != 0)
		die(e.msg);
	free(work);
	return p;
}

static struct stats_counts *window_of(const struct stats_profile *p, const struct column *c)
{
	struct stats_counts *w = need(1, sizeof(*w));

	stats_counts_init(w, p);
	stats_counts_add(w, p, c->v, c->n);
	stats_counts_add_nulls(w, c->nulls);
	return w;
}

/* The finite values, sorted. */
static struct column sorted_of(const struct column *c)
{
	struct column s = { need(c->n, sizeof(double)), 0, 0 };
	double *work = need(c->n, sizeof(double));

	for (size_t i = 0; i < c->n; i++)
		if (isfinite(c->v[i]))
			s.v[s.n++] = c->v[i];
	stats_sort(s.v, s.n, work);
	free(work);
	return s;
}

static struct stats_samples samples_of(const struct column *a, const struct column *b)
{
	return (struct stats_samples){ a->v, a->n, b->v, b->n };
}

static struct stats_options options(void)
{
	struct stats_options o = STATS_OPTIONS_DEFAULT;

	o.min_ref = o.min_cur = 1;
	o.alpha = 0.05;
	return o;
}

static double exact_p(struct stats_samples s, double d)
{
	double *work = need(s.m + 1, sizeof(double)), p = stats_ks_exact_p(s.n, s.m, d, work);

	free(work);
	return p;
}

/* ---- the tests ---------------------------------------------------------------------------- */
struct test_case {
	const json_t *params, *ref, *cur;
	json_t *r;
};

static const char *psi_numeric(struct test_case *t)
{
	struct column a = column_of(t->ref), b = column_of(t->cur);
	struct stats_profile *p = profile_of(&a, STATS_BINS);
	struct stats_counts *w = window_of(p, &b);
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

static size_t counts_of(const json_t *a, uint64_t *ret)
{
	const json_t *v;
	size_t i;

	if (json_array_size(a) > STATS_CELLS_MAX)
		die("too many cells");
	json_array_foreach (a, i, v)
		ret[i] = (uint64_t)json_integer_value(v);
	return json_array_size(a);
}

static const char *psi_counts(struct test_case *t)
{
	uint64_t ref[STATS_CELLS_MAX], cur[STATS_CELLS_MAX];
	size_t k = counts_of(t->ref, ref), i;
	json_t *all = json_array();
	const json_t *v;

	counts_of(t->cur, cur);
	json_array_foreach (json_object_get(t->params, "variants"), i, v) {
		const char *kind = json_string_value(json_object_get(v, "smoothing"));
		struct stats_fill f = { STATS_FLOOR, number(v, "eps", 1e-4) };

		if (strcmp(kind, "additive") == 0)
			f = (struct stats_fill){ STATS_ADDITIVE, number(v, "alpha", 1) };
		json_array_append_new(all, real(stats_psi((struct stats_cells){ ref, cur, k }, f)));
	}
	json_object_set_new(t->r, "statistic", all);
	return NULL;
}

static const char *psi_evidently(struct test_case *t)
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

/* Counts by name, or by position (named by it, so that both sides align). */
static size_t category_items(const json_t *counts, struct stats_category_in *in, char names[][16])
{
	const char *key;
	json_t *v;
	size_t n = 0, i;

	if (json_is_array(counts)) {
		json_array_foreach (counts, i, v) {
			str_print(names[i], 16, "%03zu", i);
			in[n++] = (struct stats_category_in){ str_c(names[i]),
				(uint64_t)json_integer_value(v) };
		}
		return n;
	}
	json_object_foreach ((json_t *)(uintptr_t)counts, key, v) {
		in[n++] = (struct stats_category_in){ str_c(key), (uint64_t)json_integer_value(v) };
	}
	return n;
}

struct categories {
	struct stats_categories *ref, *cur;
	uint64_t ref_cell[STATS_CELLS], cur_cell[STATS_CELLS];
	struct stats_cells cells;
};

static void categories_of(const json_t *ref, const json_t *cur, struct categories *c)
{
	struct stats_category_in in[STATS_TOP];
	char names[STATS_TOP][16];
	size_t n = category_items(ref, in, names);
	struct err e;

	c->ref = need(1, sizeof(*c->ref));
	c->cur = need(1, sizeof(*c->cur));
	if (stats_categories_build(
		    &(struct stats_categories_args){ in, n, 0, NULL, 0 }, c->ref, &e) != 0)
		die(e.msg);
	stats_categories_init(c->cur, c->ref);
	n = category_items(cur, in, names);
	for (size_t i = 0; i < n; i++)
		stats_categories_add(c->cur, c->ref, in[i].name, in[i].count);
	c->cells = (struct stats_cells){ c->ref_cell, c->cur_cell,
		stats_categories_cells(c->ref, c->cur, c->ref_cell, c->cur_cell) };
}

static void categories_done(struct categories *c)
{
	free(c->ref);
	free(c->cur);
}

static const char *categorical_distances(struct test_case *t)
{
	struct categories c;
	struct stats_options o = options();
	struct stats_compare m;
	json_t *keys = json_array();

	categories_of(json_object_get(t->ref, "counts"), json_object_get(t->cur, "counts"), &c);
	stats_compare_categories(c.ref, c.cur, &o, &m);
	for (uint32_t i = 0; i < c.cur->n; i++) {
		struct str name = stats_category_name(c.cur, i);

		json_array_append_new(keys, json_stringn(name.p, name.n));
	}
	json_object_set_new(t->r, "keys", keys);
	put(t->r, "psi", m.metric[STATS_METRIC_PSI].value);
	put(t->r, "js_distance", m.metric[STATS_METRIC_JS].value);
	put(t->r, "js_distance_nats", m.metric[STATS_METRIC_JS].value * sqrt(M_LN2));
	put(t->r, "hellinger", m.metric[STATS_METRIC_HELLINGER].value);
	put(t->r, "l_infinity", m.metric[STATS_METRIC_L_INFINITY].value);
	put(t->r, "tvd", m.metric[STATS_METRIC_TVD].value);
	put(t->r, "kl_floor", m.metric[STATS_METRIC_KL].value);
	put(t->r, "kl_no_floor_cur_given_ref", stats_kl_strict(c.cells));
	put(t->r, "new_category_rate", m.metric[STATS_METRIC_NEW_CATEGORY_RATE].value);
	categories_done(&c);
	return NULL;
}

static const char *ks_2samp(struct test_case *t)
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

static const char *wasserstein(struct test_case *t)
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

static const char *wasserstein_binned(struct test_case *t)
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
	w = window_of(p, &b);
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

static const char *chi2_categorical(struct test_case *t)
{
	struct categories c;
	struct stats_test fit, table;

	categories_of(json_object_get(t->ref, "counts"), json_object_get(t->cur, "counts"), &c);
	fit = stats_chi2_fit(c.cells);
	table = stats_chi2(c.cells);
	put(t->r, "gof_statistic", fit.statistic);
	put(t->r, "gof_p_value", fit.p);
	put(t->r, "contingency_statistic", table.statistic);
	put(t->r, "contingency_p_value", table.p);
	put_int(t->r, "dof", (uint64_t)table.dof);
	put(t->r, "g_statistic", stats_g(c.cells).statistic);
	put(t->r, "cramers_v", stats_cramers_v(c.cells));
	categories_done(&c);
	return NULL;
}

static const char *two_by_two(struct test_case *t)
{
	uint64_t a[STATS_CELLS_MAX], b[STATS_CELLS_MAX];
	struct stats_cells c = { a, b, counts_of(json_object_get(t->ref, "counts"), a) };
	struct stats_test yates, pearson, z;

	counts_of(json_object_get(t->cur, "counts"), b);
	yates = stats_chi2_yates(c);
	pearson = stats_chi2(c);
	z = stats_two_shares((struct stats_share){ a[1], a[0] + a[1] },
		(struct stats_share){ b[1], b[0] + b[1] });
	put(t->r, "yates_statistic", yates.statistic);
	put(t->r, "yates_p_value", yates.p);
	put(t->r, "pearson_statistic", pearson.statistic);
	put(t->r, "pearson_p_value", pearson.p);
	put(t->r, "z", z.statistic);
	put(t->r, "z_p_value", z.p);
	put(t->r, "fisher_p_value", stats_fisher(a, b));
	return NULL;
}

static void time_counts(const json_t *a, uint64_t ret[4])
{
	const json_t *v;
	size_t i;

	memset(ret, 0, 4 * sizeof(*ret));
	json_array_foreach (a, i, v)
		ret[stats_hour_block(json_integer_value(v))]++;
}

static struct column lengths_of(const json_t *a, double *ret_empty)
{
	struct column c = { need(json_array_size(a), sizeof(double)), 0, 0 };
	const json_t *v;
	size_t i, empty = 0;

	json_array_foreach (a, i, v) {
		c.v[c.n] = (double)str_utf8_count(str_c(json_string_value(v)));
		empty += c.v[c.n++] < 1;
	}
	*ret_empty = (double)empty / (double)c.n;
	return c;
}

static const char *type_rules(struct test_case *t)
{
	const json_t *a = json_object_get(t->ref, "bool"), *b = json_object_get(t->cur, "bool");
	uint64_t ref[4], cur[4];
	double empty[2];
	struct categories c;
	struct stats_test z;
	struct column x = lengths_of(json_object_get(t->ref, "text"), &empty[0]), xs;
	struct column y = lengths_of(json_object_get(t->cur, "text"), &empty[1]), ys;
	double d;

	categories_of(a, b, &c);
	z = stats_two_shares((struct stats_share){ (uint64_t)number(a, "true", 0), c.ref->rows },
		(struct stats_share){ (uint64_t)number(b, "true", 0), c.cur->rows });
	put(t->r, "bool_z", z.statistic);
	put(t->r, "bool_p_value", z.p);
	put(t->r, "bool_tvd", stats_tvd(c.cells));
	time_counts(json_object_get(t->ref, "datetime"), ref);
	time_counts(json_object_get(t->cur, "datetime"), cur);
	put_counts(t->r, "datetime_ref_counts", ref, 4);
	put_counts(t->r, "datetime_cur_counts", cur, 4);
	put(t->r, "datetime_js_distance", stats_js((struct stats_cells){ ref, cur, 4 }));
	xs = sorted_of(&x);
	ys = sorted_of(&y);
	d = stats_ks(samples_of(&xs, &ys));
	put_reals(t->r, "text_ref_lengths", x.v, x.n);
	put_reals(t->r, "text_cur_lengths", y.v, y.n);
	put(t->r, "text_length_ks", d);
	put(t->r, "text_length_ks_p_value", exact_p(samples_of(&xs, &ys), d));
	put_reals(t->r, "text_empty_rate", empty, 2);
	categories_done(&c);
	free(x.v);
	free(y.v);
	free(xs.v);
	free(ys.v);
	return NULL;
}

static const char *domain_auc(struct test_case *t)
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

static const char *quality(struct test_case *t)
{
	struct column a = column_of(t->ref), b = column_of(t->cur), x = sorted_of(&a),
		      y = sorted_of(&b);
	struct column rows = column_of(json_object_get(t->params, "row_history"));
	double now = number(t->params, "row_current", 0), d = stats_ks(samples_of(&x, &y));
	struct stats_profile *p = profile_of(&a, STATS_BINS);
	struct stats_counts *w = window_of(p, &b);
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

static const char *constant_columns(struct test_case *t)
{
	struct column a = column_of(t->ref);
	struct stats_profile *p = profile_of(&a, (uint32_t)number(t->params, "bins", 10));
	struct stats_options o = options();
	const char *key;
	json_t *v;

	put_reals(t->r, "edges", p->edge, p->bins - 1);
	json_object_foreach ((json_t *)(uintptr_t)t->cur, key, v) {
		struct column b = column_of(v);
		struct stats_counts *w = window_of(p, &b);
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

static const char *status_rules(struct test_case *t)
{
	struct column a = column_of(t->ref);
	struct stats_profile *p = profile_of(&a, STATS_BINS);
	struct stats_options o = options();
	json_t *rows = json_object(), *missing = json_object(), *v;
	const char *key;

	o.min_cur = (uint64_t)number(t->params, "min_samples", 200);
	json_object_foreach ((json_t *)(uintptr_t)t->cur, key, v) {
		struct column b = column_of(v);
		struct stats_counts *w = window_of(p, &b);
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

static const char *multiple_testing(struct test_case *t)
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

static size_t policy_features(
	const json_t *window, const json_t *weights, struct policy_feature *ret)
{
	const char *key;
	json_t *v;
	size_t n = 0;

	if (json_object_size(json_object_get(window, "values")) > 64)
		die("too many features");
	json_object_foreach (json_object_get(window, "values"), key, v) {
		ret[n++] = (struct policy_feature){ .name = str_c(key),
			.tested = json_is_number(v),
			.value = json_number_value(v),
			.critical = number(window, "critical", (double)NAN),
			.seasonal = (double)NAN,
			.seasonal_critical = (double)NAN,
			.weight = number(weights, key, 1) };
	}
	return n;
}

static json_t *policy_trace(const struct policy_outcome *o)
{
	json_t *r = json_object(), *actions = json_array();

	if (o->warned)
		json_array_append_new(actions, json_string("warn"));
	if (o->alerted)
		json_array_append_new(actions, json_string("alert"));
	if (o->fired && o->action == POLICY_RETRAIN)
		json_array_append_new(actions, json_string("retrain"));
	if (o->alerted && o->stop != POLICY_NOT_STOPPED)
		json_array_append_new(actions, json_string("retrain_suppressed"));
	if (o->resolved)
		json_array_append_new(actions, json_string("resolved"));
	json_object_set_new(r, "verdict", json_string(policy_verdict_name(o->verdict)));
	json_object_set_new(r, "score", isnan(o->score) ? json_null() : real(o->score));
	json_object_set_new(r, "state", json_string(policy_level_name(o->after)));
	json_object_set_new(r, "actions", actions);
	return r;
}

/* The executable definition of the state machine: drift with the action retrain, and a retraining
 * that is over before the next window. */
static const char *trigger_policy(struct test_case *t)
{
	struct policy_rules rules = { .min_samples = (uint64_t)number(t->params, "min_samples", 0),
		.cooldown = (uint32_t)number(t->params, "cooldown", 0),
		.backoff = 1,
		.has_pipeline = true };
	struct policy_feature features[64];
	struct policy_state state;
	json_t *trace = json_array();
	const json_t *v;
	size_t i;

	rules.cause[POLICY_DRIFT] = (struct policy_rule){ true, POLICY_RETRAIN,
		number(t->params, "share", 1), number(t->params, "clear", 0),
		(uint32_t)number(t->params, "k", 1), (uint32_t)number(t->params, "n", 1),
		(uint32_t)number(t->params, "clear_windows", 1) };
	policy_init(&state);
	json_array_foreach (json_object_get(t->cur, "windows"), i, v) {
		struct policy_window w = { .start = (int64_t)i * CLOCK_HOUR,
			.end = (int64_t)(i + 1) * CLOCK_HOUR,
			.rows = (uint64_t)number(v, "n", 0),
			.features = features };
		struct policy_decision d;

		w.n_features = policy_features(v, json_object_get(t->params, "weights"), features);
		for (size_t f = 0; f < w.n_features; f++)
			features[f].threshold = number(t->params, "threshold", 0.1);
		policy_apply(&rules, &state, &w, &d);
		state.open = false;
		json_array_append_new(trace, policy_trace(&d.cause[POLICY_DRIFT]));
		if (d.cause[POLICY_DRIFT].sentence[0] == 0)
			die("a decision without a sentence");
	}
	json_object_set_new(t->r, "trace", trace);
	return NULL;
}

static const char *sql_join(struct test_case *t)
{
	(void)t;
	return "labels are joined with predictions by the store, in SQL";
}

static const char *not_yet(struct test_case *t)
{
	(void)t;
	return "not among the metrics of this version";
}

static const struct {
	const char *name;
	const char *(*run)(struct test_case *t);
} tests[] = {
	{ "psi_numeric", psi_numeric },
	{ "psi_counts", psi_counts },
	{ "psi_evidently", psi_evidently },
	{ "categorical_distances", categorical_distances },
	{ "ks_2samp", ks_2samp },
	{ "wasserstein", wasserstein },
	{ "wasserstein_binned", wasserstein_binned },
	{ "chi2_categorical", chi2_categorical },
	{ "two_by_two", two_by_two },
	{ "type_rules", type_rules },
	{ "domain_auc", domain_auc },
	{ "quality", quality },
	{ "constant_columns", constant_columns },
	{ "status_rules", status_rules },
	{ "multiple_testing", multiple_testing },
	{ "trigger_policy", trigger_policy },
	{ "label_join", sql_join },
};

static const char *run(const char *name, struct test_case *t)
{
	for (size_t i = 0; name != NULL && i < sizeof(tests) / sizeof(*tests); i++)
		if (strcmp(tests[i].name, name) == 0)
			return tests[i].run(t);
	return not_yet(t);
}

int main(int argc, char **argv)
{
	json_error_t bad;
	json_t *in, *out = json_object();
	struct test_case t = { .r = json_object() };
	const char *skipped, *name;

	if (argc != 2)
		die("usage: drift_case FILE (- for standard input)");
	in = strcmp(argv[1], "-") == 0 ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &bad)
				       : json_load_file(argv[1], JSON_REJECT_DUPLICATES, &bad);
	if (!json_is_object(in))
		die(in == NULL ? bad.text : "a case is an object");
	t.params = json_object_get(in, "params");
	t.ref = json_object_get(in, "reference");
	t.cur = json_object_get(in, "current");
	name = json_string_value(json_object_get(in, "test"));
	skipped = run(name, &t);
	json_object_set(out, "name", json_object_get(in, "name"));
	if (skipped != NULL) {
		json_object_set_new(out, "skipped", json_string(skipped));
		json_decref(t.r);
	} else {
		json_object_set_new(out, "result", t.r);
	}
	json_dumpf(out, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
	putchar('\n');
	json_decref(out);
	json_decref(in);
	return 0;
}
