/*
 * Typed inputs of a pipeline: checks what was given against the rules, fills in defaults, and gives
 * each value as the text that ${inputs.NAME} stands for. Pure; knows no JSON: the caller passes
 * each value as its form and its text. Errors are ERR_INVALID with the pointer /NAME.
 */
#ifndef SERVER_CORE_INPUT_H
#define SERVER_CORE_INPUT_H
#include "server/core/render.h"

enum { INPUT_TEXT_MAX = 4096 };

/* The numbers of enum input_type in api/pipeline.h. */
enum input_want {
	INPUT_WANT_STRING,
	INPUT_WANT_INTEGER,
	INPUT_WANT_NUMBER,
	INPUT_WANT_BOOLEAN,
	INPUT_WANT_DATE,
	INPUT_WANT_COUNT
};

enum input_form {
	INPUT_FORM_NONE, /* absent */
	INPUT_FORM_NULL,
	INPUT_FORM_TEXT,
	INPUT_FORM_NUMBER,
	INPUT_FORM_BOOLEAN,
	INPUT_FORM_OTHER /* list, object */
};

struct input_value {
	enum input_form form;
	struct str text; /* the string itself; a number as written; true or false */
};

struct input_rule {
	struct str name;
	enum input_want want;
	struct input_value fallback; /* INPUT_FORM_NONE: must be given */
	double min, max;
	bool has_min, has_max;
	const struct str *choices; /* of strings; none: anything */
	size_t choices_n;
};

struct input_given {
	struct str name;
	struct input_value value;
};

/* One value. `loose` reads texts as what is wanted ("0.5" for a number), for values that can only
 * be texts (a command line, a rendered ${…}). Borrowed: *ret points into v. */
int input_check(const struct input_rule *r, struct input_value v, bool loose,
	struct render_value *ret, struct err *e) MUST_CHECK;
/* The rules themselves: bounds and choices fit the type, the default fits the rule. */
int input_check_rule(const struct input_rule *r, struct err *e) MUST_CHECK;
/* All inputs of a run: unknown names are refused, defaults filled in. ret[i] belongs to
 * rules[i]; the index lives in the arena. */
int input_fill(const struct input_rule *rules, size_t rules_n, const struct input_given *given,
	size_t given_n, bool loose, struct arena *a, struct render_value *ret,
	struct err *e) MUST_CHECK;

#endif
