/* Who holds what a step needs is preferred, among those that are equal in all that counts more. */
#include "tests/unit/place_world.h"

static const uint32_t on_a[] = { 0 }, on_b[] = { 1 }, on_ac[] = { 0, 2 }, both[] = { 0, 1 };

/* Three workers without GPUs and one step; its goods are the first n. */
static struct place_step *three(struct world *w, const struct place_good *goods, uint32_t n)
{
	world_init(w);
	add_worker(w, "a", 4, 0, "", 0);
	add_worker(w, "b", 4, 0, "", 0);
	add_worker(w, "c", 4, 0, "", 0);
	w->s.goods = goods;
	w->s.goods_n = n;
	struct place_step *s = add_step(w, "s1", 1, 0);
	s->goods = both;
	s->goods_n = n;
	return s;
}

static void held(const struct place_result *r, size_t at, uint32_t want)
{
	assert_int_equal(r->placed[at].held, want);
}

void test_place_goods__most_bytes_decide(void **state)
{
	const struct place_good goods[] = { { STR("image"), 30 * GB, on_b, 1 },
		{ STR("data"), 10 * GB, on_ac, 2 } };
	struct world w;
	struct place_result r;

	(void)state;
	three(&w, goods, 2);
	places(&w, "s1>b", &r);
	held(&r, 0, 750);
	w.workers[1].running = 9; /* it goes where its image is, although others run less there */
	places(&w, "s1>b", &r);
	w.workers[1].offline = true;
	places(&w, "s1>a", &r);
	held(&r, 0, 250);
	w.workers[0].running = 1;
	places(&w, "s1>c", &r); /* of two that hold as much, the one that runs less */
	w.workers[0].cpus_free = w.workers[2].cpus_free = 0;
	places(&w, "; s1", &r);
	w.workers[1].offline = false;
	w.workers[1].avoided = true; /* by its faults: taken when no other will do */
	places(&w, "s1>b", &r);
	w.workers[0].cpus_free = 1;
	places(&w, "s1>a", &r);
	arena_drop(w.a);
}

void test_place_goods__nobody_waits_for_them(void **state)
{
	const struct place_good goods[] = { { STR("image"), 30 * GB, on_b, 1 } };
	struct world w;
	struct place_result r;

	(void)state;
	struct place_step *s = three(&w, goods, 1);
	w.workers[1].cpus_free = 0;
	places(&w, "s1>a", &r);
	held(&r, 0, 0);
	s->goods_n = 0; /* what nobody holds is no reason */
	places(&w, "s1>a", &r);
	arena_drop(w.a);
}

void test_place_goods__what_a_pool_wants_counts_more(void **state)
{
	const struct place_good goods[] = { { STR("image"), 0, on_b, 1 } };
	struct place_pool pool = { .name = STR("default"), .sensitivities = 1 << PLACE_PUBLIC };
	struct world w;
	struct place_result r;

	(void)state;
	three(&w, goods, 1);
	w.s.pools = &pool;
	w.s.pools_n = 1;
	w.workers[0].running = 1;
	places(&w, "s1>b", &r);
	held(&r, 0, 1000); /* also where its size is not known */
	pool.policy = PLACE_SPREAD;
	w.workers[1].running = 1;
	places(&w, "s1>c", &r);
	w.workers[2].running = 1;
	places(&w, "s1>b", &r);
	pool.policy = PLACE_PACK;
	places(&w, "s1>b", &r);
	w.workers[2].cpus_free = 3;
	places(&w, "s1>c", &r);
	arena_drop(w.a);
	/* With GPUs: wide gaps stay whole first. */
	pool.policy = PLACE_AUTO;
	world_init(&w);
	busy_worker(&w, "a", 4, 0);
	busy_worker(&w, "b", 0, 0);
	busy_worker(&w, "c", 4, 0);
	w.s.goods = goods;
	w.s.goods_n = 1;
	struct place_step *s = add_step(&w, "s1", 1, 2);
	s->goods = on_a; /* the first of the goods, which b holds */
	s->goods_n = 1;
	places(&w, "s1>a", &r);
	s->gpus.count = 5;
	places(&w, "s1>b", &r);
	const struct place_good on_c = { STR("image"), 1, (const uint32_t[]){ 2 }, 1 };
	w.s.goods = &on_c;
	s->gpus.count = 2;
	places(&w, "s1>c", &r);
	arena_drop(w.a);
}

void test_place_goods__of_a_gang_and_of_several_steps(void **state)
{
	const struct place_good goods[] = { { STR("x"), GB, on_b, 1 }, { STR("y"), GB, on_ac, 2 } };
	struct world w;
	struct place_result r;

	(void)state;
	struct place_step *s = three(&w, goods, 2);
	s->goods = on_b; /* y */
	s->goods_n = 1;
	s->nodes = 2;
	s = add_step(&w, "s2", 1, 0);
	s->goods = on_a; /* x */
	s->goods_n = 1;
	add_step(&w, "s3", 1, 0);
	places(&w, "s1>a s1>c s2>b s3>a", &r);
	held(&r, 0, 1000);
	held(&r, 2, 1000);
	held(&r, 3, 0);
	arena_drop(w.a);
}
