#include "api/pipeline.h"
#include "server/core/input.h"
#include "tests/unit/unit.h"

#define TEXT(z)   ((struct input_value){ INPUT_FORM_TEXT, STR(z) })
#define NUMBER(z) ((struct input_value){ INPUT_FORM_NUMBER, STR(z) })

/* For the initializers of statics. */
#define Z(lit)                                                                                     \
	{                                                                                          \
		(lit), sizeof(lit) - 1                                                             \
	}

static const struct str sizes[] = { Z("small"), Z("large") };
static const struct input_rule rules[] = {
	{ .name = Z("from"),
		.want = INPUT_WANT_DATE,
		.fallback = { INPUT_FORM_TEXT, Z("2001-01-01") } },
	{ .name = Z("alpha"),
		.want = INPUT_WANT_NUMBER,
		.fallback = { INPUT_FORM_NUMBER, Z("1.0") },
		.min = 0,
		.has_min = true },
	{ .name = Z("rows"), .want = INPUT_WANT_INTEGER, .max = 10, .has_max = true },
	{ .name = Z("size"),
		.want = INPUT_WANT_STRING,
		.fallback = { INPUT_FORM_TEXT, Z("small") },
		.choices = sizes,
		.choices_n = 2 },
	{ .name = Z("full"),
		.want = INPUT_WANT_BOOLEAN,
		.fallback = { INPUT_FORM_BOOLEAN, Z("false") } },
};
enum { N = sizeof rules / sizeof rules[0] };

void test_input__types_are_numbered_as_in_the_api(void **state)
{
	(void)state;
	assert_int_equal((int)INPUT_WANT_COUNT, (int)INPUT_TYPE_COUNT);
	assert_int_equal((int)INPUT_WANT_STRING, (int)INPUT_STRING);
	assert_int_equal((int)INPUT_WANT_INTEGER, (int)INPUT_INTEGER);
	assert_int_equal((int)INPUT_WANT_NUMBER, (int)INPUT_NUMBER);
	assert_int_equal((int)INPUT_WANT_BOOLEAN, (int)INPUT_BOOLEAN);
	assert_int_equal((int)INPUT_WANT_DATE, (int)INPUT_DATE);
}

void test_input__fills_in_defaults(void **state)
{
	const struct input_given given[] = { { STR("rows"), NUMBER("7") },
		{ STR("from"), TEXT("2008-01-31") } };
	struct arena *a = arena_new(100000);
	struct render_value v[N];
	struct err e = { 0 };

	(void)state;
	if (input_fill(rules, N, given, 2, false, a, v, &e) < 0)
		fail_msg("%s %s", e.field, e.msg);
	assert_int_equal(v[0].kind, RENDER_DATE);
	assert_int_equal(v[0].us, INT64_C(1201737600000000));
	assert_true(str_is(v[1].text, "1.0"));
	assert_int_equal(v[1].kind, RENDER_NUMBER);
	assert_true(str_is(v[2].text, "7"));
	assert_true(str_is(v[3].text, "small"));
	assert_true(str_is(v[4].text, "false"));
	for (size_t i = 0; i < N; i++)
		assert_int_equal(input_check_rule(&rules[i], &e), 0);
	arena_drop(a);
}

static void refused(struct str name, struct input_value value, const char *field, const char *msg)
{
	const struct input_given given[] = { { name, value }, { STR("rows"), NUMBER("1") } };
	struct arena *a = arena_new(100000);
	struct render_value v[N];
	struct err e = { 0 };

	assert_int_equal(
		input_fill(rules, N, given, str_is(name, "rows") ? 1 : 2, false, a, v, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.field, field);
	assert_string_equal(e.msg, msg);
	arena_drop(a);
}

void test_input__refuses(void **state)
{
	const struct input_value null = { INPUT_FORM_NULL, STR_NONE },
				 other = { INPUT_FORM_OTHER, STR_NONE };

	(void)state;
	refused(STR("form"), TEXT("2001-01-01"), "/form",
		"is not an input of this pipeline; did you mean 'from'?");
	refused(STR("x/y"), TEXT(""), "/x~1y", "is not an input of this pipeline");
	refused(STR("from"), TEXT("2001-02-29"), "/from", "must be a date as 2001-01-31");
	refused(STR("from"), TEXT("2001-01-01T00:00:00Z"), "/from", "must be a date as 2001-01-31");
	refused(STR("from"), NUMBER("2001"), "/from", "must be a date as 2001-01-31");
	refused(STR("from"), null, "/from", "must be a date as 2001-01-31");
	refused(STR("alpha"), NUMBER("-0.5"), "/alpha", "must be at least 0");
	refused(STR("alpha"), TEXT("0.5"), "/alpha", "must be a number");
	refused(STR("alpha"), NUMBER("1e999"), "/alpha", "must be a number");
	refused(STR("rows"), NUMBER("11"), "/rows", "must be at most 10");
	refused(STR("rows"), NUMBER("1.0"), "/rows", "must be an integer");
	refused(STR("rows"), NUMBER("9223372036854775808"), "/rows", "must be an integer");
	refused(STR("rows"), (struct input_value){ INPUT_FORM_NONE, STR_NONE }, "/rows",
		"must be given: it is an integer and has no default");
	refused(STR("size"), TEXT("smal"), "/size",
		"is none of the 2 choices of this input; did you mean 'small'?");
	refused(STR("size"), TEXT("a\0b"), "/size", "must be valid UTF-8 without NUL");
	refused(STR("size"), TEXT("\xff"), "/size", "must be valid UTF-8 without NUL");
	refused(STR("size"), other, "/size", "must be a string");
	refused(STR("full"), TEXT("true"), "/full", "must be true or false");
	refused(STR("full"), NUMBER("1"), "/full", "must be true or false");
}

void test_input__given_twice(void **state)
{
	const struct input_given given[] = { { STR("rows"), NUMBER("1") },
		{ STR("rows"), NUMBER("2") } };
	struct arena *a = arena_new(100000);
	struct render_value v[N];
	struct err e = { 0 };

	(void)state;
	assert_int_equal(input_fill(rules, N, given, 2, false, a, v, &e), -1);
	assert_string_equal(e.field, "/rows");
	arena_drop(a);
}

void test_input__loose_reads_texts(void **state)
{
	struct render_value v;
	struct err e;

	(void)state;
	assert_int_equal(input_check(&rules[1], TEXT("0.5"), true, &v, &e), 0);
	assert_int_equal(v.kind, RENDER_NUMBER);
	assert_int_equal(input_check(&rules[2], TEXT("5"), true, &v, &e), 0);
	assert_int_equal(input_check(&rules[4], TEXT("true"), true, &v, &e), 0);
	assert_int_equal(input_check(&rules[4], TEXT("yes"), true, &v, &e), -1);
	assert_int_equal(input_check(&rules[2], TEXT("5 "), true, &v, &e), -1);
	assert_int_equal(input_check(&rules[3], NUMBER("5"), true, &v, &e), -1);
}

static void bad_rule(struct input_rule r, const char *field)
{
	struct err e = { 0 };

	assert_int_equal(input_check_rule(&r, &e), -1);
	assert_string_equal(e.field, field);
}

void test_input__rules_are_checked(void **state)
{
	(void)state;
	bad_rule((struct input_rule){ .name = STR("a"), .want = INPUT_WANT_DATE, .has_min = true },
		"/a/min");
	bad_rule(
		(struct input_rule){ .name = STR("a"), .want = INPUT_WANT_STRING, .has_max = true },
		"/a/max");
	bad_rule((struct input_rule){ .name = STR("a"),
			 .want = INPUT_WANT_NUMBER,
			 .has_min = true,
			 .min = 2,
			 .has_max = true,
			 .max = 1 },
		"/a/min");
	bad_rule((struct input_rule){ .name = STR("a"),
			 .want = INPUT_WANT_NUMBER,
			 .choices = sizes,
			 .choices_n = 2 },
		"/a/choices");
	bad_rule((struct input_rule){ .name = STR("a"),
			 .want = INPUT_WANT_STRING,
			 .choices = sizes,
			 .choices_n = 2,
			 .fallback = TEXT("huge") },
		"/a/default");
	bad_rule(
		(struct input_rule){
			.name = STR("a"), .want = INPUT_WANT_INTEGER, .fallback = TEXT("1") },
		"/a/default");
}
