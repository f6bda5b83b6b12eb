/* How the columns of a statement go into the fields of a table: found once, kept with the statement
 * in a list by table. For lib/db only. */
#ifndef LIB_DB_PLAN_H
#define LIB_DB_PLAN_H
#include <stddef.h>
#include <stdint.h>

struct field;

struct db_plan {
	struct db_plan *next;
	const struct field *table;
	size_t cols;
	int16_t row_of_col[]; /* index in the table, or -1 */
};
void plans_free(struct db_plan **list);

#endif
