#include "lib/base/clock.h"

#include "lib/base/num.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (int64_t)t.tv_sec * CLOCK_SECOND + t.tv_nsec / 1000;
}

static int64_t real_now(void *arg)
{
	(void)arg;
	return read_clock(CLOCK_REALTIME);
}

static int64_t real_elapsed(void *arg)
{
	(void)arg;
	return read_clock(CLOCK_BOOTTIME);
}

const struct clock clock_real = { real_now, real_elapsed, NULL };

int64_t clock_now(const struct clock *c)
{
	return c->now(c->arg);
}

int64_t clock_elapsed(const struct clock *c)
{
	return c->elapsed(c->arg);
}

/* Division that rounds down, for instants before 1970. */
static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

int64_t clock_days(struct clock_date d)
{
	int64_t y = d.month <= 2 ? d.year - 1 : d.year;
	int64_t era = floor_div(y, 400), yoe = y - era * 400;
	int64_t doy = (153 * (d.month + (d.month > 2 ? -3 : 9)) + 2) / 5 + d.day - 1;
	int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

	return era * 146097 + doe - 719468;
}

struct clock_date clock_date(int64_t days)
{
	int64_t z = days + 719468, era = floor_div(z, 146097), doe = z - era * 146097;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
	int month = (int)(mp < 10 ? mp + 3 : mp - 9);

	return (struct clock_date){ .year = yoe + era * 400 + (month <= 2),
		.month = month,
		.day = (int)(doy - (153 * mp + 2) / 5 + 1) };
}

const char *clock_format_date(char out[CLOCK_TEXT_MAX], int64_t us)
{
	struct clock_date d = clock_date(floor_div(us, CLOCK_DAY));

	(void)str_print(out, CLOCK_TEXT_MAX, "%04d-%02d-%02d", (int)d.year, d.month, d.day);
	return out;
}

const char *clock_format(char out[CLOCK_TEXT_MAX], int64_t us)
{
	char date[CLOCK_TEXT_MAX], fraction[CLOCK_TEXT_MAX] = "";
	int64_t rest = us - floor_div(us, CLOCK_DAY) * CLOCK_DAY, second = rest / CLOCK_SECOND;

	if (rest % CLOCK_SECOND != 0)
		(void)str_print(fraction, sizeof fraction, ".%06d", (int)(rest % CLOCK_SECOND));
	(void)str_print(out, CLOCK_TEXT_MAX, "%sT%02d:%02d:%02d%sZ", clock_format_date(date, us),
		(int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60), fraction);
	return out;
}

/* n digits at position `at`, within [min, max]. */
static bool two(struct str s, size_t at, size_t n, int min, int max, int *ret)
{
	int v = 0;

	if (at + n > s.n)
		return false;
	for (size_t i = at; i < at + n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		v = v * 10 + (s.p[i] - '0');
	}
	*ret = v;
	return v >= min && v <= max;
}

static int month_length(int64_t year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

bool clock_parse_date(struct str s, int64_t *ret_us)
{
	int year, month, day;

	if (s.n != 10 || s.p[4] != '-' || s.p[7] != '-' ||
		!two(s, 0, 4, CLOCK_YEAR_MIN, CLOCK_YEAR_MAX, &year) ||
		!two(s, 5, 2, 1, 12, &month) || !two(s, 8, 2, 1, month_length(year, month), &day))
		return false;
	*ret_us = clock_days((struct clock_date){ year, month, day }) * CLOCK_DAY;
	return true;
}

/* [.fraction] (Z | +hh:mm | -hh:mm), added to *us. */
static bool parse_tail(struct str s, int64_t *us)
{
	size_t at = 0;
	int hours, minutes;

	if (s.n != 0 && s.p[0] == '.') {
		int64_t unit = CLOCK_SECOND;
		for (at = 1; at < s.n && s.p[at] >= '0' && s.p[at] <= '9'; at++) {
			unit /= 10;
			*us += (s.p[at] - '0') * unit;
		}
		if (at == 1)
			return false;
	}
	if (at + 1 == s.n && (s.p[at] == 'Z' || s.p[at] == 'z'))
		return true;
	if (at + 6 != s.n || (s.p[at] != '+' && s.p[at] != '-') || s.p[at + 3] != ':' ||
		!two(s, at + 1, 2, 0, 23, &hours) || !two(s, at + 4, 2, 0, 59, &minutes))
		return false;
	int64_t offset = hours * CLOCK_HOUR + minutes * CLOCK_MINUTE;
	*us -= s.p[at] == '+' ? offset : -offset;
	return true;
}

bool clock_parse(struct str s, int64_t *ret_us)
{
	int hour, minute, second;
	int64_t us;

	if (!clock_parse_date(str_slice(s, 0, 10), &us))
		return false;
	if (s.n > 10) {
		if (s.n < 20 || (s.p[10] != 'T' && s.p[10] != 't' && s.p[10] != ' ') ||
			s.p[13] != ':' || s.p[16] != ':' || !two(s, 11, 2, 0, 23, &hour) ||
			!two(s, 14, 2, 0, 59, &minute) || !two(s, 17, 2, 0, 60, &second))
			return false;
		us += hour * CLOCK_HOUR + minute * CLOCK_MINUTE + second * CLOCK_SECOND;
		if (!parse_tail(str_slice(s, 19, s.n), &us))
			return false;
	}
	if (!clock_in_years(us))
		return false;
	*ret_us = us;
	return true;
}

static bool add_unit(struct str unit, uint64_t count, struct clock_span *span)
{
	static const struct {
		const char *name;
		int64_t months, us;
	} units[] = {
		{ "s", 0, CLOCK_SECOND },
		{ "m", 0, CLOCK_MINUTE },
		{ "h", 0, CLOCK_HOUR },
		{ "d", 0, CLOCK_DAY },
		{ "w", 0, 7 * CLOCK_DAY },
		{ "mo", 1, 0 },
		{ "q", 3, 0 },
		{ "y", 12, 0 },
	};

	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (str_is(unit, units[i].name)) {
			span->months += (int64_t)count * units[i].months;
			span->us += (int64_t)count * units[i].us;
			return true;
		}
	return false;
}

bool clock_parse_span(struct str s, struct clock_span *ret)
{
	struct clock_span span = { 0, 0 };
	size_t at = 0;

	if (s.n == 0 || s.n > 32)
		return false;
	while (at < s.n) {
		size_t from = at, unit;
		uint64_t count;

		while (at < s.n && s.p[at] >= '0' && s.p[at] <= '9')
			at++;
		unit = at;
		while (at < s.n && s.p[at] >= 'a' && s.p[at] <= 'z')
			at++;
		if (!num_parse_u64(str_slice(s, from, unit - from), 0, 1000000, &count) ||
			!add_unit(str_slice(s, unit, at - unit), count, &span))
			return false;
	}
	*ret = span;
	return true;
}

bool clock_is_span(struct str s)
{
	struct clock_span span = { 0, 0 };
	size_t at = 0;

	while (at < s.n) {
		size_t from = at, unit;
		while (at < s.n && s.p[at] >= '0' && s.p[at] <= '9')
			at++;
		unit = at;
		while (at < s.n && s.p[at] >= 'a' && s.p[at] <= 'z')
			at++;
		if (unit == from || !add_unit(str_slice(s, unit, at - unit), 0, &span))
			return false;
	}
	return s.n != 0;
}

const char *clock_format_span(char out[CLOCK_SPAN_TEXT_MAX], int64_t us)
{
	static const struct {
		int64_t us;
		char unit;
	} units[] = { { CLOCK_DAY, 'd' }, { CLOCK_HOUR, 'h' }, { CLOCK_MINUTE, 'm' },
		{ CLOCK_SECOND, 's' } };
	size_t i = 0;

	while (i + 1 < sizeof units / sizeof units[0] && (us == 0 || us % units[i].us != 0))
		i++;
	(void)str_print(
		out, CLOCK_SPAN_TEXT_MAX, "%lld%c", (long long)(us / units[i].us), units[i].unit);
	return out;
}

int64_t clock_add(int64_t us, struct clock_span span, int sign)
{
	int64_t days = floor_div(us, CLOCK_DAY), rest = us - days * CLOCK_DAY;

	if (span.months != 0) {
		struct clock_date d = clock_date(days);
		int64_t month = d.year * 12 + d.month - 1 + sign * span.months;
		d.year = floor_div(month, 12);
		d.month = (int)(month - d.year * 12) + 1;
		if (d.day > month_length(d.year, d.month))
			d.day = month_length(d.year, d.month);
		days = clock_days(d);
	}
	return days * CLOCK_DAY + rest + sign * span.us;
}
