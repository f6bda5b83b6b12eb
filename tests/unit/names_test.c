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
