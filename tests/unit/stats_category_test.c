#include "lib/stats/type.h"
#include "tests/unit/stats_sample.h"

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
