#include "lib/base/conf.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <unistd.h>

struct settings {
	struct str url, name, join;
	int64_t size, wait, count;
	bool loud;
	struct list hosts;
};

static const struct conf_row rows[] = {
	{ "t-url", CONF_SECRET, offsetof(struct settings, url), .doc = "address" },
	{ "t-join", CONF_SECRET, offsetof(struct settings, join), .doc = "once", .used_up = true },
	{ "t-name", CONF_TEXT, offsetof(struct settings, name), "x", .doc = "name" },
	{ "t-size", CONF_SIZE, offsetof(struct settings, size), "1KiB", .doc = "size" },
	{ "t-wait", CONF_SPAN, offsetof(struct settings, wait), "5s", .doc = "wait" },
	{ "t-count", CONF_INT, offsetof(struct settings, count), "3", 1, 9, .doc = "1 to 9" },
	{ "t-loud", CONF_BOOL, offsetof(struct settings, loud), .doc = "loud" },
	{ "t-hosts", CONF_LIST, offsetof(struct settings, hosts), "a, b", .doc = "hosts" },
	{ 0 },
};

static int load(const char *file, int argc, const char *const *argv, struct arena *a,
	struct settings *s, struct err *e)
{
	int used;

	return conf_load(rows, file, argc, argv, &used, a, s, e);
}

void test_conf__order_is_option_environment_file_default(void **state)
{
	char path[] = "/tmp/tidemill-conf-XXXXXX";
	const char *argv[] = { "--t-count=7", "--t-loud", "rest" };
	struct arena *a = arena_new(1 << 20);
	struct settings s;
	struct err e;

	(void)state;
	int fd = mkstemp(path);
	static const char text[] = "# comment\nt-name = from file\nt-count = 2\n\n t-size=2MiB\n";
	assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
	(void)close(fd);
	assert_int_equal(setenv("TIDEMILL_T_WAIT", "2m", 1), 0);
	assert_int_equal(setenv("TIDEMILL_T_COUNT", "5", 1), 0);
	assert_int_equal(load(path, 3, argv, a, &s, &e), 0);
	assert_int_equal(s.count, 7);
	assert_true(s.loud);
	assert_string_equal(s.name.p, "from file");
	assert_int_equal(s.size, 2 << 20);
	assert_int_equal(s.wait, 120000000);
	assert_int_equal(s.hosts.n, 2);
	assert_string_equal(list_at(&s.hosts, struct str, 1)->p, "b");
	(void)unsetenv("TIDEMILL_T_WAIT");
	(void)unsetenv("TIDEMILL_T_COUNT");
	(void)unlink(path);
	arena_drop(a);
}

void test_conf__switches(void **state)
{
	static const struct {
		const char *text;
		int rc;
		bool on;
	} all[] = { { "true", 0, true }, { "1", 0, true }, { "false", 0, false }, { "0", 0, false },
		{ "", 0, false }, { "2", -1, false }, { "yes", -1, false }, { "11", -1, false } };
	struct arena *a = arena_new(1 << 20);
	struct settings s;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		assert_int_equal(setenv("TIDEMILL_T_LOUD", all[i].text, 1), 0);
		assert_int_equal(load(NULL, 0, NULL, a, &s, &e), all[i].rc);
		if (all[i].rc == 0)
			assert_int_equal(s.loud, all[i].on);
	}
	(void)unsetenv("TIDEMILL_T_LOUD");
	arena_drop(a);
}

void test_conf__refuses_what_is_wrong(void **state)
{
	static const char *const bad[] = { "--t-count=0", "--t-count=x", "--t-size=1kb",
		"--t-wait=1mo", "--t-loud=yes", "--no-such=1", "--t-url=secret" };
	struct arena *a = arena_new(1 << 20);
	struct settings s;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(load(NULL, 1, &bad[i], a, &s, &e), -1);
	assert_int_equal(setenv("TIDEMILL_T_URL_FILE", "/no/such/file", 1), 0);
	assert_int_equal(load(NULL, 0, NULL, a, &s, &e), -1);
	(void)unsetenv("TIDEMILL_T_URL_FILE");
	/* A secret that is needed once may be gone, but not be something else. */
	assert_int_equal(setenv("TIDEMILL_T_JOIN_FILE", "/no/such/file", 1), 0);
	assert_int_equal(load(NULL, 0, NULL, a, &s, &e), 0);
	assert_int_equal(s.join.n, 0);
	assert_int_equal(setenv("TIDEMILL_T_JOIN_FILE", "/", 1), 0);
	assert_int_equal(load(NULL, 0, NULL, a, &s, &e), -1);
	(void)unsetenv("TIDEMILL_T_JOIN_FILE");
	arena_drop(a);
}
