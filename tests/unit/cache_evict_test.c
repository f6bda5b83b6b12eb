#include "worker/cache_evict.h"

#include "lib/base/fs.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 1000 };

static void put(const char *dir, const char *name, time_t used)
{
	static const char bytes[SIZE];
	const struct timespec times[2] = { { .tv_sec = used }, { .tv_sec = used } };
	char path[128];
	struct err e;

	(void)str_print(path, sizeof path, "%s/sha256/aa/%s", dir, name);
	assert_int_equal(fs_write_atomic(path, (struct str){ bytes, SIZE }, 0600, &e), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool is_there(const char *dir, const char *name)
{
	char path[128];

	(void)str_print(path, sizeof path, "%s/sha256/aa/%s", dir, name);
	return access(path, F_OK) == 0;
}

static int64_t too_much;
static int asked, freed_by_others; /* at this time, all that was too much */

static int64_t excess(void *arg, bool begun)
{
	(void)arg;
	assert_int_equal(begun, asked != 0);
	return asked++ == freed_by_others ? too_much = 0 : too_much;
}

static struct cache_evict evict(const char *dir, int64_t n)
{
	struct cache_evict v = { .dir = dir, .max = 1 << 20, .excess = excess };

	too_much = n;
	asked = 0;
	cache_evict_run(&v);
	return v;
}

/* Below the limit, room is made for others on the disk; what an attempt has linked stays. */
void test_cache_evict__as_much_as_is_asked_for(void **state)
{
	char dir[64] = "/tmp/tidemill-test-XXXXXX", path[128], used[160];
	struct err e;

	(void)state;
	freed_by_others = -1;
	assert_non_null(mkdtemp(dir));
	(void)str_print(path, sizeof path, "%s/sha256/aa", dir);
	assert_int_equal(fs_mkdirs(path, 0700, &e), 0);
	put(dir, "linked", 1);
	put(dir, "old", 2);
	put(dir, "older", 1);
	put(dir, "new", 3);
	(void)str_print(path, sizeof path, "%s/sha256/aa/linked", dir);
	(void)str_print(used, sizeof used, "%s/used", dir);
	assert_int_equal(link(path, used), 0);

	struct cache_evict v = { .dir = dir, .max = 1 << 20 };
	cache_evict_run(&v);
	assert_int_equal(v.removed, 0);
	assert_int_equal(v.bytes, 4 * SIZE);

	/* What is removed need not show on the disk at once. */
	v = evict(dir, SIZE + 1);
	assert_int_equal(v.removed, 2);
	assert_false(is_there(dir, "older") || is_there(dir, "old"));
	assert_true(is_there(dir, "new") && is_there(dir, "linked"));

	v = evict(dir, 1 << 30);
	assert_true(is_there(dir, "linked") && !is_there(dir, "new"));
	assert_int_equal(fs_remove_tree(dir, &e), 0);
}

/* Others make room on the same disk meanwhile: what is enough then is enough. */
void test_cache_evict__no_more_than_the_disk_needs(void **state)
{
	char dir[64] = "/tmp/tidemill-test-XXXXXX", path[128];
	struct err e;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)str_print(path, sizeof path, "%s/sha256/aa", dir);
	assert_int_equal(fs_mkdirs(path, 0700, &e), 0);
	put(dir, "oldest", 1);
	put(dir, "old", 2);
	put(dir, "new", 3);

	freed_by_others = 0; /* before it begins */
	assert_int_equal(evict(dir, 1 << 30).removed, 0);
	freed_by_others = 2; /* once one is removed */
	assert_int_equal(evict(dir, 1 << 30).removed, 1);
	assert_true(!is_there(dir, "oldest") && is_there(dir, "old") && is_there(dir, "new"));
	assert_int_equal(fs_remove_tree(dir, &e), 0);
}
