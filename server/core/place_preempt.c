#include "server/core/place_inside.h"
#include "server/core/place_victims.h"

#include <stdlib.h>

/*
 * After a pass: steps that wait, in the order of their turn, look for workers on which enough would
 * be free if attempts that come after them ended. `soon` is what is free on each slot once all has
 * ended that ends within PLACE_GRACE anyway, less what was promised to others: a step that finds
 * its place there only waits.
 *
 * There are no circles: a smaller priority never ends a greater one, and who borrows never ends who
 * does not. Nor is anybody ended again and again for the same step (`spared`).
 */

enum { TRIES_MAX = 32 }; /* steps that look for others' places, in one pass */

struct soon {
	int64_t cpus, memory;
};

struct taking {
	struct place_pass *p;
	struct soon *soon; /* by slot */
	int64_t *gpus; /* of each group of GPUs, soon */
	size_t groups_n;
	uint32_t *first, *next; /* what runs on each slot, number + 1 */
	uint32_t *mate; /* the next attempt of the same step, round and round */
	bool *gone, *borrows; /* by what runs: it was chosen; it is beyond its project's grant */
	bool *used; /* by slot: by another node of the same gang */
	bool *served; /* by step: it has a place now, or soon */
	/* Of the step that looks for a place: its project's grant has room for it; its pool lets it
	 * take that of a smaller priority. */
	bool granted, by_priority;
	int32_t least; /* priority of what runs */
	bool any_borrows;
	struct place_preempted *out;
	size_t out_n;
	struct place_victim *victims; /* of all, in turn */
	uint32_t victims_n;
	struct soon *soon_before; /* for gangs that find no place for all of their nodes */
	int64_t *gpus_before;
};

/* ---- what runs ------------------------------------------------------------------- */

static int by_step(const void *pa, const void *pb, void *arg)
{
	const struct place_running *running = arg;
	const struct place_running *a = &running[*(const uint32_t *)pa],
				   *b = &running[*(const uint32_t *)pb];
	int c = str_cmp(a->step, b->step);

	return c != 0 ? c : str_cmp(a->id, b->id);
}

/* Attempts of the same step stand together. */
static void find_mates(struct taking *t)
{
	const struct place_snapshot *s = t->p->s;
	uint32_t n = (uint32_t)s->running_n, *order = arena_array_of(t->p->a, uint32_t, n + 1);

	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	if (n > 1)
		qsort_r(order, n, sizeof *order, by_step, (void *)(uintptr_t)s->running);
	for (uint32_t i = 0, head = 0; i < n; i++) {
		bool last = i + 1 == n ||
			    !str_eq(s->running[order[i]].step, s->running[order[i + 1]].step);
		t->mate[order[i]] = last ? order[head] : order[i + 1];
		if (last)
			head = i + 1;
	}
}

/* Of a project the most urgent first, then the eldest. */
static int by_claim(const void *pa, const void *pb, void *arg)
{
	const struct place_running *running = arg;
	const struct place_running *a = &running[*(const uint32_t *)pa],
				   *b = &running[*(const uint32_t *)pb];

	if (a->project != b->project)
		return a->project < b->project ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	return str_cmp(a->id, b->id);
}

static bool is_limited(const struct place_project *project)
{
	return project->gpus_quota.limited || project->steps_quota.limited;
}

static bool beyond(const struct place_quota *q, uint64_t held, uint64_t more)
{
	return q->limited && more != 0 && held > q->nominal;
}

/* Of what is not about to end. */
static void find_borrowers(struct taking *t)
{
	const struct place_snapshot *s = t->p->s;
	uint32_t *order = arena_array_of(t->p->a, uint32_t, s->running_n + 1), n = 0;
	uint64_t gpus = 0, steps = 0;

	t->any_borrows = false;
	memset(t->borrows, 0, s->running_n * sizeof *t->borrows);

	for (uint32_t i = 0; i < s->running_n; i++)
		if (s->running[i].by == 0 && !t->gone[i] &&
			is_limited(&s->projects[s->running[i].project]))
			order[n++] = i;
	if (n > 1)
		qsort_r(order, n, sizeof *order, by_claim, (void *)(uintptr_t)s->running);
	for (uint32_t i = 0; i < n; i++) {
		const struct place_running *x = &s->running[order[i]];
		const struct place_project *project = &s->projects[x->project];
		if (i == 0 || x->project != s->running[order[i - 1]].project)
			gpus = steps = 0;
		gpus += x->gpus_n;
		steps++;
		t->borrows[order[i]] = beyond(&project->gpus_quota, gpus, x->gpus_n) ||
				       beyond(&project->steps_quota, steps, 1);
		t->any_borrows = t->any_borrows || t->borrows[order[i]];
	}
}

/* ---- what is free soon ----------------------------------------------------------- */

/* GPUs of the slot of those kinds (NULL: all of them) are more or fewer. */
static void add_gpus(
	struct taking *t, const struct place_slot *slot, const uint64_t *kinds, int64_t n)
{
	const struct place_pass *p = t->p;

	for (uint32_t k = 0; k < slot->groups_n && n != 0; k++) {
		int64_t *soon = &t->gpus[slot->groups + k], part = n;
		if (!place_bit(kinds, p->groups[slot->groups + k].kind))
			continue;
		if (n < 0 && *soon < -n && k + 1 < slot->groups_n)
			part = *soon > 0 ? -*soon : 0;
		*soon += part;
		n -= part;
	}
}

static void add_running(struct taking *t, const struct place_running *x)
{
	const struct place_pass *p = t->p;
	uint32_t at = p->slot_of[x->worker];
	const struct place_slot *slot = &p->slots[at];

	t->soon[at].cpus += place_thousandths(x->cpus);
	t->soon[at].memory += (int64_t)x->memory;
	for (uint32_t i = 0; i < x->gpus_n; i++) {
		uint32_t gpu = place_gpu_at(p, slot, x->gpus[i]);
		if (gpu != PLACE_NOWHERE)
			t->gpus[place_group_of(p, slot, gpu) - p->groups]++;
	}
}

static void promise(struct taking *t, uint32_t step, uint32_t at)
{
	struct place_pass *p = t->p;
	const struct place_shape *shape = &p->shapes[p->shape_of[step]];

	t->soon[at].cpus -= shape->need[DIM_CPUS];
	t->soon[at].memory -= shape->need[DIM_MEMORY];
	if (shape->need[DIM_GPUS] != 0)
		add_gpus(t, &p->slots[at], place_kinds(p, shape), -shape->need[DIM_GPUS]);
}

/* What was set aside is free, too, and promised with the rest of what its step needs. */
static void promise_cleared(struct taking *t)
{
	struct place_pass *p = t->p;

	for (uint32_t i = 0; i < p->clearings_n; i++) {
		const struct place_clearing *c = &p->clearings[i];
		const struct place_shape *shape = &p->shapes[p->shape_of[c->step]];
		for (uint32_t n = 0; c->active && n < shape->nodes; n++) {
			const struct place_aside *a = &c->asides[n];
			t->soon[a->slot].cpus += a->amounts[DIM_CPUS];
			t->soon[a->slot].memory += a->amounts[DIM_MEMORY];
			if (a->amounts[DIM_GPUS] != 0)
				add_gpus(t, &p->slots[a->slot], place_kinds(p, shape),
					a->amounts[DIM_GPUS]);
			promise(t, c->step, a->slot);
		}
		if (c->active)
			place_count(p, c->step);
	}
}

/* The slot is kept for one who is not less urgent, and gets all that he waits for. */
static uint32_t owner_of(const struct taking *t, uint32_t step, uint32_t at)
{
	const struct place_pass *p = t->p;
	uint32_t kept = p->slots[at].kept, owner = kept != 0 ? p->kept[kept - 1].step : step;

	return owner != step && !t->served[owner] &&
			       p->s->steps[owner].priority >= p->s->steps[step].priority
		       ? owner
		       : PLACE_NOWHERE;
}

static void lacking(const struct taking *t, uint32_t step, uint32_t at, int64_t ret[DIMS])
{
	const struct place_pass *p = t->p;
	const struct place_shape *shape = &p->shapes[p->shape_of[step]];
	uint32_t owner = owner_of(t, step, at);
	const struct place_slot *slot = &p->slots[at];
	const uint64_t *kinds = place_kinds(p, shape);

	ret[DIM_CPUS] = shape->need[DIM_CPUS] - t->soon[at].cpus;
	ret[DIM_MEMORY] = shape->need[DIM_MEMORY] - t->soon[at].memory;
	ret[DIM_DISK] = shape->need[DIM_DISK] - (int64_t)slot->disk;
	ret[DIM_GPUS] = shape->need[DIM_GPUS];
	for (uint32_t k = 0; k < slot->groups_n && kinds != NULL; k++)
		if (place_bit(kinds, p->groups[slot->groups + k].kind))
			ret[DIM_GPUS] -= t->gpus[slot->groups + k];
	for (int d = 0; d < DIMS && owner != PLACE_NOWHERE; d++)
		if (shape->need[d] != 0)
			ret[d] += p->shapes[p->shape_of[owner]].need[d];
}

static bool lacks_nothing(const int64_t lacks[DIMS])
{
	for (int d = 0; d < DIMS; d++)
		if (lacks[d] > 0)
			return false;
	return true;
}

static const struct place_pool *pool_of(const struct place_pass *p, uint32_t step)
{
	return place_where_of(p, &p->shapes[p->shape_of[step]])->pool;
}

/* ---- whose place ----------------------------------------------------------------- */

/* The step comes strictly before it. */
static bool may_end(const struct taking *t, uint32_t step, uint32_t running, bool *ret_reclaimed)
{
	const struct place_pass *p = t->p;
	const struct place_step *s = &p->s->steps[step];
	const struct place_running *x = &p->s->running[running];

	*ret_reclaimed = t->granted && t->borrows[running] && x->project != s->project &&
			 is_limited(&p->s->projects[s->project]);
	if (*ret_reclaimed)
		return true;
	return t->by_priority && s->priority > x->priority &&
	       (t->granted || t->borrows[running] || x->project == s->project);
}

static bool is_spared(const struct place_running *x, uint32_t step)
{
	for (uint32_t i = 0; i < x->spared_n; i++)
		if (x->spared[i] == step)
			return true;
	return false;
}

/* With all attempts of its step; false: they may not be ended, or it would not help. */
static bool candidate(const struct taking *t, uint32_t step, uint32_t running,
	const int64_t lacks[DIMS], struct victim *ret)
{
	const struct place_pass *p = t->p;
	const struct place_shape *shape = &p->shapes[p->shape_of[step]];
	bool helps = false, reclaimed;
	uint32_t i = running;

	*ret = (struct victim){ .id = p->s->running[running].id, .running = running };
	do {
		const struct place_running *x = &p->s->running[i];
		if (x->fixed || place_ends_soon(p, x) || t->gone[i] || is_spared(x, step) ||
			!may_end(t, step, i, &reclaimed))
			return false;
		ret->attempts++;
		if (x->since != 0 && x->since < p->now)
			ret->lost +=
				(uint64_t)(p->now - x->since) * (x->gpus_n != 0 ? x->gpus_n : 1);
		i = t->mate[i];
	} while (i != running);
	place_held(p, shape, &p->s->running[running], ret->gives);
	for (int d = 0; d < DIMS; d++)
		helps = helps || (lacks[d] > 0 && ret->gives[d] > 0);
	return helps;
}

static uint32_t candidates(const struct taking *t, uint32_t step, uint32_t at,
	const int64_t lacks[DIMS], struct victim ret[VICTIMS_MAX])
{
	uint32_t n = 0;

	_Static_assert((int)DIMS == (int)VICTIM_DIMS, "amounts differ");
	for (uint32_t x = t->first[at]; x != 0 && n < VICTIMS_MAX; x = t->next[x - 1])
		n += candidate(t, step, x - 1, lacks, &ret[n]);
	return n;
}

struct pick {
	uint32_t slot;
	bool avoided;
	struct victims_cost cost;
	uint32_t running[VICTIMS_MAX], n;
};

static void ask_slot(const struct taking *t, uint32_t step, uint32_t at, struct pick *best)
{
	const struct place_pass *p = t->p;
	struct victims_choice c = { .cost = best->cost };
	struct victim v[VICTIMS_MAX];
	bool avoided = p->slots[at].avoided;
	int64_t lacks[DIMS];

	lacking(t, step, at, lacks);
	if (lacks[DIM_DISK] > 0 || (avoided && best->slot != PLACE_NOWHERE && !best->avoided))
		return;
	if (best->slot == PLACE_NOWHERE || (best->avoided && !avoided))
		c.cost = (struct victims_cost){ UINT32_MAX, UINT64_MAX };
	if (lacks_nothing(lacks)) {
		if (c.cost.attempts != 0)
			*best = (struct pick){ .slot = at, .avoided = avoided };
		return;
	}
	uint32_t n = candidates(t, step, at, lacks, v);
	if (n == 0 || !victims_choose(v, n, lacks, &c))
		return;
	*best = (struct pick){ .slot = at, .avoided = avoided, .cost = c.cost, .n = c.n };
	for (uint32_t i = 0; i < c.n; i++)
		best->running[i] = v[c.chosen[i]].running;
}

/* The slot for one node that costs the least, in order of ids. */
static bool choose(const struct taking *t, uint32_t step, struct pick *ret)
{
	const struct place_pass *p = t->p;
	const struct place_shape *shape = &p->shapes[p->shape_of[step]];
	const uint64_t *slots = place_where_of(p, shape)->slots;

	*ret = (struct pick){ .slot = PLACE_NOWHERE };
	for (uint32_t i = 0; i < p->slots_n; i++)
		if (place_bit(slots, i) && !t->used[i])
			ask_slot(t, step, i, ret);
	return ret->slot != PLACE_NOWHERE;
}

/* ---- taking it ------------------------------------------------------------------- */

static void end(struct taking *t, uint32_t step, uint32_t running)
{
	const struct place_snapshot *s = t->p->s;
	uint32_t i = running;
	bool reclaimed;

	do {
		(void)may_end(t, step, i, &reclaimed);
		t->victims[t->victims_n++] = (struct place_victim){ i, reclaimed };
		t->gone[i] = true;
		add_running(t, &s->running[i]);
		i = t->mate[i];
	} while (i != running);
}

static void remember(struct taking *t)
{
	struct place_pass *p = t->p;

	if (t->soon_before == NULL) {
		t->soon_before = arena_array_of(p->a, struct soon, p->slots_n + (size_t)1);
		t->gpus_before = arena_array_of(p->a, int64_t, t->groups_n + 1);
	}
	memcpy(t->soon_before, t->soon, p->slots_n * sizeof *t->soon);
	memcpy(t->gpus_before, t->gpus, t->groups_n * sizeof *t->gpus);
}

static void restore(struct taking *t, uint32_t victims_n)
{
	while (t->victims_n > victims_n)
		t->gone[t->victims[--t->victims_n].running] = false;
	memcpy(t->soon, t->soon_before, t->p->slots_n * sizeof *t->soon);
	memcpy(t->gpus, t->gpus_before, t->groups_n * sizeof *t->gpus);
}

/* All nodes, or none. What needs no victims is only promised: it starts soon by itself. */
static bool take(struct taking *t, uint32_t step)
{
	struct place_pass *p = t->p;
	uint32_t nodes = place_nodes(&p->s->steps[step]);
	uint32_t *workers = arena_array_of(p->a, uint32_t, nodes), n = 0;
	uint32_t before = t->victims_n;
	struct pick pick;

	t->granted = place_may_hold(p, step, false);
	t->by_priority = pool_of(p, step)->preemption == PLACE_PREEMPT_PRIORITY;
	if (nodes > 1)
		remember(t);
	while (n < nodes && choose(t, step, &pick)) {
		workers[n++] = p->slots[pick.slot].worker;
		for (uint32_t i = 0; i < pick.n; i++)
			end(t, step, pick.running[i]);
		promise(t, step, pick.slot);
		t->used[pick.slot] = true;
	}
	for (uint32_t i = 0; i < n; i++)
		t->used[p->slot_of[workers[i]]] = false;
	if (n < nodes) {
		if (n != 0)
			restore(t, before);
		return false;
	}
	t->served[step] = true;
	place_count(p, step);
	if (t->victims_n != before) {
		t->out[t->out_n++] = (struct place_preempted){ step, workers, &t->victims[before],
			nodes, t->victims_n - before };
		find_borrowers(t); /* there are fewer now */
	}
	return true;
}

/* ---- all steps ------------------------------------------------------------------- */

static void taking_init(struct taking *t, struct place_pass *p)
{
	const struct place_snapshot *s = p->s;
	size_t n = s->running_n + 1, slots = p->slots_n + (size_t)1;

	*t = (struct taking){ .p = p,
		.soon = arena_array_of(p->a, struct soon, slots),
		.first = arena_array_of(p->a, uint32_t, slots),
		.next = arena_array_of(p->a, uint32_t, n),
		.mate = arena_array_of(p->a, uint32_t, n),
		.gone = arena_array_of(p->a, bool, n),
		.borrows = arena_array_of(p->a, bool, n),
		.used = arena_array_of(p->a, bool, slots),
		.served = arena_array_of(p->a, bool, s->steps_n + 1),
		.least = INT32_MAX,
		.out = arena_array_of(p->a, struct place_preempted, PLACE_PREEMPTED_MAX),
		.victims = arena_array_of(p->a, struct place_victim, n) };
	for (uint32_t i = 0; i < p->slots_n; i++)
		t->groups_n += p->slots[i].groups_n;
	t->gpus = arena_array_of(p->a, int64_t, t->groups_n + 1);
	for (size_t g = 0; g < t->groups_n; g++)
		t->gpus[g] = p->groups[g].free;
	for (uint32_t i = 0; i < p->slots_n; i++)
		t->soon[i] = (struct soon){ p->slots[i].cpus, (int64_t)p->slots[i].memory };
	for (uint32_t i = 0; i < s->running_n; i++) {
		const struct place_running *x = &s->running[i];
		uint32_t at = p->slot_of[x->worker];
		BUG_ON(x->project >= s->projects_n);
		t->next[i] = t->first[at];
		t->first[at] = i + 1;
		if (place_ends_soon(p, x))
			add_running(t, x);
		else if (!x->fixed && x->priority < t->least)
			t->least = x->priority;
	}
	find_mates(t);
	find_borrowers(t);
	promise_cleared(t);
}

static bool wants(const struct taking *t, uint32_t step)
{
	struct place_pass *p = t->p;
	const struct place_step *s = &p->s->steps[step];
	enum place_preemption how = pool_of(p, step)->preemption;

	if (how == PLACE_PREEMPT_NONE || p->over[step] || place_clearing(p, step) != NULL)
		return false;
	if (!t->any_borrows && (how != PLACE_PREEMPT_PRIORITY || s->priority <= t->least))
		return false;
	return place_may_hold(p, step, true) && place_could(p, step);
}

/* A shape that was tried in vain is so for those of its project that are no more urgent. */
struct vain {
	uint32_t shape, project;
	int32_t priority;
};

static bool in_vain(const struct vain *v, size_t n, struct vain x)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].shape == x.shape && v[i].project == x.project &&
			x.priority <= v[i].priority)
			return true;
	return false;
}

static void take_all(struct taking *t, const struct place_result *r)
{
	struct place_pass *p = t->p;
	struct vain vain[TRIES_MAX];
	size_t n = 0, tries = 0;

	for (size_t i = 0; i < r->waiting_n && tries < TRIES_MAX && t->out_n < PLACE_PREEMPTED_MAX;
		i++) {
		uint32_t step = r->waiting[i];
		struct vain x = { p->shape_of[step], p->s->steps[step].project,
			p->s->steps[step].priority };
		if (!wants(t, step) || in_vain(vain, n, x))
			continue;
		tries++;
		if (!take(t, step))
			vain[n++] = x;
	}
}

/* What is counted for quotas here is not yet held: the reasons why others wait are without it. */
void place_preempt(struct place_pass *p, struct place_result *r)
{
	const struct place_snapshot *s = p->s;
	struct place_used *used = p->used;
	uint32_t *reserved = p->reserved;
	struct taking t;
	bool any = false;

	for (size_t i = 0; i < s->pools_n; i++)
		any = any || s->pools[i].preemption != PLACE_PREEMPT_NONE;
	if (!any || r->waiting_n == 0 || s->running_n == 0)
		return;
	p->used = arena_array_of(p->a, struct place_used, s->projects_n + 1);
	memcpy(p->used, used, s->projects_n * sizeof *used);
	p->reserved = arena_array_of(p->a, uint32_t, s->projects_n + 1);
	memcpy(p->reserved, reserved, s->projects_n * sizeof *reserved);
	taking_init(&t, p);
	take_all(&t, r);
	p->used = used;
	p->reserved = reserved;
	r->preempted = t.out;
	r->preempted_n = t.out_n;
}
