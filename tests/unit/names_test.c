#include "server/core/names.h"
#include "tests/unit/unit.h"

void test_names__are_found_where_they_stand(void **state)
{
	const struct str items[] = { STR("train"), STR("a"), STR("evaluate"), STR("a"), STR("") };
	struct arena *a = arena_new(10000);
	struct names s;

	(void)state;
	names_index(&s, items, 5, a);
	assert_int_equal(names_find(&s, STR("train")), 0);
	assert_int_equal(names_find(&s, STR("a")), 1);
	assert_int_equal(names_find(&s, STR("evaluate")), 2);
	assert_int_equal(names_find(&s, STR("")), 4);
	assert_int_equal(names_find(&s, STR("trai")), -1);
	assert_int_equal(names_find(&s, STR("zzz")), -1);
	assert_int_equal(names_duplicate(&s), 3);
	names_index(&s, items, 3, a);
	assert_int_equal(names_duplicate(&s), -1);
	names_index(&s, NULL, 0, a);
	assert_int_equal(names_find(&s, STR("a")), -1);
	assert_int_equal(names_duplicate(&s), -1);
	arena_drop(a);
}

void test_names__shows_whole_characters(void **state)
{
	char name[100];

	(void)state;
	memset(name, 'a', sizeof name);
	assert_int_equal(names_shown((struct str){ name, 60 }).n, 60);
	assert_int_equal(names_shown((struct str){ name, 61 }).n, 60);
	memcpy(name + 58, "\xe2\x80\xa6", 3);
	assert_int_equal(names_shown((struct str){ name, 80 }).n, 58);
	assert_int_equal(names_shown(STR("\xe2\x80\xa6")).n, 3);
}

void test_names__near_suggests_only_what_is_close(void **state)
{
	const struct str items[] = { STR("holdout_from"), STR("holdout_to"), STR("to"),
		STR("alpha") };
	struct arena *a = arena_new(10000);
	char text[NEAR_TEXT_MAX];
	struct names s;

	(void)state;
	names_index(&s, items, 4, a);
	assert_string_equal(
		names_near(text, &s, STR("holdout_form")), "; did you mean 'holdout_from'?");
	assert_string_equal(names_near(text, &s, STR("alhpa")), "; did you mean 'alpha'?");
	assert_string_equal(names_near(text, &s, STR("holdoutto")), "; did you mean 'holdout_to'?");
	assert_string_equal(names_near(text, &s, STR("ta")), "");
	assert_string_equal(names_near(text, &s, STR("epsilon")), "");
	assert_string_equal(names_near(text, &s, STR("")), "");
	arena_drop(a);
}

void test_names__an_alias_does_not_read_as_a_version(void **state)
{
	static const char *const good[] = { "champion", "blue", "v", "v7a", "va7", "7b", "1.2",
		"latest-1", "x7" };
	static const char *const bad[] = { "latest", "7", "0", "123456789012345678901234567890",
		"v7", "v0", "v123456789012345678901234567890" };
	static const char *const no_name[] = { "", "V7", "LATEST", "a b", "-a" };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_int_equal(names_alias_check(str_c(good[i]), "/alias", &e), 0);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(names_alias_check(str_c(bad[i]), "/alias", &e), -1);
		assert_string_equal(e.field, "/alias");
		assert_non_null(strstr(e.msg, "reads as a version"));
	}
	for (size_t i = 0; i < sizeof no_name / sizeof no_name[0]; i++) {
		assert_int_equal(names_alias_check(str_c(no_name[i]), "/alias", &e), -1);
		assert_non_null(strstr(e.msg, "an alias is 1 to 63"));
	}
}
