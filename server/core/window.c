#include "server/core/window.h"

enum { MONTHS_PER_YEAR = 12, EPOCH_TO_MONDAY_DAYS = 4 };

bool window_size_valid(struct clock_span size)
{
	return (size.months > 0) != (size.us > 0) && size.months >= 0 && size.us >= 0;
}

static int64_t floor_to(int64_t v, int64_t step)
{
	int64_t rest = v % step;

	return v - (rest < 0 ? rest + step : rest);
}

static int64_t month_start(int64_t months)
{
	int64_t first = floor_to(months, MONTHS_PER_YEAR);
	struct clock_date d = {
		.year = first / MONTHS_PER_YEAR, .month = (int)(months - first) + 1, .day = 1
	};

	return clock_days(d) * CLOCK_DAY;
}

void window_of(struct clock_span size, int64_t us, int64_t *ret_start, int64_t *ret_end)
{
	if (size.months > 0) {
		struct clock_date d = clock_date(floor_to(us, CLOCK_DAY) / CLOCK_DAY);
		int64_t at = floor_to(d.year * MONTHS_PER_YEAR + d.month - 1, size.months);

		*ret_start = month_start(at);
		*ret_end = month_start(at + size.months);
		return;
	}
	int64_t shift = size.us % (7 * CLOCK_DAY) == 0 ? EPOCH_TO_MONDAY_DAYS * CLOCK_DAY : 0;
	*ret_start = floor_to(us - shift, size.us) + shift;
	*ret_end = *ret_start + size.us;
}
