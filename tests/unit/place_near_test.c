#include "server/core/place_near.h"

#include "tests/unit/place_world.h"

enum { MOST = 16 };

static uint32_t draw(uint64_t *r, uint32_t n)
{
	*r = *r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*r >> 33) % n;
}

struct host {
	struct place_gpu gpus[70];
	struct place_worker w;
};

static void host_init(struct host *h, uint32_t n)
{
	*h = (struct host){ .w = { .gpus = h->gpus, .gpus_n = n } };
}

static void link_gpus(struct host *h, uint32_t a, uint32_t b)
{
	h->gpus[a].links |= UINT64_C(1) << b;
	h->gpus[b].links |= UINT64_C(1) << a;
}

/* All that stand in one block are linked, and on one node. */
static void blocks(struct host *h, uint32_t linked, uint32_t node)
{
	for (uint32_t a = 0; a < h->w.gpus_n; a++) {
		h->gpus[a].numa = node != 0 ? a / node + 1 : 0;
		for (uint32_t b = a + 1; linked != 0 && b < h->w.gpus_n; b++)
			if (a / linked == b / linked)
				link_gpus(h, a, b);
	}
}

static void expect(const struct host *h, uint64_t free, uint32_t want, uint64_t chosen)
{
	uint32_t from[70], got[70], n = 0;
	uint64_t set = 0;

	for (uint32_t i = 0; i < h->w.gpus_n && i < 64; i++)
		if ((free >> i & 1) != 0)
			from[n++] = i;
	place_nearest(&h->w, from, n, want, got);
	for (uint32_t i = 0; i < want; i++) {
		assert_true(i == 0 || got[i] > got[i - 1]);
		set |= UINT64_C(1) << got[i];
	}
	assert_int_equal(set, chosen);
}

void test_place_near__in_order_where_nothing_is_told(void **state)
{
	struct host h;

	(void)state;
	host_init(&h, 8);
	expect(&h, 0xf6, 3, 0x16);
	expect(&h, 0xff, 8, 0xff);
	blocks(&h, 8, 8); /* all are alike */
	expect(&h, 0xf6, 3, 0x16);
}

void test_place_near__one_node_and_the_other_whole(void **state)
{
	struct host h;

	(void)state;
	host_init(&h, 8);
	blocks(&h, 0, 4); /* two nodes, no NVLink */
	expect(&h, 0xff, 4, 0x0f);
	expect(&h, 0xfc, 4, 0xf0); /* two are free of the first node */
	expect(&h, 0xfc, 2, 0x0c);
	expect(&h, 0xf8, 1, 0x08); /* the four stay together */
	expect(&h, 0x7c, 3, 0x70);
}

void test_place_near__links_go_before_nodes(void **state)
{
	struct host h;

	(void)state;
	host_init(&h, 8);
	blocks(&h, 2, 0); /* bridges between two each, across nodes that go by turns */
	for (uint32_t i = 0; i < 8; i++)
		h.gpus[i].numa = i % 2 + 1;
	expect(&h, 0xff, 2, 0x03);
	expect(&h, 0xfe, 2, 0x0c); /* 1 has lost its mate */
	expect(&h, 0xfe, 1, 0x02); /* so it goes first */
	expect(&h, 0xfd, 4, 0x3c);
	expect(&h, 0x55, 2, 0x05); /* no two are linked: of one node */
}

void test_place_near__more_than_it_looks_at(void **state)
{
	struct host h;
	uint32_t from[70], got[70];

	(void)state;
	host_init(&h, 70); /* what stands behind the 64th has no links */
	blocks(&h, 0, 35);
	for (uint32_t i = 0; i < 70; i++)
		from[i] = i;
	place_nearest(&h.w, from, 70, 5, got);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(got[i], i);
	place_nearest(&h.w, from + 33, 37, 35, got); /* the two on the first node stay */
	for (uint32_t i = 0; i < 35; i++)
		assert_int_equal(got[i], i + 35);
	uint64_t seed = 3; /* everybody is another: more sets than are looked at, but an answer */
	host_init(&h, 40);
	for (uint32_t a = 0; a < 40; a++)
		for (uint32_t b = a + 1; b < 40; b++)
			if (draw(&seed, 2) == 0)
				link_gpus(&h, a, b);
	place_nearest(&h.w, from, 40, 20, got);
	for (uint32_t i = 0; i < 20; i++)
		assert_true(got[i] < 40 && (i == 0 || got[i] > got[i - 1]));
}

/* ---- against all sets, plainly ---- */

struct cost {
	uint32_t v[4];
};

static void pairs_of(const struct host *h, uint64_t set, uint32_t ret[2])
{
	ret[0] = ret[1] = 0;
	for (uint32_t a = 0; a < h->w.gpus_n; a++)
		for (uint32_t b = a + 1; b < h->w.gpus_n; b++) {
			if ((set >> a & 1) == 0 || (set >> b & 1) == 0)
				continue;
			ret[0] += (h->gpus[a].links >> b & 1) == 0;
			ret[1] += h->gpus[a].numa != h->gpus[b].numa && h->gpus[a].numa != 0 &&
				  h->gpus[b].numa != 0;
		}
}

/* Whether the set a, read from its first position on, comes before b. */
static bool goes_before(uint64_t a, uint64_t b)
{
	for (uint32_t i = 0; i < 64; i++)
		if ((a >> i & 1) != (b >> i & 1))
			return (a >> i & 1) != 0;
	return false;
}

static uint64_t best_of(const struct host *h, uint64_t free, uint32_t want)
{
	uint64_t best = 0;
	struct cost least = { { 0 } };

	for (uint64_t set = free;; set = (set - 1) & free) {
		struct cost c;
		if ((uint32_t)__builtin_popcountll(set) == want) {
			pairs_of(h, set, c.v);
			pairs_of(h, free & ~set, c.v + 2);
			int d = 0;
			for (int i = 0; i < 4 && d == 0; i++)
				d = (c.v[i] > least.v[i]) - (c.v[i] < least.v[i]);
			if (best == 0 || d < 0 || (d == 0 && goes_before(set, best))) {
				best = set;
				least = c;
			}
		}
		if (set == 0)
			return best;
	}
}

static void random_host(struct host *h, uint64_t *r, uint32_t n)
{
	uint32_t nodes = 1 + draw(r, 3), dense = draw(r, 5);

	host_init(h, n);
	if (draw(r, 3) == 0)
		blocks(h, 1 + draw(r, n), draw(r, 5));
	for (uint32_t a = 0; a < n; a++) {
		if (draw(r, 3) != 0)
			h->gpus[a].numa = draw(r, nodes + 1);
		for (uint32_t b = a + 1; b < n; b++)
			if (draw(r, 4) < dense && dense < 4)
				link_gpus(h, a, b);
	}
}

void test_place_near__is_the_best_of_all_sets(void **state)
{
	struct host h;
	uint64_t r = 5;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		uint32_t n = 1 + draw(&r, 9);
		random_host(&h, &r, n);
		uint64_t free = 1 + draw(&r, (1U << n) - 1);
		uint32_t most = (uint32_t)__builtin_popcountll(free);
		uint32_t want = 1 + draw(&r, most);
		expect(&h, free, want, best_of(&h, free, want));
	}
	for (int round = 0; round < 4; round++) { /* as many as it is said to be exact for */
		random_host(&h, &r, MOST);
		for (uint32_t a = 0; round % 2 == 0 && a < MOST; a++)
			link_gpus(&h, a, (a + 1 + draw(&r, MOST - 1)) % MOST);
		expect(&h, 0xffff, MOST / 2, best_of(&h, 0xffff, MOST / 2));
	}
}

void test_place_near__a_step_gets_them(void **state)
{
	struct world w;
	struct place_result r;

	(void)state;
	world_idle(&w);
	struct place_gpu *gpus = (struct place_gpu *)(uintptr_t)w.workers[0].gpus;
	for (uint32_t i = 0; i < 8; i++)
		gpus[i].numa = i % 2 + 1; /* neighbours are not next to each other */
	add_step(&w, "s1", 1, 4);
	add_step(&w, "s2", 1, 3);
	places(&w, "s1>a s2>a", &r);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(str_eq(r.placed[0].gpus[i], gpus[2 * i].uuid));
	for (uint32_t i = 0; i < 3; i++)
		assert_true(str_eq(r.placed[1].gpus[i], gpus[2 * i + 1].uuid));
	arena_drop(w.a);
}
