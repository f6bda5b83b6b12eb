/*
 * Time. Instants are int64_t microseconds since 1970-01-01T00:00:00Z; a day is a count of days
 * since then. The clock is a value that is passed, so that tests run on their own time. Elapsed
 * time (deadlines, leases) is measured on CLOCK_BOOTTIME, which also counts suspended time.
 */
#ifndef LIB_BASE_CLOCK_H
#define LIB_BASE_CLOCK_H
#include "lib/base/str.h"

#define CLOCK_SECOND INT64_C(1000000)
#define CLOCK_MINUTE (60 * CLOCK_SECOND)
#define CLOCK_HOUR   (60 * CLOCK_MINUTE)
#define CLOCK_DAY    (24 * CLOCK_HOUR)

/* The years of all dates that are read, computed with or stored, so that a date always has four
 * digits for its year: from CLOCK_MIN (0001-01-01) until before CLOCK_END (10000-01-01). */
enum { CLOCK_YEAR_MIN = 1, CLOCK_YEAR_MAX = 9999 };
#define CLOCK_MIN (INT64_C(-719162) * CLOCK_DAY)
#define CLOCK_END (INT64_C(2932897) * CLOCK_DAY)
static inline bool clock_in_years(int64_t us)
{
	return us >= CLOCK_MIN && us < CLOCK_END;
}

struct clock {
	int64_t (*now)(void *arg); /* wall time */
	int64_t (*elapsed)(void *arg); /* monotonic, from an arbitrary start */
	void *arg;
};

extern const struct clock clock_real;
int64_t clock_now(const struct clock *c);
int64_t clock_elapsed(const struct clock *c);

/* "2026-11-30T02:57:58.123456Z" (fraction left out when zero); RFC 3339. Returns out. What lies
 * outside the years above is printed all the same, with more digits. */
enum { CLOCK_TEXT_MAX = 40 };
const char *clock_format(char out[CLOCK_TEXT_MAX], int64_t us);
const char *clock_format_date(char out[CLOCK_TEXT_MAX], int64_t us); /* "2026-11-30", in UTC */
/* RFC 3339 with any offset; a bare date ("2001-01-31") is its midnight in UTC. False as well when
 * the offset leads out of the years. */
bool clock_parse(struct str s, int64_t *ret_us);
bool clock_parse_date(struct str s, int64_t *ret_us); /* a bare date only */

/* Proleptic Gregorian calendar, by the algorithm of H. Hinnant, "chrono-compatible low-level date
 * algorithms". Months and days count from 1. */
struct clock_date {
	int64_t year;
	int month, day;
};
int64_t clock_days(struct clock_date d);
struct clock_date clock_date(int64_t days);

/* A span as users write it: calendar months apart from exact time, since a month has no length. */
struct clock_span {
	int64_t months; /* mo = 1, q = 3, y = 12 */
	int64_t us; /* s m h d w */
};
/* "30m", "14d", "1q", "3y", "1d12h" (largest unit first is not required); no sign. */
bool clock_parse_span(struct str s, struct clock_span *ret);
bool clock_is_span(struct str s); /* written like one, however long */
/* A length of time in its largest whole unit of d, h, m and s: "10s", "90m", "30d". Returns out. */
enum { CLOCK_SPAN_TEXT_MAX = 24 };
const char *clock_format_span(char out[CLOCK_SPAN_TEXT_MAX], int64_t us);
/* us + sign * span, in UTC; a day that the target month lacks becomes its last day. The sum may lie
 * outside the years. */
int64_t clock_add(int64_t us, struct clock_span span, int sign);

#endif
