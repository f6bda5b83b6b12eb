#include "tests/unit/place_world.h"

void test_place__by_priority_then_share_then_age(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_init(&w);
	add_worker(&w, "w1", 4, 0, "", 0);
	for (int i = 0; i < 4; i++)
		add_step(&w, (const char *[]){ "a1", "a2", "a3", "a4" }[i], 1, 0);
	add_step(&w, "b1", 1, 0)->project = 1;
	add_step(&w, "b2", 1, 0)->project = 1;
	add_step(&w, "urgent", 1, 0)->priority = 10;
	add_step(&w, "later", 1, 0)->priority = -10;
	/* The urgent one counts for project a: b goes next. */
	places(&w, "urgent>w1 b1>w1 a1>w1 b2>w1; a2 a3 a4 later", &r);
	w.projects[0].weight = 3;
	places(&w, "urgent>w1 b1>w1 a1>w1 a2>w1; a3 a4 b2 later", &r);
	w.projects[0].weight = 1;
	w.projects[1].cpus = 5;
	places(&w, "urgent>w1 a1>w1 a2>w1 a3>w1; a4 b1 b2 later", &r);
	arena_drop(w.a);
}

void test_place__smaller_ones_pass_a_blocked_one(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_init(&w);
	add_worker(&w, "w2", 8, 0, "", 0);
	add_worker(&w, "w1", 8, 4, "NVIDIA H100", 80 * GB);
	add_step(&w, "big", 1, 8)->priority = 5;
	add_step(&w, "small", 1, 4);
	add_step(&w, "none", 1, 1);
	places(&w, "small>w1; big none", &r);
	uint32_t n;
	const struct place_blocker *b = place_blockers(&r, 1, &n);
	assert_int_equal(n, 1);
	assert_int_equal(b->kind, PLACE_GPUS);
	assert_false(b->never);
	assert_int_equal(b->need, 1);
	assert_int_equal(b->most_free, 0); /* at the end of the pass */
	assert_int_equal(b->most_all, 4);
	assert_true(str_is(b->worker, "w1"));
	arena_drop(w.a);
}

void test_place__an_avoided_worker_is_taken_last(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_init(&w);
	add_worker(&w, "w1", 2, 2, "NVIDIA H100", 80 * GB)->avoided = true;
	add_worker(&w, "w2", 1, 0, "", 0)->running = 50;
	add_worker(&w, "w3", 1, 8, "NVIDIA H100", 80 * GB);
	add_step(&w, "gpu", 1, 2); /* w1 would leave no GPU idle */
	add_step(&w, "busy", 1, 0); /* w1 runs nothing */
	add_step(&w, "rest", 1, 0);
	add_step(&w, "more", 1, 0);
	add_step(&w, "none", 1, 0);
	places(&w, "gpu>w3 busy>w2 rest>w1 more>w1; none", &r);
	arena_drop(w.a);
}

void test_place__gpus_are_packed_and_of_one_kind(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_init(&w);
	add_worker(&w, "w1", 64, 8, "NVIDIA H100 80GB HBM3", 85 * GB);
	add_worker(&w, "w2", 64, 4, "NVIDIA H100 80GB HBM3", 85 * GB);
	add_worker(&w, "w3", 64, 0, "", 0);
	struct place_gpu *mixed = arena_array_of(w.a, struct place_gpu, 4);
	for (uint32_t i = 0; i < 4; i++)
		mixed[i] = (struct place_gpu){ .uuid = arena_printf(w.a, "GPU-m-%u", i),
			.model = i % 2 == 0 ? STR("NVIDIA L4") : STR("NVIDIA T4"),
			.memory = i % 2 == 0 ? 24 * GB : 16 * GB,
			.free = i != 1 };
	add_worker(&w, "w4", 64, 0, "", 0)->gpus = mixed;
	w.workers[3].gpus_n = 4;
	const struct str h100[] = { STR("H100") }, small[] = { STR("L4"), STR("T4") };
	add_step(&w, "two", 1, 2)->gpus = (struct gpus_want){ 2, h100, 1, 0, 0 };
	add_step(&w, "eight", 1, 8);
	add_step(&w, "cpu", 1, 0);
	add_step(&w, "one", 1, 1)->gpus = (struct gpus_want){ 1, small, 2, 0, 40 * GB };
	add_step(&w, "pair", 1, 2)->gpus = (struct gpus_want){ 2, small, 2, 0, 0 };
	places(&w, "two>w2 eight>w1 cpu>w3 one>w4 pair>w4", &r);
	assert_int_equal(r.placed[0].gpus_n, 2);
	assert_true(str_is(r.placed[0].gpus[0], "GPU-w2-0"));
	assert_true(str_is(r.placed[0].gpus[1], "GPU-w2-1"));
	assert_int_equal(r.placed[2].gpus_n, 0);
	/* Of the kind with the fewest free, so that two of one kind are left for the pair. */
	assert_true(str_is(r.placed[3].gpus[0], "GPU-m-3"));
	assert_true(str_is(r.placed[4].gpus[0], "GPU-m-0"));
	assert_true(str_is(r.placed[4].gpus[1], "GPU-m-2"));
	arena_drop(w.a);
}

void test_place__the_first_runtime_that_is_offered(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_init(&w);
	add_worker(&w, "w1", 4, 0, "", 0)->runtimes = 1 << RUNTIME_PROCESS;
	add_step(&w, "s1", 1, 0);
	places(&w, "s1>w1", &r);
	assert_int_equal(r.placed[0].runtime, RUNTIME_PROCESS);
	w.workers[0].runtimes |= 1 << RUNTIME_DOCKER;
	places(&w, "s1>w1", &r);
	assert_int_equal(r.placed[0].runtime, RUNTIME_DOCKER);
	arena_drop(w.a);
}

void test_place__fractions_of_a_core_add_up(void **state)
{
	static const char *const ids[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "x" };
	struct place_result r;
	struct world w;

	(void)state;
	world_init(&w);
	add_worker(&w, "w", 1, 0, "", 0);
	for (size_t i = 0; i < 11; i++)
		add_step(&w, ids[i], 0.1, 0);
	places(&w, "0>w 1>w 2>w 3>w 4>w 5>w 6>w 7>w 8>w 9>w; x", &r);
	arena_drop(w.a);
}

void test_place__names_fit_the_runtimes_of_the_api(void **state)
{
	(void)state;
	assert_true((int)RUNTIME_COUNT <= (int)PLACE_RUNTIMES_MAX);
	for (int k = 0; k < PLACE_BLOCKER_KINDS; k++)
		assert_true(strlen(place_blocker_name((enum place_blocker_kind)k)) > 0);
}

void test_place__nothing_to_do(void **state)
{
	const struct place_snapshot none = { 0 };
	struct arena *a = arena_new(place_room(&none));
	struct place_result r;

	(void)state;
	place_pass(&none, a, &r);
	assert_int_equal(r.placed_n, 0);
	assert_int_equal(r.waiting_n, 0);
	arena_drop(a);
}
