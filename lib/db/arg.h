/*
 * Parameter values of a statement. A value is copied when it is added to a unit, so the caller's
 * memory may go right afterwards. The kind must fit the type that the statement declares (a
 * mismatch is a bug): DB_INT goes into int2, int4, int8; DB_TEXT into text; DB_JSON (JSON text)
 * into json and jsonb; the plural forms into arrays of these. NULL goes everywhere.
 *
 * What users can get wrong fails the unit instead: an integer that its column cannot hold, a NUL
 * byte in text (ERR_INVALID), JSON that the ceiling of its buffer has cut short (ERR_TOO_LARGE).
 */
#ifndef LIB_DB_ARG_H
#define LIB_DB_ARG_H
#include "lib/base/buf.h"

enum db_kind {
	DB_KIND_BOOL,
	DB_KIND_INT,
	DB_KIND_REAL,
	DB_KIND_TEXT,
	DB_KIND_JSON,
	DB_KIND_BYTES,
	DB_KIND_TIME,
	DB_KIND_DATE
};

struct db_arg {
	enum db_kind kind;
	bool is_null, is_array;
	bool cut; /* not whole: cannot be sent */
	int64_t i; /* also bool, µs since 1970, days since 1970 */
	double f;
	struct str s;
	const void *items; /* bool, int64_t, double or struct str, by kind */
	const bool *nulls; /* of an array: which items are NULL; or NULL for none */
	size_t n;
};

#define DB_NULL       ((struct db_arg){ .is_null = true })
#define DB_BOOL(v)    ((struct db_arg){ .kind = DB_KIND_BOOL, .i = (v) })
#define DB_INT(v)     ((struct db_arg){ .kind = DB_KIND_INT, .i = (int64_t)(v) })
#define DB_REAL(v)    ((struct db_arg){ .kind = DB_KIND_REAL, .f = (v) })
#define DB_TEXT(v)    ((struct db_arg){ .kind = DB_KIND_TEXT, .s = (v) })
#define DB_TEXTZ(z)   db_textz(z) /* NULL is NULL */
#define DB_JSON(v)    ((struct db_arg){ .kind = DB_KIND_JSON, .s = (v) })
#define DB_JSON_OF(b) /* struct buf * */                                                           \
	((struct db_arg){ .kind = DB_KIND_JSON, .s = buf_str(b), .cut = buf_failed(b) })
#define DB_BYTES(v) ((struct db_arg){ .kind = DB_KIND_BYTES, .s = (v) })
/* µs since 1970 in UTC; INT64_MAX and INT64_MIN are infinity and -infinity. */
#define DB_TIME(us)   ((struct db_arg){ .kind = DB_KIND_TIME, .i = (us) })
#define DB_DATE(days) ((struct db_arg){ .kind = DB_KIND_DATE, .i = (days) })

#define DB_ARRAY_(k, type, p, count)                                                               \
	((struct db_arg){ .kind = (k), .is_array = true, .items = (const type *)(p), .n = (count) })
#define DB_BOOLS(p, n) DB_ARRAY_(DB_KIND_BOOL, bool, p, n)
#define DB_INTS(p, n)  DB_ARRAY_(DB_KIND_INT, int64_t, p, n)
#define DB_REALS(p, n) DB_ARRAY_(DB_KIND_REAL, double, p, n)
#define DB_TEXTS(p, n) DB_ARRAY_(DB_KIND_TEXT, struct str, p, n)
#define DB_JSONS(p, n) DB_ARRAY_(DB_KIND_JSON, struct str, p, n)
#define DB_BLOBS(p, n) DB_ARRAY_(DB_KIND_BYTES, struct str, p, n)
#define DB_TIMES(p, n) DB_ARRAY_(DB_KIND_TIME, int64_t, p, n)
#define DB_DATES(p, n) DB_ARRAY_(DB_KIND_DATE, int64_t, p, n)

static inline struct db_arg db_textz(const char *z)
{
	return (struct db_arg){ .kind = DB_KIND_TEXT, .s = str_c(z), .is_null = z == NULL };
}

/* The value when `has` is true, else NULL. */
static inline struct db_arg db_opt(bool has, struct db_arg v)
{
	v.is_null = !has;
	return v;
}

/* An array some of whose items are NULL: nulls[i] says which. */
static inline struct db_arg db_with_nulls(struct db_arg array, const bool *nulls)
{
	array.nulls = nulls;
	return array;
}

#endif
