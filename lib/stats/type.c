#include "lib/stats/type.h"

enum stats_type stats_type_choose(const struct stats_facts *f, uint64_t few)
{
	switch (f->physical) {
	case STATS_IS_BOOL: return STATS_CATEGORY;
	case STATS_IS_INTEGER: return f->distinct <= few ? STATS_CATEGORY : STATS_NUMERIC;
	case STATS_IS_REAL: return STATS_NUMERIC;
	case STATS_IS_TIME: return STATS_TIME;
	case STATS_IS_STRING: break;
	}
	return f->distinct > f->rows / 2 && f->mean_length > 32 ? STATS_TEXT : STATS_CATEGORY;
}

/* Division that rounds down, also before 1970. */
static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

int stats_hour_block(int64_t unix_seconds)
{
	int64_t second = unix_seconds - floor_div(unix_seconds, 86400) * 86400;

	return (int)(second / 21600);
}
