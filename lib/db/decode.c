/* Rows into structs. The way from columns to fields is found once for each statement and table. */
#include "lib/base/mem.h"
#include "lib/db/binary.h"
#include "lib/db/row.h"
#include "lib/db/unit.h"
#include "lib/json/field.h"

enum { JSON_MAX = 64 << 20 };

static bool is_json_type(uint32_t type)
{
	return type == SQL_TYPE_JSON || type == SQL_TYPE_JSONB || type == SQL_TYPE_TEXT;
}

static const struct db_plan *plan_of(const struct db_rows *r, const struct field *t)
{
	struct db_plan *p = *r->plans;

	while (p != NULL && (p->table != t || p->cols != r->cols))
		p = p->next;
	if (p != NULL)
		return p;
	p = mem_new(1, sizeof *p + r->cols * sizeof p->row_of_col[0]);
	p->table = t;
	p->cols = r->cols;
	for (size_t c = 0; c < r->cols; c++) {
		const struct field *f = field_find(t, str_c(db_col_name(r, c)));

		p->row_of_col[c] = (int16_t)(f != NULL ? f - t : -1);
	}
	p->next = *r->plans;
	*r->plans = p;
	return p;
}

static int not_as_declared(const struct field *f, struct err *e)
{
	(void)err_set(e, ERR_CORRUPT, "A stored value does not fit its description");
	err_field_prefix(e, f->name);
	return -1;
}

/* The row by itself, for a value that stands at offset 0. */
static struct field alone(const struct field *f)
{
	struct field one = *f;

	one.off = one.has = one.null = 0;
	one.flags &= ~(unsigned)(FIELD_REQUIRED | FIELD_READONLY | FIELD_NULLABLE);
	return one;
}

/* Objects, lists and maps are kept as JSON and read by the same rules as a message. */
static int from_json(
	const struct field *f, struct str json, struct arena *a, void *to, struct err *e)
{
	struct field t[2] = { alone(f), { .name = NULL } };
	struct buf b;
	int rc;

	buf_init(&b, JSON_MAX);
	buf_addf(&b, "{\"%s\":", f->name);
	buf_add(&b, json);
	buf_addc(&b, '}');
	rc = buf_failed(&b) ? not_as_declared(f, e) : field_decode_reply(t, buf_str(&b), a, to, e);
	buf_done(&b);
	if (rc < 0)
		e->code = ERR_CORRUPT;
	return rc;
}

static int from_span(
	const struct field *f, struct str text, struct arena *a, void *to, struct err *e)
{
	struct field t[2] = { alone(f), { .name = NULL } };
	struct field_pair pair = { str_c(f->name), text };

	if (field_decode_pairs(t, &pair, 1, a, to, e) < 0)
		return not_as_declared(f, e);
	return 0;
}

static int from_enum(const struct field *f, struct str text, void *to, struct err *e)
{
	for (int i = 0; f->names[i] != NULL; i++)
		if (str_is(text, f->names[i])) {
			*(int *)to = i;
			return 0;
		}
	return not_as_declared(f, e);
}

/* An array of text into a list of enum values; other arrays have the form of the list already. */
static int from_array(
	const struct field *f, struct list in, struct arena *a, void *to, struct err *e)
{
	struct list out = { .n = in.n };

	if (f->item != FIELD_ENUM) {
		*(struct list *)to = in;
		return 0;
	}
	out.items = in.n > 0 ? arena_array(a, in.n, sizeof(int)) : NULL;
	for (size_t i = 0; i < in.n; i++)
		if (from_enum(f, *list_at(&in, struct str, i), list_at(&out, int, i), e) < 0)
			return -1;
	*(struct list *)to = out;
	return 0;
}

/* FIELD_DATE counts in µs; a date column counts in days. */
static int64_t instant(const struct db_rows *r, size_t row, size_t c)
{
	if (db_col_type(r, c) == SQL_TYPE_DATE)
		return db_date(r, row, c) * CLOCK_DAY;
	return db_time(r, row, c);
}

struct cell {
	const struct db_rows *r;
	size_t row, col;
};

static int read_field(
	const struct cell *at, const struct field *f, struct arena *a, void *to, struct err *e)
{
	const struct db_rows *r = at->r;
	size_t row = at->row, c = at->col;

	switch (f->type) {
	case FIELD_BOOL: *(bool *)to = db_bool(r, row, c); return 0;
	case FIELD_INT:
	case FIELD_SIZE: *(int64_t *)to = db_int(r, row, c); return 0;
	case FIELD_REAL: *(double *)to = db_real(r, row, c); return 0;
	case FIELD_TIME:
	case FIELD_DATE: *(int64_t *)to = instant(r, row, c); return 0;
	case FIELD_STR:
	case FIELD_RAW: *(struct str *)to = arena_str(a, db_str(r, row, c)); return 0;
	case FIELD_ENUM: return from_enum(f, db_str(r, row, c), to, e);
	case FIELD_SPAN: return from_span(f, db_str(r, row, c), a, to, e);
	case FIELD_LIST:
		if (!is_json_type(db_col_type(r, c)))
			return from_array(f, db_list(r, row, c, a), a, to, e);
		return from_json(f, db_str(r, row, c), a, to, e);
	case FIELD_OBJ:
	case FIELD_MAP:
	case FIELD_DICT: return from_json(f, db_str(r, row, c), a, to, e);
	case FIELD_TYPE_COUNT: break;
	}
	bug_at(__FILE__, __LINE__, f->name);
}

int db_row_decode(const struct db_rows *r, size_t row, const struct field *t, struct arena *a,
	void *out, struct err *e)
{
	const struct db_plan *p;

	BUG_ON(row >= r->n);
	p = plan_of(r, t);
	for (size_t c = 0; c < r->cols; c++) {
		const struct field *f = p->row_of_col[c] >= 0 ? &t[p->row_of_col[c]] : NULL;

		if (f == NULL)
			continue;
		bool null = db_is_null(r, row, c);
		const struct cell at = { r, row, c };
		if (!null && read_field(&at, f, a, (char *)out + f->off, e) < 0)
			return -1;
		if (f->has > 0)
			*(bool *)((char *)out + f->has - 1) = !null;
	}
	return 0;
}
