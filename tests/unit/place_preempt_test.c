#include "server/core/place_victims.h"
#include "server/sched/replay.h"
#include "tests/unit/place_world.h"

#include <time.h>

#define HOUR INT64_C(3600000000)

/* A pool that preempts, at an hour past the beginning. */
static void world_preempts(struct world *w, struct place_pool *pool, enum place_preemption how)
{
	world_init(w);
	*pool = place_pool_default;
	pool->name = STR("default");
	pool->preemption = how;
	w->s.pools = pool;
	w->s.pools_n = 1;
	w->s.now = HOUR;
	w->s.running = w->running;
	w->projects[0].name = STR("alpha");
	w->projects[1].name = STR("beta");
}

/* An attempt on the worker that was added last, with so many of its GPUs. */
static struct place_running *runs(struct world *w, const char *id, uint32_t gpus, int64_t since)
{
	uint32_t at = (uint32_t)w->s.workers_n - 1, got = 0;
	struct place_worker *k = &w->workers[at];
	struct place_gpu *list = (struct place_gpu *)(uintptr_t)k->gpus;
	struct str *uuids = arena_array_of(w->a, struct str, gpus + 1);
	struct place_running *x = &w->running[w->s.running_n++];

	for (uint32_t i = 0; i < k->gpus_n && got < gpus; i++) {
		if (!list[i].free)
			continue;
		list[i].free = false;
		uuids[got++] = list[i].uuid;
	}
	assert_int_equal(got, gpus);
	*x = (struct place_running){ .worker = at,
		.cpus = 1,
		.memory = GB,
		.gpus = uuids,
		.gpus_n = gpus,
		.id = str_c(id),
		.step = str_c(id),
		.since = since };
	k->cpus_free -= 1;
	k->memory_free -= GB;
	k->running++;
	w->projects[0].running++;
	w->projects[0].gpus += gpus;
	return x;
}

static void of_beta(struct world *w, struct place_running *x)
{
	x->project = 1;
	w->projects[0].running--;
	w->projects[0].gpus -= x->gpus_n;
	w->projects[1].running++;
	w->projects[1].gpus += x->gpus_n;
}

/* "s1@w1: r1 r2(reclaimed); …" */
static void preempts(struct world *w, const char *want, struct place_result *r)
{
	char got[1000] = "";

	place_pass(&w->s, w->a, r);
	for (size_t i = 0; i < r->preempted_n; i++) {
		const struct place_preempted *p = &r->preempted[i];
		(void)str_print(got + strlen(got), sizeof got - strlen(got), "%s%.*s@",
			i != 0 ? "; " : "", STR_ARG(w->steps[p->step].id));
		for (uint32_t k = 0; k < p->workers_n; k++)
			(void)str_print(got + strlen(got), sizeof got - strlen(got), "%s%.*s",
				k != 0 ? "+" : "", STR_ARG(w->workers[p->workers[k]].id));
		(void)str_print(got + strlen(got), sizeof got - strlen(got), ":");
		for (uint32_t k = 0; k < p->victims_n; k++)
			(void)str_print(got + strlen(got), sizeof got - strlen(got), " %.*s%s",
				STR_ARG(w->running[p->victims[k].running].id),
				p->victims[k].reclaimed ? "(reclaimed)" : "");
	}
	assert_string_equal(got, want);
}

void test_place_preempt__only_where_the_pool_says_so_and_only_smaller_priorities(void **state)
{
	struct place_pool pool;
	struct place_result r;
	struct world w;

	(void)state;
	world_preempts(&w, &pool, PLACE_PREEMPT_PRIORITY);
	add_worker(&w, "w1", 8, 2, "NVIDIA H100", 80 * GB);
	runs(&w, "r1", 1, 1)->priority = 10;
	struct place_running *low = runs(&w, "r2", 1, 1);
	low->priority = 5;
	struct place_step *s = add_step(&w, "s1", 1, 1);
	s->priority = 5; /* not the same */
	preempts(&w, "", &r);
	s->priority = 6;
	preempts(&w, "s1@w1: r2", &r);
	assert_int_equal(r.waiting_n, 1); /* it waits until that has ended */
	s->gpus.count = 2;
	preempts(&w, "", &r); /* never those of a greater one */
	s->priority = 11;
	preempts(&w, "s1@w1: r1 r2", &r);
	pool.preemption = PLACE_PREEMPT_QUOTA;
	preempts(&w, "", &r);
	pool.preemption = PLACE_PREEMPT_NONE;
	preempts(&w, "", &r);
	pool.preemption = PLACE_PREEMPT_PRIORITY;
	s->gpus.count = 1;
	low->fixed = true; /* its step must not be ended */
	preempts(&w, "s1@w1: r1", &r);
	arena_drop(w.a);
}

void test_place_preempt__the_fewest_then_the_least_work_lost(void **state)
{
	struct place_pool pool;
	struct place_result r;
	struct world w;

	(void)state;
	world_preempts(&w, &pool, PLACE_PREEMPT_PRIORITY);
	add_worker(&w, "w1", 16, 4, "NVIDIA H100", 80 * GB);
	runs(&w, "a1", 1, HOUR - 10);
	runs(&w, "a2", 1, HOUR - 20);
	runs(&w, "a3", 2, HOUR - 1000);
	add_worker(&w, "w2", 16, 4, "NVIDIA H100", 80 * GB);
	struct place_running *b1 = runs(&w, "b1", 4, HOUR - 400);
	struct place_step *s = add_step(&w, "s1", 1, 1);
	s->priority = 1;
	preempts(&w, "s1@w1: a1", &r); /* 10 × 1, before 400 × 4 */
	s->gpus.count = 2;
	preempts(&w, "s1@w2: b1", &r); /* one, 400 × 4 < 1000 × 2; a1 and a2 are two */
	b1->since = HOUR - 600;
	preempts(&w, "s1@w1: a3", &r);
	b1->since = 0; /* it has not begun: nothing is lost */
	preempts(&w, "s1@w2: b1", &r);
	b1->fixed = true;
	s->gpus.count = 3;
	preempts(&w, "s1@w1: a1 a3", &r);
	s->gpus.count = 4;
	preempts(&w, "s1@w1: a1 a2 a3", &r);
	/* Nobody ends twice for the same step. */
	const uint32_t me[] = { 0 };
	w.running[0].spared = me;
	w.running[0].spared_n = 1;
	preempts(&w, "", &r);
	s->gpus.count = 3;
	preempts(&w, "s1@w1: a2 a3", &r);
	arena_drop(w.a);
}

void test_place_preempt__not_where_it_can_start_soon(void **state)
{
	struct place_pool pool;
	struct place_result r;
	struct world w;

	(void)state;
	world_preempts(&w, &pool, PLACE_PREEMPT_PRIORITY);
	add_worker(&w, "w1", 16, 2, "NVIDIA H100", 80 * GB);
	runs(&w, "r1", 1, 1)->ends_by = HOUR + PLACE_GRACE;
	struct place_running *r2 = runs(&w, "r2", 1, 1);
	add_step(&w, "s1", 1, 1)->priority = 5;
	preempts(&w, "", &r);
	add_step(&w, "s2", 1, 1)->priority = 5; /* that place is promised to the first */
	preempts(&w, "s2@w1: r2", &r);
	w.running[0].ends_by++;
	w.s.steps_n = 1;
	preempts(&w, "s1@w1: r1", &r);
	/* What is being ended already for one who is not there any more. */
	w.running[0].by = 0;
	w.running[0].ends_by = HOUR + 1;
	r2->fixed = true;
	preempts(&w, "", &r);
	arena_drop(w.a);
}

void test_place_preempt__what_is_granted_takes_from_what_is_borrowed(void **state)
{
	struct place_pool pool;
	struct place_result r;
	struct world w;

	(void)state;
	world_preempts(&w, &pool, PLACE_PREEMPT_QUOTA);
	w.projects[0].gpus_quota = w.projects[1].gpus_quota =
		(struct place_quota){ .limited = true, .nominal = 2, .borrow = 2 };
	add_worker(&w, "w1", 16, 4, "NVIDIA H100", 80 * GB);
	for (uint32_t i = 0; i < 4; i++)
		of_beta(&w,
			runs(&w, (const char *[]){ "b1", "b2", "b3", "b4" }[i], 1, HOUR - 4 + i));
	w.running[0].priority = 1; /* b1 and b2 are what is granted */
	w.running[3].priority = 1000; /* no: the most urgent come first: b4 and b1 */
	struct place_step *s = add_step(&w, "s1", 1, 1);
	preempts(&w, "s1@w1: b3(reclaimed)", &r);
	s->gpus.count = 2;
	preempts(&w, "s1@w1: b3(reclaimed) b2(reclaimed)", &r);
	s->gpus.count = 3; /* it would borrow, too */
	preempts(&w, "", &r);
	s->gpus.count = 1;
	w.projects[0].gpus = 2;
	preempts(&w, "", &r);
	w.projects[0].gpus = 0;
	/* A project without a quota has nothing granted to it to claim back. */
	w.projects[0].gpus_quota.limited = false;
	preempts(&w, "", &r);
	pool.preemption = PLACE_PREEMPT_PRIORITY;
	preempts(&w, "", &r);
	s->priority = 2;
	preempts(&w, "s1@w1: b3", &r);
	/* Who borrows ends nobody who does not, whatever his priority; but who borrows. */
	w.projects[0].gpus_quota = (struct place_quota){ .limited = true, .borrow = 2 };
	s->priority = 1000;
	preempts(&w, "s1@w1: b3", &r);
	w.running[1].fixed = w.running[2].fixed = true;
	preempts(&w, "", &r);
	arena_drop(w.a);
}

/* Once another of its project has given way, it borrows no more. */
void test_place_preempt__who_borrows_is_counted_anew(void **state)
{
	struct place_pool pool;
	struct place_result r;
	struct world w;

	(void)state;
	world_preempts(&w, &pool, PLACE_PREEMPT_PRIORITY);
	for (int i = 0; i < 2; i++)
		w.projects[i].gpus_quota =
			(struct place_quota){ .limited = true, .nominal = 1, .borrow = 5 };
	add_worker(&w, "w1", 16, 2, "NVIDIA H100", 80 * GB);
	of_beta(&w, runs(&w, "b1", 1, HOUR - 1));
	of_beta(&w, runs(&w, "b2", 1, HOUR - 9));
	add_step(&w, "s1", 1, 1)->priority = 5;
	add_step(&w, "s2", 1, 1)->priority = 5;
	preempts(&w, "s1@w1: b1", &r);
	arena_drop(w.a);
}

/* A worker that is kept for one who waits is not kept from one who comes before him. */
void test_place_preempt__what_is_kept_for_others_gives_way_to_who_comes_before(void **state)
{
	struct place_pool pool;
	struct place_result r;
	struct world w;

	(void)state;
	world_preempts(&w, &pool, PLACE_PREEMPT_PRIORITY);
	add_worker(&w, "w1", 16, 2, "NVIDIA H100", 80 * GB);
	runs(&w, "r1", 1, 1);
	runs(&w, "r2", 1, 1)->priority = 4;
	struct place_step *s = add_step(&w, "s1", 1, 2), *u = add_step(&w, "urgent", 1, 1);
	s->queued_at = -HOUR;
	places(&w, "; s1 urgent | s1@w1:0", &r);
	u->priority = 5;
	preempts(&w, "urgent@w1: r1", &r);
	/* It waits for both; who is no more urgent has to leave it that. */
	s->priority = 3;
	u->priority = 3;
	u->queued_at = HOUR - 1;
	w.running[0].fixed = true;
	w.running[1].priority = 0;
	preempts(&w, "", &r);
	arena_drop(w.a);
}

/* While those end that made room, nobody else takes what is free of it, and the step asks for no
 * more. */
void test_place_preempt__what_is_freed_is_set_aside(void **state)
{
	struct place_pool pool;
	struct place_result r;
	struct world w;
	const uint32_t w1[] = { 0 };
	char text[PLACE_TEXT_MAX];
	uint32_t n;

	(void)state;
	world_preempts(&w, &pool, PLACE_PREEMPT_PRIORITY);
	add_worker(&w, "w1", 16, 4, "NVIDIA H100", 80 * GB);
	struct place_running *r1 = runs(&w, "r1", 2, 1);
	struct place_step *s = add_step(&w, "s1", 1, 3), *other = add_step(&w, "s2", 1, 1);
	s->priority = 5;
	other->queued_at = -HOUR;
	preempts(&w, "s1@w1: r1", &r);
	s->cleared = w1;
	s->cleared_n = 1;
	r1->by = 1;
	r1->ends_by = HOUR + PLACE_GRACE;
	places(&w, "s2>w1; s1", &r); /* one of the two that are free is s1's, the other anybody's */
	assert_int_equal(r.preempted_n, 0);
	const struct place_blocker *b = place_blockers(&r, 0, &n);
	assert_int_equal(n, 1);
	assert_int_equal(b->kind, PLACE_PREEMPTING);
	assert_int_equal(b->until, HOUR + PLACE_GRACE);
	assert_string_equal(place_explain(text, b, true),
		"takes the place of 1 attempt on w1, which is asked to end");
	struct arena *scratch = arena_new(place_start_room(&r));
	assert_int_equal(place_start(&r, 0, HOUR, scratch), HOUR + PLACE_GRACE);
	arena_drop(scratch);
	other->gpus.count = 2;
	places(&w, "; s1 s2", &r);
	/* They have ended; another that would come first by its priority does not come between. */
	((struct place_gpu *)(uintptr_t)w.workers[0].gpus)[0].free = true;
	((struct place_gpu *)(uintptr_t)w.workers[0].gpus)[1].free = true;
	w.s.running_n = 0;
	other->priority = 1000;
	places(&w, "s1>w1; s2", &r);
	other->gpus.count = 1;
	places(&w, "s2>w1 s1>w1", &r);
	/* A GPU has fallen ill: what is left is not enough, and is anybody's. */
	w.workers[0].gpus_n = 2;
	places(&w, "s2>w1; s1", &r);
	arena_drop(w.a);
}

void test_place_preempt__a_gang_is_one_and_takes_one_place_for_each_node(void **state)
{
	struct place_pool pool;
	struct place_result r;
	struct world w;

	(void)state;
	world_preempts(&w, &pool, PLACE_PREEMPT_PRIORITY);
	add_worker(&w, "w1", 16, 2, "NVIDIA H100", 80 * GB);
	runs(&w, "a1", 2, HOUR - 1)->step = STR("gang");
	add_worker(&w, "w2", 16, 2, "NVIDIA H100", 80 * GB);
	runs(&w, "a2", 2, HOUR - 1)->step = STR("gang");
	add_worker(&w, "w3", 16, 2, "NVIDIA H100", 80 * GB);
	struct place_running *b = runs(&w, "b", 2, 1);
	struct place_step *s = add_step(&w, "s1", 1, 2);
	s->priority = 1;
	preempts(&w, "s1@w3: b", &r); /* one, before two */
	b->priority = 1;
	preempts(&w, "s1@w1: a1 a2", &r); /* all or none */
	w.running[1].fixed = true;
	preempts(&w, "", &r);
	w.running[1].fixed = false;
	s->nodes = 2;
	preempts(&w, "s1@w1+w2: a1 a2", &r);
	s->nodes = 3;
	preempts(&w, "", &r);
	b->priority = 0;
	preempts(&w, "s1@w3+w1+w2: b a1 a2", &r);
	arena_drop(w.a);
}

/* ---- the choice ------------------------------------------------------------------ */

static uint32_t draw(uint64_t *r, uint32_t n)
{
	*r = *r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*r >> 33) % n;
}

static struct victims_cost cheapest(
	const struct victim *v, uint32_t n, const int64_t lacks[VICTIM_DIMS])
{
	struct victims_cost best = { UINT32_MAX, UINT64_MAX };

	for (uint32_t set = 1; set < 1U << n; set++) {
		struct victims_cost c = { 0, 0 };
		int64_t gives[VICTIM_DIMS] = { 0 };
		bool enough = true;
		for (uint32_t i = 0; i < n; i++) {
			if ((set >> i & 1) == 0)
				continue;
			c.attempts += v[i].attempts;
			c.lost += v[i].lost;
			for (int d = 0; d < VICTIM_DIMS; d++)
				gives[d] += v[i].gives[d];
		}
		for (int d = 0; d < VICTIM_DIMS; d++)
			enough = enough && gives[d] >= lacks[d];
		if (enough && victims_cheaper(c, best))
			best = c;
	}
	return best;
}

void test_place_preempt__the_choice_agrees_with_trying_all(void **state)
{
	static const char *const ids[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };
	uint64_t seed = (uint64_t)time(NULL), r = seed;
	size_t found = 0;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int round = 0; round < 3000; round++) {
		struct victims_choice c = { .cost = { UINT32_MAX, UINT64_MAX } };
		struct victim v[10], sorted[10];
		int64_t lacks[VICTIM_DIMS] = { draw(&r, 12), draw(&r, 12), 0, draw(&r, 10) };
		int64_t gives[VICTIM_DIMS] = { 0 };
		uint32_t n = 1 + draw(&r, 10), attempts = 0;
		for (uint32_t i = 0; i < n; i++)
			v[i] = (struct victim){ { draw(&r, 6), draw(&r, 6), 0, draw(&r, 5) },
				draw(&r, 5) == 0 ? 2 + draw(&r, 3) : 1, draw(&r, 50), str_c(ids[i]),
				i };
		if (lacks[0] + lacks[1] + lacks[3] == 0)
			continue;
		const struct victims_cost want = cheapest(v, n, lacks);
		memcpy(sorted, v, sizeof v);
		assert_int_equal(victims_choose(sorted, n, lacks, &c), want.attempts != UINT32_MAX);
		if (want.attempts == UINT32_MAX)
			continue;
		found++;
		assert_int_equal(c.cost.attempts, want.attempts);
		assert_int_equal(c.cost.lost, want.lost);
		for (uint32_t i = 0; i < c.n; i++) {
			attempts += sorted[c.chosen[i]].attempts;
			for (int d = 0; d < VICTIM_DIMS; d++)
				gives[d] += sorted[c.chosen[i]].gives[d];
		}
		assert_int_equal(attempts, want.attempts);
		for (int d = 0; d < VICTIM_DIMS; d++)
			assert_true(gives[d] >= lacks[d]);
	}
	assert_true(found > 500);
}

/* As many as one worker has at most, all alike but for what they lose: no exact search ends. */
void test_place_preempt__a_choice_among_many_ends_and_is_enough(void **state)
{
	struct victims_choice c = { .cost = { UINT32_MAX, UINT64_MAX } };
	const int64_t lacks[VICTIM_DIMS] = { 3000, 900, 0, 0 };
	struct victim v[VICTIMS_MAX];
	int64_t cpus = 0, memory = 0;

	(void)state;
	for (uint32_t i = 0; i < VICTIMS_MAX; i++)
		v[i] = (struct victim){ { 60 + i % 7, 50 - i % 11, 0, 0 }, 1, (i * 37) % 64,
			STR("x"), i };
	assert_true(victims_choose(v, VICTIMS_MAX, lacks, &c));
	for (uint32_t i = 0; i < c.n; i++) {
		cpus += v[c.chosen[i]].gives[0];
		memory += v[c.chosen[i]].gives[1];
	}
	assert_true(cpus >= lacks[0] && memory >= lacks[1]);
	assert_true(c.n >= 46 && c.n <= 50);
}

/* ---- written down ---------------------------------------------------------------- */

void test_place_preempt__a_snapshot_is_decided_the_same_again(void **state)
{
	const uint32_t w2[] = { 1 }, spared[] = { 0 };
	struct place_pool pool;
	struct snapshot_file f;
	struct place_result r;
	struct world w;
	struct buf b, out;
	struct err e;

	(void)state;
	world_preempts(&w, &pool, PLACE_PREEMPT_PRIORITY);
	w.projects[1].gpus_quota =
		(struct place_quota){ .limited = true, .nominal = 1, .borrow = 9 };
	w.projects[0].gpus_quota =
		(struct place_quota){ .limited = true, .nominal = 9, .borrow = 9 };
	add_worker(&w, "w1", 16, 3, "NVIDIA H100", 80 * GB);
	struct place_running *r1 = runs(&w, "r1", 1, HOUR - 5);
	r1->spared = spared;
	r1->spared_n = 1;
	of_beta(&w, runs(&w, "r2", 1, HOUR - 9));
	of_beta(&w, runs(&w, "r3", 1, HOUR - 1));
	add_worker(&w, "w2", 16, 1, "NVIDIA H100", 80 * GB);
	struct place_running *r4 = runs(&w, "r4", 1, 1);
	r4->priority = -3;
	r4->fixed = true;
	r4->by = 2;
	r4->ends_by = HOUR + 9;
	add_step(&w, "s1", 1, 2)->priority = 5;
	struct place_step *s2 = add_step(&w, "s2", 1, 1);
	s2->cleared = w2;
	s2->cleared_n = 1;
	preempts(&w, "s1@w1: r3(reclaimed) r2", &r);
	buf_init(&b, 1 << 20);
	buf_init(&out, 1 << 16);
	snapshot_write(&w.s, &r, HOUR, &b);
	struct arena *a = arena_new(SNAPSHOT_ARENA);
	assert_int_equal(snapshot_read(buf_str(&b), a, &f, &e), 0);
	assert_true(replay_snapshot(&f, STR("s1"), &out));
	assert_true(str_find(buf_str(&out), STR("it takes the place of 2 attempts on w1")) > 0);
	f.preempted_n = 0;
	assert_false(replay_snapshot(&f, STR_NONE, &out));
	arena_drop(a);
	/* It names what is not there. */
	for (int i = 0; i < 3; i++) {
		static const char *const bad[] = { "\"cleared\":[1]", "\"spared\":[0]",
			"\"project\":1" };
		static const char *const with[] = { "\"cleared\":[7]", "\"spared\":[9]",
			"\"project\":8" };
		char *at = strstr(b.p, bad[i]);
		assert_non_null(at);
		memcpy(at, with[i], strlen(with[i]));
		a = arena_new(SNAPSHOT_ARENA);
		assert_int_equal(snapshot_read(buf_str(&b), a, &f, &e), -1);
		arena_drop(a);
		memcpy(at, bad[i], strlen(bad[i]));
	}
	buf_done(&b);
	buf_done(&out);
	arena_drop(w.a);
}
