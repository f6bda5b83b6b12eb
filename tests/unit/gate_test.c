#include "lib/base/mem.h"
#include "lib/stats/bootstrap.h"
#include "server/core/gate.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 120 };

/* Held-out rows: the truth, a champion and a challenger whose errors are given. */
struct bench {
	double truth[ROWS], champion[ROWS], challenger[ROWS];
	uint32_t weekend[ROWS];
	struct gate_rows rows;
	struct gate_rules rules;
	struct gate_column column;
	struct gate_result *r;
	struct err e;
};

static const struct str days[] = { { "0", 1 }, { "1", 1 } };

static void set_up(struct bench *b, double champion_error, double challenger_error)
{
	struct stats_random r;

	memset(b, 0, sizeof(*b));
	stats_random_seed(&r, 5);
	for (int i = 0; i < ROWS; i++) {
		double noise = 0.5 + 0x1p-53 * (double)(stats_random_next(&r) >> 11);

		b->truth[i] = i;
		b->champion[i] = i + champion_error * noise;
		b->challenger[i] = i - challenger_error * noise;
		b->weekend[i] = i % 7 >= 5;
	}
	b->column = (struct gate_column){ STR("weekend"), days, 2, b->weekend };
	b->rows = (struct gate_rows){
		.n = ROWS, .truth = b->truth, .champion = b->champion, .challenger = b->challenger
	};
	b->rules = (struct gate_rules){ .metric = STATS_MAE,
		.compare = true,
		.test = true,
		.draws = 500,
		.seed = 1,
		.margin = { 0.02, true },
		.alpha = 0.05,
		.min_rows = 80,
		.slice_regression = { 0.2, true },
		.slice_min_rows = 20 };
	b->rules.require[0] = (struct gate_requirement){ STATS_MAE, (double)NAN, 5 };
	b->rules.n_require = 1;
	b->r = mem_new_of(struct gate_result);
}

static void tear_down(struct bench *b)
{
	mem_free(b->r);
}

static int apply(struct bench *b)
{
	void *work = mem_new(gate_work_size(b->rows.n, b->rules.draws), 1);
	int rc = gate_apply(&b->rules, &b->rows, work, b->r, &b->e);

	mem_free(work);
	return rc;
}

static const struct gate_item *item(const struct bench *b, enum gate_kind kind)
{
	for (size_t i = 0; i < b->r->n_items; i++)
		if (b->r->item[i].kind == kind)
			return &b->r->item[i];
	fail_msg("no item %s", gate_kind_name(kind));
	return NULL;
}

static void expect(struct bench *b, enum gate_outcome want)
{
	assert_int_equal(apply(b), 0);
	if (b->r->outcome != want)
		fail_msg("%s", b->r->reason);
	for (size_t i = 0; i < b->r->n_items; i++) {
		size_t n = strlen(b->r->item[i].sentence);

		assert_in_range(n, 10, GATE_SENTENCE_MAX - 1);
		assert_int_equal(b->r->item[i].sentence[n - 1], '.');
	}
}

void test_gate__a_better_challenger_is_promoted(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 3, 2);
	b.rows.columns = &b.column;
	b.rows.n_columns = 1;
	expect(&b, GATE_PROMOTED);
	assert_int_equal(b.r->n_items, 6);
	for (size_t i = 0; i < b.r->n_items; i++)
		assert_int_equal(b.r->item[i].verdict, GATE_PASS);
	assert_true(item(&b, GATE_TESTED)->low > 0.5);
	assert_true(item(&b, GATE_TESTED)->high < 1.5);
	assert_string_equal(item(&b, GATE_REQUIRE)->name, "mae max");
	assert_string_equal(item(&b, GATE_SLICE)->name, "weekend=0");
	assert_true(fabs(b.r->champion / b.r->challenger - 1.5) < 1e-9);
	assert_non_null(strstr(b.r->reason, "All 6 checks passed: mae"));
	tear_down(&b);
}

void test_gate__the_same_input_gives_the_same_result(void **state)
{
	struct bench b;
	struct gate_result *first;

	(void)state;
	set_up(&b, 3, 2.9);
	expect(&b, GATE_PROMOTED);
	first = b.r;
	b.r = mem_new_of(struct gate_result);
	expect(&b, GATE_PROMOTED);
	for (size_t i = 0; i < first->n_items; i++)
		assert_string_equal(first->item[i].sentence, b.r->item[i].sentence);
	assert_true(item(&b, GATE_TESTED)->low == first->item[3].low);
	mem_free(first);
	tear_down(&b);
}

void test_gate__without_a_champion_only_requirements_count(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 3, 2);
	b.rows.champion = NULL;
	b.rows.columns = &b.column;
	b.rows.n_columns = 1;
	expect(&b, GATE_PROMOTED);
	assert_false(b.r->has_champion);
	assert_true(isnan(b.r->champion));
	assert_int_equal(item(&b, GATE_BETTER)->verdict, GATE_SKIPPED);
	assert_int_equal(b.r->n_items, 3);
	b.rules.require[0].max = 1;
	expect(&b, GATE_REFUSED);
	assert_non_null(strstr(b.r->reason, "at most 1 is required"));
	tear_down(&b);
}

void test_gate__requirements_have_two_sides(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 3, 2);
	b.rules.require[0] = (struct gate_requirement){ STATS_R2, 0.5, (double)NAN };
	b.rules.require[1] = (struct gate_requirement){ STATS_RMSE, 3, 4 };
	b.rules.n_require = 2;
	expect(&b, GATE_REFUSED);
	assert_int_equal(b.r->item[1].verdict, GATE_PASS);
	assert_string_equal(b.r->item[1].name, "r2 min");
	assert_int_equal(b.r->item[2].verdict, GATE_FAIL);
	assert_string_equal(b.r->item[2].name, "rmse min");
	assert_non_null(strstr(b.r->item[2].sentence, "at least 3 is required"));
	/* Not computable is not passed. */
	b.rules.require[1] = (struct gate_requirement){ STATS_BRIER, (double)NAN, 4 };
	expect(&b, GATE_REFUSED);
	tear_down(&b);
}

void test_gate__a_tie_or_worse_keeps_the_champion(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 2, 2);
	expect(&b, GATE_REFUSED);
	assert_int_equal(item(&b, GATE_BETTER)->verdict, GATE_FAIL);
	assert_int_equal(item(&b, GATE_TESTED)->verdict, GATE_PASS);
	tear_down(&b);
	set_up(&b, 2, 2.2);
	expect(&b, GATE_REFUSED);
	assert_int_equal(item(&b, GATE_TESTED)->verdict, GATE_FAIL);
	assert_non_null(
		strstr(b.r->reason, "Refused by 2 of 4 checks: The challenger's mae is 2.2"));
	assert_non_null(strstr(b.r->reason, item(&b, GATE_TESTED)->sentence));
	tear_down(&b);
	/* A champion that breaks a requirement need not be beaten, only not be followed by worse.
	 */
	set_up(&b, 2, 2);
	b.rules.require[0] = (struct gate_requirement){ STATS_R2, 0.5, (double)NAN };
	for (int i = 0; i < ROWS; i++) {
		b.champion[i] = i % 2 == 0 ? b.truth[i] + 300 : b.truth[i];
		b.challenger[i] = b.truth[i] + (i % 2 == 0 ? -150.0 : 150.0);
	}
	b.rules.require[0].min = -19;
	b.rules.margin = (struct gate_amount){ 100, false };
	expect(&b, GATE_PROMOTED);
	assert_true(b.r->champion == b.r->challenger);
	assert_non_null(strstr(item(&b, GATE_BETTER)->sentence, "itself breaks a requirement"));
	tear_down(&b);
}

void test_gate__margins_are_in_units_or_shares(void **state)
{
	struct gate_amount a;
	struct bench b;

	(void)state;
	assert_true(gate_amount_parse(STR("2%"), &a) && a.relative && fabs(a.value - 0.02) < 1e-15);
	assert_true(
		gate_amount_parse(STR("0.05"), &a) && !a.relative && fabs(a.value - 0.05) < 1e-15);
	assert_false(gate_amount_parse(STR("-1"), &a));
	assert_false(gate_amount_parse(STR("%"), &a));
	assert_false(gate_amount_parse(STR("2 %"), &a));
	assert_false(gate_amount_parse(STR(""), &a));
	set_up(&b, 2, 1);
	b.rules.margin = (struct gate_amount){ 0.25, false };
	expect(&b, GATE_PROMOTED);
	assert_true(item(&b, GATE_TESTED)->limit == -0.25);
	b.rules.margin = (struct gate_amount){ 0.5, true };
	expect(&b, GATE_PROMOTED);
	assert_true(fabs(item(&b, GATE_TESTED)->limit + 0.5 * b.r->champion) < 1e-12);
	tear_down(&b);
}

void test_gate__a_slice_that_gets_worse_refuses(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 3, 1);
	b.rows.columns = &b.column;
	b.rows.n_columns = 1;
	for (int i = 0; i < ROWS; i++)
		if (b.weekend[i] == 1)
			b.challenger[i] = b.truth[i] + 1.3 * (b.champion[i] - b.truth[i]);
	expect(&b, GATE_REFUSED);
	assert_string_equal(b.r->item[5].name, "weekend=1");
	assert_int_equal(b.r->item[4].verdict, GATE_PASS);
	assert_int_equal(b.r->item[5].verdict, GATE_FAIL);
	assert_non_null(strstr(b.r->reason, "Where weekend=1 (34 rows), mae went from"));
	b.rules.slice_regression.value = 0.31;
	expect(&b, GATE_PROMOTED);
	b.rules.slice_regression.value = 0.2;
	b.rules.slice_min_rows = 35;
	expect(&b, GATE_PROMOTED);
	assert_int_equal(b.r->item[5].verdict, GATE_SKIPPED);
	tear_down(&b);
}

void test_gate__slices_beyond_the_room_still_count(void **state)
{
	static char names[60][8];
	static struct str values[60];
	static uint32_t code[ROWS];
	struct gate_column columns[2];
	struct bench b;

	(void)state;
	set_up(&b, 3, 1);
	for (uint32_t i = 0; i < 60; i++) {
		str_print(names[i], sizeof(names[i]), "v%u", i);
		values[i] = str_c(names[i]);
	}
	for (uint32_t i = 0; i < ROWS; i++)
		code[i] = i % 60;
	columns[0] = columns[1] = (struct gate_column){ STR("slice"), values, 60, code };
	b.rows.columns = columns;
	b.rows.n_columns = 2;
	b.rules.slice_min_rows = 1;
	b.rules.approvals = 2;
	expect(&b, GATE_NEEDS_APPROVAL);
	assert_int_equal(b.r->n_items, GATE_ITEMS_MAX);
	assert_string_equal(b.r->item[GATE_ITEMS_MAX - 1].sentence, "2 people must agree.");
	b.challenger[59] = b.challenger[119] = 1000;
	b.rules.n_require = 0;
	b.rules.test = false;
	expect(&b, GATE_REFUSED);
	assert_int_equal(b.r->item[GATE_ITEMS_MAX - 2].verdict, GATE_FAIL);
	columns[1].n_values = 65;
	assert_int_equal(apply(&b), -1);
	assert_string_equal(b.e.field, "/slices/by/1");
	tear_down(&b);
}

void test_gate__rows_must_be_enough_paired_and_finite(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 3, 2);
	b.rules.min_rows = ROWS + 1;
	expect(&b, GATE_REFUSED);
	assert_int_equal(item(&b, GATE_ROWS)->verdict, GATE_FAIL);
	b.rules.min_rows = ROWS;
	expect(&b, GATE_PROMOTED);
	b.rows.unpaired = 1;
	expect(&b, GATE_REFUSED);
	b.rows.unpaired = 0;
	b.challenger[7] = (double)NAN;
	b.rules.min_rows = 80;
	expect(&b, GATE_REFUSED);
	assert_non_null(strstr(b.r->reason, "1 of 120 rows"));
	b.challenger[7] = 7;
	b.champion[8] = HUGE_VAL;
	expect(&b, GATE_REFUSED);
	b.rows.n = 0;
	expect(&b, GATE_REFUSED);
	tear_down(&b);
}

void test_gate__accuracy_compares_in_its_own_direction(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 0, 0);
	for (int i = 0; i < ROWS; i++) {
		b.truth[i] = i % 3;
		b.champion[i] = i % 4 == 0 ? 9 : b.truth[i];
		b.challenger[i] = i % 10 == 0 ? 9 : b.truth[i];
	}
	b.rules.metric = STATS_ACCURACY;
	b.rules.require[0] = (struct gate_requirement){ STATS_ACCURACY, 0.8, (double)NAN };
	expect(&b, GATE_PROMOTED);
	assert_true(fabs(b.r->champion - 0.75) < 1e-12);
	assert_true(fabs(item(&b, GATE_TESTED)->value - 0.15) < 1e-12);
	b.rows.champion = b.challenger;
	b.rows.challenger = b.champion;
	expect(&b, GATE_REFUSED);
	assert_true(fabs(item(&b, GATE_TESTED)->value + 0.15) < 1e-12);
	tear_down(&b);
}

void test_gate__rules_that_cannot_be_applied_are_named(void **state)
{
	struct bench b;

	(void)state;
	set_up(&b, 3, 2);
	b.rules.metric = STATS_AUC;
	assert_int_equal(apply(&b), -1);
	assert_string_equal(b.e.field, "/metric");
	b.rules.metric = STATS_MAE;
	b.rules.draws = 99;
	assert_int_equal(apply(&b), -1);
	assert_string_equal(b.e.field, "/test/draws");
	b.rules.draws = 100;
	b.rules.alpha = 0;
	assert_int_equal(apply(&b), -1);
	assert_string_equal(b.e.field, "/test/alpha");
	tear_down(&b);
}
