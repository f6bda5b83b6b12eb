#include "lib/stats/category.h"
#include "lib/stats/type.h"
#include "tests/tools/drift_case/case.h"

#include <math.h>
#include <stdlib.h>

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

const char *psi_counts(struct test_case *t)
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

const char *categorical_distances(struct test_case *t)
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

const char *chi2_categorical(struct test_case *t)
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

const char *two_by_two(struct test_case *t)
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

const char *type_rules(struct test_case *t)
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
