#include "server/core/schedule.h"

#include "lib/base/clock.h"

#define LATE CLOCK_MINUTE
/* Further back nothing is looked for. */
#define LONGEST_AWAY (400 * CLOCK_DAY)

/* The newest missed instants, in a ring. */
struct ring {
	int64_t at[SCHEDULE_MAX];
	int64_t n, size;
};

struct settling {
	struct ring ring;
	int64_t late_before;
	struct schedule_due *ret;
};

static bool take(void *arg, int64_t at)
{
	struct settling *s = arg;

	if (at >= s->late_before) {
		/* At most two whole minutes lie in a minute with both its ends. */
		s->ret->at[s->ret->n++] = at;
		return true;
	}
	if (s->ring.size != 0)
		s->ring.at[s->ring.n % s->ring.size] = at;
	s->ring.n++;
	return true;
}

static int64_t ring_size(const struct schedule *s)
{
	int max = s->max < SCHEDULE_MAX ? s->max : (int)SCHEDULE_MAX;

	switch (s->missed) {
	case SCHEDULE_MISSED_NONE: return 0;
	case SCHEDULE_MISSED_LAST: return 1;
	case SCHEDULE_MISSED_ALL: return max;
	}
	return 0;
}

/* The missed ones that start go before those that are on time. */
static void put_missed(const struct ring *r, struct schedule_due *ret)
{
	int64_t n = r->n < r->size ? r->n : r->size;

	memmove(ret->at + n, ret->at, ret->n * sizeof *ret->at);
	for (int64_t i = 0; i < n; i++)
		ret->at[i] = r->at[(r->n - n + i) % r->size];
	ret->n += (size_t)n;
	ret->missed = r->n;
	ret->started_late = n;
}

void schedule_settle(
	const struct schedule *s, int64_t settled, int64_t now, struct schedule_due *ret)
{
	struct settling w = {
		.ring = { .size = ring_size(s) }, .late_before = now - LATE, .ret = ret
	};
	int64_t from = settled > now - LONGEST_AWAY ? settled : now - LONGEST_AWAY;

	ret->n = 0;
	cron_each(&s->rule, from, now, take, &w);
	put_missed(&w.ring, ret);
	ret->settled = settled > now ? settled : now;
	ret->next = cron_next(&s->rule, ret->settled);
}
