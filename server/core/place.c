#include "server/core/place.h"

#include "server/core/place_inside.h"
#include "server/core/place_near.h"

/* place_index works out what is alike, place_order says whose turn it is; here steps find their
 * workers. */

/* ---- the best worker ------------------------------------------------------------- */

enum { MANY = 0xffff };

/* How much is left over, the least first, or the most where the pool spreads. */
static inline uint64_t left_over(bool spread, int64_t left, int64_t many)
{
	if (left > many)
		left = many;
	return (uint64_t)(spread ? many - left : left);
}

/* How much of what the step needs is missing there, of what somebody holds. */
static inline uint64_t missing(const struct place_pass *p, const struct place_slot *slot)
{
	return p->held_any ? (uint64_t)(PLACE_HELD_ALL - p->held[slot - p->slots]) : 0;
}

/* Without GPUs: whether the worker has any; what the pool's policy says, what is missing, what runs
 * there. */
static inline uint64_t fit_plain(
	const struct place_pass *p, const struct place_slot *slot, enum place_policy policy)
{
	uint64_t key = (uint64_t)(slot->groups_n != 0) << 61, miss = missing(p, slot);

	if (policy == PLACE_PACK)
		return key | left_over(false, slot->cpus, INT32_MAX) << 16 | miss;
	if (policy == PLACE_SPREAD)
		return key | (uint64_t)slot->running << 16 | miss;
	return key | miss << 32 | slot->running;
}

/* Whether it is avoided; GPUs that stay free, what is missing there, what runs there. */
static inline uint64_t fit(const struct place_pass *p, const struct place_slot *slot,
	const struct place_shape *shape, const uint64_t *kinds)
{
	uint64_t last = (uint64_t)slot->avoided << 62;
	enum place_policy policy = place_where_of(p, shape)->pool->policy;
	uint32_t all, left;

	if (slot->cpus < shape->need[DIM_CPUS] ||
		slot->memory < (uint64_t)shape->need[DIM_MEMORY] ||
		slot->disk < (uint64_t)shape->need[DIM_DISK])
		return UINT64_MAX;
	if (kinds == NULL)
		return last | fit_plain(p, slot, policy);
	if (slot->gpus < (uint64_t)shape->need[DIM_GPUS])
		return UINT64_MAX;
	left = place_matching(p, slot, kinds, &all);
	if (left < (uint64_t)shape->need[DIM_GPUS])
		return UINT64_MAX;
	return last | left_over(policy == PLACE_SPREAD, left - shape->need[DIM_GPUS], MANY) << 44 |
	       missing(p, slot) << 32 | slot->running;
}

uint64_t place_fit(const struct place_pass *p, const struct place_slot *slot,
	const struct place_shape *shape, const uint64_t *kinds)
{
	return fit(p, slot, shape, kinds);
}

/* Among the slots that are kept for others; *ret_fits: it would fit one of them. */
static uint32_t find_kept(
	const struct place_pass *p, const struct place_shape *shape, uint32_t step, bool *ret_fits)
{
	const struct place_where *where = place_where_of(p, shape);
	const uint64_t *kinds = place_kinds(p, shape);
	uint64_t best = UINT64_MAX;
	uint32_t found = PLACE_NOWHERE;

	*ret_fits = false;
	for (uint32_t i = 0; i < p->kept_n; i++) {
		uint32_t at = p->kept[i].slot;
		if (!place_bit(where->slots, at))
			continue;
		uint64_t key = fit(p, &p->slots[at], shape, kinds);
		*ret_fits = *ret_fits || key != UINT64_MAX;
		if (key < best && place_may(p, &p->slots[at], step, shape)) {
			best = key;
			found = at;
		}
	}
	return found;
}

/* Whether as many GPUs are free there; who has too few is not looked at again. */
static inline bool in_front(
	const struct place_pass *p, struct place_front *front, uint32_t at, const uint64_t *kinds)
{
	uint32_t all;

	if (place_matching(p, &p->slots[at], kinds, &all) >= front->gpus)
		return true;
	front->slots[at / 64] &= ~(UINT64_C(1) << at % 64);
	return false;
}

static uint32_t find_slot(const struct place_pass *p, const struct place_shape *shape)
{
	const uint64_t *kinds = place_kinds(p, shape);
	struct place_front *front = kinds != NULL ? &p->fronts[shape->front] : NULL;
	const uint64_t *slots = front != NULL ? front->slots : place_where_of(p, shape)->slots;
	uint64_t best = UINT64_MAX;
	uint32_t found = PLACE_NOWHERE;

	for (uint32_t word = 0; word <= p->slots_n / 64; word++) {
		for (uint64_t bits = slots[word]; bits != 0; bits &= bits - 1) {
			uint32_t at = word * 64 + (uint32_t)__builtin_ctzll(bits);
			if ((front != NULL && !in_front(p, front, at, kinds)) ||
				p->slots[at].kept != 0)
				continue;
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

/* A worker that is kept for somebody else is taken only when no other will do. */
static bool find_one(const struct place_pass *p, struct place_shape *shape, uint32_t step,
	struct place_pick *ret)
{
	uint32_t at = PLACE_NOWHERE;
	bool fits;

	if (shape->standing == PLACE_OPEN)
		at = find_slot(p, shape);
	if (at == PLACE_NOWHERE && shape->standing != PLACE_BLOCKED) {
		at = find_kept(p, shape, step, &fits);
		shape->standing = fits ? PLACE_KEPT_ONLY : PLACE_BLOCKED;
	}
	ret->slot = at;
	return at != PLACE_NOWHERE;
}

uint32_t place_pick_add(struct place_pick *picks, uint32_t n, uint32_t most, struct place_pick x)
{
	uint32_t at;

	if (n == most && picks[n - 1].key <= x.key)
		return n;
	at = n < most ? n++ : n - 1;
	for (; at > 0 && picks[at - 1].key > x.key; at--)
		picks[at] = picks[at - 1];
	picks[at] = x;
	return n;
}

uint32_t place_pick(const struct place_pass *p, uint32_t step, const struct place_shape *shape,
	struct place_pick picks[PLACE_NODES_MAX], uint32_t *ret_fits)
{
	const struct place_where *where = place_where_of(p, shape);
	const uint64_t *kinds = place_kinds(p, shape);
	uint32_t n = 0;

	*ret_fits = 0;
	for (uint32_t at = 0; at < p->slots_n; at++) {
		const struct place_slot *slot = &p->slots[at];
		uint64_t key =
			place_bit(where->slots, at) ? fit(p, slot, shape, kinds) : UINT64_MAX;
		if (key == UINT64_MAX)
			continue;
		++*ret_fits;
		if (slot->kept != 0 && p->kept[slot->kept - 1].step != step)
			key |= UINT64_C(1) << 63; /* when no other will do */
		if (place_may(p, slot, step, shape))
			n = place_pick_add(picks, n, shape->nodes, (struct place_pick){ key, at });
	}
	return n;
}

/* All of its nodes, or none. */
static bool find_gang(const struct place_pass *p, struct place_shape *shape, uint32_t step,
	struct place_pick picks[PLACE_NODES_MAX])
{
	uint32_t fits;

	if (shape->standing == PLACE_BLOCKED)
		return false;
	bool found = place_pick(p, step, shape, picks, &fits) == shape->nodes;
	if (!found)
		shape->standing = fits >= shape->nodes ? PLACE_KEPT_ONLY : PLACE_BLOCKED;
	return found;
}

static bool find(const struct place_pass *p, struct place_shape *shape, uint32_t step,
	struct place_pick picks[PLACE_NODES_MAX])
{
	return shape->nodes > 1 ? find_gang(p, shape, step, picks)
				: find_one(p, shape, step, &picks[0]);
}

/* ---- taking it ------------------------------------------------------------------- */

static uint32_t take_from(struct place_pass *p, struct place_slot *slot, struct place_group *group,
	uint32_t want, struct str *out)
{
	const struct place_worker *w = &p->s->workers[slot->worker];
	const struct place_gpu *kind = p->kinds[group->kind];
	uint32_t *free = p->near, *near = p->near + w->gpus_n;
	uint32_t n = 0, got = want < group->free ? want : group->free;

	for (uint32_t i = 0; i < w->gpus_n && n < group->free; i++)
		if (!p->taken[slot->gpu + i] && place_same_kind(&w->gpus[i], kind))
			free[n++] = i;
	BUG_ON(n != group->free);
	place_nearest(w, free, n, got, near);
	for (uint32_t i = 0; i < got; i++) {
		p->taken[slot->gpu + near[i]] = true;
		out[i] = w->gpus[near[i]].uuid;
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
		if ((place_runtimes(w, s) >> s->runtimes[i] & 1) != 0)
			return s->runtimes[i];
	BUG_ON(true);
}

/* What it holds beyond the time when the slot is needed. */
static void use_spare(const struct place_pass *p, struct place_keep *k, uint32_t step,
	const struct place_shape *shape)
{
	if (place_in_time(p, step, k))
		return;
	for (int d = 0; d < DIMS; d++)
		k->spare[d] -= shape->need[d];
}

struct place_assignment place_take(
	struct place_pass *p, uint32_t step, const struct place_shape *shape, uint32_t at)
{
	struct place_slot *slot = &p->slots[at];
	uint32_t gpus = (uint32_t)shape->need[DIM_GPUS];
	struct place_assignment got = { .step = step,
		.worker = slot->worker,
		.runtime = choose_runtime(&p->s->steps[step], &p->s->workers[slot->worker]),
		.gpus_n = gpus,
		.held = p->held[at] };

	slot->cpus -= shape->need[DIM_CPUS];
	slot->memory -= (uint64_t)shape->need[DIM_MEMORY];
	slot->disk -= (uint64_t)shape->need[DIM_DISK];
	slot->running++;
	if (slot->kept != 0 && p->kept[slot->kept - 1].step != step)
		use_spare(p, &p->kept[slot->kept - 1], step, shape);
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
	size_t words = s->workers_n / 64 + 4, held = 0, more = 0, aside = 0, kinds;

	for (size_t i = 0; i < s->workers_n; i++) {
		gpus += s->workers[i].gpus_n;
		labels += s->workers[i].labels_n;
	}
	for (size_t i = 0; i < s->running_n; i++)
		held += s->running[i].gpus_n;
	for (size_t i = 0; i < s->steps_n; i++) {
		more += place_nodes(&s->steps[i]) - 1;
		aside += s->steps[i].cleared_n * (s->steps[i].gpus.count + (size_t)16);
	}
	kinds = gpus / 64 + 4;
	return 65536 +
	       steps * (1024 + 3 * sizeof(struct place_blocker) + 24 * words + 8 * kinds +
			       DIMS * sizeof(struct place_blocker)) +
	       workers * (2 * sizeof(struct place_slot) + 256) + 8 * labels + 192 * gpus +
	       s->projects_n * 512 + s->running_n * 128 + 8 * aside +
	       more * (sizeof(struct place_assignment) + GPUS_MAX * sizeof(struct str) + 64) +
	       (s->running_n + steps + more + held + gpus) * sizeof(struct place_hold);
}

struct placing {
	struct place_assignment *placed;
	uint32_t *waiting;
	struct place_result result;
};

/* First where others were ended for it. What is set aside there is not free for others while it
 * waits; a step that is over its quota does not wait for that. */
static bool look(struct place_pass *p, struct place_shape *shape, uint32_t step,
	struct place_pick picks[PLACE_NODES_MAX])
{
	struct place_clearing *c = place_clearing(p, step);
	bool found;

	if (c != NULL)
		place_give_back(p, c);
	found = !p->over[step] &&
		((c != NULL && place_has_cleared(p, c, picks)) || find(p, shape, step, picks));
	if (c != NULL && !found && !p->over[step])
		place_set_aside(p, c);
	return found;
}

static void place_on(struct place_pass *p, struct placing *g, uint32_t step,
	const struct place_pick picks[PLACE_NODES_MAX])
{
	struct place_shape *shape = &p->shapes[p->shape_of[step]];

	for (uint32_t rank = 0; rank < shape->nodes; rank++) {
		struct place_assignment *a = &g->placed[g->result.placed_n++];
		*a = place_take(p, step, shape, picks[rank].slot);
		a->rank = rank;
		p->placed_n++;
		if (p->holds != NULL)
			place_holds(p, a, picks[rank].slot);
	}
}

static bool try_step(struct place_pass *p, void *arg, uint32_t step)
{
	struct placing *g = arg;
	struct place_shape *shape = &p->shapes[p->shape_of[step]];
	struct place_pick picks[PLACE_NODES_MAX];
	bool goods = p->s->steps[step].goods_n != 0 && shape->standing != PLACE_BLOCKED, found;

	if (goods)
		place_goods(p, step);
	found = look(p, shape, step, picks);
	if (found)
		place_on(p, g, step, picks);
	if (goods)
		place_goods_done(p, step);
	if (found)
		return true;
	g->waiting[g->result.waiting_n++] = step;
	if (!p->over[step])
		place_keep(p, step);
	return false;
}

static void tell_kept(struct place_pass *p, struct place_result *r)
{
	struct place_kept *kept = arena_array_of(p->a, struct place_kept, p->kept_n + 1u);

	for (uint32_t i = 0; i < p->kept_n; i++)
		kept[i] = (struct place_kept){ p->kept[i].step, p->slots[p->kept[i].slot].worker,
			p->kept[i].until };
	r->kept = kept;
	r->kept_n = p->kept_n;
}

void place_pass(const struct place_snapshot *s, struct arena *a, struct place_result *ret)
{
	struct place_pass *p = arena_new_of(a, struct place_pass);
	struct placing g = { .waiting = arena_array_of(a, uint32_t, s->steps_n + 1) };
	uint32_t ranks = 0;

	for (size_t i = 0; i < s->steps_n; i++)
		ranks += place_nodes(&s->steps[i]);
	g.placed = arena_array_of(a, struct place_assignment, (size_t)ranks + 1);
	*p = (struct place_pass){ .s = s, .a = a, .placed = g.placed, .ranks_n = ranks };
	place_index(p);
	place_clear(p);
	place_in_order(p, try_step, &g);
	tell_kept(p, &g.result);
	g.result.placed = g.placed;
	g.result.waiting = g.waiting;
	g.result.pass = p;
	place_preempt(p, &g.result);
	*ret = g.result;
}
