#include "lib/json/node.h"

/* Tables are written by hand; this finds what a compiler cannot see in them. */

enum { LEVELS = 12 };

static int check_table(const struct field *t, unsigned level, struct err *e);

static bool is_scalar(enum field_type type)
{
	return type != FIELD_OBJ && type != FIELD_LIST && type != FIELD_MAP && type != FIELD_DICT;
}

static int flaw(const struct field *f, const char *what, struct err *e)
{
	return err_field(e, "", "the row '%s' %s", f->name, what);
}

static int check_parts(const struct field *f, struct err *e)
{
	enum field_type scalar = f->type == FIELD_LIST && f->sub == NULL ? f->item : f->type;

	if ((f->type == FIELD_OBJ || f->type == FIELD_DICT) != (f->sub != NULL) &&
		f->type != FIELD_LIST)
		return flaw(f, "must have a table exactly when it is an OBJ or DICT", e);
	if (f->type == FIELD_LIST && f->sub == NULL && !is_scalar(f->item))
		return flaw(f, "must have scalars as items", e);
	if ((scalar == FIELD_ENUM) != (f->names != NULL))
		return flaw(f, "must have names exactly when it is an ENUM", e);
	if (f->schema != NULL && f->type != FIELD_RAW)
		return flaw(f, "has a schema of its own without being RAW", e);
	return 0;
}

static int check_rules(const struct field *f, struct err *e)
{
	bool words = f->type == FIELD_STR || f->type == FIELD_MAP || f->type == FIELD_DICT ||
		     (f->type == FIELD_LIST && f->item == FIELD_STR && f->sub == NULL);

	if ((f->max != 0 && f->min > f->max) || (f->rmax != 0 && f->rmin > f->rmax) ||
		(f->item_max != 0 && f->item_min > f->item_max))
		return flaw(f, "has a minimum above its maximum", e);
	if ((f->flags & (FIELD_NAME | FIELD_TEXT)) != 0 && !words)
		return flaw(f, "has a rule for strings without having any", e);
	if ((f->flags & FIELD_READONLY) != 0 && (f->flags & FIELD_WRITEONLY) != 0)
		return flaw(f, "is neither read nor written", e);
	if ((f->flags & FIELD_REQUIRED) != 0 && f->fallback != NULL)
		return flaw(f, "is required and has a fallback", e);
	if (f->fallback != NULL && !is_scalar(f->type))
		return flaw(f, "has a fallback without being a scalar", e);
	return 0;
}

static int check_json(const struct field *f, const char *text, struct err *e)
{
	struct jsn_doc *d;

	if (text == NULL)
		return 0;
	if (jsn_parse(str_c(text), &d, e) < 0)
		return flaw(f, "has a schema or fallback that is not JSON", e);
	jsn_doc_free(d);
	return 0;
}

static int check_fallback(const struct field *f, struct err *e)
{
	struct arena *a = arena_new(2 * FIELD_RAW_MAX);
	struct field_reader r = { .a = a, .text = true, .e = e };
	struct jsn v = field_text_value(f->type, str_c(f->fallback));
	void *out = arena_alloc(a, field_scalar_size(f->type));
	int rc = field_read_scalar(&r, f, &v, out);

	arena_drop(a);
	if (rc < 0)
		err_field_prefix(e, f->name);
	return rc;
}

static int check_sub(const struct field *f, unsigned level, struct err *e)
{
	if (check_table(f->sub, level + 1, e) < 0) {
		err_field_prefix(e, f->name);
		return -1;
	}
	if (f->type != FIELD_OBJ && f->size < field_extent(f->sub))
		return flaw(f, "has a size smaller than its table's struct", e);
	if (f->type == FIELD_DICT && f->size < sizeof(struct str))
		return flaw(f, "has no room for its key", e);
	return 0;
}

static int check_row(const struct field *f, unsigned level, struct err *e)
{
	if (f->type >= FIELD_TYPE_COUNT || f->item >= FIELD_TYPE_COUNT)
		return flaw(f, "has no known type", e);
	if (check_parts(f, e) < 0 || check_rules(f, e) < 0)
		return -1;
	if (f->type == FIELD_RAW &&
		(check_json(f, f->schema, e) < 0 || check_json(f, f->fallback, e) < 0))
		return -1;
	if (f->type != FIELD_RAW && f->fallback != NULL && check_fallback(f, e) < 0)
		return -1;
	return f->sub != NULL ? check_sub(f, level, e) : 0;
}

static int check_table(const struct field *t, unsigned level, struct err *e)
{
	if (level > LEVELS)
		return err_field(e, "", "the tables are nested deeper than %d levels", LEVELS);
	for (const struct field *f = t; f->name != NULL; f++) {
		if (f - t >= FIELD_ROWS_MAX)
			return err_field(e, "", "the table has more than %d rows", FIELD_ROWS_MAX);
		if (field_find(t, str_c(f->name)) != f)
			return flaw(f, "is there twice", e);
		if (check_row(f, level, e) < 0)
			return -1;
	}
	return 0;
}

int field_table_check(const struct field *t, size_t size, struct err *e)
{
	if (check_table(t, 0, e) < 0)
		return -1;
	if (size < field_extent(t))
		return err_field(e, "", "the struct is smaller than its table");
	return 0;
}
