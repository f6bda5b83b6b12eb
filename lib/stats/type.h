/*
 * How a column is compared: the rules that turn what its values are into a kind of test, and the
 * derived columns for values that are never compared raw (clocks, prose).
 */
#ifndef LIB_STATS_TYPE_H
#define LIB_STATS_TYPE_H
#include "lib/base/str.h"

enum stats_type {
	STATS_NUMERIC,
	STATS_CATEGORY,
	STATS_TEXT, /* length in code points as numeric, and the rate of empty values */
	STATS_TIME, /* hour block and weekday as categories */
	STATS_TYPE_COUNT
};

/* What the values of a column are. */
enum stats_physical {
	STATS_IS_BOOL,
	STATS_IS_INTEGER, /* numbers without a fraction */
	STATS_IS_REAL,
	STATS_IS_STRING,
	STATS_IS_TIME
};

/* Facts about the reference's values that are not missing. */
struct stats_facts {
	enum stats_physical physical;
	uint64_t rows, distinct; /* distinct may stop counting at 65536 */
	double mean_length; /* of strings, in code points */
};

enum { STATS_FEW_INTEGERS = 20 }; /* an integer with so many values at most is a category */

/* bool: category. Integer: category up to `few` different values, else numeric. String: text when
 * more than half of the rows differ and the mean length is above 32, else category. Time: time. */
enum stats_type stats_type_choose(const struct stats_facts *f, uint64_t few);
/* Block of six hours of the day in UTC, 0 to 3. */
int stats_hour_block(int64_t unix_seconds);

#endif
