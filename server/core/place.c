#include "server/core/place.h"

#include "server/core/place_inside.h"

#include <stdlib.h>

/*
 * place_index works out what is alike; here steps are put in order and tried one by one. Within one
 * priority each project has its own line, in order of waiting; a heap of projects, by running steps
 * over weight, says whose turn it is.
 */

/* ---- the order ------------------------------------------------------------------- */

struct turn {
	int32_t priority;
	uint32_t project; /* rank of its id */
	int64_t queued_at;
	uint32_t step;
};

static int by_turn(const void *pa, const void *pb, void *arg)
{
	const struct place_step *steps = arg;
	const struct turn *a = pa, *b = pb;

	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	if (a->project != b->project)
		return a->project < b->project ? -1 : 1;
	if (a->queued_at != b->queued_at)
		return a->queued_at < b->queued_at ? -1 : 1;
	return str_cmp(steps[a->step].id, steps[b->step].id);
}

static int by_project_id(const void *a, const void *b, void *arg)
{
	const struct place_project *projects = arg;

	return str_cmp(projects[*(const uint32_t *)a].id, projects[*(const uint32_t *)b].id);
}

/* A project's line within one priority: turns[from] … turns[to - 1]. */
struct line {
	double load, weight;
	uint64_t running;
	uint32_t rank; /* of the project */
	size_t from, to;
};

struct order {
	struct turn *turns;
	uint32_t *by_rank; /* project of each rank */
	uint64_t *running; /* by rank, placements of this pass included */
	struct line *heap;
	size_t heap_n;
};

static void order_init(struct order *o, const struct place_snapshot *s, struct arena *a)
{
	uint32_t *rank = arena_array_of(a, uint32_t, s->projects_n + 1);

	o->turns = arena_array_of(a, struct turn, s->steps_n + 1);
	o->by_rank = arena_array_of(a, uint32_t, s->projects_n + 1);
	o->running = arena_array_of(a, uint64_t, s->projects_n + 1);
	o->heap = arena_array_of(a, struct line, s->projects_n + 1);
	o->heap_n = 0;
	for (uint32_t i = 0; i < s->projects_n; i++)
		o->by_rank[i] = i;
	if (s->projects_n > 1)
		qsort_r(o->by_rank, s->projects_n, sizeof *o->by_rank, by_project_id,
			(void *)(uintptr_t)s->projects);
	for (uint32_t i = 0; i < s->projects_n; i++) {
		rank[o->by_rank[i]] = i;
		o->running[i] = s->projects[o->by_rank[i]].running;
	}
	for (uint32_t i = 0; i < s->steps_n; i++) {
		BUG_ON(s->steps[i].project >= s->projects_n);
		o->turns[i] = (struct turn){ .priority = s->steps[i].priority,
			.project = rank[s->steps[i].project],
			.queued_at = s->steps[i].queued_at,
			.step = i };
	}
	if (s->steps_n > 1)
		qsort_r(o->turns, s->steps_n, sizeof *o->turns, by_turn,
			(void *)(uintptr_t)s->steps);
}

static bool before(const struct line *a, const struct line *b)
{
	return a->load < b->load || (!(b->load < a->load) && a->rank < b->rank);
}

/* Lets the line at position i sink to where it belongs. */
static void sink(struct order *o, size_t i)
{
	struct line v = o->heap[i];

	for (size_t child = 2 * i + 1; child < o->heap_n; child = 2 * i + 1) {
		if (child + 1 < o->heap_n && before(&o->heap[child + 1], &o->heap[child]))
			child++;
		if (!before(&o->heap[child], &v))
			break;
		o->heap[i] = o->heap[child];
		i = child;
	}
	o->heap[i] = v;
}

/* Makes the lines of the priority that begins at turn `from`; returns where it ends. */
static size_t line_up(struct order *o, const struct place_snapshot *s, size_t from)
{
	int32_t priority = o->turns[from].priority;
	size_t i = from;

	o->heap_n = 0;
	while (i < s->steps_n && o->turns[i].priority == priority) {
		uint32_t rank = o->turns[i].project;
		double weight = s->projects[o->by_rank[rank]].weight;
		struct line l = { .weight = weight > 0 ? weight : 1,
			.running = o->running[rank],
			.rank = rank,
			.from = i };
		while (i < s->steps_n && o->turns[i].priority == priority &&
			o->turns[i].project == rank)
			i++;
		l.to = i;
		l.load = (double)l.running / l.weight;
		o->heap[o->heap_n++] = l;
	}
	for (size_t k = o->heap_n / 2; k-- > 0;)
		sink(o, k);
	return i;
}

/* The top line has had its turn. */
static void turn_over(struct order *o, bool placed)
{
	struct line *top = &o->heap[0];

	if (placed) {
		o->running[top->rank] = ++top->running;
		top->load = (double)top->running / top->weight;
	}
	if (++top->from == top->to)
		*top = o->heap[--o->heap_n];
	if (o->heap_n != 0)
		sink(o, 0);
}

/* ---- the best worker ------------------------------------------------------------- */

/* Whether it is avoided; GPUs that stay free (or, without GPUs, whether the worker has any), then
 * what it runs. */
static inline uint64_t fit(const struct place_pass *p, const struct place_slot *slot,
	const struct place_shape *shape, const uint64_t *kinds)
{
	uint64_t last = (uint64_t)slot->avoided << 62;
	uint32_t all, left;

	if (slot->cpus < shape->need[DIM_CPUS] ||
		slot->memory < (uint64_t)shape->need[DIM_MEMORY] ||
		slot->disk < (uint64_t)shape->need[DIM_DISK])
		return UINT64_MAX;
	if (kinds == NULL)
		return last | (uint64_t)(slot->groups_n != 0) << 32 | slot->running;
	if (slot->gpus < (uint64_t)shape->need[DIM_GPUS])
		return UINT64_MAX;
	left = place_matching(p, slot, kinds, &all);
	if (left < (uint64_t)shape->need[DIM_GPUS])
		return UINT64_MAX;
	return last | (left - (uint64_t)shape->need[DIM_GPUS]) << 32 | slot->running;
}

uint64_t place_fit(const struct place_pass *p, const struct place_slot *slot,
	const struct place_shape *shape, const uint64_t *kinds)
{
	return fit(p, slot, shape, kinds);
}

static uint32_t find_slot(const struct place_pass *p, const struct place_shape *shape)
{
	const struct place_where *where = &p->wheres[p->sites[shape->site].where];
	const uint64_t *kinds = place_kinds(p, shape);
	uint64_t best = UINT64_MAX;
	uint32_t found = PLACE_NOWHERE;

	for (uint32_t word = 0; word <= p->slots_n / 64; word++) {
		for (uint64_t bits = where->slots[word]; bits != 0; bits &= bits - 1) {
			uint32_t at = word * 64 + (uint32_t)__builtin_ctzll(bits);
			uint64_t key = fit(p, &p->slots[at], shape, kinds);
			if (key >= best)
				continue;
			best = key;
			found = at;
			if (key == 0)
				return found;
		}
	}
	return found;
}

/* ---- taking it ------------------------------------------------------------------- */

static uint32_t take_from(struct place_pass *p, struct place_slot *slot, struct place_group *group,
	uint32_t want, struct str *out)
{
	const struct place_worker *w = &p->s->workers[slot->worker];
	const struct place_gpu *kind = p->kinds[group->kind];
	uint32_t got = 0;

	for (uint32_t i = 0; i < w->gpus_n && got < want; i++) {
		const struct place_gpu *g = &w->gpus[i];
		if (p->taken[slot->gpu + i] || g->memory != kind->memory ||
			!str_eq(g->model, kind->model))
			continue;
		p->taken[slot->gpu + i] = true;
		out[got++] = g->uuid;
	}
	group->free -= got;
	slot->gpus -= got;
	return got;
}

/* All of the smallest group that has enough, or as many as needed of each in turn. */
static void take_gpus(struct place_pass *p, struct place_slot *slot, const uint64_t *kinds,
	uint32_t want, struct str *out)
{
	struct place_group *groups = &p->groups[slot->groups], *one = NULL;
	uint32_t got = 0;

	for (uint32_t i = 0; i < slot->groups_n; i++)
		if (place_bit(kinds, groups[i].kind) && groups[i].free >= want &&
			(one == NULL || groups[i].free < one->free))
			one = &groups[i];
	if (one != NULL)
		got = take_from(p, slot, one, want, out);
	for (uint32_t i = 0; i < slot->groups_n && got < want; i++)
		if (place_bit(kinds, groups[i].kind))
			got += take_from(p, slot, &groups[i], want - got, out + got);
	BUG_ON(got != want);
}

static int choose_runtime(const struct place_step *s, const struct place_worker *w)
{
	for (uint8_t i = 0; i < s->runtimes_n; i++)
		if ((w->runtimes >> s->runtimes[i] & 1) != 0)
			return s->runtimes[i];
	BUG_ON(true);
}

struct place_assignment place_take(
	struct place_pass *p, uint32_t step, const struct place_shape *shape, uint32_t at)
{
	struct place_slot *slot = &p->slots[at];
	uint32_t gpus = (uint32_t)shape->need[DIM_GPUS];
	struct place_assignment got = { .step = step,
		.worker = slot->worker,
		.runtime = choose_runtime(&p->s->steps[step], &p->s->workers[slot->worker]),
		.gpus_n = gpus };

	slot->cpus -= shape->need[DIM_CPUS];
	slot->memory -= (uint64_t)shape->need[DIM_MEMORY];
	slot->disk -= (uint64_t)shape->need[DIM_DISK];
	slot->running++;
	if (gpus != 0) {
		struct str *uuids = arena_array_of(p->a, struct str, gpus);
		take_gpus(p, slot, place_kinds(p, shape), gpus, uuids);
		got.gpus = uuids;
	}
	return got;
}

/* ---- the pass -------------------------------------------------------------------- */

size_t place_room(const struct place_snapshot *s)
{
	size_t steps = s->steps_n + 16, workers = s->workers_n + 16, gpus = 16, labels = 16;
	size_t words = s->workers_n / 64 + 4, kinds;

	for (size_t i = 0; i < s->workers_n; i++) {
		gpus += s->workers[i].gpus_n;
		labels += s->workers[i].labels_n;
	}
	kinds = gpus / 64 + 4;
	return 65536 +
	       steps * (1024 + 16 * words + 8 * kinds + DIMS * sizeof(struct place_blocker)) +
	       workers * (2 * sizeof(struct place_slot) + 64) + 8 * labels + 128 * gpus +
	       s->projects_n * 128;
}

void place_pass(const struct place_snapshot *s, struct arena *a, struct place_result *ret)
{
	struct place_pass *p = arena_new_of(a, struct place_pass);
	struct place_assignment *placed =
		arena_array_of(a, struct place_assignment, s->steps_n + 1);
	uint32_t *waiting = arena_array_of(a, uint32_t, s->steps_n + 1);
	struct place_result r = { .placed = placed, .waiting = waiting, .pass = p };
	struct order o;

	*p = (struct place_pass){ .s = s, .a = a };
	place_index(p);
	order_init(&o, s, a);
	for (size_t from = 0; from < s->steps_n;) {
		from = line_up(&o, s, from);
		while (o.heap_n != 0) {
			uint32_t step = o.turns[o.heap[0].from].step;
			struct place_shape *shape = &p->shapes[p->shape_of[step]];
			uint32_t at = shape->blocked ? PLACE_NOWHERE : find_slot(p, shape);
			shape->blocked = at == PLACE_NOWHERE;
			if (shape->blocked)
				waiting[r.waiting_n++] = step;
			else
				placed[r.placed_n++] = place_take(p, step, shape, at);
			turn_over(&o, !shape->blocked);
		}
	}
	*ret = r;
}
