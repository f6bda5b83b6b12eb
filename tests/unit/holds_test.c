#include "worker/holds.h"

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

static char *folder(char path[64])
{
	assert_true(str_print(path, 64, "/tmp/tidemill-holds-XXXXXX"));
	assert_non_null(mkdtemp(path));
	return path;
}

static void run_image(struct hold_list *h, int n)
{
	char name[32];

	assert_true(str_print(name, sizeof name, "image:%d", n));
	holds_image(h, str_c(name), n);
}

/* "image:3 image:1": what is told, in order. */
static void tells(struct hold_list *h, size_t count, const char *first)
{
	struct arena *a = arena_new(1 << 20);
	struct holds told;

	holds_report(h, a, &told);
	assert_int_equal(told.items.n, count);
	if (count != 0)
		assert_true(str_is(list_at(&told.items, struct hold, 0)->name, first));
	arena_drop(a);
}

void test_holds__those_used_last_are_kept(void **state)
{
	char dir[64];
	struct hold_list *h = holds_new(folder(dir), NULL);
	uint64_t before;
	struct err e;

	(void)state;
	tells(h, 0, "");
	for (int i = 0; i < 70; i++)
		run_image(h, i);
	tells(h, 64, "image:69");
	run_image(h, 6); /* the oldest that is left */
	tells(h, 64, "image:6");
	before = holds_turn(h, 0);
	run_image(h, 6); /* nothing new */
	assert_int_equal(holds_turn(h, 0), before);
	run_image(h, 5); /* which was forgotten */
	assert_true(holds_turn(h, 0) > before);
	holds_free(h);
	h = holds_new(dir, NULL); /* another process */
	tells(h, 64, "image:5");
	before = holds_turn(h, 0);
	assert_int_equal(holds_turn(h, 9 * CLOCK_MINUTE), before);
	assert_true(holds_turn(h, 10 * CLOCK_MINUTE) > before); /* told again now and then */
	holds_free(h);
	assert_int_equal(fs_remove_tree(dir, &e), 0);
}

void test_holds__a_damaged_file_is_none(void **state)
{
	char dir[64], path[96];
	struct hold_list *h;
	struct err e;

	(void)state;
	assert_true(str_print(path, sizeof path, "%s/holds.json", folder(dir)));
	assert_int_equal(fs_write_atomic(path, STR("{\"items\":[{\"kind\":\"im"), 0600, &e), 0);
	h = holds_new(dir, NULL);
	tells(h, 0, "");
	run_image(h, 1);
	tells(h, 1, "image:1");
	holds_free(h);
	assert_int_equal(fs_remove_tree(dir, &e), 0);
}

void test_holds__the_largest_files_stand_for_a_data_set(void **state)
{
	static const int64_t sizes[] = { 5, 1, 9, 9, 0, 7, 3 };
	struct hold_data d = { .bytes = 0 };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		char digest[HOLD_DIGEST];
		assert_true(str_print(digest, sizeof digest, "d%zu", i));
		const struct file f = { .digest = str_c(digest), .size = sizes[i] };
		hold_data_add(&d, &f);
	}
	assert_int_equal(d.bytes, 34);
	assert_string_equal(d.largest[0].digest, "d2");
	assert_string_equal(d.largest[1].digest, "d3");
	assert_string_equal(d.largest[2].digest, "d5");
	assert_string_equal(d.largest[3].digest, "d0");
}
