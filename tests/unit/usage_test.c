#include "worker/usage.h"

#include "tests/unit/unit.h"

#include <math.h>

#define BEGAN INT64_C(1700000000000000)

static struct usage at(int64_t us, const char *rest)
{
	char text[500];
	struct usage u;

	(void)str_print(text, sizeof text, "at_us=%lld\n%s", (long long)(BEGAN + us), rest);
	usage_read(str_c(text), &u);
	return u;
}

/* NAN when there is no such point. */
static double value(const struct usage_point *p, size_t n, const char *key, int64_t rank)
{
	char text[USAGE_KEY_MAX];

	for (size_t i = 0; i < n; i++)
		if (strcmp(usage_key(text, &p[i], rank), key) == 0)
			return p[i].value;
	return NAN;
}

static const struct usage_limits none = { .memory = 0 };

void test_usage__rates_are_since_the_earlier_one(void **state)
{
	const struct usage_limits l = { .cpus = 2, .memory = 1 << 20 };
	struct usage before = at(1000000, "cpu_us=500000\nperiods=10\nthrottled_periods=1\n"
					  "throttled_us=1000\nstalled_us=0\nscope=cgroup\n");
	struct usage now = at(11000000, "cpu_us=15500000\nperiods=110\nthrottled_periods=26\n"
					"throttled_us=2500000\nstalled_us=100000\n"
					"memory=262144\nscope=cgroup\n");
	struct usage_point p[USAGE_POINTS];
	size_t n = usage_points(&before, &now, &l, p);

	(void)state;
	assert_true(now.whole);
	assert_float_equal(value(p, n, "system/cpu_utilization_percentage", -1), 75, 1e-9);
	assert_float_equal(value(p, n, "system/cpu_throttled_percentage", -1), 25, 1e-9);
	assert_float_equal(value(p, n, "system/cpu_throttled_seconds", -1), 2.5, 1e-9);
	assert_float_equal(value(p, n, "system/memory_pressure_percentage", -1), 1, 1e-9);
	assert_float_equal(value(p, n, "system/system_memory_usage_megabytes", -1), 0.262144, 1e-9);
	assert_float_equal(value(p, n, "system/system_memory_usage_percentage", -1), 25, 1e-9);
	assert_true(isnan(value(p, n, "system/memory_oom_kills", -1)));
	assert_true(isnan(value(p, n, "system/disk_read_megabytes", -1)));
	/* Of a gang each rank is a node of its own. */
	assert_float_equal(value(p, n, "system/rank-3/cpu_utilization_percentage", 3), 75, 1e-9);
}

void test_usage__the_first_counts_from_the_start(void **state)
{
	const struct usage_limits l = { .cpus = 1 };
	struct usage unknown = { .at_us = 0 }, began = usage_none(BEGAN);
	struct usage now = at(2000000, "cpu_us=500000\n");
	struct usage_point p[USAGE_POINTS];
	size_t n = usage_points(&began, &now, &l, p);

	(void)state;
	assert_int_equal(n, 1);
	assert_float_equal(value(p, n, "system/cpu_utilization_percentage", -1), 25, 1e-9);
	assert_int_equal(usage_points(&unknown, &now, &l, p),
		0); /* found again: when it was so is not known */
}

void test_usage__what_is_not_known_is_left_out(void **state)
{
	struct usage before = at(0, "cpu_us=10\n"), now = at(0, "cpu_us=20\n");
	struct usage_point p[USAGE_POINTS];

	(void)state;
	assert_int_equal(usage_points(&before, &now, &none, p), 0); /* no time has passed */
	now = at(1000000, "cpu_us=5\n"); /* a count that has shrunk is another one */
	assert_int_equal(usage_points(&before, &now, &none, p), 0);
	now = at(1000000, "memory=x\nread_bytes=-1\n=\n\nscope=processes\nunheard_of=1\n");
	assert_false(now.whole);
	assert_int_equal(usage_points(&before, &now, &none, p), 0);
	usage_read(STR(""), &now);
	assert_int_equal(now.at_us, 0);
}

void test_usage__network_only_when_it_is_its_own(void **state)
{
	struct usage began = usage_none(BEGAN);
	struct usage now = at(1, "received_bytes=3000000\nsent_bytes=0\noom_kills=2\n");
	const struct usage_limits own = {
		.own_network = true, .disk_size = 4000000, .disk_free = 1000000
	};
	struct usage_point p[USAGE_POINTS];
	size_t n = usage_points(&began, &now, &own, p);

	(void)state;
	assert_float_equal(value(p, n, "system/network_receive_megabytes", -1), 3, 1e-9);
	assert_float_equal(value(p, n, "system/network_transmit_megabytes", -1), 0, 1e-9);
	assert_float_equal(value(p, n, "system/memory_oom_kills", -1), 2, 1e-9);
	assert_float_equal(value(p, n, "system/disk_usage_megabytes", -1), 3, 1e-9);
	assert_float_equal(value(p, n, "system/disk_usage_percentage", -1), 75, 1e-9);
	assert_float_equal(value(p, n, "system/disk_available_megabytes", -1), 1, 1e-9);
	assert_int_equal(usage_points(&began, &now, &none, p), 1);
}

void test_usage__gpus_by_their_place(void **state)
{
	struct usage_point p[USAGE_GPU_POINTS];
	size_t n = usage_gpu_points(2, 50, 20000000, 80000000, p);

	(void)state;
	assert_float_equal(value(p, n, "system/gpu_2_utilization_percentage", -1), 50, 1e-9);
	assert_float_equal(value(p, n, "system/gpu_2_memory_usage_megabytes", -1), 20, 1e-9);
	assert_float_equal(value(p, n, "system/rank-0/gpu_2_memory_usage_percentage", 0), 25, 1e-9);
	assert_int_equal(usage_gpu_points(0, -1, -1, 0, p), 0);
}
