#include "lib/db/binary.h"

#include "lib/db/encode.h"

enum { TYPE_XID8 = 5069, FIRST_OWN_TYPE = 16384 };

static uint64_t get(struct str s)
{
	uint64_t v = 0;

	for (size_t i = 0; i < s.n; i++)
		v = v << 8 | (unsigned char)s.p[i];
	return v;
}

bool binary_int(uint32_t type, struct str s, int64_t *ret)
{
	switch (type) {
	case SQL_TYPE_INT2:
		if (s.n != 2)
			return false;
		*ret = (int16_t)get(s);
		return true;
	case SQL_TYPE_INT4:
		if (s.n != 4)
			return false;
		*ret = (int32_t)get(s);
		return true;
	case SQL_TYPE_OID:
		if (s.n != 4)
			return false;
		*ret = (int64_t)get(s);
		return true;
	case SQL_TYPE_INT8:
	case TYPE_XID8:
		if (s.n != 8)
			return false;
		*ret = (int64_t)get(s);
		return true;
	default: return false;
	}
}

bool binary_real(uint32_t type, struct str s, double *ret)
{
	uint64_t bits = get(s);
	uint32_t half = (uint32_t)bits;
	float f;

	if (type == SQL_TYPE_FLOAT8 && s.n == 8) {
		memcpy(ret, &bits, sizeof bits);
		return true;
	}
	if (type != SQL_TYPE_FLOAT4 || s.n != 4)
		return false;
	memcpy(&f, &half, sizeof half);
	*ret = (double)f;
	return true;
}

bool binary_text(uint32_t type, struct str s, struct str *ret)
{
	switch (type) {
	case SQL_TYPE_TEXT:
	case SQL_TYPE_VARCHAR:
	case SQL_TYPE_BPCHAR:
	case SQL_TYPE_NAME:
	case SQL_TYPE_CHAR:
	case SQL_TYPE_JSON:
	case SQL_TYPE_BYTEA: *ret = s; return true;
	case SQL_TYPE_JSONB:
		if (s.n < 1 || s.p[0] != 1)
			return false;
		*ret = str_slice(s, 1, s.n);
		return true;
	default:
		if (type < FIRST_OWN_TYPE)
			return false;
		*ret = s;
		return true;
	}
}

bool binary_time(uint32_t type, struct str s, int64_t *ret)
{
	int64_t v = (int64_t)get(s);

	if (type != SQL_TYPE_TIMESTAMPTZ || s.n != 8)
		return false;
	if (v == INT64_MIN || v == INT64_MAX || v > INT64_MAX - DB_EPOCH_US)
		*ret = v == INT64_MIN ? INT64_MIN : INT64_MAX;
	else
		*ret = v + DB_EPOCH_US;
	return true;
}

bool binary_date(uint32_t type, struct str s, int64_t *ret)
{
	if (type != SQL_TYPE_DATE || s.n != 4)
		return false;
	*ret = (int32_t)get(s) + DB_EPOCH_DAYS;
	return true;
}

bool binary_is_known(uint32_t type)
{
	static const uint32_t known[] = { SQL_TYPE_BOOL, SQL_TYPE_BYTEA, SQL_TYPE_CHAR,
		SQL_TYPE_NAME, SQL_TYPE_INT8, SQL_TYPE_INT2, SQL_TYPE_INT4, SQL_TYPE_TEXT,
		SQL_TYPE_OID, SQL_TYPE_JSON, SQL_TYPE_FLOAT4, SQL_TYPE_FLOAT8, SQL_TYPE_BPCHAR,
		SQL_TYPE_VARCHAR, SQL_TYPE_DATE, SQL_TYPE_TIMESTAMPTZ, SQL_TYPE_VOID,
		SQL_TYPE_JSONB, SQL_TYPE_BOOL_ARRAY, SQL_TYPE_BYTEA_ARRAY, SQL_TYPE_INT2_ARRAY,
		SQL_TYPE_INT4_ARRAY, SQL_TYPE_TEXT_ARRAY, SQL_TYPE_VARCHAR_ARRAY,
		SQL_TYPE_INT8_ARRAY, SQL_TYPE_FLOAT8_ARRAY, SQL_TYPE_DATE_ARRAY,
		SQL_TYPE_TIMESTAMPTZ_ARRAY, SQL_TYPE_JSONB_ARRAY, TYPE_XID8 };

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (known[i] == type)
			return true;
	return type >= FIRST_OWN_TYPE;
}

bool binary_array(struct str s, struct binary_array *ret)
{
	struct binary_array out;
	struct str rest;
	uint64_t ndim;

	if (s.n < 12)
		return false;
	ndim = get(str_slice(s, 0, 4));
	out.type = (uint32_t)get(str_slice(s, 8, 4));
	out.n = 0;
	out.body = STR_NONE;
	if (ndim > 1 || (ndim == 1 && s.n < 20))
		return false;
	if (ndim == 1) {
		out.n = (size_t)get(str_slice(s, 12, 4));
		out.body = str_slice(s, 20, s.n);
	}
	rest = out.body;
	for (size_t i = 0; i < out.n; i++) {
		uint64_t len;

		if (rest.n < 4)
			return false;
		len = get(str_slice(rest, 0, 4));
		len = len == UINT32_MAX ? 0 : len;
		if (len > rest.n - 4)
			return false;
		rest = str_slice(rest, 4 + (size_t)len, rest.n);
	}
	*ret = out;
	return rest.n == 0;
}

struct str binary_array_next(struct binary_array *a, bool *ret_null)
{
	uint64_t len = get(str_slice(a->body, 0, 4));
	struct str s;

	*ret_null = len == UINT32_MAX;
	s = str_slice(a->body, 4, *ret_null ? 0 : (size_t)len);
	a->body = str_slice(a->body, 4 + s.n, a->body.n);
	a->n--;
	return s;
}

static size_t item_size(uint32_t type)
{
	switch (type) {
	case SQL_TYPE_BOOL: return sizeof(bool);
	case SQL_TYPE_INT2:
	case SQL_TYPE_INT4:
	case SQL_TYPE_INT8:
	case SQL_TYPE_TIMESTAMPTZ:
	case SQL_TYPE_DATE: return sizeof(int64_t);
	case SQL_TYPE_FLOAT8: return sizeof(double);
	default: return sizeof(struct str);
	}
}

static bool item_into(uint32_t type, struct str s, struct arena *a, void *to)
{
	struct str text;

	switch (type) {
	case SQL_TYPE_BOOL:
		if (s.n != 1)
			return false;
		*(bool *)to = s.p[0] != 0;
		return true;
	case SQL_TYPE_INT2:
	case SQL_TYPE_INT4:
	case SQL_TYPE_INT8: return binary_int(type, s, to);
	case SQL_TYPE_TIMESTAMPTZ: return binary_time(type, s, to);
	case SQL_TYPE_DATE: return binary_date(type, s, to);
	case SQL_TYPE_FLOAT8: return binary_real(type, s, to);
	default:
		if (!binary_text(type, s, &text))
			return false;
		*(struct str *)to = arena_str(a, text);
		return true;
	}
}

bool binary_array_items(struct binary_array *a, struct arena *arena, struct list *ret)
{
	size_t size = item_size(a->type), n = a->n;
	char *items = n > 0 ? arena_array(arena, n, size) : NULL;

	for (size_t i = 0; i < n; i++) {
		bool null;
		struct str s = binary_array_next(a, &null);

		if (!null && !item_into(a->type, s, arena, items + i * size))
			return false;
	}
	*ret = (struct list){ items, n };
	return true;
}
