#include "lib/base/csv.h"
#include "lib/base/mem.h"
#include "tests/unit/unit.h"

/* Rows as text: cells in brackets, a line number before each row. */
static int on_row(void *arg, const struct csv_row *row, struct err *e)
{
	struct buf *b = arg;

	(void)e;
	buf_addf(b, "%d:", (int)row->line);
	for (size_t i = 0; i < row->n; i++)
		buf_addf(b, "[%.*s]", STR_ARG(row->cells[i]));
	buf_addc(b, '\n');
	return 0;
}

/* Reads the text in two pieces, cut at `cut`, and one byte at a time when cut is past the end. */
static int read_cut(struct str text, size_t cut, struct buf *out, struct err *e)
{
	struct csv c;
	int rc = 0;

	csv_init(&c);
	if (cut <= text.n) {
		rc = csv_add(&c, str_slice(text, 0, cut), on_row, out, e);
		if (rc == 0)
			rc = csv_add(&c, str_slice(text, cut, text.n), on_row, out, e);
	}
	for (size_t i = 0; cut > text.n && i < text.n && rc == 0; i++)
		rc = csv_add(&c, str_slice(text, i, 1), on_row, out, e);
	if (rc == 0)
		rc = csv_end(&c, on_row, out, e);
	csv_done(&c);
	return rc;
}

static void expect(struct str text, const char *rows)
{
	struct buf out;
	struct err e;

	buf_init(&out, 65536);
	for (size_t cut = 0; cut <= text.n + 1; cut++) {
		buf_clear(&out);
		buf_adds(&out, "");
		assert_int_equal(read_cut(text, cut, &out, &e), 0);
		assert_string_equal(out.p != NULL ? out.p : "", rows);
	}
	buf_done(&out);
}

static void expect_fault(struct str text, const char *message)
{
	struct buf out;
	struct err e;

	buf_init(&out, 65536);
	for (size_t cut = 0; cut <= text.n + 1; cut++) {
		assert_int_equal(read_cut(text, cut, &out, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		assert_non_null(strstr(e.msg, message));
		assert_string_equal(e.field, ((char[]){ '/', message[5], '\0' })); /* "line 2" */
	}
	buf_done(&out);
}

void test_csv__rows_however_they_are_cut(void **state)
{
	(void)state;
	expect(STR(""), "");
	expect(STR("a,b\n1,2\n"), "1:[a][b]\n2:[1][2]\n");
	expect(STR("a,b\r\n1,2"), "1:[a][b]\n2:[1][2]\n");
	expect(STR("\xef\xbb\xbf"
		   "a,b\n,\n"),
		"1:[a][b]\n2:[][]\n");
	expect(STR("\"a,\"\"b\"\"\nc\",2\n3,\"\"\n"), "1:[a,\"b\"\nc][2]\n3:[3][]\n");
	expect(STR("\n\na\n\n\nb,\xc3\xa9\n\n"), "3:[a]\n6:[b][\xc3\xa9]\n");
}

void test_csv__faults_name_the_line(void **state)
{
	(void)state;
	expect_fault(STR("a\nb\"c\n"), "line 2: a quote stands inside");
	expect_fault(STR("a\n\"b\"c\n"), "line 2: text stands after a closing quote");
	expect_fault(STR("a\n\"b\n\n"), "line 2: a quote is not closed");
	expect_fault(STR("a\rb\n"), "line 1: a carriage return");
	expect_fault(STR("a\n\xff\n"), "line 2 is not valid UTF-8");
	expect_fault(((struct str){ "a\nb\0c\n", 6 }), "line 2: a NUL byte");
}

void test_csv__limits(void **state)
{
	struct buf text, out;
	struct err e;

	(void)state;
	buf_init(&text, 16 << 20);
	buf_init(&out, 65536);
	for (int i = 0; i <= CSV_CELLS_MAX; i++)
		buf_addc(&text, ',');
	assert_int_equal(read_cut(buf_str(&text), 0, &out, &e), -1);
	assert_non_null(strstr(e.msg, "more than 4096 cells"));
	buf_clear(&text);
	for (int i = 0; i <= CSV_ROW_MAX; i++)
		buf_addc(&text, 'x');
	assert_int_equal(read_cut(buf_str(&text), 7, &out, &e), -1);
	assert_non_null(strstr(e.msg, "longer than"));
	buf_done(&text);
	buf_done(&out);
}
