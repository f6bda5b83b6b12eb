#include "lib/json/field.h"
#include "lib/json/json_write.h"
#include "lib/json/node.h"

static const void *at(const struct field *f, const void *in)
{
	return (const char *)in + f->off;
}

bool field_absent(const struct field *f, const void *in)
{
	const void *p = at(f, in);

	if (f->has != 0)
		return !*((const bool *)in + (f->has - 1));
	switch (f->type) {
	case FIELD_STR: return ((const struct str *)p)->p == NULL;
	case FIELD_RAW: return ((const struct str *)p)->n == 0;
	case FIELD_SPAN: return ((const struct field_span *)p)->text.n == 0;
	case FIELD_TIME: return *(const int64_t *)p == 0;
	default: return false;
	}
}

static bool is_empty(const struct field *f, const void *in)
{
	const void *p = at(f, in);

	switch (f->type) {
	case FIELD_STR: return f->has == 0 && ((const struct str *)p)->n == 0;
	case FIELD_LIST:
	case FIELD_MAP:
	case FIELD_DICT: return ((const struct list *)p)->n == 0;
	default: return false;
	}
}

static void write_time(struct jsn_out *w, enum field_type type, int64_t us)
{
	char text[CLOCK_TEXT_MAX];

	jsn_text(w, type == FIELD_DATE ? clock_format_date(text, us) : clock_format(text, us));
}

static void write_scalar(
	struct jsn_out *w, const struct field *f, enum field_type type, const void *p)
{
	switch (type) {
	case FIELD_BOOL: jsn_bool(w, *(const bool *)p); break;
	case FIELD_INT:
	case FIELD_SIZE: jsn_int(w, *(const int64_t *)p); break;
	case FIELD_REAL: jsn_real(w, *(const double *)p); break;
	case FIELD_STR: jsn_str(w, *(const struct str *)p); break;
	case FIELD_ENUM:
		for (int i = 0; i <= *(const int *)p; i++)
			BUG_ON(f->names[i] == NULL);
		BUG_ON(*(const int *)p < 0);
		jsn_text(w, f->names[*(const int *)p]);
		break;
	case FIELD_TIME:
	case FIELD_DATE: write_time(w, type, *(const int64_t *)p); break;
	case FIELD_SPAN: jsn_str(w, ((const struct field_span *)p)->text); break;
	case FIELD_RAW:
		if (((const struct str *)p)->n != 0)
			jsn_raw(w, *(const struct str *)p);
		else
			jsn_null(w);
		break;
	default: BUG_ON(true);
	}
}

static void write_members(struct jsn_out *w, const struct field *t, const void *in);

static void write_object(struct jsn_out *w, const struct field *t, const void *in)
{
	jsn_obj_begin(w);
	write_members(w, t, in);
	jsn_obj_end(w);
}

static void write_list(struct jsn_out *w, const struct field *f, const struct list *l)
{
	size_t size = f->sub != NULL ? f->size : field_scalar_size(f->item);

	jsn_list_begin(w);
	for (size_t i = 0; i < l->n; i++) {
		const char *item = (const char *)l->items + i * size;
		if (f->sub != NULL)
			write_object(w, f->sub, item);
		else
			write_scalar(w, f, f->item, item);
	}
	jsn_list_end(w);
}

static void write_dict(struct jsn_out *w, const struct field *f, const struct list *l)
{
	jsn_obj_begin(w);
	for (size_t i = 0; i < l->n; i++) {
		const void *item = (const char *)l->items + i * f->size;
		const struct str *key = item;

		jsn_key_str(w, *key);
		write_object(w, f->sub, item);
	}
	jsn_obj_end(w);
}

static void write_map(struct jsn_out *w, const struct list *l)
{
	jsn_obj_begin(w);
	for (size_t i = 0; i < l->n; i++) {
		const struct field_pair *pair = list_at(l, const struct field_pair, i);

		jsn_key_str(w, pair->key);
		jsn_str(w, pair->value);
	}
	jsn_obj_end(w);
}

static void write_value(struct jsn_out *w, const struct field *f, const void *p)
{
	switch (f->type) {
	case FIELD_OBJ: write_object(w, f->sub, p); break;
	case FIELD_LIST: write_list(w, f, p); break;
	case FIELD_MAP: write_map(w, p); break;
	case FIELD_DICT: write_dict(w, f, p); break;
	default: write_scalar(w, f, f->type, p);
	}
}

static void write_members(struct jsn_out *w, const struct field *t, const void *in)
{
	for (; t->name != NULL; t++) {
		bool absent = field_absent(t, in);

		if ((t->flags & FIELD_WRITEONLY) != 0)
			continue;
		if ((t->flags & FIELD_OMIT_EMPTY) != 0 && (absent || is_empty(t, in)))
			continue;
		if (!absent ||
			(t->has == 0 && (t->flags & FIELD_NULLABLE) == 0 && t->type == FIELD_STR)) {
			jsn_key(w, t->name);
			write_value(w, t, at(t, in));
		} else if ((t->flags & FIELD_NULLABLE) != 0) {
			jsn_key(w, t->name);
			jsn_null(w);
		}
	}
}

void field_encode(const struct field *t, const void *in, struct buf *out)
{
	struct jsn_out w = jsn_out(out);

	write_object(&w, t, in);
}
