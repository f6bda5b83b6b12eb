#include "server/core/place_why.h"

#include "lib/base/clock.h"
#include "tests/unit/place_world.h"

static void waits_for(
	const struct world *w, const struct place_result *r, const char *step, const char *want)
{
	char text[PLACE_TEXT_MAX];
	uint32_t n;

	for (size_t i = 0; i < r->waiting_n; i++)
		if (str_is(w->steps[r->waiting[i]].id, step)) {
			const struct place_blocker *b = place_blockers(r, i, &n);
			assert_int_equal(n, 1);
			assert_string_equal(place_explain(text, b, true), want);
			return;
		}
	fail_msg("%s does not wait", step);
}

void test_place_keep__what_ends_in_time_may_pass(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_busy(&w, 100, 4, 1000);
	add_step(&w, "wide", 1, 8);
	add_step(&w, "long", 1, 2)->time_limit = 901;
	add_step(&w, "short", 1, 2)->time_limit = 900;
	add_step(&w, "endless", 1, 1);
	places(&w, "short>a; wide long endless | wide@a:1000", &r);
	waits_for(&w, &r, "wide", "needs 8 GPUs on one worker; the largest free block is 2, on a");
	waits_for(&w, &r, "long",
		"a has room, which is kept until 1970-01-01T00:00:00.001000Z for a step before it; "
		"with a time limit that ends by then it could start");
	struct place_change c;
	char text[PLACE_TEXT_MAX];
	w.s.steps_n = 2;
	w.steps[1].time_limit = 0;
	w.running[0].ends_by = 3600000100;
	place_pass(&w.s, w.a, &r);
	assert_true(place_change(&r, 1, &c));
	assert_string_equal(
		place_change_text(text, &c), "on a, if it had a time limit of at most 3600 s");
	w.s.steps_n = 4;
	w.steps[1].time_limit = 901;
	w.running[0].ends_by = 1000;
	/* Another worker is everybody's. */
	busy_worker(&w, "b", 6, 500);
	places(&w, "long>a short>a; wide endless | wide@b:500", &r);
	/* It is kept where the step can start first. */
	w.running[1].ends_by = 5000;
	places(&w, "long>b short>a; wide endless | wide@a:1000", &r);
	arena_drop(w.a);
}

void test_place_keep__what_is_left_over_may_be_held(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_busy(&w, 100, 5, 1000);
	add_step(&w, "wide", 1, 6);
	add_step(&w, "one", 1, 1);
	add_step(&w, "two", 1, 1);
	add_step(&w, "three", 1, 1);
	places(&w, "one>a two>a; wide three | wide@a:1000", &r);
	/* What needs no GPU is not in the way of those, but of cores. */
	w.s.steps_n = 1;
	w.steps[0].cpus = 60;
	add_step(&w, "cores", 4, 0);
	add_step(&w, "more", 1, 0);
	places(&w, "cores>a; wide more | wide@a:1000", &r);
	arena_drop(w.a);
}

void test_place_keep__without_time_limits_only_after_patience(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_busy(&w, 0, 5, 0);
	busy_worker(&w, "b", 4, 0);
	struct place_step *wide = add_step(&w, "wide", 1, 8);
	wide->queued_at = 0;
	add_step(&w, "one", 1, 1);
	add_step(&w, "limited", 1, 1)->time_limit = 1;
	w.s.now = PLACE_PATIENCE - 1;
	places(&w, "one>a limited>a; wide", &r);
	w.s.now = PLACE_PATIENCE;
	/* The one with the most free; nobody knows when, so nobody ends in time. */
	places(&w, "one>a limited>a; wide | wide@b:0", &r);
	w.workers[0].draining = true;
	places(&w, "; wide one limited | wide@b:0", &r);
	waits_for(&w, &r, "one", "b has room, which is kept for a step before it");
	/* What was kept stays kept. */
	w.workers[0].draining = false;
	wide->kept = (const uint32_t[]){ 0 };
	wide->kept_n = 1;
	places(&w, "one>b limited>b; wide | wide@a:0", &r);
	/* A time that is known goes before. */
	w.running[1].ends_by = PLACE_PATIENCE + 5;
	places(&w, "one>a limited>a; wide | wide@b:600000005", &r);
	arena_drop(w.a);
}

void test_place_keep__what_was_placed_just_now_counts(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_busy(&w, 100, 0, 0);
	struct place_step *first = add_step(&w, "first", 1, 6);
	first->time_limit = 50;
	first->priority = 1;
	add_step(&w, "wide", 1, 8);
	add_step(&w, "fits", 1, 2)->time_limit = 50;
	add_step(&w, "not", 1, 2)->time_limit = 51;
	places(&w, "first>a fits>a; wide not | wide@a:150", &r);
	first->time_limit = 0;
	places(&w, "first>a fits>a; wide not | not@a:150", &r);
	arena_drop(w.a);
}

/* What is kept for a step tells when it starts. */
void test_place_keep__the_start_is_when_it_is_kept_for(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_busy(&w, 100, 4, 1000);
	add_step(&w, "wide", 1, 8)->time_limit = 500;
	add_step(&w, "next", 1, 4)->time_limit = 5000;
	places(&w, "; wide next | wide@a:1000", &r);
	struct arena *scratch = arena_new(2 * place_start_room(&r));
	assert_int_equal(place_start(&r, 0, 100, scratch), 1000);
	assert_int_equal(place_start(&r, 1, 100, scratch), 1500);
	arena_drop(scratch);
	arena_drop(w.a);
}

/* What is kept in one pool is no reason to keep nothing in another. */
void test_place_keep__each_pool_keeps_its_own(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_busy(&w, 100, 4, 1000);
	busy_worker(&w, "b", 4, 2000);
	w.workers[1].pool = STR("other");
	add_step(&w, "wide", 1, 8);
	add_step(&w, "next", 1, 8);
	add_step(&w, "there", 1, 8)->pool = STR("other");
	places(&w, "; wide next there | wide@a:1000 there@b:2000", &r);
	arena_drop(w.a);
}

/* An attempt may hold GPUs of several kinds. */
void test_place_keep__gpus_of_all_kinds_are_given_back(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_busy(&w, 100, 8, 1000);
	struct place_gpu *gpus = (struct place_gpu *)(uintptr_t)w.workers[0].gpus;
	for (int i = 0; i < 3; i++)
		gpus[i].model = STR("NVIDIA L40S");
	add_step(&w, "wide", 1, 8);
	add_step(&w, "short", 0.5, 0)->time_limit = 900;
	places(&w, "short>a; wide | wide@a:1000", &r);
	/* The same when it was placed just now. */
	for (int i = 0; i < 8; i++)
		gpus[i].free = true;
	w.s.running_n = 0;
	w.steps[1] = w.steps[0];
	w.steps[1].id = STR("first");
	w.steps[1].priority = 1;
	w.steps[1].time_limit = 70;
	places(&w, "first>a; wide | wide@a:170", &r);
	arena_drop(w.a);
}

void test_place_keep__who_has_it_kept_for_long_goes_first(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_busy(&w, 2 * PLACE_PATIENCE, 7, 0);
	w.projects[0].gpus = 7; /* so that the other project would be first */
	struct place_step *wide = add_step(&w, "wide", 1, 8);
	struct place_step *narrow = add_step(&w, "narrow", 1, 1);
	narrow->project = 1;
	places(&w, "narrow>a; wide | wide@a:0", &r);
	wide->kept = (const uint32_t[]){ 0 };
	wide->kept_n = 1;
	places(&w, "; wide narrow | wide@a:0", &r);
	/* Not before those with a greater priority, nor before it has waited long. */
	narrow->priority = 1;
	places(&w, "narrow>a; wide | wide@a:0", &r);
	narrow->priority = 0;
	wide->queued_at = w.s.now - PLACE_PATIENCE + 1;
	places(&w, "narrow>a; wide", &r);
	arena_drop(w.a);
}

/* ---- quotas and shares ---------------------------------------------------------------------- */

void test_place_order__what_is_granted_goes_before_what_is_borrowed(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_idle(&w);
	w.projects[0].gpus_quota = (struct place_quota){ true, 4, 2 };
	w.projects[1].gpus_quota = (struct place_quota){ true, 4, 4 };
	for (int i = 0; i < 4; i++)
		add_step(&w, (const char *[]){ "a1", "a2", "a3", "a4" }[i], 1, 2)->priority = 1000;
	add_step(&w, "b1", 1, 4)->project = 1;
	/* No priority of one project takes what is granted to the other. */
	places(&w, "a1>a a2>a b1>a; a3 a4", &r);
	w.s.steps_n = 4;
	places(&w, "a1>a a2>a a3>a; a4", &r);
	waits_for(&w, &r, "a4", "asks for 2 GPUs, and project prj_a has 0 left of its quota of 6");
	w.projects[0].name = STR("transit");
	w.projects[0].gpus = 5;
	places(&w, "; a1 a2 a3 a4", &r);
	waits_for(
		&w, &r, "a1", "asks for 2 GPUs, and project transit has 1 left of its quota of 6");
	w.projects[0].gpus_quota = (struct place_quota){ true, 1, 0 };
	places(&w, "; a1 a2 a3 a4", &r);
	waits_for(&w, &r, "a1", "asks for 2 GPUs, and the quota of project transit is 1");
	arena_drop(w.a);
}

void test_place_order__running_steps_have_a_quota_too(void **state)
{
	char text[PLACE_TEXT_MAX];
	struct place_result r;
	struct world w;
	uint32_t n;

	(void)state;
	world_init(&w);
	add_worker(&w, "a", 64, 0, "", 0);
	w.projects[0].name = STR("transit");
	w.projects[0].running = 1;
	w.projects[0].steps_quota = (struct place_quota){ true, 2, 1 };
	for (int i = 0; i < 3; i++)
		add_step(&w, (const char *[]){ "a1", "a2", "a3" }[i], 1, 0);
	places(&w, "a1>a a2>a; a3", &r);
	waits_for(&w, &r, "a3", "project transit is at its quota of 3 running steps");
	assert_string_equal(place_explain(text, place_blockers(&r, 0, &n), false),
		"project transit is at its quota of 3 running steps");
	assert_false(place_blockers(&r, 0, &n)->never);
	w.projects[0].steps_quota = (struct place_quota){ true, 0, 0 };
	places(&w, "; a1 a2 a3", &r);
	assert_true(place_blockers(&r, 0, &n)->never);
	arena_drop(w.a);
}

void test_place_order__a_quota_is_not_used_up_for_ever(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_idle(&w);
	w.s.now = PLACE_PATIENCE;
	add_worker(&w, "b", 64, 8, "NVIDIA H100", 80 * GB);
	w.projects[0].name = STR("transit");
	w.projects[0].gpus_quota = (struct place_quota){ true, 6, 2 };
	w.projects[0].gpus = 4;
	struct place_step *wide = add_step(&w, "wide", 1, 8);
	wide->queued_at = 1;
	struct place_step *narrow = add_step(&w, "narrow", 1, 1);
	add_step(&w, "cores", 1, 0);
	places(&w, "narrow>a cores>b; wide", &r);
	wide->queued_at = 0;
	places(&w, "cores>a; wide narrow", &r);
	waits_for(&w, &r, "narrow",
		"the rest of the quota of project transit is kept for a step before it");
	waits_for(&w, &r, "wide",
		"asks for 8 GPUs, and project transit has 4 left of its quota of 8");
	/* Not for what could never run, nor against those with a greater priority. */
	w.workers[0].gpus_n = w.workers[1].gpus_n = 7;
	places(&w, "narrow>a cores>b; wide", &r);
	w.workers[0].gpus_n = 8;
	narrow->priority = 1;
	places(&w, "narrow>b cores>a; wide", &r);
	narrow->priority = 0;
	w.projects[0].gpus = 0;
	places(&w, "cores>a wide>a; narrow", &r);
	arena_drop(w.a);
}

/* Who holds most of what is scarce for him waits for who holds less, whatever that is. */
void test_place_order__by_dominant_share(void **state)
{
	struct place_result r;
	struct world w;

	(void)state;
	world_idle(&w);
	w.projects[0].gpus = 4; /* half of the GPUs */
	w.projects[1].cpus = 16; /* a quarter of the cores */
	w.projects[1].running = 30; /* how many they are does not count */
	add_step(&w, "a1", 1, 1);
	add_step(&w, "b1", 1, 1)->project = 1;
	places(&w, "b1>a a1>a", &r);
	w.projects[0].weight = 4;
	places(&w, "a1>a b1>a", &r);
	arena_drop(w.a);
}
