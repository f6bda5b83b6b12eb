#include "server/core/place_inside.h"

#include <stdlib.h>

/*
 * For a step for which others are being ended, as much is set aside on its slots of what is free as
 * those will not give: with what they hold it has all that it needs. So nobody comes in between,
 * and what else is free there stays everybody's. When the step's turn comes it is given back, and
 * tried with. If something else has happened there (a worker has gone, a GPU is ill), nothing is
 * set aside, and the step may have others ended elsewhere.
 */

struct place_clearing *place_clearing(const struct place_pass *p, uint32_t step)
{
	struct place_clearing *c;

	if (p->clearing_of == NULL || p->clearing_of[step] == 0)
		return NULL;
	c = &p->clearings[p->clearing_of[step] - 1];
	return c->active ? c : NULL;
}

bool place_promised(const struct place_pass *p, const struct place_running *x)
{
	return x->by != 0 && place_clearing(p, x->by - 1) != NULL;
}

bool place_ends_soon(const struct place_pass *p, const struct place_running *x)
{
	return x->by != 0 || (x->ends_by != 0 && x->ends_by <= p->now + PLACE_GRACE);
}

int64_t place_cleared_by(const struct place_pass *p, const struct place_clearing *c)
{
	int64_t at = p->s->now;

	for (size_t i = 0; i < p->s->running_n; i++) {
		const struct place_running *x = &p->s->running[i];
		if (x->by == c->step + 1 && x->ends_by > at)
			at = x->ends_by;
	}
	return at;
}

void place_held(const struct place_pass *p, const struct place_shape *shape,
	const struct place_running *x, int64_t ret[DIMS])
{
	const struct place_slot *slot = &p->slots[p->slot_of[x->worker]];
	const uint64_t *kinds = place_kinds(p, shape);

	ret[DIM_CPUS] = place_thousandths(x->cpus);
	ret[DIM_MEMORY] = (int64_t)x->memory;
	ret[DIM_DISK] = ret[DIM_GPUS] = 0;
	for (uint32_t i = 0; kinds != NULL && i < x->gpus_n; i++) {
		uint32_t at = place_gpu_at(p, slot, x->gpus[i]);
		ret[DIM_GPUS] +=
			at != PLACE_NOWHERE && place_bit(kinds, place_group_of(p, slot, at)->kind);
	}
}

/* ---- setting aside --------------------------------------------------------------- */

static bool gpu_suits(const struct place_pass *p, const struct place_slot *slot, uint32_t at,
	const uint64_t *kinds)
{
	return !p->taken[slot->gpu + at] && place_bit(kinds, place_group_of(p, slot, at)->kind);
}

static void aside_move(struct place_slot *slot, const struct place_aside *a, int64_t sign)
{
	slot->cpus += sign * a->amounts[DIM_CPUS];
	slot->memory += (uint64_t)(sign * a->amounts[DIM_MEMORY]);
	slot->disk += (uint64_t)(sign * a->amounts[DIM_DISK]);
}

void place_set_aside(struct place_pass *p, struct place_clearing *c)
{
	const struct place_shape *shape = &p->shapes[p->shape_of[c->step]];
	const uint64_t *kinds = place_kinds(p, shape);

	c->active = true;
	for (uint32_t n = 0; n < shape->nodes; n++) {
		struct place_aside *a = &c->asides[n];
		struct place_slot *slot = &p->slots[a->slot];
		const struct place_worker *w = &p->s->workers[slot->worker];
		int64_t want = a->amounts[DIM_GPUS], got = 0;
		aside_move(slot, a, -1);
		for (uint32_t i = 0; i < w->gpus_n && got < want; i++) {
			if (!gpu_suits(p, slot, i, kinds))
				continue;
			place_move_gpu(p, slot, i, true);
			a->gpus[got++] = i;
		}
		BUG_ON(got < want);
	}
}

void place_give_back(struct place_pass *p, struct place_clearing *c)
{
	const struct place_shape *shape = &p->shapes[p->shape_of[c->step]];

	c->active = false;
	for (uint32_t n = 0; n < shape->nodes; n++) {
		const struct place_aside *a = &c->asides[n];
		aside_move(&p->slots[a->slot], a, 1);
		for (int64_t i = 0; i < a->amounts[DIM_GPUS]; i++)
			place_move_gpu(p, &p->slots[a->slot], a->gpus[i], false);
	}
}

bool place_has_cleared(const struct place_pass *p, const struct place_clearing *c,
	struct place_pick picks[PLACE_NODES_MAX])
{
	const struct place_shape *shape = &p->shapes[p->shape_of[c->step]];

	for (uint32_t n = 0; n < shape->nodes; n++) {
		const struct place_slot *slot = &p->slots[c->asides[n].slot];
		picks[n] = (struct place_pick){ 0, c->asides[n].slot };
		if (place_fit(p, slot, shape, place_kinds(p, shape)) == UINT64_MAX)
			return false;
	}
	return true;
}

/* ---- at the beginning of a pass -------------------------------------------------- */

/* What must be set aside on one slot of what is free there: what those that are ended for the step
 * will not give. Something else may be about to end, which was counted on, too; false: even with
 * that it would not be enough. */
static bool aside_of(
	const struct place_pass *p, uint32_t step, uint32_t worker, struct place_aside *ret)
{
	const struct place_shape *shape = &p->shapes[p->shape_of[step]];
	const struct place_slot *slot = &p->slots[p->slot_of[worker]];
	uint32_t all;
	int64_t held[DIMS],
		soon[DIMS] = { slot->cpus, (int64_t)slot->memory, (int64_t)slot->disk,
			place_matching(p, slot, place_kinds(p, shape), &all) },
		free[DIMS];

	memcpy(free, soon, sizeof free);
	ret->slot = p->slot_of[worker];
	memcpy(ret->amounts, shape->need, sizeof ret->amounts);
	if (!place_bit(place_where_of(p, shape)->slots, ret->slot))
		return false;
	for (size_t i = 0; i < p->s->running_n; i++) {
		const struct place_running *x = &p->s->running[i];
		if (x->worker != worker || !place_ends_soon(p, x))
			continue;
		place_held(p, shape, x, held);
		for (int d = 0; d < DIMS; d++) {
			soon[d] += held[d];
			ret->amounts[d] -= x->by == step + 1 ? held[d] : 0;
		}
	}
	for (int d = 0; d < DIMS; d++) {
		if (shape->need[d] > soon[d])
			return false;
		if (ret->amounts[d] > free[d])
			ret->amounts[d] = free[d];
		if (ret->amounts[d] < 0)
			ret->amounts[d] = 0;
	}
	return true;
}

static int by_turn(const void *pa, const void *pb, void *arg)
{
	const struct place_step *steps = arg;
	const struct place_step *a = &steps[*(const uint32_t *)pa],
				*b = &steps[*(const uint32_t *)pb];

	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	if (a->queued_at != b->queued_at)
		return a->queued_at < b->queued_at ? -1 : 1;
	return str_cmp(a->id, b->id);
}

static void clear_step(struct place_pass *p, uint32_t step)
{
	const struct place_step *s = &p->s->steps[step];
	struct place_clearing *c = &p->clearings[p->clearings_n];

	c->step = step;
	c->asides = arena_array_of(p->a, struct place_aside, s->cleared_n);
	for (uint32_t n = 0; n < s->cleared_n; n++) {
		if (!aside_of(p, step, s->cleared[n], &c->asides[n]))
			return;
		c->asides[n].gpus = arena_array_of(p->a, uint32_t, s->gpus.count + (size_t)1);
	}
	place_set_aside(p, c);
	p->clearing_of[step] = ++p->clearings_n;
}

void place_clear(struct place_pass *p)
{
	const struct place_snapshot *s = p->s;
	uint32_t n = 0, *order;

	for (uint32_t i = 0; i < s->steps_n; i++)
		n += s->steps[i].cleared_n == place_nodes(&s->steps[i]);
	if (n == 0)
		return;
	order = arena_array_of(p->a, uint32_t, n);
	p->clearing_of = arena_array_of(p->a, uint32_t, s->steps_n);
	p->clearings = arena_array_of(p->a, struct place_clearing, n);
	n = 0;
	for (uint32_t i = 0; i < s->steps_n; i++)
		if (s->steps[i].cleared_n == place_nodes(&s->steps[i]))
			order[n++] = i;
	qsort_r(order, n, sizeof *order, by_turn, (void *)(uintptr_t)s->steps);
	for (uint32_t i = 0; i < n; i++)
		clear_step(p, order[i]);
}
