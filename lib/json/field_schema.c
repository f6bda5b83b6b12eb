#include "lib/json/field.h"
#include "lib/json/json_write.h"
#include "lib/json/node.h"

/* JSON Schema 2020-12, which OpenAPI 3.1 takes as it is. */

#define NAME_PATTERN "^[a-z0-9][a-z0-9._-]{0,62}$"
#define SPAN_PATTERN "^([0-9]+(s|m|h|d|w|mo|q|y))+$"
#define SIZE_PATTERN "^[0-9]+(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?$"

static void put_type(struct jsn_out *w, const struct field *f, const char *type, const char *second)
{
	bool null = (f->flags & FIELD_NULLABLE) != 0;

	jsn_key(w, "type");
	if (second == NULL && !null) {
		jsn_text(w, type);
		return;
	}
	jsn_list_begin(w);
	jsn_text(w, type);
	if (second != NULL)
		jsn_text(w, second);
	if (null)
		jsn_text(w, "null");
	jsn_list_end(w);
}

static void put_text(struct jsn_out *w, const char *key, const char *text)
{
	if (text == NULL)
		return;
	jsn_key(w, key);
	jsn_text(w, text);
}

static void put_int(struct jsn_out *w, const char *key, int64_t v)
{
	jsn_key(w, key);
	jsn_int(w, v);
}

static void put_int_bounds(struct jsn_out *w, const struct field *f)
{
	if ((f->min != 0 || f->max != 0) && f->min != INT64_MIN)
		put_int(w, "minimum", f->min);
	if ((f->max != 0 || f->min < 0) && f->max != INT64_MAX)
		put_int(w, "maximum", f->max);
}

static void put_real_bounds(struct jsn_out *w, const struct field *f)
{
	if (f->rmin != 0 || f->rmax != 0) {
		jsn_key(w, "minimum");
		jsn_real(w, f->rmin);
	}
	if (f->rmax != 0 || f->rmin < 0) {
		jsn_key(w, "maximum");
		jsn_real(w, f->rmax);
	}
}

static void put_real(struct jsn_out *w, const struct field *f)
{
	static const char *const names[] = { "NaN", "Infinity", "-Infinity" };
	struct field plain = *f;

	if ((f->flags & FIELD_NONFINITE) == 0) {
		put_type(w, f, "number", NULL);
		put_real_bounds(w, f);
		return;
	}
	plain.flags = f->flags & ~(unsigned)FIELD_NONFINITE;
	jsn_key(w, "anyOf");
	jsn_list_begin(w);
	jsn_obj_begin(w);
	put_real(w, &plain);
	jsn_obj_end(w);
	jsn_obj_begin(w);
	jsn_key(w, "enum");
	jsn_list_begin(w);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		jsn_text(w, names[i]);
	jsn_list_end(w);
	jsn_obj_end(w);
	jsn_list_end(w);
}

static void put_counts(struct jsn_out *w, const struct field *f, const char *min, const char *max,
	int64_t otherwise)
{
	if (f->min > 0)
		put_int(w, min, f->min);
	put_int(w, max, f->max != 0 ? f->max : otherwise);
}

static void put_str(struct jsn_out *w, const struct field *f)
{
	put_type(w, f, "string", NULL);
	if ((f->flags & FIELD_NAME) != 0)
		put_text(w, "pattern", NAME_PATTERN);
	else
		put_counts(w, f, "minLength", "maxLength", FIELD_STR_MAX);
}

static void put_enum(struct jsn_out *w, const struct field *f)
{
	put_type(w, f, "string", NULL);
	jsn_key(w, "enum");
	jsn_list_begin(w);
	for (int i = 0; f->names[i] != NULL; i++)
		jsn_text(w, f->names[i]);
	if ((f->flags & FIELD_NULLABLE) != 0)
		jsn_null(w);
	jsn_list_end(w);
}

static void put_raw(struct jsn_out *w, const struct field *f)
{
	struct jsn_doc *d;
	struct err e;

	if (f->schema == NULL)
		return;
	int rc = jsn_parse(str_c(f->schema), &d, &e);
	BUG_ON(rc < 0 || jsn_type(jsn_root(d)) != JSN_OBJ);
	for (size_t i = 0; i < jsn_count(jsn_root(d)); i++) {
		struct buf b;

		buf_init(&b, FIELD_RAW_MAX);
		jsn_write(jsn_at(jsn_root(d), i), &b);
		jsn_key_str(w, jsn_name(jsn_at(jsn_root(d), i)));
		jsn_raw(w, buf_str(&b));
		buf_done(&b);
	}
	jsn_doc_free(d);
}

static void put_scalar(struct jsn_out *w, const struct field *f)
{
	switch (f->type) {
	case FIELD_BOOL: put_type(w, f, "boolean", NULL); break;
	case FIELD_INT:
		put_type(w, f, "integer", NULL);
		put_text(w, "format", "int64");
		put_int_bounds(w, f);
		break;
	case FIELD_REAL: put_real(w, f); break;
	case FIELD_STR: put_str(w, f); break;
	case FIELD_ENUM: put_enum(w, f); break;
	case FIELD_TIME:
	case FIELD_DATE:
		put_type(w, f, "string", NULL);
		put_text(w, "format", f->type == FIELD_DATE ? "date" : "date-time");
		break;
	case FIELD_SPAN:
		put_type(w, f, "string", NULL);
		put_text(w, "pattern", SPAN_PATTERN);
		break;
	case FIELD_SIZE:
		put_type(w, f, "integer", "string");
		put_text(w, "pattern", SIZE_PATTERN);
		put_int(w, "minimum", f->min);
		put_int(w, "maximum", f->max != 0 ? f->max : INT64_MAX);
		break;
	default: put_raw(w, f);
	}
}

static void put_row(struct jsn_out *w, const struct field *f);

/* What a request must have, and what every reply has. */
static bool is_required(const struct field *f)
{
	if ((f->flags & FIELD_READONLY) == 0)
		return (f->flags & FIELD_REQUIRED) != 0;
	return (f->flags & FIELD_OMIT_EMPTY) == 0 &&
	       ((f->flags & FIELD_NULLABLE) != 0 || f->has == 0);
}

static void put_object(struct jsn_out *w, const struct field *t)
{
	jsn_key(w, "properties");
	jsn_obj_begin(w);
	for (const struct field *f = t; f->name != NULL; f++) {
		jsn_key(w, f->name);
		put_row(w, f);
	}
	jsn_obj_end(w);
	bool any = false;
	for (const struct field *f = t; f->name != NULL; f++) {
		if (!is_required(f))
			continue;
		if (!any) {
			jsn_key(w, "required");
			jsn_list_begin(w);
		}
		any = true;
		jsn_text(w, f->name);
	}
	if (any)
		jsn_list_end(w);
	jsn_key(w, "additionalProperties");
	jsn_bool(w, false);
}

static void put_items(struct jsn_out *w, const struct field *f)
{
	struct field item = { .type = f->sub != NULL ? FIELD_OBJ : f->item,
		.flags = f->flags & (FIELD_NAME | FIELD_NONFINITE),
		.min = f->item_min,
		.max = f->item_max,
		.rmin = f->rmin,
		.rmax = f->rmax,
		.names = f->names,
		.sub = f->sub };

	put_type(w, f, "array", NULL);
	put_counts(w, f, "minItems", "maxItems", FIELD_LIST_MAX);
	jsn_key(w, "items");
	put_row(w, &item);
}

/* MAP and DICT: members with names of the user's choice. */
static void put_open_object(struct jsn_out *w, const struct field *f)
{
	struct field key = { .type = FIELD_STR,
		.flags = f->flags & FIELD_NAME,
		.min = 1,
		.max = f->key_max != 0 ? f->key_max : FIELD_KEY_MAX };
	struct field value = { .type = f->type == FIELD_DICT ? FIELD_OBJ : FIELD_STR,
		.min = f->item_min,
		.max = f->item_max,
		.sub = f->sub };

	put_type(w, f, "object", NULL);
	put_counts(w, f, "minProperties", "maxProperties", FIELD_MAP_MAX);
	jsn_key(w, "propertyNames");
	put_row(w, &key);
	jsn_key(w, "additionalProperties");
	put_row(w, &value);
}

static void put_fallback(struct jsn_out *w, const struct field *f)
{
	if (f->fallback == NULL)
		return;
	struct jsn v = field_text_value(f->type, str_c(f->fallback));
	jsn_key(w, "default");
	if (f->type == FIELD_RAW) {
		jsn_raw(w, str_c(f->fallback));
		return;
	}
	struct buf b;
	buf_init(&b, FIELD_RAW_MAX);
	jsn_write(&v, &b);
	jsn_raw(w, buf_str(&b));
	buf_done(&b);
}

static void put_row(struct jsn_out *w, const struct field *f)
{
	jsn_obj_begin(w);
	switch (f->type) {
	case FIELD_OBJ:
		put_type(w, f, "object", NULL);
		put_object(w, f->sub);
		break;
	case FIELD_LIST: put_items(w, f); break;
	case FIELD_MAP:
	case FIELD_DICT: put_open_object(w, f); break;
	default: put_scalar(w, f);
	}
	put_text(w, "description", f->doc);
	put_fallback(w, f);
	if ((f->flags & FIELD_READONLY) != 0) {
		jsn_key(w, "readOnly");
		jsn_bool(w, true);
	}
	if ((f->flags & FIELD_WRITEONLY) != 0) {
		jsn_key(w, "writeOnly");
		jsn_bool(w, true);
	}
	jsn_obj_end(w);
}

void field_schema(const struct field *t, struct buf *out)
{
	struct field whole = { .type = FIELD_OBJ, .sub = t };

	field_schema_row(&whole, out);
}

void field_schema_row(const struct field *f, struct buf *out)
{
	struct jsn_out w = jsn_out(out);

	put_row(&w, f);
}
