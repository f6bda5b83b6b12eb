#include "lib/base/clock.h"
#include "server/core/retry.h"
#include "tests/unit/unit.h"

static struct retry_verdict decide(
	int64_t user, int64_t infra, int64_t attempts, enum retry_blame blame, bool begun)
{
	const struct retry_policy p = { .user = 1,
		.infra = 2,
		.first = 10 * CLOCK_SECOND,
		.max = 60 * CLOCK_SECOND,
		.factor = 2 };
	const struct retry_counts c = { .user = user, .infra = infra, .attempts = attempts };

	return retry_decide(&p, &c, blame, begun, UINT64_MAX);
}

void test_retry__each_blame_has_its_own_budget(void **state)
{
	struct retry_verdict v;

	(void)state;
	v = decide(0, 2, 3, RETRY_BLAME_USER, true);
	assert_true(v.again);
	assert_int_equal(v.user, 1);
	assert_int_equal(v.infra, 2);
	assert_false(decide(1, 0, 2, RETRY_BLAME_USER, true).again);
	v = decide(1, 1, 3, RETRY_BLAME_INFRA, true);
	assert_true(v.again);
	assert_int_equal(v.user, 1);
	assert_int_equal(v.infra, 2);
	v = decide(0, 2, 3, RETRY_BLAME_INFRA, true);
	assert_false(v.again);
	assert_int_equal(v.infra, 3);
	assert_int_equal(v.delay, 0);
}

void test_retry__what_never_began_costs_nothing(void **state)
{
	struct retry_verdict v = decide(0, 2, 3, RETRY_BLAME_INFRA, false);

	(void)state;
	assert_true(v.again);
	assert_int_equal(v.infra, 2);
	assert_true(v.delay > 0);
	/* The user's own faults are paid for wherever they show. */
	assert_false(decide(1, 0, 2, RETRY_BLAME_USER, false).again);
}

void test_retry__a_cancelled_attempt_is_final(void **state)
{
	struct retry_verdict v = decide(0, 0, 1, RETRY_BLAME_CANCEL, true);

	(void)state;
	assert_false(v.again);
	assert_int_equal(v.user, 0);
	assert_int_equal(v.infra, 0);
	assert_false(decide(0, 0, 1, RETRY_BLAME_CANCEL, false).again);
}

void test_retry__the_delay_grows_up_to_its_limit(void **state)
{
	static const int64_t ceilings[] = { 10, 20, 40, 60, 60, 60 };

	(void)state;
	for (int64_t i = 0; i < 6; i++) {
		int64_t delay = decide(0, 0, i + 1, RETRY_BLAME_INFRA, true).delay;
		assert_in_range(delay, (uintmax_t)(ceilings[i] * CLOCK_SECOND) - 1,
			(uintmax_t)(ceilings[i] * CLOCK_SECOND));
	}
	/* A huge count neither loops for long nor overflows. */
	assert_true(decide(0, 0, INT64_MAX, RETRY_BLAME_INFRA, true).delay <= 60 * CLOCK_SECOND);
}

void test_retry__the_jitter_is_full(void **state)
{
	const struct retry_counts c = { .attempts = 1 };
	struct retry_policy p = retry_default;

	(void)state;
	assert_int_equal(retry_decide(&p, &c, RETRY_BLAME_INFRA, true, 0).delay, 0);
	assert_int_equal(retry_decide(&p, &c, RETRY_BLAME_INFRA, true, UINT64_C(1) << 63).delay,
		p.first / 2);
	p.first = 0;
	assert_int_equal(retry_decide(&p, &c, RETRY_BLAME_INFRA, true, UINT64_MAX).delay, 0);
	p = retry_default;
	p.factor = 0.5; /* never shrinks */
	assert_true(retry_decide(&p, &c, RETRY_BLAME_INFRA, true, UINT64_MAX).delay >= p.first - 1);
}
