#include "server/core/window.h"
#include "tests/unit/unit.h"

static void expect(const char *size, const char *at, const char *start, const char *end)
{
	struct clock_span span;
	int64_t us, from, to, want_from, want_to;

	assert_true(clock_parse_span(str_c(size), &span));
	assert_true(window_size_valid(span));
	assert_true(clock_parse(str_c(at), &us));
	assert_true(clock_parse(str_c(start), &want_from));
	assert_true(clock_parse(str_c(end), &want_to));
	window_of(span, us, &from, &to);
	assert_int_equal(from, want_from);
	assert_int_equal(to, want_to);
}

void test_window__calendar_and_clock(void **state)
{
	(void)state;
	expect("1q", "2007-12-31T23:59:59.999999Z", "2007-10-01", "2008-01-01");
	expect("1q", "2008-01-01", "2008-01-01", "2008-04-01");
	expect("1mo", "2008-02-29", "2008-02-01", "2008-03-01");
	expect("2mo", "2008-02-29", "2008-01-01", "2008-03-01");
	expect("1y", "1969-12-31T12:00:00Z", "1969-01-01", "1970-01-01");
	expect("1d", "1969-12-31T12:00:00Z", "1969-12-31", "1970-01-01");
	expect("1h", "2008-01-01T00:30:00+01:00", "2007-12-31T23:00:00Z", "2008-01-01");
	expect("1w", "2026-11-29", "2026-11-23", "2026-11-30"); /* Monday to Monday */
	expect("1w", "2026-11-30", "2026-11-30", "2026-12-07");
	expect("15m", "2026-11-30T10:44:59Z", "2026-11-30T10:30:00Z", "2026-11-30T10:45:00Z");
}

void test_window__each_instant_has_one_window(void **state)
{
	const struct clock_span sizes[] = { { .months = 1 }, { .months = 5 },
		{ .us = 7 * CLOCK_DAY }, { .us = 36 * CLOCK_HOUR } };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (int64_t us = -3 * 365 * CLOCK_DAY; us < 3 * 365 * CLOCK_DAY;
			us += 11 * CLOCK_HOUR) {
			int64_t start, end, next, next_end;
			window_of(sizes[i], us, &start, &end);
			assert_true(start <= us && us < end);
			window_of(sizes[i], end, &next, &next_end);
			assert_int_equal(next, end);
			window_of(sizes[i], end - 1, &next, &next_end);
			assert_int_equal(next, start);
		}
}

void test_window__sizes(void **state)
{
	(void)state;
	assert_false(window_size_valid((struct clock_span){ .months = 1, .us = CLOCK_DAY }));
	assert_false(window_size_valid((struct clock_span){ 0 }));
	assert_true(window_size_valid((struct clock_span){ .us = CLOCK_MINUTE }));
}
