/*
 * Times of the clock on the wall: the five fields of cron (POSIX crontab, with names, steps and
 * @daily and the like), read in a time zone, turned into instants. A schedule of fixed hours starts
 * once at each of its local times: at the first pass of an hour that the clocks show twice, and of
 * a time that they go over at the moment they do, or not at all. One of every hour follows the
 * clock as it goes: both passes, and nothing that is gone over. Pure but for the zone's data.
 */
#ifndef SERVER_CORE_CRON_H
#define SERVER_CORE_CRON_H
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/zone/zone.h"

enum { CRON_TEXT_MAX = 255 };

struct cron {
	uint64_t minutes; /* bit n: minute n */
	uint32_t hours, days; /* days: bits 1 to 31 */
	uint16_t months; /* bits 1 to 12 */
	uint8_t weekdays; /* bit 0: Sunday */
	/* Given as *: when neither is, a day that either names is meant, as in POSIX. */
	bool any_day, any_weekday;
};
/* "30 2 * * MON-FRI". A time that never comes (the 31st of February) is an error as well; errors
 * name the field. */
int cron_parse(struct str text, struct cron *ret, struct err *e) MUST_CHECK;

struct cron_rule {
	struct cron cron;
	const struct zone *zone;
	bool skip; /* times that the clocks go over are left out */
};

/* Calls fn with the instants after `after` and up to `until`, in order, each once, until it returns
 * false. Microseconds since 1970. */
typedef bool cron_cb(void *arg, int64_t at);
void cron_each(const struct cron_rule *r, int64_t after, int64_t until, cron_cb *fn, void *arg);
/* The first instant after `after`, or INT64_MAX when there is none within the next twelve years
 * (the 29th of February is away for eight at most). */
int64_t cron_next(const struct cron_rule *r, int64_t after);

#endif
