/*
 * Rows of a result, out of PostgreSQL's binary format. Rows live until the callback of their unit
 * returns: getters lend, what is decoded with an arena is copied into it.
 *
 * Columns are read by number (in the order of the statement) or into a struct through its field
 * table. Reading a column as a type that it does not have is a bug of the statement (BUG_ON), since
 * `make checksql` sees the columns of all statements before any program runs.
 */
#ifndef LIB_DB_ROW_H
#define LIB_DB_ROW_H
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/db/db.h"

struct field;

bool db_is_null(const struct db_rows *r, size_t row, size_t col);
/* Of a NULL: false, 0, 0.0, STR_NONE. */
bool db_bool(const struct db_rows *r, size_t row, size_t col);
int64_t db_int(const struct db_rows *r, size_t row, size_t col); /* int2, int4, int8 */
double db_real(const struct db_rows *r, size_t row, size_t col); /* float8, float4, integers */
struct str db_str(const struct db_rows *r, size_t row, size_t col); /* text, json, bytea, enums */
int64_t db_time(const struct db_rows *r, size_t row, size_t col); /* timestamptz, µs since 1970 */
int64_t db_date(const struct db_rows *r, size_t row, size_t col); /* days since 1970 */
/* An array into the arena: items are bool, int64_t (integers, instants, days), double or struct str
 * by the type of the elements; NULL elements become zeros. A NULL array is empty. */
struct list db_list(const struct db_rows *r, size_t row, size_t col, struct arena *a);

/* The number of the column of this name; it must be there. */
size_t db_col(const struct db_rows *r, const char *name);
bool db_has_col(const struct db_rows *r, const char *name);
const char *db_col_name(const struct db_rows *r, size_t col);
uint32_t db_col_type(const struct db_rows *r, size_t col); /* its OID, as in enum sql_type */

/*
 * Fills the struct at `out` from a row: each field of the table takes the column of its name.
 * Columns without a field are ignored; fields without a column stay as they are, so that one table
 * serves several statements. NULL leaves the field at zero with its has-flag false. Instants and
 * dates follow the field's type; enums come from text; json and jsonb become raw text, objects,
 * lists or maps by the field's type; arrays become lists. Fails (ERR_CORRUPT) when stored JSON or
 * an enum does not fit its table, naming the field.
 */
int db_row_decode(const struct db_rows *r, size_t row, const struct field *t, struct arena *a,
	void *out, struct err *e) MUST_CHECK;

#endif
