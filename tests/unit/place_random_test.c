/* Random worlds against a plain reference. */
#include "tests/unit/place_world.h"

#include <time.h>

enum { STEPS = 24, WORKERS = 7, PROJECTS = 3, GPUS = 6 };

struct random_world {
	struct arena *a;
	struct place_project projects[PROJECTS];
	struct place_worker workers[WORKERS];
	struct place_step steps[STEPS];
	struct place_snapshot s;
};

static uint32_t draw(uint64_t *r, uint32_t n)
{
	*r = *r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*r >> 33) % n;
}

static const struct place_label labels[] = { { { "site", 4 }, { "onprem", 6 } },
	{ { "site", 4 }, { "cloud", 5 } }, { { "spot", 4 }, { "true", 4 } } };
static const struct str pools[] = { { "default", 7 }, { "big", 3 } };
static const struct str gpu_models[] = { { "NVIDIA H100 80GB HBM3", 21 }, { "NVIDIA L4", 9 } };
static const struct str asked[] = { { "H100", 4 }, { "L4", 2 } };

static void random_worker(struct random_world *w, uint64_t *r, uint32_t i)
{
	uint32_t gpus = draw(r, 2) * draw(r, GPUS + 1), first = draw(r, 3);
	struct place_gpu *list = arena_array_of(w->a, struct place_gpu, GPUS);
	bool mixed = draw(r, 4) == 0;
	uint32_t model = draw(r, 2);

	for (uint32_t g = 0; g < gpus; g++) {
		if (mixed)
			model = draw(r, 2);
		list[g] = (struct place_gpu){ .uuid = arena_printf(w->a, "GPU-%u-%u", i, g),
			.model = gpu_models[model],
			.memory = model == 0 ? 85 * GB : 24 * GB,
			.free = draw(r, 5) != 0 };
	}
	w->workers[i] = (struct place_worker){ .id = arena_printf(w->a, "wk_%u", i),
		.pool = pools[draw(r, 4) == 0],
		.labels = &labels[first],
		.labels_n = draw(r, 4 - first),
		.runtimes = 1 + draw(r, 3),
		.cpus_free = draw(r, 9) * 0.5,
		.cpus = 4,
		.memory_free = draw(r, 9) * GB,
		.memory = 8 * GB,
		.disk_free = draw(r, 9) * GB,
		.gpus = list,
		.gpus_n = gpus,
		.running = draw(r, 3),
		.offline = draw(r, 8) == 0,
		.draining = draw(r, 8) == 0 };
}

static void random_step(struct random_world *w, uint64_t *r, uint32_t i)
{
	struct place_step *s = &w->steps[i];
	uint32_t model = draw(r, 2);

	*s = (struct place_step){ .id = arena_printf(w->a, "st_%02u", i),
		.project = draw(r, PROJECTS),
		.priority = (int32_t)draw(r, 3) - 1,
		.queued_at = draw(r, 6),
		.cpus = (1 + draw(r, 4)) * 0.5,
		.memory = draw(r, 4) * GB,
		.disk = draw(r, 3) * GB,
		.gpus = { .count = draw(r, 2) * draw(r, 4) },
		.pool = pools[draw(r, 5) == 0],
		.requires = &labels[draw(r, 3)],
		.requires_n = draw(r, 3) == 0,
		.avoids = &labels[draw(r, 3)],
		.avoids_n = draw(r, 4) == 0,
		.nodes = draw(r, 4) == 0 ? 2 + draw(r, 3) : draw(r, 2) };
	s->runtimes_n = (uint8_t)(1 + draw(r, 2));
	s->runtimes[0] = (uint8_t)draw(r, 2);
	s->runtimes[1] = (uint8_t)(1 - s->runtimes[0]);
	if (draw(r, 2) == 0) {
		s->gpus.models = &asked[model];
		s->gpus.models_n = 1;
	} else if (draw(r, 2) == 0) {
		s->gpus.memory_min = 40 * GB;
	}
}

static void random_world(struct random_world *w, uint64_t *r)
{
	*w = (struct random_world){ .a = arena_new(16 << 20) };
	w->s = (struct place_snapshot){ .projects = w->projects,
		.projects_n = PROJECTS,
		.steps = w->steps,
		.steps_n = draw(r, STEPS + 1),
		.workers = w->workers,
		.workers_n = draw(r, WORKERS + 1),
		.runtimes = runtime_names,
		.seed = *r };
	for (uint32_t i = 0; i < PROJECTS; i++)
		w->projects[i] = (struct place_project){ .id = arena_printf(w->a, "prj_%u", i),
			.weight = 1 + draw(r, 3),
			.running = draw(r, 4),
			.gpus = draw(r, 4),
			.cpus = draw(r, 5) * 0.5,
			.memory = draw(r, 9) * GB,
			.gpus_quota = { draw(r, 2) == 0, draw(r, 5), draw(r, 4) },
			.steps_quota = { draw(r, 3) == 0, draw(r, 8), draw(r, 5) } };
	for (uint32_t i = 0; i < w->s.workers_n; i++)
		random_worker(w, r, i);
	for (uint32_t i = 0; i < w->s.steps_n; i++)
		random_step(w, r, i);
}

/* What is left of each worker, in the plainest form. */
struct left {
	int64_t cpus[WORKERS];
	uint64_t memory[WORKERS], disk[WORKERS];
	uint32_t running[WORKERS];
	bool taken[WORKERS][GPUS];
};

static void left_init(struct left *l, const struct random_world *w)
{
	*l = (struct left){ { 0 } };
	for (size_t i = 0; i < w->s.workers_n; i++) {
		l->cpus[i] = (int64_t)(w->workers[i].cpus_free * 1000);
		l->memory[i] = w->workers[i].memory_free;
		l->disk[i] = w->workers[i].disk_free;
		l->running[i] = w->workers[i].running;
		for (uint32_t g = 0; g < w->workers[i].gpus_n; g++)
			l->taken[i][g] = !w->workers[i].gpus[g].free;
	}
}

static bool labelled(const struct place_worker *w, const struct place_label *l)
{
	for (uint32_t i = 0; i < w->labels_n; i++)
		if (str_eq(w->labels[i].key, l->key) && str_eq(w->labels[i].value, l->value))
			return true;
	return false;
}

static uint32_t gpus_left(
	const struct left *l, const struct random_world *w, size_t at, const struct place_step *s)
{
	uint32_t n = 0;

	for (uint32_t g = 0; g < w->workers[at].gpus_n; g++)
		n += !l->taken[at][g] && gpus_match(&s->gpus, w->workers[at].gpus[g].model,
						 w->workers[at].gpus[g].memory, STR(""));
	return n;
}

static bool fits(
	const struct left *l, const struct random_world *w, size_t at, const struct place_step *s)
{
	const struct place_worker *k = &w->workers[at];
	bool runs = false;

	for (int i = 0; i < s->runtimes_n; i++)
		runs = runs || (k->runtimes >> s->runtimes[i] & 1) != 0;
	return runs && !k->offline && !k->draining && str_eq(k->pool, s->pool) &&
	       (s->requires_n == 0 || labelled(k, s->requires)) &&
	       (s->avoids_n == 0 || !labelled(k, s->avoids)) &&
	       l->cpus[at] >= (int64_t)(s->cpus * 1000) && l->memory[at] >= s->memory &&
	       l->disk[at] >= s->disk && gpus_left(l, w, at, s) >= s->gpus.count;
}

/* The best worker but for some, or WORKERS. Workers of these worlds stand in the order of their
 * ids.
 */
static size_t best_worker(const struct left *l, const struct random_world *w,
	const struct place_step *s, unsigned but_for)
{
	size_t best = WORKERS;
	uint64_t best_key = UINT64_MAX;

	for (size_t i = 0; i < w->s.workers_n; i++) {
		if ((but_for >> i & 1) != 0 || !fits(l, w, i, s))
			continue;
		uint64_t first = s->gpus.count != 0 ? gpus_left(l, w, i, s) - s->gpus.count
						    : w->workers[i].gpus_n != 0;
		uint64_t key = first * 1000 + l->running[i];
		if (key < best_key) {
			best_key = key;
			best = i;
		}
	}
	return best;
}

/* What projects hold, in the plainest form, and which steps wait for the second round. */
struct shares {
	struct place_project held[PROJECTS];
	double gpus, cpus, memory;
	bool tried[STEPS], later[STEPS], over[STEPS];
};

static double share_of(const struct shares *h, size_t project)
{
	const struct place_project *p = &h->held[project];
	double shares[3] = { h->gpus > 0 ? p->gpus / h->gpus : 0,
		h->cpus > 0 ? p->cpus / h->cpus : 0,
		h->memory > 0 ? (double)p->memory / h->memory : 0 };
	double most = 0;

	for (int i = 0; i < 3; i++)
		most = shares[i] > most ? shares[i] : most;
	return most / p->weight;
}

static bool granted(const struct place_quota *q, uint32_t used, uint32_t more, bool borrowing)
{
	return !q->limited || more == 0 || used + more <= q->nominal + (borrowing ? q->borrow : 0);
}

static bool allowed(const struct shares *h, const struct place_step *s, bool borrowing)
{
	const struct place_project *p = &h->held[s->project];

	return granted(&p->gpus_quota, p->gpus, s->gpus.count * place_nodes(s), borrowing) &&
	       granted(&p->steps_quota, p->running, place_nodes(s), borrowing);
}

/* The step whose turn it is in this round, or STEPS. */
static size_t next_step(const struct random_world *w, const struct shares *h, bool borrowing)
{
	size_t best = STEPS;

	for (size_t i = 0; i < w->s.steps_n; i++) {
		const struct place_step *x = &w->steps[i], *y = &w->steps[best % STEPS];
		double lx = share_of(h, x->project), ly = share_of(h, y->project);
		if (h->tried[i] || h->later[i] != borrowing)
			continue;
		if (best == STEPS || x->priority > y->priority ||
			(x->priority == y->priority &&
				(lx < ly || (lx <= ly && (x->project < y->project ||
								 (x->project == y->project &&
									 x->queued_at <
										 y->queued_at))))))
			best = i;
	}
	return best;
}

static void shares_init(struct shares *h, const struct random_world *w)
{
	*h = (struct shares){ .gpus = 0 };
	memcpy(h->held, w->projects, sizeof h->held);
	for (size_t i = 0; i < w->s.workers_n; i++) {
		h->gpus += w->workers[i].gpus_n;
		h->cpus += w->workers[i].cpus;
		h->memory += (double)w->workers[i].memory;
	}
}

static void shares_take(struct shares *h, const struct place_step *s)
{
	struct place_project *p = &h->held[s->project];

	p->running += place_nodes(s);
	p->gpus += s->gpus.count * place_nodes(s);
	p->cpus += s->cpus * place_nodes(s);
	p->memory += s->memory * place_nodes(s);
}

static void take_as_told(
	struct left *l, const struct random_world *w, const struct place_assignment *p)
{
	const struct place_step *s = &w->steps[p->step];
	const struct place_worker *k = &w->workers[p->worker];

	assert_true(fits(l, w, p->worker, s));
	assert_true((k->runtimes >> p->runtime & 1) != 0);
	assert_true(p->runtime == s->runtimes[0] || (k->runtimes >> s->runtimes[0] & 1) == 0);
	l->cpus[p->worker] -= (int64_t)(s->cpus * 1000);
	l->memory[p->worker] -= s->memory;
	l->disk[p->worker] -= s->disk;
	l->running[p->worker]++;
	assert_int_equal(p->gpus_n, s->gpus.count);
	for (uint32_t i = 0; i < p->gpus_n; i++) {
		uint32_t g = 0;
		while (g < k->gpus_n && !str_eq(k->gpus[g].uuid, p->gpus[i]))
			g++;
		assert_true(g < k->gpus_n);
		assert_false(l->taken[p->worker][g]);
		assert_true(gpus_match(&s->gpus, k->gpus[g].model, k->gpus[g].memory, STR("")));
		l->taken[p->worker][g] = true;
	}
}

/* Whether the worker could take the step if it were there and idle; a worker tells no size of its
 * disk. */
static bool could(const struct random_world *w, size_t at, const struct place_step *s)
{
	struct place_worker *k = (struct place_worker *)(uintptr_t)&w->workers[at];
	const struct place_worker was = *k;
	struct left idle = { { 0 } };

	idle.cpus[at] = 4000;
	idle.memory[at] = 8 * GB;
	idle.disk[at] = UINT64_MAX;
	k->offline = k->draining = false;
	bool yes = fits(&idle, w, at, s);
	*k = was;
	return yes;
}

/* Each blocker is true at the end of the pass, the group is the right one, and the step fits
 * nowhere. */
static void check_wait(const struct left *l, const struct random_world *w,
	const struct place_result *r, size_t waiting)
{
	const struct place_step *s = &w->steps[r->waiting[waiting]];
	uint32_t n;
	char text[PLACE_TEXT_MAX];
	const struct place_blocker *b = place_blockers(r, waiting, &n);
	size_t able = 0, there = 0, free = 0;

	for (size_t i = 0; i < w->s.workers_n; i++) {
		const struct place_worker *k = &w->workers[i];
		free += fits(l, w, i, s);
		able += could(w, i, s);
		there += could(w, i, s) && !k->offline && !k->draining;
	}
	assert_true(n >= 1);
	assert_true(free < place_nodes(s));
	if (b->kind == PLACE_NODES) {
		assert_int_equal(b->need, s->nodes);
		assert_int_equal(b->most_free, free);
		assert_int_equal(b->most_all, able);
		assert_int_equal(b->workers, there);
		assert_int_equal(b->never, able < s->nodes);
		assert_true(strlen(place_explain(text, b, true)) > 10);
		assert_int_equal(n > 1, free == 0 && there >= s->nodes);
		return;
	}
	assert_true(place_nodes(s) == 1 || able == 0 || there == 0);
	for (uint32_t i = 0; i < n; i++) {
		const struct place_blocker *x = &b[i];
		bool gone = x->kind == PLACE_OFFLINE || x->kind == PLACE_DRAINING;
		assert_true(strlen(place_explain(text, x, i % 2 == 0)) > 10);
		assert_int_equal(x->never, able == 0);
		assert_int_equal(gone, able != 0 && there == 0);
		if (gone || x->kind < PLACE_GPUS || x->kind == PLACE_TOGETHER)
			continue;
		assert_true((x->never ? x->most_all : x->most_free) < x->need);
		assert_int_equal(x->workers >= there, 1);
		size_t at = 0;
		while (!str_eq(w->workers[at].id, x->worker))
			at++;
		if (x->kind == PLACE_GPUS)
			assert_int_equal(x->most_free, gpus_left(l, w, at, s));
		if (x->kind == PLACE_CPUS)
			assert_int_equal(x->most_free, l->cpus[at]);
		if (x->kind == PLACE_MEMORY)
			assert_int_equal(x->most_free, l->memory[at]);
	}
}

/* What the change says, done: then the worker takes the step. */
static void check_change(
	const struct left *l, struct random_world w, const struct place_result *r, size_t waiting)
{
	struct place_step s = w.steps[r->waiting[waiting]];
	struct place_change c;
	size_t at = 0;

	if (!place_change(r, waiting, &c))
		return;
	if (c.edits[0].kind == PLACE_EDIT_NODES) {
		int64_t n = 0;
		for (size_t i = 0; i < w.s.workers_n; i++)
			n += fits(l, &w, i, &s);
		assert_int_equal(c.edits[0].to, n);
		assert_in_range(n, 1, s.nodes - 1);
		return;
	}
	assert_in_range(c.edits_n, 1, PLACE_EDITS_MAX);
	while (!str_eq(w.workers[at].id, c.worker))
		at++;
	for (uint32_t i = 0; i < c.edits_n; i++) {
		const struct place_edit *e = &c.edits[i];
		switch (e->kind) {
		case PLACE_EDIT_GPUS: s.gpus.count = (uint32_t)e->to; break;
		case PLACE_EDIT_MEMORY: s.memory = (uint64_t)e->to; break;
		case PLACE_EDIT_CPUS: s.cpus = (double)e->to / 1000; break;
		case PLACE_EDIT_DISK: s.disk = (uint64_t)e->to; break;
		case PLACE_EDIT_TIME_LIMIT: s.time_limit = e->to; break;
		case PLACE_EDIT_GPU_MODEL:
			s.gpus.models = &e->what;
			s.gpus.models_n = 1;
			s.gpus.memory_min = 0;
			break;
		case PLACE_EDIT_REQUIRES: s.requires_n = 0; break;
		case PLACE_EDIT_AVOIDS: s.avoids_n = 0; break;
		case PLACE_EDIT_RUNTIME:
			s.runtimes[0] = str_is(e->what, "docker") ? 0 : 1;
			s.runtimes_n = 1;
			break;
		case PLACE_EDIT_POOL: s.pool = e->what; break;
		case PLACE_EDIT_RESUME: w.workers[at].draining = false; break;
		case PLACE_EDIT_NODES:
		case PLACE_EDIT_KINDS: fail();
		}
	}
	assert_true(fits(l, &w, at, &s));
}

/* The best workers for its nodes; false: there are not as many. */
static bool best_workers(const struct left *l, const struct random_world *w,
	const struct place_step *s, size_t out[PLACE_NODES_MAX])
{
	unsigned chosen = 0;

	for (uint32_t n = 0; n < place_nodes(s); n++) {
		out[n] = best_worker(l, w, s, chosen);
		if (out[n] == WORKERS)
			return false;
		chosen |= 1U << out[n];
	}
	return true;
}

/* One round of the reference against what the pass decided. */
static void check_round(const struct random_world *w, const struct place_result *r, struct left *l,
	struct shares *h, bool borrowing)
{
	size_t at, placed = 0, waiting = 0;

	while (placed < r->placed_n && h->tried[r->placed[placed].step])
		placed++;
	while (waiting < r->waiting_n && h->tried[r->waiting[waiting]])
		waiting++;
	while ((at = next_step(w, h, borrowing)) != STEPS) {
		const struct place_step *s = &w->steps[at];
		if (!borrowing && !allowed(h, s, false)) {
			h->later[at] = true;
			continue;
		}
		h->tried[at] = true;
		h->over[at] = borrowing && !allowed(h, s, true);
		size_t want[PLACE_NODES_MAX];
		if (h->over[at] || !best_workers(l, w, s, want)) {
			assert_true(waiting < r->waiting_n);
			assert_int_equal(r->waiting[waiting++], at);
			continue;
		}
		for (uint32_t n = 0; n < place_nodes(s); n++) {
			assert_true(placed < r->placed_n);
			assert_int_equal(r->placed[placed].step, at);
			assert_int_equal(r->placed[placed].rank, n);
			assert_int_equal(r->placed[placed].worker, want[n]);
			take_as_told(l, w, &r->placed[placed++]);
		}
		shares_take(h, s);
	}
}

static void check_over(const struct random_world *w, const struct place_result *r, size_t waiting)
{
	char text[PLACE_TEXT_MAX];
	uint32_t n;
	const struct place_blocker *b = place_blockers(r, waiting, &n);

	assert_int_equal(n, 1);
	assert_int_equal(b->kind, PLACE_QUOTA);
	int64_t need = b->need != 0 ? b->need : place_nodes(&w->steps[r->waiting[waiting]]);
	assert_true(b->most_free < need);
	assert_int_equal(b->never, b->most_all < need);
	assert_true(strlen(place_explain(text, b, true)) > 10);
}

static void check_world(const struct random_world *w)
{
	struct place_result r;
	struct shares h;
	struct left l;
	struct arena *a = arena_new(place_room(&w->s));

	place_pass(&w->s, a, &r);
	size_t whole = 0;
	for (size_t i = 0; i < r.placed_n; i++)
		whole += r.placed[i].rank == 0;
	assert_int_equal(whole + r.waiting_n, w->s.steps_n);
	left_init(&l, w);
	shares_init(&h, w);
	check_round(w, &r, &l, &h, false);
	check_round(w, &r, &l, &h, true);
	for (size_t i = 0; i < r.waiting_n; i++) {
		if (h.over[r.waiting[i]]) {
			check_over(w, &r, i);
			continue;
		}
		check_wait(&l, w, &r, i);
		check_change(&l, *w, &r, i);
	}
	arena_drop(a);
}

void test_place__agrees_with_a_plain_reference(void **state)
{
	uint64_t seed = (uint64_t)time(NULL), r = seed;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int round = 0; round < 2000; round++) {
		static struct random_world w;
		random_world(&w, &r);
		check_world(&w);
		arena_drop(w.a);
	}
}

/* The order of the arrays and the seed of the tables change nothing. */
void test_place__the_order_of_the_snapshot_does_not_matter(void **state)
{
	uint64_t seed = (uint64_t)time(NULL), r = seed;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int round = 0; round < 300; round++) {
		static struct random_world w, v;
		struct place_result x, y;
		random_world(&w, &r);
		v = w;
		v.s.projects = v.projects;
		v.s.steps = v.steps;
		v.s.workers = v.workers;
		v.s.seed = ~w.s.seed;
		for (uint32_t i = (uint32_t)w.s.steps_n; i > 1; i--) {
			uint32_t k = draw(&r, i);
			struct place_step t = v.steps[k];
			v.steps[k] = v.steps[i - 1];
			v.steps[i - 1] = t;
		}
		for (uint32_t i = (uint32_t)w.s.workers_n; i > 1; i--) {
			uint32_t k = draw(&r, i);
			struct place_worker t = v.workers[k];
			v.workers[k] = v.workers[i - 1];
			v.workers[i - 1] = t;
		}
		struct place_project t = v.projects[0];
		v.projects[0] = v.projects[1];
		v.projects[1] = t;
		for (size_t i = 0; i < w.s.steps_n; i++)
			if (v.steps[i].project < 2)
				v.steps[i].project = 1 - v.steps[i].project;
		place_pass(&w.s, w.a, &x);
		place_pass(&v.s, w.a, &y);
		assert_int_equal(x.placed_n, y.placed_n);
		for (size_t i = 0; i < x.placed_n; i++) {
			assert_true(
				str_eq(w.steps[x.placed[i].step].id, v.steps[y.placed[i].step].id));
			assert_true(str_eq(w.workers[x.placed[i].worker].id,
				v.workers[y.placed[i].worker].id));
			for (uint32_t g = 0; g < x.placed[i].gpus_n; g++)
				assert_true(str_eq(x.placed[i].gpus[g], y.placed[i].gpus[g]));
		}
		for (size_t i = 0; i < x.waiting_n; i++) {
			uint32_t x_n, y_n;
			const struct place_blocker *xb = place_blockers(&x, i, &x_n);
			const struct place_blocker *yb = place_blockers(&y, i, &y_n);
			assert_true(str_eq(w.steps[x.waiting[i]].id, v.steps[y.waiting[i]].id));
			assert_int_equal(x_n, y_n);
			for (uint32_t k = 0; k < x_n; k++) {
				char xt[PLACE_TEXT_MAX], yt[PLACE_TEXT_MAX];
				assert_string_equal(place_explain(xt, &xb[k], true),
					place_explain(yt, &yb[k], true));
			}
		}
		arena_drop(w.a);
	}
}
