/*
 * Which window a row belongs to, by its time: windows of calendar months (1mo, 1q, 1y) begin where
 * the calendar's do, others (1h, 1d, 1w) count from the epoch, weeks from Monday; all in UTC.
 */
#ifndef SERVER_CORE_WINDOW_H
#define SERVER_CORE_WINDOW_H
#include "lib/base/clock.h"

/* Either months or exact time, and not both: "1q", "14d", but not "1mo2d". */
bool window_size_valid(struct clock_span size);
/* The window that holds `us`: [*ret_start, *ret_end). */
void window_of(struct clock_span size, int64_t us, int64_t *ret_start, int64_t *ret_end);

#endif
