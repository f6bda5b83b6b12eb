#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "server/core/schedule.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

static int64_t instant(const char *text)
{
	int64_t us;

	assert_true(clock_parse(str_c(text), &us));
	return us;
}

static struct cron_rule rule(const char *cron, const char *zone, bool skip)
{
	struct cron_rule r = { .zone = zone_find(zone), .skip = skip };
	struct err e;

	if (cron_parse(str_c(cron), &r.cron, &e) < 0)
		fail_msg("%s: %s", cron, e.msg);
	assert_non_null(r.zone);
	return r;
}

struct texts {
	char all[2048];
};

static bool add_text(void *arg, int64_t at)
{
	struct texts *t = arg;
	char text[CLOCK_TEXT_MAX], longer[sizeof t->all];

	assert_true(str_print(longer, sizeof longer, "%s%s%.16s", t->all,
		t->all[0] != '\0' ? " " : "", clock_format(text, at)));
	memcpy(t->all, longer, sizeof longer);
	return true;
}

static void expect(struct cron_rule r, const char *after, const char *until, const char *instants)
{
	struct texts t = { "" };

	cron_each(&r, instant(after), instant(until), add_text, &t);
	assert_string_equal(t.all, instants);
}

void test_cron__reads_lists_ranges_steps_and_names(void **state)
{
	struct cron c;
	struct err e;

	(void)state;
	assert_int_equal(cron_parse(STR("*/20 1,3-4 1-31/10 feb,MAY mon-Fri"), &c, &e), 0);
	assert_true(c.minutes == (UINT64_C(1) | UINT64_C(1) << 20 | UINT64_C(1) << 40));
	assert_int_equal(c.hours, 1u << 1 | 1u << 3 | 1u << 4);
	assert_true(c.days == (1u << 1 | 1u << 11 | 1u << 21 | 1u << 31));
	assert_int_equal(c.months, 1u << 2 | 1u << 5);
	assert_int_equal(c.weekdays, 0x3e);
	assert_int_equal(cron_parse(STR("0 0 * * 7"), &c, &e), 0);
	assert_int_equal(c.weekdays, 1);
	assert_int_equal(cron_parse(STR(" 0  0\t* * 5-7 "), &c, &e), 0);
	assert_int_equal(c.weekdays, 0x61);
	assert_int_equal(cron_parse(STR("@weekly"), &c, &e), 0);
	assert_int_equal(c.weekdays, 1);
}

void test_cron__says_what_is_wrong_with_a_text(void **state)
{
	static const char *const wrong[][2] = {
		{ "", "must have five fields" },
		{ "0 0 * *", "must have five fields" },
		{ "0 0 * * * *", "has more than five fields: '*'" },
		{ "60 0 * * *", "minute: '60' is not in 0-59" },
		{ "0 24 * * *", "hour: '24' is not in 0-23" },
		{ "0 0 0 * *", "day of the month: '0' is not in 1-31" },
		{ "0 0 * 13 *", "month: '13' is not in 1-12, and no name of one" },
		{ "0 0 * * 8", "day of the week: '8' is not in 0-7, and no name of one" },
		{ "0 0 * * mond", "day of the week: 'mond'" },
		{ "5/15 0 * * *", "minute: write '5/15' as 5-59/15" },
		{ "*/0 0 * * *", "minute: the step of '*/0' is not in 1-59" },
		{ "30-10 0 * * *", "minute: '30-10' ends before it begins" },
		{ "1,,2 0 * * *", "minute: '' is not" },
		{ "-1 0 * * *", "minute: '' is not" },
		{ "0 0 31 2,4 *", "names a day that no year has" },
		{ "0 0 30 2 *", "names a day that no year has" },
		{ "@reboot", "must have five fields" },
		{ "0 0 L * *", "day of the month: 'L'" },
		{ "0 0 * * ?", "day of the week: '?'" },
	};
	struct cron c;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(cron_parse(str_c(wrong[i][0]), &c, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		if (!str_starts(str_c(e.msg), str_c(wrong[i][1])))
			fail_msg("'%s': %s", wrong[i][0], e.msg);
	}
	assert_int_equal(cron_parse(STR("0 0 29 2 *"), &c, &e), 0);
	assert_int_equal(cron_parse(STR("0 0 31 2 mon"), &c, &e), 0); /* on Mondays */
}

/* POSIX: when both are given, either will do. The 13th of November 2026 is a Friday. */
void test_cron__takes_the_day_of_the_month_or_of_the_week(void **state)
{
	(void)state;
	expect(rule("0 12 13 * fri", "UTC", false), "2026-11-01", "2026-11-30",
		"2026-11-06T12:00 2026-11-13T12:00 2026-11-20T12:00 2026-11-27T12:00");
	expect(rule("0 12 13,14 * *", "UTC", false), "2026-11-01", "2026-11-30",
		"2026-11-13T12:00 2026-11-14T12:00");
	expect(rule("0 12 */10 * fri", "UTC", false), "2026-11-01", "2026-12-31",
		"2026-12-11T12:00");
}

/* Berlin goes from 02:00 to 03:00 on 2026-03-29 at 01:00Z and back at 01:00Z on 2026-10-25. */
void test_cron__starts_once_where_the_clocks_change(void **state)
{
	(void)state;
	expect(rule("30 2 * * *", "Europe/Berlin", false), "2026-03-27T12:00:00Z",
		"2026-03-30T12:00:00Z", "2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30");
	expect(rule("30 2 * * *", "Europe/Berlin", true), "2026-03-27T12:00:00Z",
		"2026-03-30T12:00:00Z", "2026-03-28T01:30 2026-03-30T00:30");
	expect(rule("30 2 * * *", "Europe/Berlin", false), "2026-10-24T12:00:00Z",
		"2026-10-26T12:00:00Z", "2026-10-25T00:30 2026-10-26T01:30");
	/* 02:00, 02:15 and 03:00 fall on one instant. */
	expect(rule("0,15 2,3 * * *", "Europe/Berlin", false), "2026-03-28T12:00:00Z",
		"2026-03-29T12:00:00Z", "2026-03-29T01:00 2026-03-29T01:15");
}

void test_cron__of_every_hour_follows_the_clock(void **state)
{
	(void)state;
	expect(rule("30 * * * *", "Europe/Berlin", false), "2026-03-28T23:40:00Z",
		"2026-03-29T02:40:00Z", "2026-03-29T00:30 2026-03-29T01:30 2026-03-29T02:30");
	expect(rule("30 * * * *", "Europe/Berlin", false), "2026-10-24T23:40:00Z",
		"2026-10-25T02:40:00Z", "2026-10-25T00:30 2026-10-25T01:30 2026-10-25T02:30");
	expect(rule("0 * * * *", "Australia/Lord_Howe", false), "2026-04-04T13:30:00Z",
		"2026-04-04T17:00:00Z", "2026-04-04T14:00 2026-04-04T15:30 2026-04-04T16:30");
}

/* Samoa had no 30th of December 2011; it went from -10 to +14 at its midnight. */
void test_cron__of_a_day_that_was_left_out(void **state)
{
	(void)state;
	expect(rule("0 12 * * *", "Pacific/Apia", false), "2011-12-29T00:00:00Z",
		"2012-01-01T00:00:00Z",
		"2011-12-29T22:00 2011-12-30T10:00 2011-12-30T22:00 "
		"2011-12-31T22:00");
	expect(rule("0 12 * * *", "Pacific/Apia", true), "2011-12-29T00:00:00Z",
		"2012-01-01T00:00:00Z", "2011-12-29T22:00 2011-12-30T22:00 2011-12-31T22:00");
}

void test_cron__next_reaches_the_29th_of_february_over_a_century(void **state)
{
	struct cron_rule r = rule("0 0 29 2 *", "UTC", false);

	(void)state;
	assert_true(cron_next(&r, instant("2096-03-01")) == instant("2104-02-29"));
	assert_true(cron_next(&r, instant("9996-02-29")) == INT64_MAX);
}

void test_cron__knows_zones_by_their_names_only(void **state)
{
	static const char *const none[] = { "", "Mars/Olympus", "../../etc/localtime", "localtime",
		"/usr/share/zoneinfo/UTC", "right/UTC", "posix/UTC", "europe/berlin", "Europe/",
		"Europe", "Europe//Berlin", "tzdata.zi", "Europe/Berlin\n", "Fixed/UTC+01:00:00" };

	(void)state;
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		if (zone_find(none[i]) != NULL)
			fail_msg("there is a zone '%s'", none[i]);
	}
	assert_ptr_equal(zone_find("Europe/Berlin"), zone_find("Europe/Berlin"));
}

/* ---- what is owed ---- */

static struct schedule_due settle(struct cron_rule r, enum schedule_missed missed, int max,
	const char *settled, const char *now)
{
	struct schedule s = { .rule = r, .missed = missed, .max = max };
	struct schedule_due due;

	schedule_settle(&s, instant(settled), instant(now), &due);
	return due;
}

void test_schedule__starts_missed_instants_as_it_is_told(void **state)
{
	struct cron_rule r = rule("0 3 * * *", "UTC", false);
	struct schedule_due d;

	(void)state;
	d = settle(r, SCHEDULE_MISSED_NONE, 0, "2026-11-01T12:00:00Z", "2026-11-05T03:00:30Z");
	assert_int_equal(d.n, 1);
	assert_true(d.at[0] == instant("2026-11-05T03:00:00Z"));
	assert_int_equal(d.missed, 3);
	assert_int_equal(d.started_late, 0);
	assert_true(d.next == instant("2026-11-06T03:00:00Z"));
	d = settle(r, SCHEDULE_MISSED_LAST, 0, "2026-11-01T12:00:00Z", "2026-11-05T12:00:00Z");
	assert_int_equal(d.n, 1);
	assert_true(d.at[0] == instant("2026-11-05T03:00:00Z"));
	assert_int_equal(d.missed, 4);
	d = settle(r, SCHEDULE_MISSED_ALL, 3, "2026-11-01T12:00:00Z", "2026-11-05T12:00:00Z");
	assert_int_equal(d.n, 3);
	assert_true(d.at[0] == instant("2026-11-03T03:00:00Z"));
	assert_true(d.at[2] == instant("2026-11-05T03:00:00Z"));
	assert_true(d.settled == instant("2026-11-05T12:00:00Z"));
	d = settle(r, SCHEDULE_MISSED_ALL, 3, d.n != 0 ? "2026-11-05T12:00:00Z" : "",
		"2026-11-05T02:00:00Z");
	assert_int_equal(d.n, 0);
	assert_true(d.settled == instant("2026-11-05T12:00:00Z"));
}

struct expected {
	int64_t at[8192];
	size_t n;
};

static bool expect_one(void *arg, int64_t at)
{
	struct expected *x = arg;

	assert_true(x->n < sizeof x->at / sizeof *x->at);
	x->at[x->n++] = at;
	return true;
}

static unsigned draw(unsigned *seed, unsigned below)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % below;
}

static unsigned seed_of(const char *text)
{
	uint64_t seed;

	assert_true(num_parse_u64(str_c(text), 0, UINT32_MAX, &seed));
	return (unsigned)seed;
}

/* A server that looks when it likes, is away for hours and whose clock is set back and forth by an
 * hour: with `all`, each instant of ten years is owed exactly once and in order. */
static void walk_ten_years(const char *cron, const char *zone, unsigned seed)
{
	struct schedule s = {
		.rule = rule(cron, zone, false), .missed = SCHEDULE_MISSED_ALL, .max = SCHEDULE_MAX
	};
	int64_t begin = instant("2020-01-01"), end = instant("2030-01-01");
	int64_t settled = begin, now = begin;
	static struct expected want;
	struct schedule_due due;
	size_t got = 0;

	want.n = 0;
	cron_each(&s.rule, begin, end, expect_one, &want);
	while (settled < end) {
		now += draw(&seed, 100) == 0 ? (int64_t)draw(&seed, 90) * CLOCK_HOUR
					     : (int64_t)draw(&seed, 24 * 3600) * CLOCK_SECOND;
		if (draw(&seed, 10) == 0)
			now += draw(&seed, 2) == 0 ? CLOCK_HOUR : -CLOCK_HOUR;
		if (now > end)
			now = end;
		schedule_settle(&s, settled, now, &due);
		assert_true(due.settled >= settled);
		for (size_t i = 0; i < due.n; i++, got++) {
			if (got >= want.n || due.at[i] != want.at[got])
				fail_msg("%s in %s: instant %zu differs", cron, zone, got);
		}
		settled = due.settled;
	}
	assert_int_equal(got, want.n);
}

void test_schedule__decides_each_instant_once_in_ten_years(void **state)
{
	static const char *const zones[] = { "UTC", "Europe/Berlin", "America/New_York",
		"Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Gaza",
		"America/Sao_Paulo", "Antarctica/Troll", "Asia/Kathmandu" };
	const char *given = getenv("SEED");
	unsigned seed = given != NULL ? seed_of(given) : (unsigned)(clock_now(&clock_real) / 1000);

	(void)state;
	print_message("SEED=%u\n", seed);
	for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
		walk_ten_years("30 2 * * *", zones[i], seed + (unsigned)i);
		walk_ten_years("15 */12 * * *", zones[i], seed + 100 + (unsigned)i);
	}
}
