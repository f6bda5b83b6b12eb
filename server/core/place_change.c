#include "server/core/place_inside.h"

/*
 * Each worker that is there tells what it would take to start the step on it at once: the list of
 * what stands against it, each with the edit that removes it. The shortest list wins.
 */

/* The mildest first: how kinds are compared when as many edits are needed. */
static const uint32_t weights[PLACE_EDIT_KINDS] = { [PLACE_EDIT_NODES] = 1,
	[PLACE_EDIT_GPUS] = 1,
	[PLACE_EDIT_MEMORY] = 1,
	[PLACE_EDIT_CPUS] = 1,
	[PLACE_EDIT_DISK] = 1,
	[PLACE_EDIT_TIME_LIMIT] = 1,
	[PLACE_EDIT_GPU_MODEL] = 2,
	[PLACE_EDIT_REQUIRES] = 3,
	[PLACE_EDIT_AVOIDS] = 3,
	[PLACE_EDIT_RUNTIME] = 4,
	[PLACE_EDIT_POOL] = 5,
	[PLACE_EDIT_RESUME] = 6 };

#define TIME_LEAST INT64_C(60000000) /* microseconds: shorter is no proposal */

struct offer {
	struct place_change change;
	uint32_t weight;
	double given_up; /* the greatest share of an amount that is cut away */
	bool possible;
};

static void edit(struct offer *o, const struct place_edit *e)
{
	if (o->change.edits_n == PLACE_EDITS_MAX) {
		o->possible = false;
		return;
	}
	o->change.edits[o->change.edits_n++] = *e;
	o->weight += weights[e->kind];
}

/* What is free instead of what was asked for, unless that is next to nothing. */
static void cut(struct offer *o, enum place_edit_kind kind, int64_t need, int64_t free)
{
	double share;

	if (need <= free)
		return;
	if (free <= 0 || free < need / 10) {
		o->possible = false;
		return;
	}
	share = 1 - (double)free / (double)need;
	o->given_up = share > o->given_up ? share : o->given_up;
	edit(o, &(struct place_edit){ .kind = kind, .from = need, .to = free });
}

static void ask_labels(struct offer *o, const struct place_step *s, const struct place_worker *w)
{
	for (uint32_t i = 0; i < s->requires_n; i++)
		if (!place_labelled(w, &s->requires[i]))
			edit(o, &(struct place_edit){ .kind = PLACE_EDIT_REQUIRES,
					.what = s->requires[i].key,
					.value = s->requires[i].value });
	for (uint32_t i = 0; i < s->avoids_n; i++)
		if (place_labelled(w, &s->avoids[i]))
			edit(o, &(struct place_edit){ .kind = PLACE_EDIT_AVOIDS,
					.what = s->avoids[i].key,
					.value = s->avoids[i].value });
}

static void ask_runtime(struct offer *o, const struct place_pass *p, const struct place_step *s,
	const struct place_worker *w)
{
	uint32_t runtimes = place_runtimes(w, s);
	unsigned first = (unsigned)__builtin_ctz(runtimes | UINT32_C(1) << 31);

	if (runtimes == 0 || p->s->runtimes == NULL)
		o->possible = false;
	else
		edit(o, &(struct place_edit){
				.kind = PLACE_EDIT_RUNTIME, .what = str_c(p->s->runtimes[first]) });
}

/* Other GPUs of the worker if it has enough of them, else fewer of those that match. */
static void ask_gpus(struct offer *o, const struct place_pass *p, const struct place_slot *slot,
	const struct place_shape *shape)
{
	uint32_t all, match = place_matching(p, slot, place_kinds(p, shape), &all);
	int64_t need = shape->need[DIM_GPUS];
	const struct place_group *g = &p->groups[slot->groups];
	const struct gpus_want any = { .mig = p->s->steps[shape->step].gpus.mig };
	const struct place_group *other = NULL;

	if (match >= need)
		return;
	for (uint32_t i = 0; i < slot->groups_n; i++) {
		const struct place_gpu *kind = p->kinds[g[i].kind];
		if (gpus_match(&any, kind->model, kind->memory, kind->mig) &&
			(other == NULL || g[i].free > other->free))
			other = &g[i];
	}
	if (match == 0 && other != NULL && other->free >= need)
		edit(o, &(struct place_edit){ .kind = PLACE_EDIT_GPU_MODEL,
				.what = p->kinds[other->kind]->model });
	else
		cut(o, PLACE_EDIT_GPUS, need, match);
}

/* What is kept for another may be used in time, or when enough of it is left: of what the step
 * would ask for by then. */
static void ask_time(
	struct offer *o, const struct place_pass *p, const struct place_slot *slot, uint32_t step)
{
	const struct place_shape *shape = &p->shapes[p->shape_of[step]];
	static const int dims[] = { [PLACE_EDIT_GPUS] = DIM_GPUS,
		[PLACE_EDIT_MEMORY] = DIM_MEMORY,
		[PLACE_EDIT_CPUS] = DIM_CPUS,
		[PLACE_EDIT_DISK] = DIM_DISK };
	int64_t need[DIMS];
	bool enough = true;

	if (slot->kept == 0 || p->kept[slot->kept - 1].step == step)
		return;
	const struct place_keep *k = &p->kept[slot->kept - 1];
	memcpy(need, shape->need, sizeof need);
	for (uint32_t i = 0; i < o->change.edits_n; i++)
		if (o->change.edits[i].kind >= PLACE_EDIT_GPUS &&
			o->change.edits[i].kind <= PLACE_EDIT_DISK)
			need[dims[o->change.edits[i].kind]] = o->change.edits[i].to;
	for (int d = 0; d < DIMS; d++)
		enough = enough && need[d] <= k->spare[d];
	if (enough || place_in_time(p, step, k))
		return;
	if (k->until < p->now + TIME_LEAST)
		o->possible = false;
	else
		edit(o, &(struct place_edit){ .kind = PLACE_EDIT_TIME_LIMIT,
				.from = p->s->steps[step].time_limit,
				.to = k->until - p->now });
}

static struct offer ask(const struct place_pass *p, uint32_t step, uint32_t at)
{
	const struct place_shape *shape = &p->shapes[p->shape_of[step]];
	const struct place_slot *slot = &p->slots[at];
	const struct place_worker *w = &p->s->workers[slot->worker];
	const struct place_step *s = &p->s->steps[step];
	struct offer o = { .change = { .worker = w->id, .worker_name = place_name(w) },
		.possible = !w->offline && place_allows(place_pool_of(p->s, w->pool), s) };

	if (!o.possible)
		return o;
	if (shape->need[DIM_GPUS] != 0)
		ask_gpus(&o, p, slot, shape);
	cut(&o, PLACE_EDIT_MEMORY, shape->need[DIM_MEMORY], (int64_t)slot->memory);
	cut(&o, PLACE_EDIT_CPUS, shape->need[DIM_CPUS], slot->cpus);
	cut(&o, PLACE_EDIT_DISK, shape->need[DIM_DISK], (int64_t)slot->disk);
	ask_labels(&o, s, w);
	if (!place_offers(w, s))
		ask_runtime(&o, p, s, w);
	if (!str_eq(w->pool, s->pool))
		edit(&o, &(struct place_edit){ .kind = PLACE_EDIT_POOL, .what = w->pool });
	ask_time(&o, p, slot, step);
	if (w->draining)
		edit(&o, &(struct place_edit){ .kind = PLACE_EDIT_RESUME });
	return o;
}

/* Slots are asked in the order of their ids: of two alike the first is kept. */
static bool better(const struct offer *a, const struct offer *b)
{
	if (!b->possible)
		return a->possible;
	if (!a->possible || a->change.edits_n != b->change.edits_n)
		return a->possible && a->change.edits_n < b->change.edits_n;
	if (a->weight != b->weight)
		return a->weight < b->weight;
	return a->given_up < b->given_up;
}

/* As many workers as would take it now. */
static bool fewer_nodes(const struct place_pass *p, uint32_t step, struct place_change *ret)
{
	const struct place_shape *shape = &p->shapes[p->shape_of[step]];
	struct place_pick picks[PLACE_NODES_MAX];
	uint32_t fits, n = p->over[step] ? 0 : place_pick(p, step, shape, picks, &fits);

	if (n == 0)
		return false;
	*ret = (struct place_change){ .edits_n = 1,
		.edits = { { .kind = PLACE_EDIT_NODES, .from = shape->nodes, .to = n } } };
	return true;
}

bool place_change(const struct place_result *r, size_t waiting, struct place_change *ret)
{
	const struct place_pass *p = r->pass;
	uint32_t step = r->waiting[waiting];
	struct offer best = { .possible = false };

	if (p->shapes[p->shape_of[step]].nodes > 1)
		return fewer_nodes(p, step, ret);
	for (uint32_t i = 0; i < p->slots_n && !p->over[step]; i++) {
		const struct offer o = ask(p, step, i);
		if (better(&o, &best))
			best = o;
	}
	if (best.possible)
		*ret = best.change;
	return best.possible;
}
