#include "lib/db/row.h"

#include "lib/base/clock.h"
#include "lib/db/binary.h"
#include "lib/db/encode.h"

#include <libpq-fe.h>

static uint32_t type_of(const struct db_rows *r, size_t col)
{
	return PQftype(r->res, (int)col);
}

static void check(const struct db_rows *r, size_t row, size_t col)
{
	BUG_ON(row >= r->n || col >= r->cols);
}

bool db_is_null(const struct db_rows *r, size_t row, size_t col)
{
	check(r, row, col);
	return PQgetisnull(r->res, (int)row, (int)col) == 1;
}

/* The bytes as they came; n is 0 for NULL. */
static struct str raw(const struct db_rows *r, size_t row, size_t col)
{
	check(r, row, col);
	return (struct str){ PQgetvalue(r->res, (int)row, (int)col),
		(size_t)PQgetlength(r->res, (int)row, (int)col) };
}

static _Noreturn void wrong_type(const struct db_rows *r, size_t col)
{
	bug_at(__FILE__, __LINE__, PQfname(r->res, (int)col));
}

bool db_bool(const struct db_rows *r, size_t row, size_t col)
{
	struct str s = raw(r, row, col);

	if (type_of(r, col) != SQL_TYPE_BOOL)
		wrong_type(r, col);
	return s.n == 1 && s.p[0] != 0;
}

int64_t db_int(const struct db_rows *r, size_t row, size_t col)
{
	int64_t v = 0;

	if (!binary_int(type_of(r, col), raw(r, row, col), &v) && !db_is_null(r, row, col))
		wrong_type(r, col);
	return v;
}

double db_real(const struct db_rows *r, size_t row, size_t col)
{
	struct str s = raw(r, row, col);
	double v = 0;
	int64_t i = 0;

	if (binary_real(type_of(r, col), s, &v))
		return v;
	if (!binary_int(type_of(r, col), s, &i) && !db_is_null(r, row, col))
		wrong_type(r, col);
	return (double)i;
}

struct str db_str(const struct db_rows *r, size_t row, size_t col)
{
	struct str s;

	if (db_is_null(r, row, col))
		return STR_NONE;
	if (!binary_text(type_of(r, col), raw(r, row, col), &s))
		wrong_type(r, col);
	return s;
}

int64_t db_time(const struct db_rows *r, size_t row, size_t col)
{
	int64_t v = 0;

	if (!binary_time(type_of(r, col), raw(r, row, col), &v) && !db_is_null(r, row, col))
		wrong_type(r, col);
	return v;
}

int64_t db_date(const struct db_rows *r, size_t row, size_t col)
{
	int64_t v = 0;

	if (!binary_date(type_of(r, col), raw(r, row, col), &v) && !db_is_null(r, row, col))
		wrong_type(r, col);
	return v;
}

struct list db_list(const struct db_rows *r, size_t row, size_t col, struct arena *a)
{
	struct list l = { .items = NULL };
	struct binary_array in;

	if (db_is_null(r, row, col))
		return l;
	if (!binary_array(raw(r, row, col), &in))
		wrong_type(r, col);
	if (!binary_array_items(&in, a, &l))
		wrong_type(r, col);
	return l;
}

size_t db_col(const struct db_rows *r, const char *name)
{
	for (size_t i = 0; i < r->cols; i++)
		if (strcmp(PQfname(r->res, (int)i), name) == 0)
			return i;
	bug_at(__FILE__, __LINE__, name);
}

bool db_has_col(const struct db_rows *r, const char *name)
{
	for (size_t i = 0; i < r->cols; i++)
		if (strcmp(PQfname(r->res, (int)i), name) == 0)
			return true;
	return false;
}

uint32_t db_col_type(const struct db_rows *r, size_t col)
{
	return type_of(r, col);
}

const char *db_col_name(const struct db_rows *r, size_t col)
{
	return PQfname(r->res, (int)col);
}
