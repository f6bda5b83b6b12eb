#include "server/core/place_inside.h"

/*
 * A simulation on a copy of what the pass left: what has a time limit ends at it, in order of time;
 * each end gives its worker back what was held there, and the steps that wait, in their order, try
 * that worker; a gang starts when the last of its workers has room. What they hold in turn ends at
 * their own time limits.
 */

enum { TRIES_MAX = 500000 }; /* a loop must not stand still: beyond, it cannot be told */

struct ending {
	int64_t at;
	uint32_t slot;
	int64_t cpus;
	uint64_t memory;
	const struct str *gpus;
	uint32_t gpus_n;
};

struct when {
	struct place_pass pass; /* with slots, groups and GPUs of its own */
	struct ending *heap;
	size_t heap_n;
	uint32_t *waiting;
	size_t waiting_n;
	size_t tries;
};

static bool sooner(const struct ending *a, const struct ending *b)
{
	return a->at < b->at || (a->at == b->at && a->slot < b->slot);
}

static void push(struct when *w, const struct ending *e)
{
	size_t i = w->heap_n++;

	for (; i > 0 && sooner(e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = *e;
}

static struct ending pop(struct when *w)
{
	struct ending first = w->heap[0], last = w->heap[--w->heap_n];
	size_t i = 0;

	for (size_t child = 1; child < w->heap_n; child = 2 * i + 1) {
		if (child + 1 < w->heap_n && sooner(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!sooner(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return first;
}

static void give_back_gpu(struct place_pass *p, struct place_slot *slot, struct str uuid)
{
	uint32_t at = place_gpu_at(p, slot, uuid);

	if (at != PLACE_NOWHERE && p->taken[slot->gpu + at])
		place_move_gpu(p, slot, at, false);
}

static void give_back(struct place_pass *p, const struct ending *e)
{
	struct place_slot *slot = &p->slots[e->slot];

	slot->cpus += e->cpus;
	slot->memory += e->memory;
	if (slot->running != 0)
		slot->running--;
	for (uint32_t i = 0; i < e->gpus_n; i++)
		give_back_gpu(p, slot, e->gpus[i]);
}

/* The end of a step that was placed at a time; without a time limit it has none. */
static void will_end(struct when *w, const struct place_assignment *a, uint32_t slot, int64_t from)
{
	const struct place_pass *p = &w->pass;
	const struct place_step *s = &p->s->steps[a->step];
	const struct place_shape *shape = &p->shapes[p->shape_of[a->step]];

	if (s->time_limit != 0)
		push(w, &(struct ending){ .at = from + s->time_limit,
				.slot = slot,
				.cpus = shape->need[DIM_CPUS],
				.memory = s->memory,
				.gpus = a->gpus,
				.gpus_n = a->gpus_n });
}

static void when_init(
	struct when *w, const struct place_result *r, size_t waiting, int64_t now, struct arena *a)
{
	const struct place_pass *from = r->pass;
	const struct place_snapshot *s = from->s;
	uint32_t *slot_of = arena_array_of(a, uint32_t, s->workers_n + 1);
	struct place_pass *p = &w->pass;
	uint32_t groups = 0, gpus = 0;

	*w = (struct when){ .pass = *from, .waiting_n = waiting + 1 };
	for (uint32_t i = 0; i < from->slots_n; i++) {
		slot_of[from->slots[i].worker] = i;
		groups += from->slots[i].groups_n;
		gpus += s->workers[i].gpus_n;
	}
	p->a = a;
	p->fronts_n = 0; /* they are not looked at here, where more and more is free */
	p->kept = arena_array_of(a, struct place_keep, PLACE_KEPT_MAX);
	memcpy(p->kept, from->kept, from->kept_n * sizeof *p->kept);
	p->slots = arena_array_of(a, struct place_slot, (size_t)from->slots_n + 1);
	p->groups = arena_array_of(a, struct place_group, (size_t)groups + 1);
	p->taken = arena_array_of(a, bool, (size_t)gpus + 1);
	memcpy(p->slots, from->slots, from->slots_n * sizeof *p->slots);
	memcpy(p->groups, from->groups, groups * sizeof *p->groups);
	memcpy(p->taken, from->taken, gpus * sizeof *p->taken);
	w->heap = arena_array_of(a, struct ending, s->running_n + from->ranks_n + 1);
	w->waiting = arena_array_of(a, uint32_t, w->waiting_n);
	memcpy(w->waiting, r->waiting, w->waiting_n * sizeof *w->waiting);
	for (size_t i = 0; i < s->running_n; i++) {
		const struct place_running *x = &s->running[i];
		if (x->ends_by != 0 && !place_promised(from, x))
			push(w, &(struct ending){ .at = x->ends_by > now ? x->ends_by : now,
					.slot = slot_of[x->worker],
					.cpus = place_thousandths(x->cpus),
					.memory = x->memory,
					.gpus = x->gpus,
					.gpus_n = x->gpus_n });
	}
	for (size_t i = 0; i < r->placed_n; i++)
		will_end(w, &r->placed[i], slot_of[r->placed[i].worker], now);
}

/* What was kept for a step that has started is free for others. */
static void release(struct place_pass *p, uint32_t step)
{
	for (uint32_t i = 0; i < p->kept_n; i++)
		if (p->kept[i].step == step)
			p->slots[p->kept[i].slot].kept = 0;
}

static bool try_gang(struct when *w, uint32_t step, const struct place_shape *shape, int64_t now)
{
	struct place_pass *p = &w->pass;
	struct place_pick picks[PLACE_NODES_MAX];
	uint32_t fits;

	w->tries += p->slots_n;
	if (place_pick(p, step, shape, picks, &fits) < shape->nodes)
		return false;
	for (uint32_t i = 0; i < shape->nodes; i++) {
		const struct place_assignment a = place_take(p, step, shape, picks[i].slot);
		will_end(w, &a, picks[i].slot, now);
	}
	return true;
}

/* Steps that wait try the slot in their order; true when the last of them, the one that is asked
 * about, has found its place. */
static bool try_slot(struct when *w, uint32_t at, int64_t now)
{
	struct place_pass *p = &w->pass;

	p->now = now;
	uint32_t target = w->waiting[w->waiting_n - 1];
	size_t kept = 0;
	bool found = false;

	for (size_t i = 0; i < w->waiting_n; i++) {
		uint32_t step = w->waiting[i];
		const struct place_shape *shape = &p->shapes[p->shape_of[step]];
		const struct place_where *where = place_where_of(p, shape);
		if (!place_bit(where->slots, at) || p->over[step] ||
			place_fit(p, &p->slots[at], shape, place_kinds(p, shape)) == UINT64_MAX ||
			!place_may(p, &p->slots[at], step, shape) ||
			(shape->nodes > 1 && !try_gang(w, step, shape, now))) {
			w->waiting[kept++] = step;
			continue;
		}
		if (shape->nodes == 1) {
			const struct place_assignment a = place_take(p, step, shape, at);
			will_end(w, &a, at, now);
		}
		release(p, step);
		found = found || step == target;
	}
	w->tries += w->waiting_n;
	w->waiting_n = kept;
	return found;
}

int64_t place_start(
	const struct place_result *r, size_t waiting, int64_t now, struct arena *scratch)
{
	const struct place_clearing *c = place_clearing(r->pass, r->waiting[waiting]);
	struct when w;

	if (c != NULL)
		return place_cleared_by(r->pass, c);
	if (r->pass->over[r->waiting[waiting]])
		return 0; /* what others of the project hold has no place here */
	when_init(&w, r, waiting, now, scratch);
	while (w.heap_n != 0 && w.tries < TRIES_MAX) {
		const struct ending e = pop(&w);
		give_back(&w.pass, &e);
		if (try_slot(&w, e.slot, e.at))
			return e.at;
	}
	return 0;
}

size_t place_start_room(const struct place_result *r)
{
	const struct place_snapshot *s = r->pass->s;
	size_t gpus = 0;

	for (size_t i = 0; i < s->workers_n; i++)
		gpus += s->workers[i].gpus_n;
	return 65536 + s->workers_n * (sizeof(struct place_slot) + 16) +
	       gpus * (sizeof(struct place_group) + 8) +
	       (s->running_n + r->pass->ranks_n) * (sizeof(struct ending) + 64) +
	       r->pass->ranks_n * (16 + GPUS_MAX * sizeof(struct str));
}
