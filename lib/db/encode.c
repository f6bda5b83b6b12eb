#include "lib/db/encode.h"

#include "lib/db/sql.h"

enum { ARRAY_ITEMS_MAX = 1 << 24 };

/* The types that each kind goes into, and the array types of these. */
static const struct {
	uint32_t type, array;
	enum db_kind kind;
} fits[] = {
	{ SQL_TYPE_BOOL, SQL_TYPE_BOOL_ARRAY, DB_KIND_BOOL },
	{ SQL_TYPE_INT8, SQL_TYPE_INT8_ARRAY, DB_KIND_INT },
	{ SQL_TYPE_INT4, SQL_TYPE_INT4_ARRAY, DB_KIND_INT },
	{ SQL_TYPE_INT2, SQL_TYPE_INT2_ARRAY, DB_KIND_INT },
	{ SQL_TYPE_FLOAT8, SQL_TYPE_FLOAT8_ARRAY, DB_KIND_REAL },
	{ SQL_TYPE_TEXT, SQL_TYPE_TEXT_ARRAY, DB_KIND_TEXT },
	{ SQL_TYPE_JSONB, SQL_TYPE_JSONB_ARRAY, DB_KIND_JSON },
	{ SQL_TYPE_JSON, 0, DB_KIND_JSON },
	{ SQL_TYPE_BYTEA, SQL_TYPE_BYTEA_ARRAY, DB_KIND_BYTES },
	{ SQL_TYPE_TIMESTAMPTZ, SQL_TYPE_TIMESTAMPTZ_ARRAY, DB_KIND_TIME },
	{ SQL_TYPE_DATE, SQL_TYPE_DATE_ARRAY, DB_KIND_DATE },
};
enum { FITS = sizeof fits / sizeof fits[0] };

uint32_t db_arg_type(const struct db_arg *v)
{
	for (size_t i = 0; i < FITS; i++)
		if (fits[i].kind == v->kind)
			return v->is_array ? fits[i].array : fits[i].type;
	bug_at(__FILE__, __LINE__, "unknown kind of value");
}

static void put16(struct buf *b, uint16_t v)
{
	buf_add(b, (struct str){ (const char[]){ (char)(v >> 8), (char)v }, 2 });
}

static void put32(struct buf *b, uint32_t v)
{
	put16(b, (uint16_t)(v >> 16));
	put16(b, (uint16_t)v);
}

static void put64(struct buf *b, uint64_t v)
{
	char out[8];

	for (int i = 0; i < 8; i++)
		out[i] = (char)(v >> (56 - 8 * i));
	buf_add(b, (struct str){ out, 8 });
}

static int put_int(struct buf *b, uint32_t type, int64_t v, struct err *e)
{
	int64_t max = type == SQL_TYPE_INT8   ? INT64_MAX
		      : type == SQL_TYPE_INT4 ? INT32_MAX
					      : INT16_MAX;

	if (v > max || v < -max - 1)
		return err_set(e, ERR_INVALID, "The number %lld is out of range", (long long)v);
	if (type == SQL_TYPE_INT8)
		put64(b, (uint64_t)v);
	else if (type == SQL_TYPE_INT4)
		put32(b, (uint32_t)(int32_t)v);
	else
		put16(b, (uint16_t)(int16_t)v);
	return 0;
}

static int put_real(struct buf *b, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof bits);
	put64(b, bits);
	return 0;
}

static int put_text(struct buf *b, struct str s, struct err *e)
{
	if (s.n > 0 && memchr(s.p, '\0', s.n) != NULL)
		return err_set(e, ERR_INVALID, "A text holds a NUL character");
	buf_add(b, s);
	return 0;
}

static int put_time(struct buf *b, int64_t us, struct err *e)
{
	if (us == INT64_MAX || us == INT64_MIN)
		put64(b, (uint64_t)us);
	else if (us < INT64_MIN + 1 + DB_EPOCH_US)
		return err_set(e, ERR_INVALID, "A time is out of range");
	else
		put64(b, (uint64_t)(us - DB_EPOCH_US));
	return 0;
}

static int put_date(struct buf *b, int64_t days, struct err *e)
{
	if (days - DB_EPOCH_DAYS > INT32_MAX || days < INT32_MIN + DB_EPOCH_DAYS)
		return err_set(e, ERR_INVALID, "A date is out of range");
	put32(b, (uint32_t)(int32_t)(days - DB_EPOCH_DAYS));
	return 0;
}

/* One value, of a scalar or an item of an array. */
static int put_scalar(struct buf *b, uint32_t type, const struct db_arg *v, struct err *e)
{
	switch (v->kind) {
	case DB_KIND_BOOL: buf_addc(b, v->i != 0 ? 1 : 0); return 0;
	case DB_KIND_INT: return put_int(b, type, v->i, e);
	case DB_KIND_REAL: return put_real(b, v->f);
	case DB_KIND_TEXT: return put_text(b, v->s, e);
	case DB_KIND_JSON:
		if (type == SQL_TYPE_JSONB)
			buf_addc(b, 1); /* the version of the format */
		return put_text(b, v->s, e);
	case DB_KIND_BYTES: buf_add(b, v->s); return 0;
	case DB_KIND_TIME: return put_time(b, v->i, e);
	case DB_KIND_DATE: return put_date(b, v->i, e);
	}
	bug_at(__FILE__, __LINE__, "unknown kind of value");
}

static struct db_arg item_of(const struct db_arg *array, size_t i)
{
	struct db_arg v = { .kind = array->kind };

	switch (array->kind) {
	case DB_KIND_BOOL: v.i = ((const bool *)array->items)[i]; break;
	case DB_KIND_INT:
	case DB_KIND_TIME:
	case DB_KIND_DATE: v.i = ((const int64_t *)array->items)[i]; break;
	case DB_KIND_REAL: v.f = ((const double *)array->items)[i]; break;
	case DB_KIND_TEXT:
	case DB_KIND_JSON:
	case DB_KIND_BYTES: v.s = ((const struct str *)array->items)[i]; break;
	}
	return v;
}

/* array_send: dimensions, whether there are NULLs, element type; length and lower bound of each
 * dimension; then each element behind its length (-1: NULL). */
static int put_array(struct buf *b, uint32_t element, const struct db_arg *v, struct err *e)
{
	if (v->n > ARRAY_ITEMS_MAX)
		return err_set(e, ERR_TOO_LARGE, "A list has more than %d items", ARRAY_ITEMS_MAX);
	put32(b, v->n > 0 ? 1 : 0);
	put32(b, v->nulls != NULL ? 1 : 0);
	put32(b, element);
	if (v->n == 0)
		return 0;
	put32(b, (uint32_t)v->n);
	put32(b, 1);
	for (size_t i = 0; i < v->n; i++) {
		struct db_arg item = item_of(v, i);
		size_t at = b->n;

		if (v->nulls != NULL && v->nulls[i]) {
			put32(b, UINT32_MAX);
			continue;
		}
		put32(b, 0);
		if (put_scalar(b, element, &item, e) < 0)
			return -1;
		if (buf_failed(b))
			break;
		uint32_t len = (uint32_t)(b->n - at - 4);
		for (int k = 0; k < 4; k++)
			b->p[at + (size_t)k] = (char)(len >> (24 - 8 * k));
	}
	return 0;
}

int db_encode(struct buf *out, uint32_t type, const struct db_arg *v, struct err *e)
{
	size_t i = 0;
	int rc;

	while (i < FITS &&
		!(fits[i].kind == v->kind && (v->is_array ? fits[i].array : fits[i].type) == type))
		i++;
	if (i == FITS)
		bug_at(__FILE__, __LINE__, "a value is not of its parameter's type");
	if (v->cut)
		return err_set(e, ERR_TOO_LARGE, "A part of this is larger than can be stored");
	rc = v->is_array ? put_array(out, fits[i].type, v, e) : put_scalar(out, type, v, e);
	if (rc < 0)
		return -1;
	if (buf_failed(out))
		return err_set(e, ERR_TOO_LARGE, "The values are too large for one transaction");
	return 0;
}
