/* worker/runtime: what a spec may say, and the names and answers of Docker. */
#include "tests/unit/unit.h"
#include "worker/runtime/docker.h"
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

void test_runtime__image_names(void **state)
{
	static const char *const good[] = { "a", "a:1", "host:5000/a/b:tag", "a@sha256:0123",
		"ghcr.io/x/y_z-1.2" };
	static const char *const bad[] = { "", "/a", "-a", "../a", "a/../b", "a b", "a?b", "a#b",
		"a//b", "a%2f", "a\n" };

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_true(docker_image_valid(good[i]));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(docker_image_valid(bad[i]));
	assert_false(docker_image_valid(NULL));
}

void test_runtime__image_names_are_split_for_pulling(void **state)
{
	static const char *const cases[][2] = {
		{ "a", "/images/create?fromImage=a&tag=latest" },
		{ "a/b:1", "/images/create?fromImage=a/b&tag=1" },
		{ "h:5000/a", "/images/create?fromImage=h:5000/a&tag=latest" },
		{ "h:5000/a:2", "/images/create?fromImage=h:5000/a&tag=2" },
		{ "a:1@sha256:ab", "/images/create?fromImage=a:1&tag=sha256:ab" },
	};
	char path[DOCKER_PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(docker_pull_path(path, cases[i][0]), cases[i][1]);
}

static void on_note(void *arg, const char *text)
{
	(void)str_print(arg, 128, "%s", text);
}

void test_runtime__a_pull_is_read_in_pieces(void **state)
{
	static const char stream[] =
		"{\"status\":\"Downloading\",\"id\":\"4f2a\",\"progress\":\"[=> ] 1MB\"}\r\n"
		"not json\r\n{\"status\":\"x\"}\r\n"
		"{\"errorDetail\":{\"message\":\"no space\"},\"error\":\"other\"}\r\n";
	char note[128] = "";
	struct docker_pull p;
	struct err e;

	(void)state;
	docker_pull_init(&p, "img", on_note, note);
	for (size_t i = 0; i < sizeof stream - 1; i++)
		assert_int_equal(docker_pull_push(&p, (struct str){ stream + i, 1 }, &e), 0);
	assert_string_equal(note, "pulling img: Downloading 4f2a [=> ] 1MB");
	assert_string_equal(p.error, "no space");
	docker_pull_done(&p);
}
