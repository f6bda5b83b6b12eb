/* Gangs: steps that want several workers at once. */
#include "tests/unit/place_world.h"

static void waits(const struct place_result *r, const char *want)
{
	char text[PLACE_TEXT_MAX];
	uint32_t n;
	const struct place_blocker *b = place_blockers(r, 0, &n);

	assert_string_equal(place_explain(text, b, true), want);
}

static void four_workers(struct world *w)
{
	world_init(w);
	busy_worker(w, "a", 0, 0);
	busy_worker(w, "b", 7, 0);
	busy_worker(w, "c", 0, 0);
	busy_worker(w, "d", 4, 0);
}

void test_place_gang__takes_all_or_none(void **state)
{
	struct world w;
	struct place_result r;
	struct place_change change;
	char text[PLACE_TEXT_MAX];

	(void)state;
	four_workers(&w);
	struct place_step *s = add_step(&w, "s1", 4, 2);
	s->nodes = 4;
	add_step(&w, "s2", 4, 8);
	/* Nothing of it is held back from those behind it. */
	places(&w, "s2>a; s1", &r);
	waits(&r, "needs 4 workers with 2 GPUs, 4 CPUs and 953.7 MiB of memory each; 2 have that "
		  "free "
		  "now");
	assert_true(place_change(&r, 0, &change));
	assert_string_equal(
		place_change_text(text, &change), "if it asked for 2 workers instead of 4");
	/* The fullest worker first; each rank on one of its own, with its own GPUs. */
	s->nodes = 3;
	places(&w, "s1>d s1>a s1>c; s2", &r);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(r.placed[i].rank, i);
		assert_int_equal(r.placed[i].gpus_n, 2);
	}
	arena_drop(w.a);
}

void test_place_gang__never_takes_two_nodes_of_one_worker(void **state)
{
	struct world w;
	struct place_result r;

	(void)state;
	world_idle(&w);
	add_step(&w, "s1", 1, 1)->nodes = 2;
	places(&w, "; s1", &r);
	waits(&r, "needs 2 workers with 1 GPU, 1 CPU and 953.7 MiB of memory each; pool default "
		  "has 1");
	arena_drop(w.a);
}

void test_place_gang__tells_workers_that_are_away(void **state)
{
	struct world w;
	struct place_result r;

	(void)state;
	four_workers(&w);
	w.workers[0].offline = w.workers[2].draining = w.workers[3].offline = true;
	add_step(&w, "s1", 1, 2)->nodes = 2;
	places(&w, "; s1", &r);
	waits(&r, "needs 2 workers with 2 GPUs, 1 CPU and 953.7 MiB of memory each; of 4 in pool "
		  "default only 1 is online and takes work");
	arena_drop(w.a);
}

void test_place_gang__counts_every_node_for_quotas(void **state)
{
	struct world w;
	struct place_result r;

	(void)state;
	four_workers(&w);
	w.projects[0].gpus_quota = (struct place_quota){ true, 4, 1 };
	add_step(&w, "s1", 1, 2)->nodes = 3;
	places(&w, "; s1", &r);
	waits(&r, "asks for 6 GPUs, and the quota of project prj_a is 5");
	w.projects[0].gpus_quota.nominal = 5;
	places(&w, "s1>d s1>a s1>c", &r);
	w.projects[0].steps_quota = (struct place_quota){ true, 4, 0 };
	w.projects[0].running = 2;
	places(&w, "; s1", &r);
	arena_drop(w.a);
}

void test_place_gang__has_workers_kept_until_the_last_is_free(void **state)
{
	struct world w;
	struct place_result r;
	struct arena *scratch = arena_new(16 << 20);

	(void)state;
	world_init(&w);
	w.s.now = 100;
	busy_worker(&w, "a", 8, 300);
	busy_worker(&w, "b", 8, 200);
	busy_worker(&w, "c", 8, 900);
	busy_worker(&w, "d", 0, 0);
	add_step(&w, "gang", 1, 8)->nodes = 3;
	add_step(&w, "long", 1, 8)->time_limit = 201;
	add_step(&w, "brief", 1, 8)->time_limit = 200;
	/* d is free, and leaves in time what a and b will be at 300. */
	places(&w, "brief>d; gang long | gang@d:300 gang@b:300 gang@a:300", &r);
	assert_int_equal(place_start(&r, 0, w.s.now, scratch), 300);
	arena_drop(scratch);
	arena_drop(w.a);
}

void test_place_gang__keeps_the_same_workers_without_a_time(void **state)
{
	struct world w;
	struct place_result r;

	(void)state;
	world_init(&w);
	w.s.now = PLACE_PATIENCE + 10;
	busy_worker(&w, "a", 3, 0);
	busy_worker(&w, "b", 2, 0);
	busy_worker(&w, "c", 1, 0);
	struct place_step *s = add_step(&w, "gang", 1, 8);
	s->nodes = 2;
	places(&w, "; gang | gang@c:0 gang@b:0", &r);
	s->kept = (const uint32_t[]){ 0, 1 };
	s->kept_n = 2;
	places(&w, "; gang | gang@a:0 gang@b:0", &r);
	arena_drop(w.a);
}

/* Containers of their own network are of no use to a gang. */
void test_place_gang__goes_where_its_ranks_reach_each_other(void **state)
{
	struct world w;
	struct place_result r;
	struct place_change change;
	char text[PLACE_TEXT_MAX];

	(void)state;
	four_workers(&w);
	w.workers[0].isolated = 1 << RUNTIME_DOCKER;
	w.workers[2].isolated = 1 << RUNTIME_DOCKER;
	struct place_step *s = add_step(&w, "s1", 4, 1);
	s->nodes = 3; /* docker, or process, which is reached everywhere */
	places(&w, "s1>b s1>d s1>a", &r);
	assert_int_equal(r.placed[0].runtime, RUNTIME_DOCKER);
	assert_int_equal(r.placed[2].runtime, RUNTIME_PROCESS);
	s->runtimes_n = 1;
	places(&w, "; s1", &r);
	waits(&r, "needs 3 workers with 1 GPU, 4 CPUs and 953.7 MiB of memory each; pool default "
		  "has "
		  "2, and 2 more where containers do not reach each other (gang-host-network)");
	assert_true(place_change(&r, 0, &change));
	assert_string_equal(
		place_change_text(text, &change), "if it asked for 2 workers instead of 3");
	s->nodes = 2;
	places(&w, "s1>b s1>d", &r);
	w.workers[1].isolated = w.workers[3].isolated = 1 << RUNTIME_DOCKER;
	places(&w, "; s1", &r);
	waits(&r, "no worker of pool default lets what docker runs for several nodes reach each "
		  "other (gang-host-network)");
	s->nodes = 1; /* alone it may go anywhere */
	places(&w, "s1>b", &r);
	arena_drop(w.a);
}
