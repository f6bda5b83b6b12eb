#include "server/core/image.h"
#include "tests/unit/unit.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

void test_image__good_references(void **state)
{
	static const char *const good[] = { "debian", "debian:bookworm-slim",
		"tidemill/python-sklearn:1", "registry.example.org/a/b:1.2", "registry:5000/a",
		"localhost/a", "localhost:5000/a:b", "a__b/c--d.e_f", "a@sha256:" HEX,
		"host.example/a:tag@sha256:" HEX, "a@sha512:" HEX HEX, "Host.Example/a",
		"a:V1._-" };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (image_check(str_c(good[i]), &e) < 0)
			fail_msg("%s: %s", good[i], e.msg);
}

void test_image__bad_references(void **state)
{
	static const char *const bad[] = { "", "Debian", "a/", "/a", "a//b", "a:", ":a", "a b",
		"a:b c", "a@", "a@sha256:", "a@sha256:12", "a@md5:" HEX, "a@sha256:" HEX "0",
		"a@sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", "a..b",
		"a___b", "-a", "a-", "a.", "_a", "host.example:port/a", "host.example:/a",
		"-host.example/a", "host.example/", "a:.b", "a:-b", "a\n", "https://a/b", "a@b@c",
		"--privileged", "a:b:c", "host:99999999/a" };
	char longest[300];
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (image_check(str_c(bad[i]), &e) == 0)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(e.code, ERR_INVALID);
	}
	memset(longest, 'a', sizeof longest);
	assert_int_equal(image_check((struct str){ longest, 255 }, &e), 0);
	assert_int_equal(image_check((struct str){ longest, 256 }, &e), -1);
	longest[1] = ':';
	assert_int_equal(image_check((struct str){ longest, 130 }, &e), 0);
	assert_int_equal(image_check((struct str){ longest, 131 }, &e), -1);
}
