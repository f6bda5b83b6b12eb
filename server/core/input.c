#include "server/core/input.h"

#include "lib/base/clock.h"
#include "lib/base/num.h"

static const char *const wanted[INPUT_WANT_COUNT] = { "a string", "an integer", "a number",
	"true or false", "a date as 2001-01-31" };
/* The form in which JSON brings each type. */
static const enum input_form forms[INPUT_WANT_COUNT] = { INPUT_FORM_TEXT, INPUT_FORM_NUMBER,
	INPUT_FORM_NUMBER, INPUT_FORM_BOOLEAN, INPUT_FORM_TEXT };

static int fail_name(const struct input_rule *r, struct err *e)
{
	char name[64];

	(void)str_print(name, sizeof name, "%.*s", STR_ARG(names_shown(r->name)));
	err_field_prefix(e, name);
	return -1;
}

static int check_bounds(const struct input_rule *r, double v, struct err *e)
{
	if (r->has_min && v < r->min)
		return err_field(e, "", "must be at least %.15g", r->min);
	if (r->has_max && v > r->max)
		return err_field(e, "", "must be at most %.15g", r->max);
	return 0;
}

static int check_number(const struct input_rule *r, struct str text, struct err *e)
{
	int64_t whole;
	double v;

	if (r->want == INPUT_WANT_INTEGER) {
		if (!num_parse_i64(text, INT64_MIN, INT64_MAX, &whole))
			return err_field(e, "", "must be %s", wanted[r->want]);
		return check_bounds(r, (double)whole, e);
	}
	if (!num_parse_double(text, &v))
		return err_field(e, "", "must be %s", wanted[r->want]);
	return check_bounds(r, v, e);
}

static int check_string(const struct input_rule *r, struct str text, struct err *e)
{
	char near[NEAR_TEXT_MAX];
	struct near n;

	if (text.n > INPUT_TEXT_MAX)
		return err_field(e, "", "must be at most %d bytes long", INPUT_TEXT_MAX);
	/* It becomes a word of a command line or a variable. */
	if ((text.n != 0 && memchr(text.p, '\0', text.n) != NULL) || !str_utf8_valid(text))
		return err_field(e, "", "must be valid UTF-8 without NUL");
	if (r->choices_n == 0)
		return 0;
	near_init(&n, text);
	for (size_t i = 0; i < r->choices_n; i++) {
		if (str_eq(text, r->choices[i]))
			return 0;
		near_try(&n, r->choices[i]);
	}
	return err_field(e, "", "is none of the %zu choice%s of this input%s", r->choices_n,
		num_plural(r->choices_n), near_text(near, &n));
}

static int check_value(const struct input_rule *r, struct input_value v, bool loose,
	struct render_value *ret, struct err *e)
{
	struct render_value out = { .kind = RENDER_TEXT, .text = v.text };

	if (v.form != forms[r->want] && !(loose && v.form == INPUT_FORM_TEXT))
		return err_field(e, "", "must be %s", wanted[r->want]);
	switch (r->want) {
	case INPUT_WANT_INTEGER:
	case INPUT_WANT_NUMBER:
		if (check_number(r, v.text, e) < 0)
			return -1;
		out.kind = RENDER_NUMBER;
		break;
	case INPUT_WANT_BOOLEAN:
		if (!str_is(v.text, "true") && !str_is(v.text, "false"))
			return err_field(e, "", "must be %s", wanted[r->want]);
		break;
	case INPUT_WANT_DATE:
		if (!clock_parse_date(v.text, &out.us))
			return err_field(e, "", "must be %s", wanted[r->want]);
		out.kind = RENDER_DATE;
		break;
	case INPUT_WANT_STRING:
	case INPUT_WANT_COUNT:
		if (check_string(r, v.text, e) < 0)
			return -1;
	}
	*ret = out;
	return 0;
}

int input_check(const struct input_rule *r, struct input_value v, bool loose,
	struct render_value *ret, struct err *e)
{
	BUG_ON((unsigned)r->want >= INPUT_WANT_COUNT);
	return check_value(r, v, loose, ret, e) < 0 ? fail_name(r, e) : 0;
}

static int check_rule(const struct input_rule *r, struct err *e)
{
	bool number = r->want == INPUT_WANT_INTEGER || r->want == INPUT_WANT_NUMBER;
	struct render_value v;

	if (!number && (r->has_min || r->has_max))
		return err_field(
			e, r->has_min ? "/min" : "/max", "only integers and numbers have bounds");
	if (r->has_min && r->has_max && r->min > r->max)
		return err_field(e, "/min", "must not be above max");
	if (r->want != INPUT_WANT_STRING && r->choices_n != 0)
		return err_field(e, "/choices", "only strings have choices");
	if (r->fallback.form != INPUT_FORM_NONE && check_value(r, r->fallback, false, &v, e) < 0) {
		err_field_prefix(e, "default");
		return -1;
	}
	return 0;
}

int input_check_rule(const struct input_rule *r, struct err *e)
{
	BUG_ON((unsigned)r->want >= INPUT_WANT_COUNT);
	return check_rule(r, e) < 0 ? fail_name(r, e) : 0;
}

/* Puts each given value at the place of its rule. */
static int match(const struct names *names, const struct input_given *given, size_t n,
	struct input_value *values, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct str name = given[i].name;
		struct input_rule culprit = { .name = name };
		ptrdiff_t at = names_find(names, given[i].name);
		char near[NEAR_TEXT_MAX];
		if (at < 0) {
			(void)err_field(e, "", "is not an input of this pipeline%s",
				names_near(near, names, given[i].name));
			return fail_name(&culprit, e);
		}
		if (values[at].form != INPUT_FORM_NONE) {
			(void)err_field(e, "", "is given twice");
			return fail_name(&culprit, e);
		}
		values[at] = given[i].value;
	}
	return 0;
}

int input_fill(const struct input_rule *rules, size_t rules_n, const struct input_given *given,
	size_t given_n, bool loose, struct arena *a, struct render_value *ret, struct err *e)
{
	struct str *items = arena_array_of(a, struct str, rules_n + 1);
	struct input_value *values = arena_array_of(a, struct input_value, rules_n + 1);
	struct names names;

	for (size_t i = 0; i < rules_n; i++)
		items[i] = rules[i].name;
	names_index(&names, items, rules_n, a);
	if (match(&names, given, given_n, values, e) < 0)
		return -1;
	for (size_t i = 0; i < rules_n; i++) {
		const struct input_rule *r = &rules[i];
		struct input_value v = values[i];
		bool given_loose = loose && v.form != INPUT_FORM_NONE;
		if (v.form == INPUT_FORM_NONE)
			v = r->fallback;
		if (v.form == INPUT_FORM_NONE) {
			(void)err_field(e, "", "must be given: it is %s and has no default",
				wanted[r->want]);
			return fail_name(r, e);
		}
		if (input_check(r, v, given_loose, &ret[i], e) < 0)
			return -1;
	}
	return 0;
}
