#include "worker/runtime/docker_keep.h"

#include "lib/base/fs.h"
#include "lib/loop/loop.h"
#include "lib/loop/work.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define A "sha256:aa"
#define B "sha256:bb"

struct place {
	struct loop *loop;
	char dir[64], file[96], attempts[96];
	struct docker_keep keep;
};

static void set_up(struct place *p)
{
	p->loop = loop_new();
	(void)str_print(p->dir, sizeof p->dir, "/tmp/tidemill-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)str_print(p->file, sizeof p->file, "%s/images.json", p->dir);
	(void)str_print(p->attempts, sizeof p->attempts, "%s/attempts", p->dir);
	assert_int_equal(mkdir(p->attempts, 0700), 0);
	docker_keep_open(&p->keep, p->loop, p->file, p->attempts);
}

/* The process ends, however: what was written is what the next one knows. */
static void again(struct place *p)
{
	docker_keep_close(&p->keep);
	while (work_pending(p->loop) != 0)
		loop_step(p->loop, true);
	docker_keep_open(&p->keep, p->loop, p->file, p->attempts);
}

static void settle(struct place *p)
{
	while (p->keep.write != NULL)
		loop_step(p->loop, true);
}

static void tear_down(struct place *p)
{
	struct err e;

	docker_keep_close(&p->keep);
	loop_free(p->loop);
	assert_int_equal(fs_remove_tree(p->dir, &e), 0);
}

static void make_attempt(const struct place *p, const char *name)
{
	char path[160];

	(void)str_print(path, sizeof path, "%s/%s", p->attempts, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

void test_docker_keep__the_one_used_longest_ago_goes_first(void **state)
{
	struct place p;

	(void)state;
	set_up(&p);
	assert_null(docker_keep_oldest(&p.keep));
	docker_keep_use(&p.keep, A, "att_0"); /* not pulled by us: nobody's business */
	assert_int_equal(p.keep.n, 0);
	docker_keep_pulled(&p.keep, A, "r/a:1", 10);
	docker_keep_pulled(&p.keep, B, "r/b:1", 20);
	p.keep.all[0].used_at = 2000;
	p.keep.all[1].used_at = 1000;
	assert_string_equal(docker_keep_oldest(&p.keep)->id, B);
	docker_keep_use(&p.keep, B, "att_1");
	docker_keep_use(&p.keep, B, "att_1");
	docker_keep_use(&p.keep, B, "att_2");
	assert_string_equal(docker_keep_oldest(&p.keep)->id, A);
	p.keep.all[0].passed = true;
	assert_null(docker_keep_oldest(&p.keep));
	docker_keep_drop(&p.keep, "att_1");
	assert_null(docker_keep_oldest(&p.keep)); /* one more */
	docker_keep_drop(&p.keep, "att_2");
	assert_string_equal(docker_keep_oldest(&p.keep)->id, B);
	tear_down(&p);
}

/* A use from before the calendar was set back does not stay the latest one. */
void test_docker_keep__a_calendar_set_back_keeps_the_order(void **state)
{
	struct place p;
	int64_t before = clock_now(&clock_real) + CLOCK_HOUR;

	(void)state;
	set_up(&p);
	docker_keep_pulled(&p.keep, A, "r/a:1", 10);
	docker_keep_pulled(&p.keep, B, "r/b:1", 20);
	p.keep.all[0].used_at = before;
	docker_keep_use(&p.keep, B, "att_1");
	assert_int_equal(p.keep.all[1].used_at, before + 1);
	docker_keep_drop(&p.keep, "att_1");
	assert_string_equal(docker_keep_oldest(&p.keep)->id, A);
	docker_keep_pulled(&p.keep, A, "r/a:2", 10);
	assert_string_equal(docker_keep_oldest(&p.keep)->id, B);
	tear_down(&p);
}

void test_docker_keep__references_survive_a_restart(void **state)
{
	struct place p;

	(void)state;
	set_up(&p);
	docker_keep_pulled(&p.keep, A, "r/a:1", 10);
	docker_keep_pulled(&p.keep, A, "r/a@sha256:12", 10);
	docker_keep_pulled(&p.keep, B, "r/b:1", 20);
	docker_keep_use(&p.keep, A, "att_here");
	docker_keep_use(&p.keep, B, "att_gone");
	make_attempt(&p, "att_here");
	settle(&p);
	again(&p);
	assert_int_equal(p.keep.n, 2);
	assert_int_equal(p.keep.all[0].n_names, 2);
	assert_int_equal(p.keep.all[0].size, 10);
	/* An attempt without a folder is over. */
	assert_string_equal(docker_keep_oldest(&p.keep)->id, B);
	docker_keep_drop(&p.keep, "att_here");
	again(&p); /* written at the end */
	assert_int_equal(p.keep.all[0].n_attempts, 0);
	/* Both names go before it is forgotten, in any order. */
	docker_keep_unname(&p.keep, &p.keep.all[0], "r/other:1");
	docker_keep_unname(&p.keep, &p.keep.all[0], "r/a:1");
	assert_int_equal(p.keep.n, 2);
	assert_string_equal(p.keep.all[0].names[0], "r/a@sha256:12");
	docker_keep_unname(&p.keep, &p.keep.all[0], "r/a@sha256:12");
	assert_int_equal(p.keep.n, 1);
	assert_string_equal(p.keep.all[0].id, B);
	tear_down(&p);
}

void test_docker_keep__a_damaged_list_removes_nothing(void **state)
{
	static const char *const bad[] = { "", "{", "{\"images\":[{\"id\":1}]}", "[]",
		"{\"images\":[{\"id\":\"sha256:aa\",\"names\":[],"
		"\"used_at\":\"2026-01-01T00:00:00Z\"}]}" };
	struct place p;
	struct err e;

	(void)state;
	set_up(&p);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(fs_write_atomic(p.file, str_c(bad[i]), 0600, &e), 0);
		again(&p);
		assert_null(docker_keep_oldest(&p.keep));
	}
	docker_keep_pulled(&p.keep, A, "r/a:1", 10);
	again(&p);
	assert_int_equal(p.keep.n, 1);
	tear_down(&p);
}
