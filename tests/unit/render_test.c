#include "lib/base/clock.h"
#include "server/core/render.h"
#include "tests/unit/unit.h"

struct pair {
	const char *name;
	enum render_kind kind;
	const char *text;
};
static const struct pair pairs[] = {
	{ "inputs.alpha", RENDER_NUMBER, "0.5" },
	{ "inputs.from", RENDER_DATE, "2001-01-31" },
	{ "inputs.my-name", RENDER_TEXT, "it's; $(rm -rf /) ${run.id}" },
	{ "inputs.empty", RENDER_TEXT, "" },
	{ "run.id", RENDER_TEXT, "run_1" },
	{ "window.start", RENDER_DATE, "2008-02-29" },
	{ "window.end", RENDER_TIME, "2008-07-01T06:00:00Z" },
	{ "window.first", RENDER_DATE, "0001-01-01" },
	{ "steps.train.outputs.rows", RENDER_LATER, "" },
};

static bool find(const void *arg, struct str name, struct render_value *ret)
{
	const bool *known = arg;

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		if (!str_is(name, pairs[i].name))
			continue;
		*ret = (struct render_value){ .kind = pairs[i].kind, .text = str_c(pairs[i].text) };
		if (ret->kind == RENDER_LATER && *known)
			*ret = (struct render_value){ .kind = RENDER_NUMBER, .text = STR("42") };
		if (ret->kind == RENDER_DATE || ret->kind == RENDER_TIME)
			assert_true(clock_parse(str_c(pairs[i].text), &ret->us));
		return true;
	}
	return false;
}

static bool known;
static const struct str names[] = { { "inputs.alpha", 12 }, { "window.start", 12 } };
static const struct render_scope scope = { find, &known, names, 2 };

static void renders(const char *text, const char *want)
{
	struct arena *a = arena_new(100000);
	struct err e = { 0 };
	struct str out;
	bool later;

	if (render_text(str_c(text), &scope, 1000, a, &out, &later, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	assert_false(later);
	assert_true(out.p[out.n] == '\0');
	assert_string_equal(out.p, want);
	arena_drop(a);
}

void test_render__values(void **state)
{
	(void)state;
	renders("", "");
	renders("plain $ $5 $$ {} } $", "plain $ $5 $$ {} } $");
	renders("${inputs.alpha}", "0.5");
	renders("a=${ inputs.alpha };${run.id}${inputs.empty}!", "a=0.5;run_1!");
	renders("x${inputs.from}", "x2001-01-31");
	renders("${window.end}", "2008-07-01T06:00:00Z");
}

/* A value is text and nothing else: not quoted, and not read again. */
void test_render__values_are_not_read_again(void **state)
{
	(void)state;
	renders("${inputs.my-name}", "it's; $(rm -rf /) ${run.id}");
}

void test_render__escapes(void **state)
{
	(void)state;
	renders("$${run.id}", "${run.id}");
	renders("$$${run.id}", "$${run.id}");
	renders("echo $$ $${HOME} ${run.id}", "echo $$ ${HOME} run_1");
	assert_true(render_has_reference(STR("a ${x}")));
	assert_true(render_has_reference(STR("$${a} ${x}")));
	assert_false(render_has_reference(STR("$${a} $$ $ {")));
	assert_false(render_has_reference(STR("$")));
}

void test_render__dates_move(void **state)
{
	(void)state;
	renders("${window.start - 3y}", "2005-02-28");
	renders("${window.start - 1d}", "2008-02-28");
	renders("${window.start + 1mo}", "2008-03-29");
	renders("${ inputs.from  +  1mo1d }", "2001-03-01");
	renders("${window.start + 1q}", "2008-05-29");
	renders("${window.start + 2w}", "2008-03-14");
	renders("${window.start - 24h}", "2008-02-28");
	renders("${window.end - 6h}", "2008-07-01T00:00:00Z");
}

static void fails(const char *text, const char *msg)
{
	struct arena *a = arena_new(100000);
	struct str out = STR("untouched");
	struct err e = { 0 };

	if (render_text(str_c(text), &scope, 30, a, &out, NULL, &e) == 0)
		fail_msg("%s was taken", text);
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.field, "");
	assert_string_equal(e.msg, msg);
	assert_true(str_is(out, "untouched"));
	arena_drop(a);
}

void test_render__faults(void **state)
{
	(void)state;
	fails("${inputs.alhpa}", "there is no 'inputs.alhpa'; did you mean 'inputs.alpha'?");
	fails("${nothing}", "there is no 'nothing'");
	fails("${window.start-3y}", "there is no 'window.start-3y'; put spaces around the '-'");
	fails("ab${run.id", "the closing '}' is missing, in the ${…} at byte 3");
	fails("${}", "a name is expected, in the ${…} at byte 1");
	fails("${ }", "a name is expected, in the ${…} at byte 1");
	fails("${${run.id}}", "a name is expected, in the ${…} at byte 1");
	fails("${run.id:-x}",
		"a name is followed by something that is no part of it, in the ${…} at byte 1");
	fails("${window.start * 3}",
		"only ' + ' or ' - ' and a duration may follow a name, in the ${…} at byte 1");
	fails("${window.start -3y}",
		"only ' + ' or ' - ' and a duration may follow a name, in the ${…} at byte 1");
	fails("${window.start - 3 years}",
		"a duration is expected, as 14d, 3mo or 1y, in the ${…} at byte 1");
	fails("${window.start - }",
		"only ' + ' or ' - ' and a duration may follow a name, in the ${…} at byte 1");
	fails("${inputs.alpha + 1d}", "'inputs.alpha' is no date: no duration can be added to it");
	fails("${window.start - 1h}",
		"'window.start' is a day; only whole days can be taken from it");
	fails("${window.first - 1d}", "'window.first' leads out of the years 1 to 9999");
	fails("${window.start + 1000000y}", "'window.start' leads out of the years 1 to 9999");
	fails("${window.start - 1000000w1000000w}",
		"'window.start' leads out of the years 1 to 9999");
	fails("${run.id}${run.id}${run.id}${run.id}${run.id}${run.id}${run.id}",
		"becomes longer than 30 bytes");
}

void test_render__waits_for_what_comes_later(void **state)
{
	struct arena *a = arena_new(100000);
	const char *text = "$${x} ${run.id} ${steps.train.outputs.rows}";
	struct str out;
	struct err e;
	bool later = false;

	(void)state;
	known = false;
	assert_int_equal(render_text(str_c(text), &scope, 100, a, &out, &later, &e), 0);
	assert_true(later);
	assert_true(str_is(out, text));
	/* Faults beside it show at once. */
	assert_int_equal(render_text(STR("${steps.train.outputs.rows} ${nothing}"), &scope, 100, a,
				 &out, &later, &e),
		-1);
	known = true;
	assert_int_equal(render_text(out, &scope, 100, a, &out, &later, &e), 0);
	assert_false(later);
	assert_true(str_is(out, "${x} run_1 42"));
	known = false;
	arena_drop(a);
}

void test_render__a_list_is_a_scope(void **state)
{
	const struct str list_names[] = { STR("inputs.a"), STR("run.number") };
	const struct render_value values[] = { { .kind = RENDER_DATE, .us = CLOCK_DAY },
		{ .kind = RENDER_NUMBER, .text = STR("7") } };
	const struct render_list list = { list_names, values, 2 };
	const struct render_scope s = render_list_scope(&list);
	struct arena *a = arena_new(10000);
	struct str out;
	struct err e;

	(void)state;
	assert_int_equal(
		render_text(STR("${run.number} ${inputs.a}"), &s, 100, a, &out, NULL, &e), 0);
	assert_true(str_is(out, "7 1970-01-02"));
	assert_int_equal(render_text(STR("${run.numbr}"), &s, 100, a, &out, NULL, &e), -1);
	assert_string_equal(e.msg, "there is no 'run.numbr'; did you mean 'run.number'?");
	arena_drop(a);
}
