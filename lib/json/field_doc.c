#include "lib/base/num.h"
#include "lib/json/field.h"
#include "lib/json/node.h"

#include <inttypes.h>

/* The reference of a table for people, in Markdown. */

enum { PLACE_MAX = 256 };

static const char *type_of(const struct field *f, enum field_type type)
{
	switch (type) {
	case FIELD_BOOL: return "true or false";
	case FIELD_INT: return "whole number";
	case FIELD_REAL: return "number";
	case FIELD_STR: return (f->flags & FIELD_NAME) != 0 ? "name" : "text";
	case FIELD_ENUM: return "word";
	case FIELD_TIME: return "time";
	case FIELD_DATE: return "date";
	case FIELD_SPAN: return "duration";
	case FIELD_SIZE: return "size";
	case FIELD_MAP: return "texts by name";
	case FIELD_OBJ: return "object";
	case FIELD_DICT: return "objects by name";
	default: return "several forms";
	}
}

/* What a table's cell would take for its own syntax. */
static void add_text(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '|' || *text == '<')
			buf_addc(out, '\\');
		buf_addc(out, *text);
	}
}

static void add_type(struct buf *out, const struct field *f)
{
	if (f->type == FIELD_LIST)
		buf_addf(out, "list of %ss", f->sub != NULL ? "object" : type_of(f, f->item));
	else
		buf_adds(out, type_of(f, f->type));
}

static void add_default(struct buf *out, const struct field *f)
{
	bool number = (f->type == FIELD_INT || f->type == FIELD_SIZE) && f->has == 0;

	if ((f->flags & FIELD_REQUIRED) != 0)
		buf_adds(out, "required");
	else if (f->fallback != NULL)
		buf_addf(out, "`%s`", f->fallback);
	else if (f->type == FIELD_BOOL || number)
		buf_addf(out, "`%s`", number ? "0" : "false");
}

static void add_words(struct buf *out, const struct field *f)
{
	for (int i = 0; f->names[i] != NULL; i++)
		buf_addf(out, "%s`%s`", i == 0 ? "" : ", ", f->names[i]);
}

static void add_range(struct buf *out, const char *least, const char *most)
{
	if (least != NULL && most != NULL)
		buf_addf(out, "%s to %s", least, most);
	else if (least != NULL || most != NULL)
		buf_addf(out, "at %s %s", least != NULL ? "least" : "most",
			least != NULL ? least : most);
}

static void add_int_range(struct buf *out, const struct field *f)
{
	bool lower = (f->min != 0 || f->max != 0) && f->min != INT64_MIN;
	bool upper = (f->max != 0 || f->min < 0) && f->max != INT64_MAX;
	char least[CLOCK_SPAN_TEXT_MAX + NUM_SIZE_MAX], most[sizeof least];

	if (f->type == FIELD_SPAN) {
		lower = f->min > 0;
		(void)clock_format_span(least, f->min);
		(void)clock_format_span(most, f->max);
	} else if (f->type == FIELD_SIZE) {
		lower = f->min > 0;
		(void)num_format_size(least, (uint64_t)f->min);
		(void)num_format_size(most, (uint64_t)f->max);
	} else {
		(void)str_print(least, sizeof least, "%" PRId64, f->min);
		(void)str_print(most, sizeof most, "%" PRId64, f->max);
	}
	add_range(out, lower ? least : NULL, upper ? most : NULL);
}

static void add_real_range(struct buf *out, const struct field *f)
{
	char least[NUM_DOUBLE_MAX], most[NUM_DOUBLE_MAX];

	(void)str_print(least, sizeof least, "%.15g", f->rmin);
	(void)str_print(most, sizeof most, "%.15g", f->rmax);
	add_range(out, f->rmin != 0 || f->rmax != 0 ? least : NULL,
		f->rmax != 0 || f->rmin < 0 ? most : NULL);
}

/* Characters of a text, items of a list, members of an object. */
static void add_counts(struct buf *out, const struct field *f, int64_t otherwise, const char *what)
{
	int64_t max = f->max != 0 ? f->max : otherwise;

	if (f->min > 1 || (f->min == 1 && f->type != FIELD_STR))
		buf_addf(out, "%" PRId64 " to %" PRId64 " %s", f->min, max, what);
	else
		buf_addf(out, "at most %" PRId64 " %s", max, what);
}

static void add_item(struct buf *out, const struct field *f)
{
	if (f->type == FIELD_LIST && f->item == FIELD_ENUM && f->sub == NULL) {
		buf_adds(out, ": ");
		add_words(out, f);
	} else if (f->item_max != 0) {
		buf_addf(out, " of up to %" PRId64 " characters", f->item_max);
	}
}

static void add_limits(struct buf *out, const struct field *f)
{
	switch (f->type) {
	case FIELD_ENUM: add_words(out, f); break;
	case FIELD_INT:
	case FIELD_SPAN:
	case FIELD_SIZE: add_int_range(out, f); break;
	case FIELD_REAL: add_real_range(out, f); break;
	case FIELD_STR:
		if ((f->flags & FIELD_NAME) == 0)
			add_counts(out, f, FIELD_STR_MAX, "characters");
		break;
	case FIELD_RAW: add_counts(out, f, FIELD_RAW_MAX, "bytes as JSON"); break;
	case FIELD_LIST:
		add_counts(out, f, FIELD_LIST_MAX, "items");
		add_item(out, f);
		break;
	case FIELD_MAP:
	case FIELD_DICT:
		add_counts(out, f, FIELD_MAP_MAX, "members");
		add_item(out, f);
		break;
	default: break;
	}
}

static void add_rows(struct buf *out, const struct field *t, const char *prefix)
{
	char below[PLACE_MAX];

	for (; t->name != NULL; t++) {
		if ((t->flags & FIELD_READONLY) != 0)
			continue;
		buf_addf(out, "| `%s%s` | ", prefix, t->name);
		add_type(out, t);
		buf_adds(out, " | ");
		add_default(out, t);
		buf_adds(out, " | ");
		add_limits(out, t);
		buf_adds(out, " | ");
		add_text(out, t->doc != NULL ? t->doc : "");
		buf_adds(out, " |\n");
		BUG_ON(!str_print(below, sizeof below, "%s%s.", prefix, t->name));
		if (t->type == FIELD_OBJ)
			add_rows(out, t->sub, below);
	}
}

/* Objects that have names of the user's choice, or no names, have a table each. */
static void add_others(struct buf *out, const struct field *t, const char *place)
{
	char below[PLACE_MAX];

	for (; t->name != NULL; t++) {
		bool list = t->type == FIELD_LIST && t->sub != NULL;
		if ((t->flags & FIELD_READONLY) != 0 || t->sub == NULL)
			continue;
		BUG_ON(!str_print(below, sizeof below, "%s%s%s%s", place, *place != '\0' ? "." : "",
			t->name,
			list                    ? "[]"
			: t->type == FIELD_DICT ? ".NAME"
						: ""));
		if (t->type == FIELD_OBJ)
			add_others(out, t->sub, below);
		else
			field_doc(t->sub, below, out);
	}
}

void field_doc(const struct field *t, const char *place, struct buf *out)
{
	if (*place != '\0')
		buf_addf(out, "\n**`%s`**\n", place);
	buf_adds(out, "\n| key | type | default | limits | |\n|---|---|---|---|---|\n");
	add_rows(out, t, "");
	add_others(out, t, place);
}
