/*
 * Which runs a schedule owes: every instant is decided once, in order, however often and however
 * late the server looks. What it reaches more than a minute late, because it was away or because
 * the clock was set, is missed, and the schedule says what becomes of it. Pure.
 */
#ifndef SERVER_CORE_SCHEDULE_H
#define SERVER_CORE_SCHEDULE_H
#include "server/core/cron.h"

/* The numbers of enum schedule_missed in api/pipeline.h. */
enum schedule_missed { SCHEDULE_MISSED_NONE, SCHEDULE_MISSED_LAST, SCHEDULE_MISSED_ALL };
enum { SCHEDULE_MAX = 100 };

struct schedule {
	struct cron_rule rule;
	enum schedule_missed missed;
	int max; /* of ALL: the newest so many; up to SCHEDULE_MAX */
};

struct schedule_due {
	int64_t at[SCHEDULE_MAX + 2]; /* what is to start, in order */
	size_t n;
	int64_t missed,
		started_late; /* how many instants were missed, and how many of them start */
	int64_t settled; /* up to here all is decided now */
	int64_t next; /* the first instant after that; INT64_MAX: none */
};
/* settled: what it was; now: the time. A clock that was set back decides nothing anew. */
void schedule_settle(
	const struct schedule *s, int64_t settled, int64_t now, struct schedule_due *ret);

#endif
