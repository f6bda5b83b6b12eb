#include "server/core/retry.h"

#include "lib/base/clock.h"

const struct retry_policy retry_default = { .user = 0,
	.infra = 5,
	.preempted = 20,
	.first = 10 * CLOCK_SECOND,
	.max = 10 * CLOCK_MINUTE,
	.factor = 2 };

/* min(max, first · factor^(attempts − 1)); a factor below 1 counts as 1. */
static double ceiling(const struct retry_policy *p, int64_t attempts)
{
	double delay = (double)p->first, max = (double)p->max;

	if (p->factor > 1)
		for (int64_t i = 1; i < attempts && delay < max; i++)
			delay *= p->factor;
	return delay < max ? delay : max;
}

struct retry_verdict retry_decide(const struct retry_policy *p, const struct retry_counts *c,
	enum retry_blame blame, bool begun, uint64_t random)
{
	struct retry_verdict v = { .again = false, .delay = 0, .user = c->user, .infra = c->infra };

	if (blame == RETRY_BLAME_CANCEL)
		return v;
	if (blame == RETRY_BLAME_PREEMPTED) {
		v.again = c->preempted <= p->preempted;
		return v;
	}
	if (blame == RETRY_BLAME_USER) {
		v.user++;
		v.again = v.user <= p->user;
	} else if (begun) {
		v.infra++;
		v.again = v.infra <= p->infra;
	} else {
		v.again = true;
	}
	if (v.again && p->first > 0 && p->max > 0) {
		/* 53 bits of the random number, as a fraction of [0, 1). */
		double share = (double)(random >> 11) / 9007199254740992.0;
		v.delay = (int64_t)(share * ceiling(p, c->attempts));
	}
	return v;
}
