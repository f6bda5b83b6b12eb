#include "api/pool.h"
#include "server/sched/snapshot.h"
#include "tests/unit/place_world.h"

static void set_pool(struct world *w, struct place_pool *pool)
{
	w->s.pools = pool;
	w->s.pools_n = 1;
}

void test_place_pool__a_pool_packs_or_spreads(void **state)
{
	struct place_pool pool = place_pool_default;
	struct place_result r;
	struct world w;

	(void)state;
	world_init(&w);
	pool.name = STR("default");
	set_pool(&w, &pool);
	add_worker(&w, "w1", 8, 8, "NVIDIA H100", 80 * GB);
	add_worker(&w, "w2", 8, 4, "NVIDIA H100", 80 * GB);
	add_worker(&w, "w3", 16, 0, "", 0)->running = 1;
	add_worker(&w, "w4", 8, 0, "", 0)->running = 2;
	add_step(&w, "g1", 1, 2);
	add_step(&w, "g2", 1, 2);
	add_step(&w, "g3", 1, 2);
	add_step(&w, "c1", 1, 0);
	add_step(&w, "c2", 1, 0);
	add_step(&w, "c3", 1, 0);
	pool.policy = PLACE_AUTO;
	places(&w, "g1>w2 g2>w2 g3>w1 c1>w3 c2>w3 c3>w4", &r);
	pool.policy = PLACE_PACK;
	places(&w, "g1>w2 g2>w2 g3>w1 c1>w4 c2>w4 c3>w4", &r);
	pool.policy = PLACE_SPREAD;
	places(&w, "g1>w1 g2>w1 g3>w2 c1>w3 c2>w3 c3>w4", &r);
	/* Another pool's policy is not this one's. */
	pool.name = STR("other");
	places(&w, "g1>w2 g2>w2 g3>w1 c1>w3 c2>w3 c3>w4", &r);
	arena_drop(w.a);
}

static void waits_for(struct place_result *r, bool never, const char *text)
{
	char said[PLACE_TEXT_MAX];
	uint32_t n;

	assert_int_equal(r->waiting_n, 1);
	const struct place_blocker *b = place_blockers(r, 0, &n);
	assert_int_equal(n, 1);
	assert_int_equal(b->kind, PLACE_SENSITIVITY);
	assert_int_equal(b->never, never);
	assert_string_equal(place_explain(said, b, true), text);
	assert_string_equal(place_blocker_name(b->kind), "sensitivity");
}

void test_place_pool__a_step_goes_only_where_its_sensitivity_is_allowed(void **state)
{
	struct place_pool pools[2] = { { .name = STR("default"),
					       .sensitivities = 1 << PLACE_PUBLIC },
		{ .name = STR("vault"),
			.sensitivities = 1 << PLACE_RESTRICTED | 1 << PLACE_INTERNAL } };
	struct place_change change;
	char said[PLACE_TEXT_MAX];
	struct place_result r;
	struct world w;

	(void)state;
	world_init(&w);
	add_worker(&w, "w1", 8, 0, "", 0);
	add_worker(&w, "w2", 8, 0, "", 0)->pool = STR("vault");
	struct place_step *s = add_step(&w, "s", 1, 0);
	/* Nobody has set anything: all but what is restricted. */
	s->sensitivity = PLACE_CONFIDENTIAL;
	places(&w, "s>w1", &r);
	s->sensitivity = PLACE_RESTRICTED;
	places(&w, "; s", &r);
	waits_for(&r, true, "pool default takes no steps that are restricted");
	assert_false(place_change(&r, 0, &change)); /* nor does the other */
	w.s.pools = pools;
	w.s.pools_n = 2;
	places(&w, "; s", &r);
	assert_true(place_change(&r, 0, &change));
	assert_string_equal(
		place_change_text(said, &change), "on w2, if it were placed in pool vault");
	s->pool = STR("vault");
	places(&w, "s>w2", &r);
	s->sensitivity = PLACE_CONFIDENTIAL;
	places(&w, "; s", &r);
	waits_for(&r, true, "pool vault takes no steps that are confidential");
	s->pool = STR("nowhere");
	places(&w, "; s", &r);
	uint32_t n;
	assert_int_equal(place_blockers(&r, 0, &n)->kind, PLACE_NO_POOL);
	arena_drop(w.a);
}

void test_place_pool__a_snapshot_tells_of_pools(void **state)
{
	struct place_pool pool = { .name = STR("default"),
		.policy = PLACE_SPREAD,
		.preemption = PLACE_PREEMPT_PRIORITY,
		.sensitivities = 1 << PLACE_PUBLIC | 1 << PLACE_RESTRICTED };
	struct snapshot_file f;
	struct place_result r;
	struct world w;
	struct buf b;
	struct err e;

	(void)state;
	world_init(&w);
	set_pool(&w, &pool);
	add_worker(&w, "w1", 8, 4, "NVIDIA H100", 80 * GB);
	add_worker(&w, "w2", 8, 8, "NVIDIA H100", 80 * GB);
	add_step(&w, "g1", 1, 2)->sensitivity = PLACE_RESTRICTED;
	places(&w, "g1>w2", &r);
	buf_init(&b, 1 << 20);
	snapshot_write(&w.s, &r, 5, &b);
	struct arena *a = arena_new(SNAPSHOT_ARENA);
	assert_int_equal(snapshot_read(buf_str(&b), a, &f, &e), 0);
	assert_int_equal(f.snapshot.pools_n, 1);
	assert_true(str_is(f.snapshot.pools[0].name, "default"));
	assert_int_equal(f.snapshot.pools[0].policy, PLACE_SPREAD);
	assert_int_equal(f.snapshot.pools[0].preemption, PLACE_PREEMPT_PRIORITY);
	assert_int_equal(f.snapshot.pools[0].sensitivities, 9);
	assert_int_equal(f.snapshot.steps[0].sensitivity, PLACE_RESTRICTED);
	place_pass(&f.snapshot, a, &r);
	assert_int_equal(r.placed_n, 1);
	assert_int_equal(r.placed[0].worker, 1);
	arena_drop(a);
	buf_done(&b);
	arena_drop(w.a);
}

/* The two sides may not see each other. */
void test_place_pool__numbers_are_those_of_the_api(void **state)
{
	(void)state;
	for (int s = 0; s < PLACE_SENSITIVITIES; s++)
		assert_string_equal(place_sensitivity_names[s], sensitivity_names[s]);
	assert_int_equal((int)PLACE_SENSITIVITIES, (int)SENSITIVITY_COUNT);
	assert_int_equal((int)PLACE_POLICIES, (int)POOL_POLICY_COUNT);
	assert_string_equal(pool_policy_names[PLACE_AUTO], "auto");
	assert_string_equal(pool_policy_names[PLACE_PACK], "pack");
	assert_string_equal(pool_policy_names[PLACE_SPREAD], "spread");
	assert_int_equal((int)PLACE_PREEMPTIONS, (int)POOL_PREEMPT_COUNT);
	assert_string_equal(pool_preemption_names[PLACE_PREEMPT_NONE], "none");
	assert_string_equal(pool_preemption_names[PLACE_PREEMPT_QUOTA], "quota");
	assert_string_equal(pool_preemption_names[PLACE_PREEMPT_PRIORITY], "priority");
}
