#include "server/core/place_inside.h"

#include <stdlib.h>

/*
 * Each slot has its holds in the order in which they end; what is free when the first k of them
 * have ended says when a step would fit there. The slot where that is soonest is kept for it; for a
 * gang as many as it wants, until the last of them has room.
 */

enum {
	TRIES_MAX = 24, /* looks for a slot to keep, in one pass */
	WORKERS_PER_KEPT = 16 /* so that most are everybody's; the first is kept in any case */
};

/* ---- holds ----------------------------------------------------------------------- */

/* The kind of the GPU with this UUID among the slot's, or PLACE_NOWHERE. */
static uint32_t kind_of(const struct place_pass *p, const struct place_slot *slot, struct str uuid)
{
	uint32_t at = place_gpu_at(p, slot, uuid);

	return at != PLACE_NOWHERE ? place_group_of(p, slot, at)->kind : PLACE_NOWHERE;
}

/* Into the slot's list, behind those that end no later. */
static void insert(struct place_pass *p, struct place_slot *slot, const struct place_hold *hold)
{
	uint32_t at = p->holds_n++, *link = &slot->hold;

	p->holds[at] = *hold;
	while (*link != 0 && p->holds[*link - 1].ends_by <= hold->ends_by)
		link = &p->holds[*link - 1].next;
	p->holds[at].next = *link;
	*link = at + 1;
}

/* One hold, and one more for each further kind of GPUs. */
static void put_holds(struct place_pass *p, struct place_slot *slot, struct place_hold h,
	const struct str *uuids, uint32_t n)
{
	uint32_t found = 0;

	for (uint32_t k = 0; k < slot->groups_n && found < n; k++) {
		h.kind = p->groups[slot->groups + k].kind;
		h.gpus = 0;
		for (uint32_t i = 0; i < n; i++)
			h.gpus += kind_of(p, slot, uuids[i]) == h.kind;
		if (h.gpus == 0)
			continue;
		found += h.gpus;
		insert(p, slot, &h);
		h.cpus = 0;
		h.memory = 0;
	}
	if (found == 0) {
		h.kind = PLACE_NOWHERE;
		h.gpus = 0;
		insert(p, slot, &h);
	}
}

static int by_end_backwards(const void *pa, const void *pb)
{
	const struct place_running *a = *(const struct place_running *const *)pa,
				   *b = *(const struct place_running *const *)pb;
	int64_t x = a->ends_by != 0 ? a->ends_by : INT64_MAX,
		y = b->ends_by != 0 ? b->ends_by : INT64_MAX;

	return (x < y) - (x > y);
}

/* The last to end first, so that each goes to the head of its list. */
static void make_holds(struct place_pass *p)
{
	const struct place_snapshot *s = p->s;
	const struct place_running **order =
		arena_array_of(p->a, const struct place_running *, s->running_n + 1);
	size_t gpus = 0;

	for (size_t i = 0; i < s->running_n; i++)
		gpus += s->running[i].gpus_n;
	for (size_t i = 0; i < s->workers_n; i++)
		gpus += s->workers[i].gpus_n;
	p->holds = arena_array_of(p->a, struct place_hold, s->running_n + p->ranks_n + gpus + 1);
	for (size_t i = 0; i < s->running_n; i++)
		order[i] = &s->running[i];
	if (s->running_n > 1)
		qsort(order, s->running_n, sizeof *order, by_end_backwards);
	for (size_t i = 0; i < s->running_n; i++) {
		const struct place_running *r = order[i];
		struct place_slot *slot = &p->slots[p->slot_of[r->worker]];
		if (place_promised(p, r))
			continue;
		struct place_hold h = { .ends_by = INT64_MAX,
			.cpus = place_thousandths(r->cpus),
			.memory = r->memory };
		if (r->ends_by != 0)
			h.ends_by = r->ends_by > p->now ? r->ends_by : p->now;
		put_holds(p, slot, h, r->gpus, r->gpus_n);
	}
	for (size_t i = 0; i < p->placed_n; i++)
		place_holds(p, &p->placed[i], p->slot_of[p->placed[i].worker]);
}

void place_holds(struct place_pass *p, const struct place_assignment *placed, uint32_t at)
{
	const struct place_step *s = &p->s->steps[placed->step];
	const struct place_shape *shape = &p->shapes[p->shape_of[placed->step]];
	const struct place_hold h = { .ends_by = s->time_limit != 0 ? p->now + s->time_limit
								    : INT64_MAX,
		.cpus = shape->need[DIM_CPUS],
		.memory = s->memory };

	put_holds(p, &p->slots[at], h, placed->gpus, placed->gpus_n);
}

/* ---- when the shape would fit ---------------------------------------------------- */

struct opening {
	int64_t at; /* INT64_MAX: not known; -1: never */
	int64_t free[DIMS]; /* then; GPUs: of all kinds */
};

static bool enough(const struct place_shape *shape, const int64_t free[DIMS], int64_t match)
{
	return free[DIM_CPUS] >= shape->need[DIM_CPUS] &&
	       free[DIM_MEMORY] >= shape->need[DIM_MEMORY] &&
	       free[DIM_DISK] >= shape->need[DIM_DISK] && match >= shape->need[DIM_GPUS];
}

static struct opening opening_of(
	const struct place_pass *p, const struct place_shape *shape, uint32_t at)
{
	const struct place_slot *slot = &p->slots[at];
	const uint64_t *kinds = place_kinds(p, shape);
	uint32_t all;
	int64_t match = place_matching(p, slot, kinds, &all);
	struct opening o = { .at = p->now,
		.free = { slot->cpus, (int64_t)slot->memory, (int64_t)slot->disk, slot->gpus } };
	uint32_t next = slot->hold;

	while (!enough(shape, o.free, match)) {
		if (next == 0) {
			o.at = -1;
			break;
		}
		const struct place_hold *h = &p->holds[next - 1];
		o.at = h->ends_by;
		o.free[DIM_CPUS] += h->cpus;
		o.free[DIM_MEMORY] += (int64_t)h->memory;
		o.free[DIM_GPUS] += h->gpus;
		if (kinds != NULL && h->kind != PLACE_NOWHERE && place_bit(kinds, h->kind))
			match += h->gpus;
		next = h->next;
	}
	return o;
}

/* ---- keeping --------------------------------------------------------------------- */

static void keep(struct place_pass *p, uint32_t step, const struct place_shape *shape, uint32_t at,
	int64_t until)
{
	const struct opening o = opening_of(p, shape, at);
	struct place_slot *slot = &p->slots[at];
	struct place_keep *k = &p->kept[p->kept_n++];

	*k = (struct place_keep){ .slot = at, .step = step, .until = until };
	for (int d = 0; d < DIMS; d++)
		k->spare[d] = o.free[d] - shape->need[d];
	if (slot->groups_n > 1)
		k->spare[DIM_GPUS] = 0; /* which kinds they are of is not known */
	slot->kept = p->kept_n;
}

static bool was_kept(const struct place_step *s, uint32_t worker)
{
	for (uint32_t i = 0; i < s->kept_n; i++)
		if (s->kept[i] == worker)
			return true;
	return false;
}

/* Free there of what the step asks for most: the less, the later it comes among those of which no
 * time is known. Where it was kept before is first. */
static uint64_t lacking(const struct place_pass *p, uint32_t step, const struct place_shape *shape,
	const struct place_slot *slot)
{
	uint32_t all;
	uint64_t free = (uint64_t)slot->cpus;

	if (was_kept(&p->s->steps[step], slot->worker))
		return 0;
	if (shape->need[DIM_GPUS] != 0)
		free = place_matching(p, slot, place_kinds(p, shape), &all);
	return free < UINT32_MAX ? UINT32_MAX - free : 1;
}

/* The slots where the step can start first; without a time, where it was kept before, or those with
 * the most free of what it asks for. How many there are, at most as many as it wants, and when the
 * last of them has room: INT64_MAX when that is not known. */
static uint32_t choose(const struct place_pass *p, uint32_t step, const struct place_shape *shape,
	struct place_pick picks[PLACE_NODES_MAX], int64_t *ret_until)
{
	const struct place_where *where = place_where_of(p, shape);
	bool patient = place_patient(p, step);
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->slots_n; i++) {
		const struct place_slot *slot = &p->slots[i];
		struct place_pick x = { .slot = i };
		if (!place_bit(where->slots, i) || slot->kept != 0)
			continue;
		const struct opening o = opening_of(p, shape, i);
		if (o.at < 0 || (o.at == INT64_MAX && !patient))
			continue;
		x.key = o.at != INT64_MAX ? (uint64_t)o.at
					  : UINT64_C(1) << 63 | lacking(p, step, shape, slot);
		n = place_pick_add(picks, n, shape->nodes, x);
	}
	if (n != 0)
		*ret_until = picks[n - 1].key < UINT64_C(1) << 63 ? (int64_t)picks[n - 1].key
								  : INT64_MAX;
	return n;
}

bool place_could(struct place_pass *p, uint32_t step)
{
	struct place_shape *shape = &p->shapes[p->shape_of[step]];
	const struct place_where *where = place_where_of(p, shape);

	uint32_t able = 0;

	for (uint32_t i = 0; i < p->slots_n && !shape->asked && able < shape->nodes; i++)
		able += place_bit(where->slots, i) && place_has_all(p, shape, i) &&
			p->slots[i].disk >= (uint64_t)shape->need[DIM_DISK];
	shape->able = shape->able || able >= shape->nodes;
	shape->asked = true;
	return shape->able;
}

/* Of the workers that may take the step. */
static bool kept_enough(const struct place_pass *p, const struct place_shape *shape)
{
	const uint64_t *slots = place_where_of(p, shape)->slots;
	uint32_t kept = 0, all = 0;

	for (uint32_t i = 0; i < p->kept_n; i++)
		kept += place_bit(slots, p->kept[i].slot);
	for (uint32_t word = 0; word <= p->slots_n / 64; word++)
		all += (uint32_t)__builtin_popcountll(slots[word]);
	return p->kept_steps == PLACE_KEPT_STEPS_MAX || p->kept_n + shape->nodes > PLACE_KEPT_MAX ||
	       (kept != 0 && kept + shape->nodes - 1 > all / WORKERS_PER_KEPT);
}

void place_keep(struct place_pass *p, uint32_t step)
{
	struct place_shape *shape = &p->shapes[p->shape_of[step]];
	bool patient = place_patient(p, step);
	struct place_pick picks[PLACE_NODES_MAX];
	int64_t until = 0;

	if (place_clearing(p, step) != NULL)
		return; /* its place is known */
	if (shape->no_keep || (shape->no_start && !patient) || p->keep_tries == TRIES_MAX ||
		kept_enough(p, shape))
		return;
	if (!place_could(p, step)) { /* such steps wait in vain, and may not use up the tries */
		shape->no_keep = true;
		return;
	}
	p->keep_tries++;
	if (p->holds == NULL)
		make_holds(p);
	if (choose(p, step, shape, picks, &until) == shape->nodes) {
		for (uint32_t i = 0; i < shape->nodes; i++)
			keep(p, step, shape, picks[i].slot, until != INT64_MAX ? until : 0);
		p->kept_steps++;
	} else if (patient) {
		shape->no_keep = true;
	} else {
		shape->no_start = true;
	}
}

bool place_may(const struct place_pass *p, const struct place_slot *slot, uint32_t step,
	const struct place_shape *shape)
{
	if (slot->kept == 0)
		return true;
	const struct place_keep *k = &p->kept[slot->kept - 1];
	if (k->step == step || place_in_time(p, step, k))
		return true;
	for (int d = 0; d < DIMS; d++)
		if (shape->need[d] > k->spare[d])
			return false;
	return true;
}
