/*
 * Inside of placement, shared by place*.c only. Steps are alike in layers, and each layer is worked
 * out once: a `where` (pool, labels, runtimes) gives the workers that may take the step; a
 * `want` (models, memory and slices of GPUs) gives the kinds of GPU that match; a `site` is a pair
 * of the two; a `shape` is a site with amounts. A shape that found no place once finds none later
 * in the pass, since what is free only shrinks.
 */
#ifndef SERVER_CORE_PLACE_INSIDE_H
#define SERVER_CORE_PLACE_INSIDE_H
#include "server/core/place_why.h"

/* A worker as placement sees it, in order of ids. Amounts are what is free. */
struct place_slot {
	int64_t cpus; /* thousandths */
	uint64_t memory, disk;
	uint32_t gpus, running;
	uint32_t groups, groups_n; /* its GPUs by kind: groups[groups] … */
	uint32_t worker; /* position in the snapshot */
	uint32_t gpu; /* number of its first GPU, counted over all slots */
	uint64_t pool; /* hash */
	const uint64_t *labels; /* hashes of key and value */
	bool avoided;
	uint32_t hold; /* first of its holds, number + 1, in order of their ends */
	uint32_t kept; /* number + 1 of what it is kept for */
};

struct place_group {
	uint32_t kind, free, all;
};

struct place_where {
	uint32_t step; /* one that has it */
	const uint64_t *slots; /* bit set: those that may take it now */
	const uint64_t *could; /* …, and those that are offline or drained */
	const struct place_pool *pool;
};

struct place_gpu_want {
	uint32_t step;
	const uint64_t *kinds; /* bit set */
};

enum { DIM_CPUS, DIM_MEMORY, DIM_DISK, DIM_GPUS, DIMS };

struct place_site {
	uint32_t step, where, want; /* want: PLACE_NOWHERE without GPUs */
};

/* A site with a number of GPUs: where there are as many. Shared by shapes that differ in the rest.
 */
struct place_front {
	uint32_t site, gpus;
	uint64_t
		*slots; /* bit set: those of the where, less those that were seen to have too few */
};

enum { PLACE_HELD_ALL = 1000 };

/* Whether a shape has found no place: free amounts only shrink in a pass. */
enum place_standing {
	PLACE_OPEN,
	PLACE_KEPT_ONLY, /* only where it is kept for others, which a time limit may allow */
	PLACE_BLOCKED
};

struct place_shape {
	uint32_t step, site;
	uint32_t front; /* with GPUs */
	int64_t need[DIMS]; /* of each node */
	uint32_t nodes;
	enum place_standing standing;
	bool no_start, no_keep; /* no worker can be kept for it: with a time, at all */
	bool asked, able; /* whether a worker could take it, once asked */
	const struct place_blocker *blockers;
	uint32_t blockers_n;
};

/* What somebody holds of a slot, and until when. */
struct place_hold {
	int64_t ends_by; /* INT64_MAX: not known */
	int64_t cpus;
	uint64_t memory;
	uint32_t kind, gpus; /* GPUs of one kind: those of another are a hold of their own */
	uint32_t next; /* number + 1 */
};

/* A slot that is kept for a step. */
struct place_keep {
	uint32_t slot, step;
	int64_t until; /* 0: not known */
	int64_t spare[DIMS]; /* what others may hold beyond `until` */
};

/* What a project holds. */
struct place_used {
	uint64_t steps, gpus, memory;
	int64_t cpus; /* thousandths */
};

/* Positions of things that are alike: hash table over the caller's own equality. */
struct place_table {
	uint32_t *slots; /* item + 1, or 0 */
	size_t mask;
};

/* What is set aside on a slot of what is free, for a step for which others are ended there. */
struct place_aside {
	uint32_t slot;
	int64_t amounts[DIMS];
	uint32_t *gpus; /* of the worker, by number; as many as in amounts */
};
struct place_clearing {
	uint32_t step;
	struct place_aside *asides; /* one for each node */
	bool active; /* else it has found a place, or may have none */
};

struct place_pass {
	const struct place_snapshot *s;
	struct arena *a;
	struct place_slot *slots;
	struct place_group *groups;
	const struct place_gpu **kinds; /* one GPU of each kind */
	bool *taken; /* by number of the GPU: not to be given */
	struct place_where *wheres;
	struct place_gpu_want *wants;
	struct place_site *sites;
	struct place_front *fronts;
	struct place_shape *shapes;
	uint32_t *shape_of; /* by step */
	uint32_t *list; /* room for slots, while blockers are worked out */
	uint16_t *held; /* by slot: of what the step needs that is tried now, PLACE_HELD_ALL: all */
	uint64_t *held_bytes; /* the same, in bytes */
	bool held_any;
	uint32_t *near; /* room for the GPUs of a worker twice, while some are chosen */
	int64_t now;
	const struct place_assignment *placed;
	size_t placed_n;
	struct place_hold *holds; /* NULL until somebody asks when they end */
	uint32_t holds_n;
	struct place_keep *kept;
	uint32_t kept_n, kept_steps, keep_tries;
	uint32_t ranks_n; /* of all steps together: placements at most */
	bool *over; /* by step: it would be more than its project's quota */
	const struct place_blocker **over_why; /* … and the blocker, once asked for */
	struct place_used *used; /* by project, placements included */
	uint32_t *reserved; /* by project: step + 1 for which its quota is kept */
	struct place_clearing *clearings;
	uint32_t clearings_n;
	uint32_t *clearing_of; /* by step: number + 1; NULL: there are none */
	uint32_t *slot_of; /* by worker */
	uint32_t slots_n, kinds_n, wheres_n, wants_n, sites_n, fronts_n, shapes_n;
};

/* place_index.c: everything of the above, from the snapshot. */
void place_index(struct place_pass *p);
int64_t place_thousandths(double cpus);
/* GPUs of the slot whose kind is in the set (NULL: none): free ones, and all. */
uint32_t place_matching(const struct place_pass *p, const struct place_slot *slot,
	const uint64_t *kinds, uint32_t *ret_all);
/* The position of the GPU with this UUID among the worker's, or PLACE_NOWHERE. */
uint32_t place_gpu_at(const struct place_pass *p, const struct place_slot *slot, struct str uuid);
/* The group that it is in. */
struct place_group *place_group_of(
	const struct place_pass *p, const struct place_slot *slot, uint32_t gpu);
/* It is taken, or free again. */
void place_move_gpu(struct place_pass *p, struct place_slot *slot, uint32_t gpu, bool taken);
const uint64_t *place_kinds(const struct place_pass *p, const struct place_shape *shape);
const struct place_pool *place_pool_of(const struct place_snapshot *s, struct str name);
static inline bool place_allows(const struct place_pool *pool, const struct place_step *s)
{
	return (pool->sensitivities >> s->sensitivity & 1) != 0;
}

/* Runtimes by which the worker can run the step: of a gang, those in which ranks are reached. */
static inline uint32_t place_runtimes(const struct place_worker *w, const struct place_step *s)
{
	return s->nodes > 1 ? w->runtimes & ~w->isolated : w->runtimes;
}

/* place_goods.c: who holds what the step needs, until another is asked for. Linear in those who do.
 */
void place_goods(struct place_pass *p, uint32_t step);
void place_goods_done(struct place_pass *p, uint32_t step);

/* place.c: how well the slot fits, the least first; UINT64_MAX: it does not. */
uint64_t place_fit(const struct place_pass *p, const struct place_slot *slot,
	const struct place_shape *shape, const uint64_t *kinds);
struct place_assignment place_take(
	struct place_pass *p, uint32_t step, const struct place_shape *shape, uint32_t at);

/* The best slots for a gang, from the best on: as many as it wants, or fewer when there are no
 * more. *ret_fits: how many it fits, those that are kept for others included. */
struct place_pick {
	uint64_t key; /* the least first */
	uint32_t slot;
};
uint32_t place_pick(const struct place_pass *p, uint32_t step, const struct place_shape *shape,
	struct place_pick picks[PLACE_NODES_MAX], uint32_t *ret_fits);
/* Keeps the `most` least; of equal ones those that came first. Returns how many there are now. */
uint32_t place_pick_add(struct place_pick *picks, uint32_t n, uint32_t most, struct place_pick x);

/* Whether the step may use the slot, which it fits, although it may be kept for another. */
bool place_may(const struct place_pass *p, const struct place_slot *slot, uint32_t step,
	const struct place_shape *shape);

/* place_order.c: steps in the order of their turn; `try` places the step or not. */
typedef bool place_try(struct place_pass *p, void *arg, uint32_t step);
void place_in_order(struct place_pass *p, place_try *try, void *arg);

/* It has waited for long. */
static inline bool place_patient(const struct place_pass *p, uint32_t step)
{
	return p->now - p->s->steps[step].queued_at >= PLACE_PATIENCE;
}

/* It ends, by its time limit, before what is kept is needed. */
static inline bool place_in_time(
	const struct place_pass *p, uint32_t step, const struct place_keep *k)
{
	int64_t limit = p->s->steps[step].time_limit;

	return limit != 0 && k->until != 0 && p->now + limit <= k->until;
}

/* place_keep.c: keeps a worker for a step that found no place, if that is due. */
void place_keep(struct place_pass *p, uint32_t step);
/* A step was placed on the slot just now. */
void place_holds(struct place_pass *p, const struct place_assignment *placed, uint32_t slot);
/* Whether a worker that is there could take it, if nothing ran. */
bool place_could(struct place_pass *p, uint32_t step);

/* place_clear.c: sets aside what is free where others are ended for a step. */
void place_clear(struct place_pass *p);
/* Of the step, while it waits for others to end; NULL: none. */
struct place_clearing *place_clearing(const struct place_pass *p, uint32_t step);
void place_set_aside(struct place_pass *p, struct place_clearing *c);
void place_give_back(struct place_pass *p, struct place_clearing *c);
/* Whether it fits where others have ended for it, once that was given back. */
bool place_has_cleared(const struct place_pass *p, const struct place_clearing *c,
	struct place_pick picks[PLACE_NODES_MAX]);
/* Whether what it holds will be its that it is being ended for. */
bool place_promised(const struct place_pass *p, const struct place_running *x);
/* It is being ended, or its time limit ends it within the grace. */
bool place_ends_soon(const struct place_pass *p, const struct place_running *x);
/* When all that is being ended for the step has ended, at the latest. */
int64_t place_cleared_by(const struct place_pass *p, const struct place_clearing *c);
/* What an attempt holds there: GPUs of the kinds that the step wants. */
void place_held(const struct place_pass *p, const struct place_shape *shape,
	const struct place_running *x, int64_t ret[DIMS]);

/* place_preempt.c: who takes whose place, after a pass. */
void place_preempt(struct place_pass *p, struct place_result *r);

/* place_order.c: whether the project may hold the step, too; and that it does. */
bool place_may_hold(const struct place_pass *p, uint32_t step, bool borrowing);
void place_count(struct place_pass *p, uint32_t step);

/* place_why.c: the checks that do not look at amounts, one by one. */
bool place_offers(const struct place_worker *w, const struct place_step *s);
bool place_labelled(const struct place_worker *w, const struct place_label *l);
/* Whether the slot has as much as that in all; of disk that is not known. */
bool place_has_all(const struct place_pass *p, const struct place_shape *shape, uint32_t at);
struct str place_name(const struct place_worker *w);

static inline bool place_same_kind(const struct place_gpu *a, const struct place_gpu *b)
{
	return a->memory == b->memory && str_eq(a->model, b->model) && str_eq(a->mig, b->mig);
}

static inline bool place_bit(const uint64_t *set, uint32_t i)
{
	return (set[i / 64] >> (i % 64) & 1) != 0;
}

static inline const struct place_where *place_where_of(
	const struct place_pass *p, const struct place_shape *shape)
{
	return &p->wheres[p->sites[shape->site].where];
}

#endif
