#include "server/store/manifest.h"
#include "tests/unit/unit.h"

#define DIGEST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define DIGEST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct file file(const char *path, const char *digest, int64_t size)
{
	return (struct file){ .path = str_c(path), .digest = str_c(digest), .size = size };
}

void test_manifest__canonical_form(void **state)
{
	static const char text[] = "B\0"
				   "7\0" DIGEST_B "\n"
				   "a/x\0"
				   "10\0" DIGEST_A "\n"
				   "\xc3\xa4\0"
				   "0\0" DIGEST_A "\n";
	struct file files[] = { file("\xc3\xa4", DIGEST_A, 0), file("a/x", DIGEST_A, 10),
		file("B", DIGEST_B, 7) };
	struct list list = { files, 3 }, none = { NULL, 0 };
	struct arena *a = arena_new(1 << 20);
	unsigned char want[HASH_SIZE];
	struct manifest_sum sum;
	struct err e;

	(void)state;
	assert_int_equal(manifest_check(&list, a, &e), 0);
	assert_int_equal(manifest_sum(&none, &list, &sum, &e), 0);
	hash_sha256((struct str){ text, sizeof text - 1 }, want);
	assert_memory_equal(sum.digest, want, HASH_SIZE);
	assert_int_equal(sum.files, 3);
	assert_int_equal(sum.bytes, 17);
	arena_drop(a);
}

void test_manifest__appending_is_the_same_as_all_at_once(void **state)
{
	struct file all[] = { file("a", DIGEST_A, 1), file("b", DIGEST_B, 2),
		file("c", DIGEST_A, 3) };
	struct file first[] = { all[0], all[2] }, second[] = { all[1] };
	struct list whole = { all, 3 }, before = { first, 2 }, added = { second, 1 };
	struct list none = { NULL, 0 };
	struct manifest_sum x, y;
	struct err e;

	(void)state;
	assert_int_equal(manifest_sum(&none, &whole, &x, &e), 0);
	assert_int_equal(manifest_sum(&before, &added, &y, &e), 0);
	assert_memory_equal(x.digest, y.digest, HASH_SIZE);
	assert_int_equal(manifest_sum(&whole, &added, &y, &e), -1);
	assert_string_equal(e.field, "/files");
}

static void assert_refused(struct file *files, size_t n, const char *pointer)
{
	struct arena *a = arena_new(1 << 20);
	struct list list = { files, n };
	struct err e;

	assert_int_equal(manifest_check(&list, a, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.field, pointer);
	arena_drop(a);
}

void test_manifest__names_the_culprit(void **state)
{
	struct file twice[] = { file("b", DIGEST_A, 1), file("a", DIGEST_A, 1),
		file("b", DIGEST_B, 1) };
	struct file path[] = { file("a", DIGEST_A, 1), file("../b", DIGEST_A, 1) };
	struct file digest[] = { file("a", "A" DIGEST_A, 1) };
	struct file type[] = { file("a", DIGEST_A, 1) };

	(void)state;
	type[0].media_type = STR("a\nb");
	assert_refused(twice, 3, "/files/2/path");
	assert_refused(path, 2, "/files/1/path");
	assert_refused(digest, 1, "/files/0/digest");
	assert_refused(type, 1, "/files/0/media_type");
}

void test_manifest__sizes_do_not_overflow(void **state)
{
	struct file files[] = { file("a", DIGEST_A, INT64_MAX), file("b", DIGEST_A, 1) };
	struct list list = { files, 2 }, none = { NULL, 0 };
	struct manifest_sum sum;
	struct err e;

	(void)state;
	assert_int_equal(manifest_sum(&none, &list, &sum, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
}
