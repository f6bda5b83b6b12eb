/* worker/runtime: what a spec may say. */
#include "tests/unit/unit.h"
#include "worker/runtime/runtime.h"

static const char *const true_argv[] = { "true", NULL };

static void expect_invalid(struct runtime_spec *s, const char *field)
{
	struct err e;

	assert_int_equal(runtime_spec_check(s, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.field, field);
}

void test_runtime__a_spec_is_checked(void **state)
{
	static const char *const no_equals[] = { "A", NULL };
	static const char *many[RUNTIME_ARGV_MAX + 2];
	const struct runtime_secret env = { "env", STR("x") }, up = { "../x", STR("x") };
	const struct runtime_secret large = { "a", { "", RUNTIME_SECRETS_BYTES + 1 } };
	const struct runtime_mount relative = { "a/b", "/c", true };
	const struct runtime_spec good = { .attempt = "att_1",
		.step = "stp_1",
		.argv = true_argv,
		.ctl = "/a/ctl",
		.secrets_dir = "/a/s",
		.work = "/a/w",
		.out = "/a/o" };
	struct runtime_spec s = good;
	struct err e;

	(void)state;
	assert_int_equal(runtime_spec_check(&s, &e), 0);
	s.attempt = "a/b", expect_invalid(&s, "/attempt"), s = good;
	s.step = NULL, expect_invalid(&s, "/step"), s = good;
	s.argv = many, expect_invalid(&s, "/argv");
	for (size_t i = 0; i < RUNTIME_ARGV_MAX; i++)
		many[i] = "x";
	assert_int_equal(runtime_spec_check(&s, &e), 0);
	many[RUNTIME_ARGV_MAX] = "x", expect_invalid(&s, "/argv"), s = good;
	s.env = no_equals, expect_invalid(&s, "/env"), s = good;
	s.secret_env = no_equals, expect_invalid(&s, "/secret_env"), s = good;
	s.ctl = "rel", expect_invalid(&s, "/ctl"), s = good;
	s.work = "/a/../b", expect_invalid(&s, "/work"), s = good;
	s.out = "/a\n", expect_invalid(&s, "/out"), s = good;
	s.secrets = &env, s.n_secrets = 1, expect_invalid(&s, "/secrets");
	s.secrets = &up, expect_invalid(&s, "/secrets");
	s.secrets = &large, expect_invalid(&s, "/secrets"), s = good;
	s.mounts = &relative, s.n_mounts = 1, expect_invalid(&s, "/mounts"), s = good;
	s.cpus = -1, expect_invalid(&s, "/cpus"), s = good;
	s.memory = 1000, expect_invalid(&s, "/memory"), s = good;
	s.grace_s = -1, expect_invalid(&s, "/grace_s"), s = good;
	s.rank = 65536, expect_invalid(&s, "/rank");
}
