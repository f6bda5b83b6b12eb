#include "lib/json/json_read.h"
#include "tests/unit/field_table.h"

#include <math.h>
#include <stdio.h>

void test_field__decodes_every_type_and_encodes_it_back(void **state)
{
	static const char text[] =
		"{\"name\":\"n-1\",\"b\":false,\"i\":-2,\"r\":0.1,\"s\":\"\xc3\xa4\xe2\x82\xac\","
		"\"text\":\"a\\n\\tb\",\"e\":\"max\",\"t\":\"2026-11-30T02:57:58.5Z\","
		"\"day\":\"2001-01-31\",\"span\":\"1mo2d\",\"z\":1048576,\"o\":{\"x\":9},"
		"\"parts\":[{\"x\":1},{\"x\":2}],\"names\":[\"a\",\"b.c\"],\"numbers\":[1.0,-2.5],"
		"\"env\":{\"B\":\"1\",\"A\":\"\"},\"steps\":{\"train\":{\"run\":\"x\\ny\"},"
		"\"eval\":{\"run\":\"z\"}},\"raw\":{\"k\":[1,null,\"\\\"\"]}}";
	struct arena *a = arena_new(1 << 20);
	struct buf b;
	struct all m;

	(void)state;
	buf_init(&b, 4096);
	if (decode(a, &m, text) < 0)
		fail_msg("%s %s", err.field, err.msg);
	assert_true(m.has_b && !m.b && m.has_i && m.i == -2 && m.r == 0.1 && m.e == MODE_MAX);
	assert_int_equal(m.span.span.months, 1);
	assert_int_equal(m.span.span.us, 2 * CLOCK_DAY);
	assert_int_equal(m.z, 1 << 20);
	assert_int_equal(list_at(&m.parts, struct part, 1)->x, 2);
	assert_string_equal(list_at(&m.names, struct str, 1)->p, "b.c");
	assert_string_equal(list_at(&m.env, struct field_pair, 0)->key.p, "B");
	assert_string_equal(list_at(&m.steps, struct step, 1)->key.p, "eval");
	field_encode(all_fields, &m, &b);
	/* The fraction is printed in full digits; the rest is the same text. */
	struct str want = arena_printf(a, "%s", text);
	ptrdiff_t at = str_find(buf_str(&b), STR("58.5"));
	assert_true(at > 0);
	assert_int_equal(str_find(want, STR("58.5")), at);
	struct all again;
	assert_int_equal(field_decode(all_fields, buf_str(&b), a, &again, &err), 0);
	assert_int_equal(again.t, m.t);
	struct buf c;
	buf_init(&c, 4096);
	field_encode(all_fields, &again, &c);
	assert_string_equal(c.p, b.p);
	buf_done(&c);
	buf_done(&b);
	arena_drop(a);
}

void test_field__missing_members_take_their_fallback(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct buf b;
	struct all m;

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(decode(a, &m, "{\"name\":\"x\"}"), 0);
	assert_true(m.b && !m.has_b && m.i == 3 && !m.has_i);
	assert_int_equal(m.span.span.us, 10 * CLOCK_MINUTE);
	assert_null(m.s.p);
	field_encode(all_fields, &m, &b);
	assert_string_equal(b.p, "{\"name\":\"x\",\"s\":null,\"t\":null,\"span\":\"10m\"}");
	buf_done(&b);
	arena_drop(a);
}

void test_field__absent_and_empty_values_are_written_as_the_flags_say(void **state)
{
	static const struct field rows[] = {
		{ "plain", FIELD_STR, 0, AT(s) },
		{ "null", FIELD_STR, FIELD_NULLABLE, AT(s) },
		{ "omit", FIELD_STR, FIELD_OMIT_EMPTY, AT(s) },
		{ "has", FIELD_STR, FIELD_OMIT_EMPTY, AT(s), HAS(b) },
		{ "time", FIELD_TIME, 0, AT(t) },
		{ "raw", FIELD_RAW, FIELD_NULLABLE, AT(raw) },
		{ "i", FIELD_INT, FIELD_NULLABLE, AT(i), HAS(b) },
		{ "list", FIELD_LIST, 0, AT(names), .item = FIELD_STR },
		{ "env", FIELD_MAP, FIELD_OMIT_EMPTY, AT(env) },
		{ 0 },
	};
	struct all m = { 0 };
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	field_encode(rows, &m, &b);
	assert_string_equal(
		b.p, "{\"plain\":\"\",\"null\":null,\"raw\":null,\"i\":null,\"list\":[]}");
	m.s = STR("");
	m.has_b = true;
	m.t = 1;
	m.raw = STR("[]");
	buf_clear(&b);
	field_encode(rows, &m, &b);
	assert_string_equal(b.p, "{\"plain\":\"\",\"null\":\"\",\"has\":\"\",\"time\":\"1970-01-"
				 "01T00:00:00.000001Z\","
				 "\"raw\":[],\"i\":0,\"list\":[]}");
	buf_done(&b);
}

void test_field__null_is_told_from_missing(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct all m;

	(void)state;
	assert_int_equal(decode(a, &m, "{\"name\":\"x\",\"s\":null}"), 0);
	assert_true(m.null_s);
	assert_null(m.s.p);
	assert_int_equal(decode(a, &m, "{\"name\":\"x\",\"s\":\"ab\"}"), 0);
	assert_false(m.null_s);
	arena_drop(a);
}

void test_field__bounds_are_exact(void **state)
{
	(void)state;
	accept("\"i\":-2");
	accept("\"i\":7");
	refuse("\"i\":-3", "/i", "between -2 and 7");
	refuse("\"i\":8", "/i", "between -2 and 7");
	refuse("\"i\":9223372036854775808", "/i", "line 1");
	accept("\"r\":-1");
	accept("\"r\":1.5");
	accept("\"r\":\"NaN\"");
	refuse("\"r\":1.6", "/r", "between -1 and 1.5");
	refuse("\"r\":\"Infinity\"", "/r", "between");
	refuse("\"r\":\"nan\"", "/r", "a number");
	accept("\"s\":\"ab\"");
	accept("\"s\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
	refuse("\"s\":\"a\"", "/s", "at least 2 characters");
	refuse("\"s\":\"\"", "/s", "must not be empty");
	refuse("\"s\":\"abcd\"", "/s", "at most 3 characters, not 4");
	accept("\"z\":\"1KiB\"");
	accept("\"z\":1073741824");
	refuse("\"z\":1023", "/z", "at least 1 KiB");
	refuse("\"z\":\"2GiB\"", "/z", "at most 1 GiB");
	refuse("\"z\":-1", "/z", "a size");
	accept("\"span\":\"3mo\"");
	refuse("\"span\":\"91d\"", "/span", "at most 90d");
	refuse("\"span\":\"1001y\"", "/span", "at most 1000y");
	accept("\"parts\":[{\"x\":1},{\"x\":1}]");
	refuse("\"parts\":[{\"x\":1},{\"x\":1},{\"x\":1}]", "/parts", "at most 2 items");
	refuse("\"parts\":[{\"x\":1},{\"x\":0}]", "/parts/1/x", "between 1 and 9");
	refuse("\"env\":{\"a\":\"1\",\"b\":\"1\",\"c\":\"1\"}", "/env", "at most 2");
	refuse("\"env\":{\"a\":\"12345\"}", "/env/a", "at most 4");
	refuse("\"env\":{\"abcdef\":\"1\"}", "/env/abcdef", "at most 5 bytes");
	refuse("\"env\":{\"\":\"1\"}", "/env/", "empty name");
	accept("\"raw\":\"123456789012345678\"");
	refuse("\"raw\":\"1234567890123456789\"", "/raw", "at most 20 bytes");
}

void test_field__wrong_types_are_named(void **state)
{
	static const struct {
		const char *name, *wanted;
		const char *good; /* a JSON type that it takes: n s b l o */
	} rows[] = {
		{ "b", "true or false", "b" },
		{ "i", "a whole number", "n" },
		{ "r", "a number", "n" },
		{ "text", "a string", "s" },
		{ "e", "a string", "" },
		{ "t", "a time", "" },
		{ "day", "a date", "" },
		{ "span", "a duration", "" },
		{ "z", "a size", "n" },
		{ "o", "an object", "o" },
		{ "parts", "a list", "l" },
		{ "names", "a list", "l" },
		{ "env", "an object", "o" },
		{ "steps", "an object", "o" },
	};
	static const struct {
		char type;
		const char *text;
	} values[] = { { 'n', "1" }, { 's', "\"x\"" }, { 'b', "true" }, { 'l', "[7]" },
		{ 'o', "{\"q\":1}" }, { 'r', "0.5" }, { '0', "null" } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (size_t j = 0; j < sizeof values / sizeof values[0]; j++) {
			char member[64], pointer[32];
			bool null = values[j].type == '0';

			if (strchr(rows[i].good, values[j].type) != NULL ||
				(values[j].type == 'r' && strcmp(rows[i].name, "r") == 0) ||
				(null && strcmp(rows[i].name, "t") == 0) ||
				(strcmp(rows[i].name, "e") == 0 && values[j].type == 's'))
				continue;
			snprintf(member, sizeof member, "\"%s\":%s", rows[i].name, values[j].text);
			snprintf(pointer, sizeof pointer, "/%s", rows[i].name);
			refuse(member, pointer, null ? "must not be null" : rows[i].wanted);
		}
	refuse("\"names\":[\"a\",7]", "/names/1", "must be a string, not a whole number");
	refuse("\"parts\":[7]", "/parts/0", "an object");
	refuse("\"steps\":{\"a\":7}", "/steps/a", "an object");
	refuse("\"env\":{\"A\":1}", "/env/A", "a string");
}

void test_field__raw_objects_are_objects(void **state)
{
	static const struct field t[] = {
		{ "a", FIELD_RAW, 0, 0, .schema = "{\"type\":\"object\"}" },
		{ 0 },
	};
	static const char *const wrong[] = { "[]", "1", "\"{}\"", "null", "true" };
	struct arena *a = arena_new(1 << 16);
	struct str out;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct str text = arena_printf(a, "{\"a\":%s}", wrong[i]);
		assert_int_equal(field_decode(t, text, a, &out, &err), -1);
		assert_string_equal(err.field, "/a");
		assert_int_equal(field_decode_reply(t, text, a, &out, &err), 0);
	}
	assert_int_equal(field_decode(t, STR("{\"a\":{\"b\":[1]}}"), a, &out, &err), 0);
	assert_true(str_is(out, "{\"b\":[1]}"));
	arena_drop(a);
}

void test_field__unknown_and_fixed_members_are_refused(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct all m;

	(void)state;
	refuse("\"nams\":[]", "/nams", "did you mean 'name'?");
	refuse("\"setps\":{}", "/setps", "did you mean 'steps'?");
	refuse("\"qqqq\":{}", "/qqqq", "is not known here; known: name, b, i, ");
	refuse("\"o\":{\"x\":1,\"y/~\":2}", "/o/y~1~0", "is not known here; known: x");
	refuse("\"made\":\"x\"", "/made", "set by the server");
	refuse("\"o\":{}", "/o/x", "is required");
	refuse("\"e\":\"mix\"", "/e", "must be one of min, max; did you mean 'm");
	assert_int_equal(decode(a, &m, "{}"), -1);
	assert_string_equal(err.field, "/name");
	assert_string_equal(err.msg, "is required");
	assert_int_equal(decode(a, &m, "[]"), -1);
	assert_int_equal(err.code, ERR_INVALID);
	arena_drop(a);
}

void test_field__characters_and_names_are_checked(void **state)
{
	(void)state;
	refuse("\"s\":\"a\\u0000\"", "/s", "U+0000");
	refuse("\"s\":\"a\\n\"", "/s", "control");
	refuse("\"text\":\"a\\r\"", "/text", "control");
	refuse("\"text\":\"\\u007f\"", "/text", "control");
	refuse("\"names\":[\"a\",\"B\"]", "/names/1", "must be 1 to 63");
	refuse("\"steps\":{\"A b\":{\"run\":\"x\"}}", "/steps/A b", "must be 1 to 63");
	refuse("\"steps\":{\"a\":{\"run\":\"x\",\"b\":1}}", "/steps/a/b", "not known");
	refuse("\"t\":\"2026-02-30T00:00:00Z\"", "/t", "a time");
	refuse("\"day\":\"2026-11-30T00:00:00Z\"", "/day", "a date");
}

void test_field__what_does_not_parse_is_malformed(void **state)
{
	static const struct {
		const char *text, *field, *says;
	} rows[] = {
		{ "", "", "empty" },
		{ " ", "", "empty" },
		{ "{\"name\":\"x\"} x", "", "line 1, column" },
		{ "{\"name\":\"x\",\"o\":{\"x\":1,\"\\u0078\":2}}", "/o/\\u0078", "duplicate" },
		{ "{\"name\":\"x\",\"i\":1,\"i\":1}", "/i", "duplicate" },
		{ "{\"name\":\"x\",\"names\":[\"a\",\n\"\xff\"]}", "/names/1", "line 2" },
		{ "{\"name\":\"x\",\"names\":[\"a\",\"\xed\xa0\x80\"]}", "/names/1", "UTF-8" },
		{ "{\"name\":\"x\",\"i\":01}", "/i", "line 1" },
		{ "{\"name\":\"x\",\"r\":NaN}", "/r", "line 1" },
		{ "{\"name\":\"x\",", "", "end of file" },
		{ "{'name':1}", "", "line 1" },
		{ "{\"name\":\"x\",\"o\":{\"x\":tru}}", "/o/x", "line 1" },
	};
	struct arena *a = arena_new(1 << 20);
	struct all m;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(decode(a, &m, rows[i].text), -1);
		if (strcmp(err.field, rows[i].field) != 0 || strstr(err.msg, rows[i].says) == NULL)
			fail_msg("%s: '%s' %s", rows[i].text, err.field, err.msg);
		assert_int_equal(err.code, ERR_MALFORMED);
	}
	arena_drop(a);
}

void test_field__depth_and_size_are_bounded(void **state)
{
	struct arena *a = arena_new(1 << 20);
	struct buf b;
	struct all m;

	(void)state;
	buf_init(&b, 1 << 20);
	buf_adds(&b, "{\"name\":\"x\",\"raw\":");
	for (int i = 0; i < 31; i++)
		buf_addc(&b, '[');
	for (int i = 0; i < 31; i++)
		buf_addc(&b, ']');
	buf_addc(&b, '}');
	assert_int_equal(field_decode(all_fields, buf_str(&b), a, &m, &err), -1);
	assert_non_null(strstr(err.msg, "20 bytes"));
	buf_clear(&b);
	for (int i = 0; i < 100000; i++)
		buf_addc(&b, '[');
	assert_int_equal(field_decode(all_fields, buf_str(&b), a, &m, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.msg, "32 levels"));
	buf_clear(&b);
	buf_addc(&b, '[');
	for (int i = 0; i < FIELD_NODES_MAX; i++)
		buf_adds(&b, "1,");
	buf_adds(&b, "1]");
	assert_int_equal(field_decode(all_fields, buf_str(&b), a, &m, &err), -1);
	assert_non_null(strstr(err.msg, "50000 values"));
	buf_done(&b);
	arena_drop(a);
}

void test_field__a_full_arena_is_an_error_and_no_abort(void **state)
{
	static const struct field fields[] = {
		{ "l", FIELD_LIST, 0, 0, .item = FIELD_STR, .max = 1000 },
		{ 0 },
	};
	struct arena *a = arena_new(4096);
	struct list l;
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	buf_adds(&b, "{\"l\":[\"\"");
	for (int i = 0; i < 900; i++)
		buf_adds(&b, ",\"\"");
	buf_adds(&b, "]}");
	assert_int_equal(field_decode(fields, buf_str(&b), a, &l, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	buf_done(&b);
	arena_drop(a);
}

void test_field__replies_and_lax_requests_bend_where_they_say(void **state)
{
	static const char text[] = "{\"name\":\"x\",\"new\":1,\"made\":\"m\"}";
	static const char lax[] =
		"{\"name\":7,\"i\":\"5\",\"r\":\"inf\",\"e\":1,\"new\":{},\"b\":null}";
	static const struct field fields[] = {
		{ "name", FIELD_STR, FIELD_REQUIRED, AT(name) },
		{ "i", FIELD_INT, 0, AT(i), HAS(i) },
		{ "r", FIELD_REAL, FIELD_NONFINITE, AT(r) },
		{ "e", FIELD_ENUM, 0, AT(e), .names = modes },
		{ "b", FIELD_BOOL, 0, AT(b), HAS(b), .fallback = "true" },
		{ 0 },
	};
	struct arena *a = arena_new(1 << 20);
	struct all m;

	(void)state;
	assert_int_equal(field_decode_reply(all_fields, str_c(text), a, &m, &err), 0);
	assert_string_equal(m.made.p, "m");
	assert_int_equal(field_decode_reply(fields, str_c(lax), a, &m, &err), -1);
	assert_int_equal(field_decode_loose(fields, str_c(lax), a, &m, &err), 0);
	assert_string_equal(m.name.p, "7");
	assert_int_equal(m.i, 5);
	assert_true(isinf(m.r) && m.e == MODE_MAX && m.b && !m.has_b);
	assert_int_equal(field_decode_loose(fields, STR("{\"name\":null}"), a, &m, &err), -1);
	assert_string_equal(err.msg, "is required");
	assert_int_equal(
		field_decode_loose(fields, STR("{\"name\":\"x\",\"e\":2}"), a, &m, &err), -1);
	assert_string_equal(err.field, "/e");
	arena_drop(a);
}

void test_field__pairs_are_read_by_type(void **state)
{
	static const struct field fields[] = {
		{ "limit", FIELD_INT, 0, AT(i), HAS(i), .min = 1, .max = 500, .fallback = "50" },
		{ "b", FIELD_BOOL, 0, AT(b), HAS(b) },
		{ "e", FIELD_ENUM, 0, AT(e), HAS(e), .names = modes },
		{ "names", FIELD_LIST, FIELD_NAME, AT(names), .item = FIELD_STR, .max = 2 },
		{ "r", FIELD_REAL, 0, AT(r), HAS(r) },
		{ "s", FIELD_STR, 0, AT(s) },
		{ 0 },
	};
	const struct field_pair good[] = { { STR("b"), STR("true") }, { STR("names"), STR("a,b") },
		{ STR("r"), STR("2") }, { STR("s"), STR("12") } };
	const struct {
		struct field_pair pair;
		const char *field, *says;
	} bad[] = {
		{ { STR("limit"), STR("0") }, "/limit", "between 1 and 500" },
		{ { STR("limit"), STR("x") }, "/limit", "must be a whole number" },
		{ { STR("limit"), STR("1.0") }, "/limit", "must be a whole number" },
		{ { STR("limt"), STR("1") }, "/limt", "did you mean 'limit'?" },
		{ { STR("e"), STR("mid") }, "/e", "one of min, max" },
		{ { STR("names"), STR("a,b,c") }, "/names", "at most 2" },
		{ { STR("names"), STR("a,") }, "/names/1", "must be 1 to 63" },
		{ { STR("s"), STR("\xff") }, "/s", "UTF-8" },
		{ { STR("s"), STR("a\0b") }, "/s", "control" },
		{ { STR("b"), STR("TRUE") }, "/b", "must be true or false" },
	};
	struct arena *a = arena_new(1 << 20);
	struct all m;

	(void)state;
	assert_int_equal(field_decode_pairs(fields, good, 4, a, &m, &err), 0);
	assert_true(m.b && m.has_b && m.i == 50 && !m.has_i && m.names.n == 2 && m.r == 2);
	assert_string_equal(m.s.p, "12");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(field_decode_pairs(fields, &bad[i].pair, 1, a, &m, &err), -1);
		if (strcmp(err.field, bad[i].field) != 0 || strstr(err.msg, bad[i].says) == NULL)
			fail_msg("%s: '%s' %s", bad[i].says, err.field, err.msg);
	}
	const struct field_pair twice[] = { good[0], good[0] };
	assert_int_equal(field_decode_pairs(fields, twice, 2, a, &m, &err), -1);
	assert_string_equal(err.msg, "must be given once");
	arena_drop(a);
}

/* What a string may not hold, in every place that takes one: NUL and surrogates by escape, bytes
 * that are not UTF-8. */
void test_field__bad_strings_are_refused_everywhere(void **state)
{
	static const char *const places[] = {
		"\"s\":\"%s\"",
		"\"text\":\"%s\"",
		"\"secret\":\"%s\"",
		"\"e\":\"%s\"",
		"\"t\":\"%s\"",
		"\"day\":\"%s\"",
		"\"span\":\"%s\"",
		"\"z\":\"%s\"",
		"\"r\":\"%s\"",
		"\"i\":\"%s\"",
		"\"b\":\"%s\"",
		"\"o\":{\"%s\":1}",
		"\"names\":[\"%s\"]",
		"\"env\":{\"%s\":\"x\"}",
		"\"env\":{\"a\":\"%s\"}",
		"\"steps\":{\"%s\":{\"run\":\"x\"}}",
		"\"steps\":{\"a\":{\"run\":\"%s\"}}",
		"\"raw\":\"%s\"",
		"\"raw\":{\"%s\":1}",
		"\"%s\":1",
	};
	static const char *const bad[] = { "\\u0000", "a\\u0000", "\\ud800", "\\udc00x", "\xff",
		"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\nb" };
	struct arena *a = arena_new(1 << 20);
	struct all m;

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
		for (size_t j = 0; j < sizeof bad / sizeof bad[0]; j++) {
			const char *hole = strstr(places[i], "%s");
			struct str text = arena_printf(a, "{\"name\":\"x\",%.*s%s%s}",
				(int)(hole - places[i]), places[i], bad[j], hole + 2);

			err = (struct err){ 0 };
			if (field_decode(all_fields, text, a, &m, &err) == 0)
				fail_msg("%s was taken", text.p);
			assert_true(err.code == ERR_INVALID || err.code == ERR_MALFORMED);
			assert_true(err.msg[0] != '\0');
		}
	arena_drop(a);
}
