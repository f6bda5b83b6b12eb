#include "server/core/filepath.h"
#include "tests/unit/unit.h"

static bool good(struct str path)
{
	struct err e;

	if (filepath_check(path, "/files/0/path", &e) == 0)
		return true;
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.field, "/files/0/path");
	return false;
}

void test_filepath__takes_names_of_files(void **state)
{
	static const char *const paths[] = { "a", "a/b.csv", "..a", "a..b/...", ".hidden", "a b",
		"ä/日本.txt", "50%", "a+b#c", "-", "~", "C:x" };

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		assert_true(good(str_c(paths[i])));
}

void test_filepath__refuses_what_leads_elsewhere(void **state)
{
	static const char *const paths[] = { "", "/", "/a", "a/", "a//b", ".", "..", "./a", "../a",
		"a/.", "a/..", "a/./b", "a/../b", "a\\b", "a\nb", "a\tb", "\x7f", "\xff",
		"\xc0\xaf", "\xed\xa0\x80" };

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		assert_false(good(str_c(paths[i])));
	assert_false(good((struct str){ "a\0b", 3 }));
	assert_false(good(STR_NONE));
}

void test_filepath__has_limits(void **state)
{
	char path[FILEPATH_MAX + 1];

	(void)state;
	memset(path, 'x', sizeof path);
	assert_true(good((struct str){ path, FILEPATH_SEGMENT_MAX }));
	assert_false(good((struct str){ path, FILEPATH_SEGMENT_MAX + 1 }));
	for (size_t i = 100; i < sizeof path; i += 100)
		path[i] = '/';
	assert_true(good((struct str){ path, FILEPATH_MAX }));
	assert_false(good((struct str){ path, FILEPATH_MAX + 1 }));
}

void test_filepath__base(void **state)
{
	(void)state;
	assert_true(str_is(filepath_base(STR("a/b/c.txt")), "c.txt"));
	assert_true(str_is(filepath_base(STR("c")), "c"));
	assert_true(str_is(filepath_base(STR("")), ""));
}
