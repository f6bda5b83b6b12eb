#include "server/core/place_why.h"

#include "lib/base/num.h"
#include "server/core/place_inside.h"

/*
 * The question is narrowed step by step: which workers may take the step by pool, runtime and
 * labels; which of those could, if they were idle; which of those are there. The first set that is
 * empty gives the group of the answer, and the set before it is looked at for the numbers: the
 * workers that came furthest are the ones to do something about.
 */

bool place_labelled(const struct place_worker *w, const struct place_label *l)
{
	for (uint32_t i = 0; i < w->labels_n; i++)
		if (str_eq(w->labels[i].key, l->key) && str_eq(w->labels[i].value, l->value))
			return true;
	return false;
}

static bool has_one(uint32_t runtimes, const struct place_step *s)
{
	for (uint8_t i = 0; i < s->runtimes_n; i++)
		if ((runtimes >> s->runtimes[i] & 1) != 0)
			return true;
	return false;
}

bool place_offers(const struct place_worker *w, const struct place_step *s)
{
	return has_one(place_runtimes(w, s), s);
}

struct str place_name(const struct place_worker *w)
{
	return w->name.n != 0 ? w->name : w->id;
}

static const struct place_worker *worker_at(const struct place_pass *p, uint32_t slot)
{
	return &p->s->workers[p->slots[slot].worker];
}

static uint32_t count_pool(const struct place_pass *p, struct str pool)
{
	uint32_t n = 0;

	for (size_t i = 0; i < p->s->workers_n; i++)
		n += str_eq(p->s->workers[i].pool, pool);
	return n;
}

/* ---- no worker may: pool, runtime, labels ---------------------------------------- */

/* The first check that the worker fails. */
static enum place_blocker_kind refusal(
	const struct place_worker *w, const struct place_step *s, bool allowed)
{
	if (!str_eq(w->pool, s->pool))
		return PLACE_NO_POOL;
	if (!allowed)
		return PLACE_SENSITIVITY;
	if (!has_one(w->runtimes, s))
		return PLACE_RUNTIME;
	if (!place_offers(w, s))
		return PLACE_ISOLATED;
	for (uint32_t i = 0; i < s->requires_n; i++)
		if (!place_labelled(w, &s->requires[i]))
			return PLACE_REQUIRES;
	return PLACE_AVOIDS;
}

/* The label that shuts out most of the workers that failed at `kind`. */
static void blame_label(
	const struct place_pass *p, const struct place_step *s, struct place_blocker *b)
{
	bool requires = b->kind == PLACE_REQUIRES;
	const struct place_label *labels = requires ? s->requires : s->avoids;
	uint32_t n = requires ? s->requires_n : s->avoids_n;

	for (uint32_t l = 0; l < n; l++) {
		int64_t count = 0;
		for (size_t i = 0; i < p->s->workers_n; i++) {
			const struct place_worker *w = &p->s->workers[i];
			if (refusal(w, s, true) == b->kind &&
				place_labelled(w, &labels[l]) != requires)
				count++;
		}
		if (count <= b->most_all)
			continue;
		b->most_all = count;
		b->what = labels[l].key;
		b->value = labels[l].value;
	}
}

static struct str runtimes_text(const struct place_pass *p, const struct place_step *s)
{
	struct str text = STR_NONE;

	for (uint8_t i = 0; i < s->runtimes_n && p->s->runtimes != NULL; i++) {
		const char *name = p->s->runtimes[s->runtimes[i]];
		text = i == 0 ? str_c(name) : arena_printf(p->a, "%.*s or %s", STR_ARG(text), name);
	}
	return text;
}

static void why_nowhere(struct place_pass *p, struct place_shape *shape)
{
	const struct place_step *s = &p->s->steps[shape->step];
	struct place_blocker *b = arena_new_of(p->a, struct place_blocker);
	bool allowed = place_allows(place_where_of(p, shape)->pool, s);

	b->kind = PLACE_NO_POOL;
	b->never = true;
	b->pool = s->pool;
	b->pool_workers = count_pool(p, s->pool);
	for (size_t i = 0; i < p->s->workers_n; i++) {
		enum place_blocker_kind kind = refusal(&p->s->workers[i], s, allowed);
		if (kind > b->kind) {
			b->kind = kind;
			b->workers = 0;
		}
		b->workers += kind == b->kind;
	}
	if (b->kind == PLACE_SENSITIVITY)
		b->what = str_c(place_sensitivity_names[s->sensitivity]);
	if (b->kind == PLACE_RUNTIME || b->kind == PLACE_ISOLATED)
		b->what = runtimes_text(p, s);
	if (b->kind == PLACE_REQUIRES || b->kind == PLACE_AVOIDS)
		blame_label(p, s, b);
	shape->blockers = b;
	shape->blockers_n = 1;
}

/* ---- amounts --------------------------------------------------------------------- */

static int64_t clamp(uint64_t v)
{
	return v <= INT64_MAX ? (int64_t)v : INT64_MAX;
}

/* Of a slot: what is free now, and what it has in all, as far as a worker tells. */
struct amounts {
	int64_t free[DIMS], all[DIMS];
};

static struct amounts amounts_of(
	const struct place_pass *p, const struct place_shape *shape, uint32_t at)
{
	const struct place_slot *slot = &p->slots[at];
	const struct place_worker *w = worker_at(p, at);
	uint32_t gpus, free = place_matching(p, slot, place_kinds(p, shape), &gpus);

	return (struct amounts){ { slot->cpus, clamp(slot->memory), clamp(slot->disk), free },
		{ place_thousandths(w->cpus), clamp(w->memory), INT64_MAX, gpus } };
}

/* The most of each over the first n slots of the list, and where it is. */
struct survey {
	struct amounts most;
	uint32_t free_at[DIMS], all_at[DIMS];
};

static struct survey survey(const struct place_pass *p, const struct place_shape *shape, uint32_t n)
{
	struct survey v = { .most = amounts_of(p, shape, p->list[0]) };

	for (int d = 0; d < DIMS; d++)
		v.free_at[d] = v.all_at[d] = p->list[0];
	for (uint32_t i = 1; i < n; i++) {
		const struct amounts x = amounts_of(p, shape, p->list[i]);
		for (int d = 0; d < DIMS; d++) {
			if (x.free[d] > v.most.free[d]) {
				v.most.free[d] = x.free[d];
				v.free_at[d] = p->list[i];
			}
			if (x.all[d] > v.most.all[d]) {
				v.most.all[d] = x.all[d];
				v.all_at[d] = p->list[i];
			}
		}
	}
	return v;
}

/* "H100 or H200, 40 GiB or more each, MIG slice 1g.18gb" */
static struct str gpus_text(const struct place_pass *p, const struct gpus_want *w)
{
	char size[NUM_SIZE_MAX];
	struct str text = STR("");

	for (size_t i = 0; i < w->models_n; i++)
		text = i == 0 ? w->models[0]
			      : arena_printf(
					p->a, "%.*s or %.*s", STR_ARG(text), STR_ARG(w->models[i]));
	if (w->memory_min != 0)
		text = arena_printf(p->a, "%.*s%s%s or more each", STR_ARG(text),
			text.n != 0 ? ", " : "", num_format_size(size, w->memory_min));
	if (w->memory_max != 0)
		text = arena_printf(p->a, "%.*s%s%s or less each", STR_ARG(text),
			text.n != 0 ? ", " : "", num_format_size(size, w->memory_max));
	if (w->mig.n != 0)
		text = arena_printf(p->a, "%.*s%s%s%.*s", STR_ARG(text), text.n != 0 ? ", " : "",
			str_is(w->mig, "any") ? "MIG slice" : "MIG slice ",
			STR_ARG(str_is(w->mig, "any") ? STR("") : w->mig));
	return text;
}

/* Names of a set of amounts (bits). */
static struct str dims_text(struct arena *a, unsigned dims)
{
	static const char *const names[DIMS] = { "CPUs", "memory", "disk", "GPUs" };
	struct str text = STR_NONE;

	for (unsigned d = 0; d < DIMS; d++) {
		if ((dims >> d & 1) == 0)
			continue;
		text = text.n == 0 ? str_c(names[d])
				   : arena_printf(a, "%.*s and %s", STR_ARG(text), names[d]);
	}
	return text;
}

static void name_worst(struct place_pass *p, uint32_t at, struct str *id, struct str *name)
{
	const struct place_worker *w = worker_at(p, at);

	*id = w->id;
	*name = place_name(w);
}

/* The slot of the list that meets the most. */
static void why_together(
	struct place_pass *p, const struct place_shape *shape, uint32_t n, struct place_blocker *b)
{
	unsigned lacks = 0;

	b->kind = PLACE_TOGETHER;
	b->most_free = -1;
	for (int d = 0; d < DIMS; d++)
		b->need += shape->need[d] > 0;
	b->most_all = b->need;
	for (uint32_t i = 0; i < n; i++) {
		const struct amounts x = amounts_of(p, shape, p->list[i]);
		const int64_t *has = b->never ? x.all : x.free;
		unsigned lacking = 0;
		int64_t met = 0;
		for (int d = 0; d < DIMS; d++) {
			if (has[d] < shape->need[d])
				lacking |= 1U << d;
			else
				met += shape->need[d] > 0;
		}
		if (met <= b->most_free)
			continue;
		b->most_free = met;
		lacks = lacking;
		name_worst(p, p->list[i], &b->worker, &b->worker_name);
	}
	b->what = dims_text(p->a, lacks);
}

/* Over the first n slots of the list: each amount that none of them has, in all or free. */
static void why_amounts(struct place_pass *p, struct place_shape *shape, uint32_t n, bool never)
{
	static const enum place_blocker_kind kinds[DIMS] = { PLACE_CPUS, PLACE_MEMORY, PLACE_DISK,
		PLACE_GPUS };
	static const int order[DIMS] = { DIM_GPUS, DIM_MEMORY, DIM_CPUS, DIM_DISK };
	const struct place_step *s = &p->s->steps[shape->step];
	const struct survey v = survey(p, shape, n);
	const struct place_blocker one = { .never = never,
		.pool = s->pool,
		.workers = n,
		.pool_workers = count_pool(p, s->pool) };
	struct place_blocker *b = arena_array_of(p->a, struct place_blocker, DIMS);
	uint32_t found = 0;

	for (int i = 0; i < DIMS; i++) {
		int d = order[i];
		if (shape->need[d] <= (never ? v.most.all[d] : v.most.free[d]))
			continue;
		b[found] = one;
		b[found].kind = kinds[d];
		b[found].need = shape->need[d];
		b[found].most_free = v.most.free[d];
		b[found].most_all = d == DIM_DISK ? v.most.free[d] : v.most.all[d];
		name_worst(p, v.free_at[d], &b[found].worker, &b[found].worker_name);
		name_worst(p, v.all_at[d], &b[found].largest, &b[found].largest_name);
		if (d == DIM_GPUS) {
			b[found].what = gpus_text(p, &s->gpus);
			b[found].unwell = worker_at(p, v.all_at[d])->gpus_unwell;
		}
		found++;
	}
	if (found == 0) {
		b[found] = one;
		why_together(p, shape, n, &b[found++]);
	}
	shape->blockers = b;
	shape->blockers_n = found;
}

/* ---- kept for others, beyond the quota ------------------------------------------- */

/* A slot that it fits, which is therefore kept for another; PLACE_NOWHERE: none. */
static uint32_t kept_slot(const struct place_pass *p, const struct place_shape *shape)
{
	const struct place_where *where = place_where_of(p, shape);
	const uint64_t *kinds = place_kinds(p, shape);

	for (uint32_t i = 0; i < p->kept_n; i++) {
		uint32_t at = p->kept[i].slot;
		if (place_bit(where->slots, at) &&
			&p->shapes[p->shape_of[p->kept[i].step]] != shape && /* a gang's own */
			place_fit(p, &p->slots[at], shape, kinds) != UINT64_MAX)
			return at;
	}
	return PLACE_NOWHERE;
}

static void why_kept(struct place_pass *p, struct place_shape *shape, uint32_t slot)
{
	const struct place_keep *k = &p->kept[p->slots[slot].kept - 1];
	struct place_blocker *b = arena_new_of(p->a, struct place_blocker);

	b->kind = PLACE_KEPT;
	b->pool = p->s->steps[shape->step].pool;
	b->pool_workers = count_pool(p, b->pool);
	b->workers = 1;
	b->what = p->s->steps[k->step].id;
	b->until = k->until;
	name_worst(p, slot, &b->worker, &b->worker_name);
	shape->blockers = b;
	shape->blockers_n = 1;
}

static int64_t quota_left(const struct place_quota *q, uint64_t used)
{
	uint64_t most = (uint64_t)q->nominal + q->borrow;

	return used < most ? (int64_t)(most - used) : 0;
}

static const struct place_blocker *why_over(struct place_pass *p, uint32_t step)
{
	const struct place_step *s = &p->s->steps[step];
	const struct place_project *project = &p->s->projects[s->project];
	const struct place_used *used = &p->used[s->project];
	bool of_gpus = project->gpus_quota.limited && s->gpus.count != 0;
	bool gpus = of_gpus && quota_left(&project->gpus_quota, used->gpus) <
				       (int64_t)s->gpus.count * place_nodes(s);
	bool steps = project->steps_quota.limited &&
		     quota_left(&project->steps_quota, used->steps) < place_nodes(s);
	struct place_blocker *b = arena_new_of(p->a, struct place_blocker);

	b->kind = PLACE_QUOTA;
	b->pool = s->pool;
	b->what = project->name.n != 0 ? project->name : project->id;
	if (!gpus && !steps && p->reserved[s->project] != 0)
		b->value = p->s->steps[p->reserved[s->project] - 1].id;
	bool tell_gpus = gpus || (!steps && of_gpus);
	const struct place_quota *q = tell_gpus ? &project->gpus_quota : &project->steps_quota;
	b->nodes = place_nodes(s);
	b->need = tell_gpus ? (int64_t)s->gpus.count * place_nodes(s) : 0;
	b->most_free = quota_left(q, tell_gpus ? used->gpus : used->steps);
	b->most_all = (int64_t)q->nominal + q->borrow;
	b->never = b->value.n == 0 && b->most_all < (tell_gpus ? b->need : place_nodes(s));
	return b;
}

/* ---- not as many workers as a gang wants ------------------------------------------ */

/* "2 GPUs (H100), 8 CPUs, 64 GiB of memory": what it asks for of each. */
static struct str node_text(struct place_pass *p, const struct place_shape *shape)
{
	const struct place_step *s = &p->s->steps[shape->step];
	char size[NUM_SIZE_MAX];
	struct str text = STR(""), kind = gpus_text(p, &s->gpus);

	if (s->gpus.count != 0)
		text = arena_printf(p->a, "%u GPU%s%s%.*s%s, ", s->gpus.count,
			s->gpus.count == 1 ? "" : "s", kind.n != 0 ? " (" : "", STR_ARG(kind),
			kind.n != 0 ? ")" : "");
	return arena_printf(p->a, "%.*s%g CPU%s and %s of memory", STR_ARG(text),
		(double)shape->need[DIM_CPUS] / 1000, shape->need[DIM_CPUS] == 1000 ? "" : "s",
		num_format_size(size, s->memory));
}

/* Of the first n slots of the list, those that are kept for others included. */
static uint32_t count_fits(const struct place_pass *p, const struct place_shape *shape, uint32_t n)
{
	uint32_t fits = 0;

	for (uint32_t i = 0; i < n; i++)
		fits += place_fit(p, &p->slots[p->list[i]], shape, place_kinds(p, shape)) !=
			UINT64_MAX;
	return fits;
}

/* Before whatever else is in its way. able: workers that could take a node of it, of which `there`
 * are online and take work. */
static void why_nodes(
	struct place_pass *p, struct place_shape *shape, uint32_t able, uint32_t there)
{
	struct place_blocker *b = arena_array_of(p->a, struct place_blocker, DIMS + 1);
	uint32_t fits = count_fits(p, shape, there);

	b->kind = PLACE_NODES;
	b->never = able < shape->nodes;
	b->pool = p->s->steps[shape->step].pool;
	b->pool_workers = count_pool(p, b->pool);
	b->what = node_text(p, shape);
	b->need = shape->nodes;
	b->most_free = fits;
	b->most_all = able;
	b->workers = there;
	for (size_t i = 0; i < p->s->workers_n; i++)
		b->isolated += refusal(&p->s->workers[i], &p->s->steps[shape->step], true) ==
			       PLACE_ISOLATED;
	shape->blockers_n = 0;
	if (fits == 0 && there >= shape->nodes) {
		why_amounts(p, shape, there, false);
		memcpy(b + 1, shape->blockers, shape->blockers_n * sizeof *b);
	}
	shape->blockers = b;
	shape->blockers_n++;
}

/* Once for each step, as what is beyond the quota. */
static const struct place_blocker *why_preempting(
	struct place_pass *p, uint32_t step, const struct place_clearing *c)
{
	struct place_blocker *b = arena_new_of(p->a, struct place_blocker);

	b->kind = PLACE_PREEMPTING;
	b->pool = p->s->steps[step].pool;
	b->until = place_cleared_by(p, c);
	for (size_t i = 0; i < p->s->running_n; i++)
		b->workers += p->s->running[i].by == step + 1;
	name_worst(p, c->asides[0].slot, &b->worker, &b->worker_name);
	return b;
}

/* ---- those that could are not there ---------------------------------------------- */

static void why_gone(struct place_pass *p, struct place_shape *shape, uint32_t n)
{
	struct place_blocker *b = arena_new_of(p->a, struct place_blocker);

	b->kind = PLACE_OFFLINE;
	b->pool = p->s->steps[shape->step].pool;
	b->pool_workers = count_pool(p, b->pool);
	/* Of those that are online, if any: they need an operator's word only. */
	for (uint32_t i = 0; i < n; i++)
		if (!worker_at(p, p->list[i])->offline)
			b->kind = PLACE_DRAINING;
	for (uint32_t i = 0; i < n; i++) {
		if (worker_at(p, p->list[i])->offline != (b->kind == PLACE_OFFLINE))
			continue;
		if (b->workers++ == 0)
			name_worst(p, p->list[i], &b->worker, &b->worker_name);
	}
	shape->blockers = b;
	shape->blockers_n = 1;
}

/* ---- the sets -------------------------------------------------------------------- */

static uint32_t list_could(struct place_pass *p, const struct place_shape *shape)
{
	const uint64_t *could = place_where_of(p, shape)->could;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->slots_n; i++)
		if (place_bit(could, i))
			p->list[n++] = i;
	return n;
}

bool place_has_all(const struct place_pass *p, const struct place_shape *shape, uint32_t at)
{
	const struct amounts x = amounts_of(p, shape, at);

	for (int d = 0; d < DIMS; d++)
		if (x.all[d] < shape->need[d])
			return false;
	return true;
}

static uint32_t keep_able(struct place_pass *p, const struct place_shape *shape, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (place_has_all(p, shape, p->list[i]))
			p->list[kept++] = p->list[i];
	return kept;
}

static uint32_t keep_there(struct place_pass *p, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct place_worker *w = worker_at(p, p->list[i]);
		if (!w->offline && !w->draining)
			p->list[kept++] = p->list[i];
	}
	return kept;
}

static void why(struct place_pass *p, struct place_shape *shape)
{
	uint32_t could = list_could(p, shape);

	if (could == 0) {
		why_nowhere(p, shape);
		return;
	}
	uint32_t able = keep_able(p, shape, could);
	if (able == 0) {
		(void)list_could(p, shape);
		why_amounts(p, shape, could, true);
		return;
	}
	uint32_t there = keep_there(p, able);
	if (shape->nodes > 1 && there < shape->nodes && (there != 0 || able < shape->nodes)) {
		why_nodes(p, shape, able, there);
		return;
	}
	if (there == 0) {
		(void)keep_able(p, shape, list_could(p, shape));
		why_gone(p, shape, able);
		return;
	}
	uint32_t kept = kept_slot(p, shape);
	if (kept != PLACE_NOWHERE &&
		(shape->nodes == 1 || count_fits(p, shape, there) >= shape->nodes))
		why_kept(p, shape, kept);
	else if (shape->nodes > 1)
		why_nodes(p, shape, able, there);
	else
		why_amounts(p, shape, there, false);
}

const struct place_blocker *place_blockers(
	const struct place_result *r, size_t waiting, uint32_t *ret_n)
{
	struct place_pass *p = r->pass;
	uint32_t step = r->waiting[waiting];
	struct place_shape *shape = &p->shapes[p->shape_of[step]];

	const struct place_clearing *c = place_clearing(p, step);
	if (p->over[step] || c != NULL) {
		if (p->over_why[step] == NULL)
			p->over_why[step] =
				c != NULL ? why_preempting(p, step, c) : why_over(p, step);
		*ret_n = 1;
		return p->over_why[step];
	}
	if (shape->blockers == NULL)
		why(p, shape);
	*ret_n = shape->blockers_n;
	return shape->blockers;
}
