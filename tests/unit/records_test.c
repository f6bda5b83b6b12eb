#include "lib/base/num.h"
#include "server/sched/records.h"
#include "server/sched/reference.h"
#include "tests/unit/unit.h"

#include <math.h>

static const struct records_column columns[] = { { { "id", 2 }, true }, { { "temp", 4 }, false },
	{ { "", 0 }, false } };

static int on_row(void *arg, const struct str *cells, uint64_t line, struct err *e)
{
	struct buf *b = arg;

	(void)e;
	buf_addf(b, "%d:", (int)line);
	for (size_t i = 0; i < 3; i++)
		if (cells[i].p == NULL)
			buf_adds(b, "[-]");
		else
			buf_addf(b, "[%.*s]", STR_ARG(cells[i]));
	buf_addc(b, ' ');
	return 0;
}

static int read_cut(
	enum records_format format, struct str text, size_t cut, struct buf *out, struct err *e)
{
	struct records *r = records_new(format, columns, 3, on_row, out);
	int rc = records_add(r, str_slice(text, 0, cut), e);

	if (rc == 0)
		rc = records_add(r, str_slice(text, cut, text.n), e);
	if (rc == 0)
		rc = records_end(r, e);
	records_free(r);
	return rc;
}

static void expect(enum records_format format, struct str text, const char *rows)
{
	struct buf out;
	struct err e;

	buf_init(&out, 4096);
	for (size_t cut = 0; cut <= text.n; cut++) {
		buf_clear(&out);
		buf_adds(&out, "|");
		assert_int_equal(read_cut(format, text, cut, &out, &e), 0);
		assert_string_equal(out.p + 1, rows);
	}
	buf_done(&out);
}

static void expect_fault(
	enum records_format format, struct str text, const char *pointer, const char *message)
{
	struct buf out;
	struct err e = { 0 };

	buf_init(&out, 4096);
	for (size_t cut = 0; cut <= text.n; cut++) {
		assert_int_equal(read_cut(format, text, cut, &out, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		assert_string_equal(e.field, pointer);
		if (strstr(e.msg, message) == NULL)
			fail_msg("\"%s\" lacks \"%s\"", e.msg, message);
	}
	buf_done(&out);
}

void test_records__csv(void **state)
{
	(void)state;
	expect(RECORDS_CSV, STR(",temp,id\n9,1.5,a\n,,b\n"), "2:[a][1.5][-] 3:[b][-][-] ");
	expect(RECORDS_CSV, STR("id\n"), "");
	expect_fault(
		RECORDS_CSV, STR("temp\n1\n"), "/1/id", "line 1: the header lacks the column id");
	expect_fault(RECORDS_CSV, STR("id,temp,id\n"), "/1/id",
		"line 1: the header has the column id twice");
	expect_fault(RECORDS_CSV, STR("id,temp\na\n"), "/2", "line 2 has 1 cell, the header has 2");
	expect_fault(RECORDS_CSV, STR("\n\n"), "/1", "there is no header");
}

void test_records__ndjson(void **state)
{
	(void)state;
	expect(RECORDS_NDJSON,
		STR("{\"temp\":1.5,\"id\":\"a\",\"more\":[1]}\r\n\n{\"id\":7,\"temp\":null}\n"
		    "{\"id\":true,\"temp\":\"\"}"),
		"1:[a][1.5][-] 3:[7][-][-] 4:[true][-][-] ");
	expect_fault(RECORDS_NDJSON, STR("{\"id\":1}\n{\"temp\":1}\n"), "/2/id",
		"line 2: the column id is missing");
	expect_fault(RECORDS_NDJSON, STR("{\"id\":[]}\n"), "/1/id", "line 1, column id: must be");
	expect_fault(RECORDS_NDJSON, STR("[]\n"), "/1", "line 1: must be a JSON object");
	expect_fault(RECORDS_NDJSON, STR("{\"id\":1}\n{\"id\"\n"), "/2", "line 2: ");
	expect_fault(RECORDS_NDJSON, STR("{\"id\":1,\"id\":2}\n"), "/1", "line 1: ");
}

void test_records__numbers(void **state)
{
	static const struct {
		const char *text;
		double value;
	} good[] = { { "1", 1 }, { "-1.5e3", -1500 }, { "+2", 2 }, { "007", 7 }, { "-00.5", -0.5 },
		{ "inf", HUGE_VAL }, { "-Infinity", -HUGE_VAL } };
	static const char *const bad[] = { "x", "1,5", "--1", "+-1", "1 ", "0x10", "-", "1e999" };
	double v;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_true(records_number(str_c(good[i].text), &v));
		assert_true(v >= good[i].value && v <= good[i].value);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(records_number(str_c(bad[i]), &v));
	assert_true(records_number(STR_NONE, &v) && isnan(v));
	assert_true(records_number(STR("NaN"), &v) && isnan(v));
}

void test_records__formats(void **state)
{
	enum records_format f;

	(void)state;
	assert_true(records_format_of(STR("Text/CSV"), &f) && f == RECORDS_CSV);
	assert_true(records_format_of(STR("application/x-ndjson"), &f) && f == RECORDS_NDJSON);
	assert_false(records_format_of(STR("application/json"), &f));
}

void test_reference__cells_come_back(void **state)
{
	struct buf b;
	struct cell c;

	(void)state;
	buf_init(&b, 65536);
	assert_true(cell_put(&b, FEATURE_NUMERIC, STR("-2.5")));
	assert_true(cell_put(&b, FEATURE_NUMERIC, STR_NONE));
	assert_true(cell_put(&b, FEATURE_CATEGORY, STR("01.0")));
	assert_true(cell_put(&b, FEATURE_CATEGORY, STR_NONE));
	assert_true(cell_put(&b, FEATURE_CATEGORY, STR("b\xc3\xa9")));
	assert_false(cell_put(&b, FEATURE_NUMERIC, STR("b")));
	struct str rest = buf_str(&b);
	assert_true(cell_take(&rest, FEATURE_NUMERIC, &c) && c.number <= -2.5 && c.number >= -2.5);
	assert_true(cell_take(&rest, FEATURE_NUMERIC, &c) && isnan(c.number));
	assert_true(cell_take(&rest, FEATURE_CATEGORY, &c) && str_is(c.text, "1"));
	assert_true(cell_take(&rest, FEATURE_CATEGORY, &c) && c.text.p == NULL);
	assert_true(cell_take(&rest, FEATURE_CATEGORY, &c) && str_is(c.text, "b\xc3\xa9"));
	assert_int_equal(rest.n, 0);
	assert_false(cell_take(&rest, FEATURE_CATEGORY, &c));
	buf_done(&b);
}

void test_reference__stored_form_comes_back_and_damage_is_found(void **state)
{
	static const double values[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	double work[20];
	struct stats_profile p;
	static struct stats_categories k;
	struct stats_category_in in[] = { { STR("a"), 7 }, { STR("b"), 3 } };
	struct feature features[] = { { STR("x"), FEATURE_NUMERIC, &p, NULL },
		{ STR("y"), FEATURE_CATEGORY, NULL, &k } };
	const struct reference r = { features, 2, 10 };
	struct reference back;
	struct arena *a = arena_new(8 << 20);
	struct buf b;
	struct err e;

	(void)state;
	const struct stats_profile_args pa = { .values = values, .n = 10, .work = work };
	const struct stats_categories_args ka = { .in = in, .n = 2 };
	assert_int_equal(stats_profile_build(&pa, &p, &e), 0);
	assert_int_equal(stats_categories_build(&ka, &k, &e), 0);
	buf_init(&b, 1 << 20);
	reference_encode(&r, &b);
	assert_int_equal(reference_decode(buf_str(&b), a, &back, &e), 0);
	assert_int_equal(back.n, 2);
	assert_int_equal(back.rows, 10);
	assert_true(str_is(back.features[1].name, "y"));
	assert_int_equal(back.features[0].profile->edges_id, p.edges_id);
	assert_int_equal(back.features[1].categories->rows, 10);
	for (size_t n = 0; n < b.n; n += 13)
		assert_int_equal(reference_decode(str_slice(buf_str(&b), 0, n), a, &back, &e), -1);
	b.p[b.n - 20] ^= 1;
	assert_int_equal(reference_decode(buf_str(&b), a, &back, &e), -1);
	assert_int_equal(e.code, ERR_CORRUPT);
	buf_done(&b);
	arena_drop(a);
}
