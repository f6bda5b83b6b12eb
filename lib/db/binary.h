/*
 * PostgreSQL's binary format, read: pure, from bytes to values. Each function is true when the type
 * is one that it reads and the bytes have its length; else false, with nothing written. For lib/db
 * only. Types of the schema's own (OIDs from 16384 on: enums, domains within arrays) are text.
 */
#ifndef LIB_DB_BINARY_H
#define LIB_DB_BINARY_H
#include "lib/base/arena.h"
#include "lib/db/sql.h"

bool binary_int(uint32_t type, struct str s, int64_t *ret); /* int2, int4, int8, oid, xid8 */
bool binary_real(uint32_t type, struct str s, double *ret); /* float4, float8 */
bool binary_text(uint32_t type, struct str s, struct str *ret); /* text, json, jsonb, bytea */
bool binary_time(uint32_t type, struct str s, int64_t *ret); /* timestamptz: µs since 1970 */
bool binary_date(uint32_t type, struct str s, int64_t *ret); /* date: days since 1970 */
/* Whether a column of this type can be read at all. */
bool binary_is_known(uint32_t type);

struct binary_array {
	uint32_t type; /* of the elements */
	size_t n;
	struct str body; /* n times length and bytes */
};
/* False unless it is an array of at most one dimension whose lengths add up. */
bool binary_array(struct str s, struct binary_array *ret);
/* Cuts the next element off a->body; *ret_null when it is NULL. */
struct str binary_array_next(struct binary_array *a, bool *ret_null);
/* All elements, as bool, int64_t, double or struct str (copied) by their type. */
bool binary_array_items(struct binary_array *a, struct arena *arena, struct list *ret);

#endif
