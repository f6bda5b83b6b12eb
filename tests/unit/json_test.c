#include "lib/json/json_read.h"
#include "lib/json/json_write.h"
#include "tests/unit/unit.h"

#include <math.h>

static struct err err;

void test_json__the_writer_puts_commas_and_escapes(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "a\"");
	jsn_list_begin(&w);
	jsn_int(&w, INT64_MIN);
	jsn_real(&w, 0.1);
	jsn_real(&w, (double)NAN);
	jsn_real(&w, -(double)INFINITY);
	jsn_bool(&w, true);
	jsn_null(&w);
	jsn_list_begin(&w);
	jsn_list_end(&w);
	jsn_obj_begin(&w);
	jsn_obj_end(&w);
	jsn_text(&w, NULL);
	jsn_list_end(&w);
	jsn_key_str(&w, STR("t"));
	jsn_time(&w, 0);
	jsn_key(&w, "raw");
	jsn_raw(&w, STR("[1]"));
	jsn_key(&w, "s");
	jsn_str(&w, STR("\"\\/\b\f\n\r\t\x01\x1f\x7f\0"
			"\xc3\xa4\xf0\x9f\x98\x80"));
	jsn_obj_end(&w);
	assert_string_equal(b.p,
		"{\"a\\\"\":[-9223372036854775808,0.1,\"NaN\",\"-Infinity\",true,null,[],{},null],"
		"\"t\":\"1970-01-01T00:00:00Z\",\"raw\":[1],"
		"\"s\":\"\\\"\\\\/"
		"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000\xc3\xa4\xf0\x9f\x98\x80\"}");
	buf_done(&b);
}

void test_json__bytes_that_are_not_utf8_are_replaced(void **state)
{
	static const struct {
		struct str in;
		const char *out;
	} rows[] = {
		{ { "a\xff"
		    "b",
			  3 },
			"\"a\xef\xbf\xbd"
			"b\"" },
		{ { "\xc3", 1 }, "\"\xef\xbf\xbd\"" },
		{ { "\xc3\"\xc3\xa4", 4 }, "\"\xef\xbf\xbd\\\"\xc3\xa4\"" },
		{ { "\xed\xa0\x80", 3 }, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ { "\xc0\xaf", 2 }, "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		buf_clear(&b);
		jsn_put_str(&b, rows[i].in);
		assert_string_equal(b.p, rows[i].out);
	}
	buf_done(&b);
}

void test_json__free_reading(void **state)
{
	static const char text[] = "{\"Id\":\"x\",\"State\":{\"Pid\":7,\"Ok\":true,\"Load\":2},"
				   "\"a/b~\":[1,[2,3.5],null],\"\":1}";
	struct jsn_doc *d;
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(jsn_parse(str_c(text), &d, &err), 0);
	const struct jsn *root = jsn_root(d);
	assert_true(str_is(jsn_get_str(jsn_get(root, "Id")), "x"));
	assert_int_equal(jsn_get_int(jsn_get(jsn_get(root, "State"), "Pid"), -1), 7);
	assert_true(jsn_get_bool(jsn_find(root, "/State/Ok"), false));
	assert_true(jsn_get_real(jsn_find(root, "/State/Load"), 0) == 2.0);
	assert_true(jsn_get_real(jsn_find(root, "/a~1b~0/1/1"), 0) == 3.5);
	assert_int_equal(jsn_get_int(jsn_find(root, "/"), 0), 1);
	assert_ptr_equal(jsn_find(root, ""), root);
	assert_null(jsn_find(root, "/a~1b~0/3"));
	assert_null(jsn_find(root, "/a~1b~0/01"));
	assert_null(jsn_find(root, "/State/Pid/x"));
	assert_null(jsn_find(root, "State"));
	assert_null(jsn_get(jsn_get(root, "none"), "more"));
	assert_int_equal(jsn_get_int(jsn_get(root, "Id"), -1), -1);
	assert_int_equal(jsn_count(root), 4);
	assert_true(str_is(jsn_name(jsn_at(root, 2)), "a/b~"));
	assert_null(jsn_at(root, 4));
	jsn_write(root, &b);
	assert_string_equal(b.p, text);
	jsn_doc_free(d);
	assert_int_equal(jsn_parse(STR(" 7 "), &d, &err), 0);
	assert_int_equal(jsn_get_int(jsn_root(d), 0), 7);
	jsn_doc_free(d);
	jsn_doc_free(NULL);
	buf_done(&b);
}

void test_json__an_answer_may_hold_nul_and_any_number(void **state)
{
	static const char text[] =
		"{\"t\":\"a\\u0000b\",\"n\":7,\"i\":[1000000000000000000000,-2,0.5]}";
	struct jsn_doc *d;

	(void)state;
	assert_int_equal(jsn_parse(str_c(text), &d, &err), -1);
	assert_int_equal(jsn_parse_answer(str_c(text), &d, &err), 0);
	const struct jsn *root = jsn_root(d);
	assert_true(str_eq(jsn_get_str(jsn_get(root, "t")), (struct str){ "a\0b", 3 }));
	assert_int_equal(jsn_get_int(jsn_get(root, "n"), 0), 7);
	assert_true(jsn_get_real(jsn_find(root, "/i/0"), 0) == 1e21);
	assert_int_equal(jsn_get_int(jsn_find(root, "/i/1"), 0), -2);
	assert_true(jsn_get_real(jsn_find(root, "/i/2"), 0) == 0.5);
	jsn_doc_free(d);
	assert_int_equal(jsn_parse_answer(STR("{\"a\":1,\"a\":2}"), &d, &err), -1);
	assert_int_equal(jsn_parse_answer(STR("[1,"), &d, &err), -1);
}

void test_json__many_small_lists_fit_their_arena(void **state)
{
	struct jsn_doc *d;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	buf_adds(&b, "[[]");
	for (int i = 0; i < 24000; i++)
		buf_adds(&b, ",[]");
	buf_adds(&b, "]");
	assert_int_equal(jsn_parse(buf_str(&b), &d, &err), 0);
	assert_int_equal(jsn_count(jsn_root(d)), 24001);
	jsn_doc_free(d);
	buf_done(&b);
}
