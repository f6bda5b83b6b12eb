#include "server/core/place_inside.h"

#include <stdlib.h>

/* ---- finding what is alike --------------------------------------------------------- */

typedef bool alike(const struct place_pass *p, uint32_t item, uint32_t step);

static void table_init(struct place_table *t, size_t n, struct arena *a)
{
	size_t size = 16;

	while (size < 2 * n)
		size *= 2;
	t->slots = arena_array_of(a, uint32_t, size);
	t->mask = size - 1;
}

/* The place of the item that is like the step, or where it is to be put. */
static uint32_t *table_find(const struct place_table *t, uint64_t hash, const struct place_pass *p,
	alike *same, uint32_t step)
{
	size_t at = (size_t)(hash ^ hash >> 32) & t->mask;

	while (t->slots[at] != 0 && !same(p, t->slots[at] - 1, step))
		at = (at + 1) & t->mask;
	return &t->slots[at];
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
	return h ^ h >> 29;
}

static uint64_t label_hash(const struct place_label *l, uint64_t seed)
{
	return mix(str_hash(l->key, seed), str_hash(l->value, seed + 1));
}

/* Labels count as a list: two orders of the same labels are two wheres, which costs time only. */
static bool same_labels(
	const struct place_label *a, uint32_t a_n, const struct place_label *b, uint32_t b_n)
{
	if (a_n != b_n)
		return false;
	for (uint32_t i = 0; i < a_n; i++)
		if (!str_eq(a[i].key, b[i].key) || !str_eq(a[i].value, b[i].value))
			return false;
	return true;
}

static uint32_t runtime_bits(const struct place_step *s)
{
	uint32_t bits = 0;

	BUG_ON(s->runtimes_n > PLACE_RUNTIMES_MAX);
	for (uint8_t i = 0; i < s->runtimes_n; i++) {
		BUG_ON(s->runtimes[i] >= 32);
		bits |= UINT32_C(1) << s->runtimes[i];
	}
	return bits;
}

/* ---- workers ----------------------------------------------------------------------- */

int64_t place_thousandths(double cpus)
{
	if (!(cpus > 0))
		return 0;
	return cpus < 1e9 ? (int64_t)(cpus * 1000 + 0.5) : INT64_C(1000000000000);
}

static int by_id(const void *a, const void *b, void *arg)
{
	const struct place_worker *workers = arg;

	return str_cmp(workers[*(const uint32_t *)a].id, workers[*(const uint32_t *)b].id);
}

static uint64_t kind_hash(const struct place_gpu *g, uint64_t seed)
{
	return mix(mix(str_hash(g->model, seed), g->memory), str_hash(g->mig, seed));
}

/* The kind of the GPU; a new one when it is the first. Here "step" is unused: kinds are compared
 * with the GPU that p->kinds[p->kinds_n] points to. */
static bool same_kind(const struct place_pass *p, uint32_t item, uint32_t unused)
{
	const struct place_gpu *a = p->kinds[item], *b = p->kinds[p->kinds_n];

	(void)unused;
	return place_same_kind(a, b);
}

static uint32_t kind_of(struct place_pass *p, struct place_table *t, const struct place_gpu *g)
{
	uint32_t *at;

	p->kinds[p->kinds_n] = g;
	at = table_find(t, kind_hash(g, p->s->seed), p, same_kind, 0);
	if (*at == 0)
		*at = ++p->kinds_n;
	return *at - 1;
}

/* Adds the GPUs of one worker to its groups; returns the number of groups in use. */
static uint32_t add_gpus(struct place_pass *p, struct place_table *kinds, struct place_slot *slot,
	uint32_t groups_used)
{
	const struct place_worker *w = &p->s->workers[slot->worker];

	slot->groups = groups_used;
	for (uint32_t i = 0; i < w->gpus_n; i++) {
		uint32_t kind = kind_of(p, kinds, &w->gpus[i]), g = 0;
		struct place_group *groups = &p->groups[slot->groups];
		while (g < slot->groups_n && groups[g].kind != kind)
			g++;
		if (g == slot->groups_n)
			groups[slot->groups_n++] = (struct place_group){ .kind = kind };
		groups[g].all++;
		if (w->gpus[i].free) {
			groups[g].free++;
			slot->gpus++;
		}
		p->taken[slot->gpu + i] = !w->gpus[i].free;
	}
	return groups_used + slot->groups_n;
}

static const uint64_t *hash_labels(struct place_pass *p, const struct place_worker *w)
{
	uint64_t *hashes;

	if (w->labels_n == 0)
		return NULL;
	hashes = arena_array_of(p->a, uint64_t, w->labels_n);
	for (uint32_t i = 0; i < w->labels_n; i++)
		hashes[i] = label_hash(&w->labels[i], p->s->seed);
	return hashes;
}

static bool is_sorted(const struct place_snapshot *s)
{
	for (size_t i = 1; i < s->workers_n; i++)
		if (str_cmp(s->workers[i - 1].id, s->workers[i].id) > 0)
			return false;
	return true;
}

/* Neighbours are often of one pool. */
static uint64_t pool_hash(const struct place_pass *p, uint32_t i, struct str pool)
{
	if (i > 0 && str_eq(p->s->workers[p->slots[i - 1].worker].pool, pool))
		return p->slots[i - 1].pool;
	return str_hash(pool, p->s->seed);
}

static void index_workers(struct place_pass *p)
{
	const struct place_snapshot *s = p->s;
	uint32_t *order = arena_array_of(p->a, uint32_t, s->workers_n + 1);
	struct place_table kinds;
	uint32_t gpus = 0, groups = 0, most = 0;
	size_t all = 0;

	BUG_ON(s->workers_n > UINT32_MAX / 2 || s->steps_n > UINT32_MAX / 2);
	for (uint32_t i = 0; i < s->workers_n; i++) {
		order[i] = i;
		all += s->workers[i].gpus_n;
		most = s->workers[i].gpus_n > most ? s->workers[i].gpus_n : most;
	}
	BUG_ON(all > UINT32_MAX / 2);
	if (!is_sorted(s))
		qsort_r(order, s->workers_n, sizeof *order, by_id, (void *)(uintptr_t)s->workers);
	p->slots = arena_array_of(p->a, struct place_slot, s->workers_n + 1);
	p->groups = arena_array_of(p->a, struct place_group, all + 1);
	p->kinds = arena_array_of(p->a, const struct place_gpu *, all + 1);
	p->taken = arena_array_of(p->a, bool, all + 1);
	p->near = arena_array_of(p->a, uint32_t, 2 * (size_t)most + 1);
	table_init(&kinds, all, p->a);
	p->slot_of = arena_array_of(p->a, uint32_t, s->workers_n + 1);
	p->held = arena_array_of(p->a, uint16_t, s->workers_n + 1);
	p->held_bytes = arena_array_of(p->a, uint64_t, s->workers_n + 1);
	p->slots_n = (uint32_t)s->workers_n;
	for (uint32_t i = 0; i < p->slots_n; i++) {
		const struct place_worker *w = &s->workers[order[i]];
		p->slots[i] = (struct place_slot){ .cpus = place_thousandths(w->cpus_free),
			.memory = w->memory_free,
			.disk = w->disk_free,
			.running = w->running,
			.worker = order[i],
			.gpu = gpus,
			.pool = pool_hash(p, i, w->pool),
			.labels = hash_labels(p, w),
			.avoided = w->avoided };
		p->slot_of[order[i]] = i;
		groups = add_gpus(p, &kinds, &p->slots[i], groups);
		gpus += w->gpus_n;
	}
}

uint32_t place_matching(const struct place_pass *p, const struct place_slot *slot,
	const uint64_t *kinds, uint32_t *ret_all)
{
	uint32_t free = 0, all = 0;

	for (uint32_t i = 0; i < slot->groups_n && kinds != NULL; i++) {
		const struct place_group *g = &p->groups[slot->groups + i];
		if (place_bit(kinds, g->kind)) {
			free += g->free;
			all += g->all;
		}
	}
	*ret_all = all;
	return free;
}

uint32_t place_gpu_at(const struct place_pass *p, const struct place_slot *slot, struct str uuid)
{
	const struct place_worker *w = &p->s->workers[slot->worker];
	uint32_t i = 0;

	while (i < w->gpus_n && !str_eq(w->gpus[i].uuid, uuid))
		i++;
	return i < w->gpus_n ? i : PLACE_NOWHERE;
}

struct place_group *place_group_of(
	const struct place_pass *p, const struct place_slot *slot, uint32_t gpu)
{
	const struct place_gpu *g = &p->s->workers[slot->worker].gpus[gpu];
	struct place_group *group = &p->groups[slot->groups];

	while (!place_same_kind(p->kinds[group->kind], g))
		group++;
	return group;
}

/* What grows is looked at again by all. */
static void reopen(struct place_pass *p, uint32_t at)
{
	for (uint32_t f = 0; f < p->fronts_n; f++) {
		const uint64_t *slots = p->wheres[p->sites[p->fronts[f].site].where].slots;
		p->fronts[f].slots[at / 64] |= slots[at / 64] & UINT64_C(1) << at % 64;
	}
}

void place_move_gpu(struct place_pass *p, struct place_slot *slot, uint32_t gpu, bool taken)
{
	uint32_t by = taken ? UINT32_MAX : 1;

	p->taken[slot->gpu + gpu] = taken;
	slot->gpus += by;
	place_group_of(p, slot, gpu)->free += by;
	if (!taken)
		reopen(p, p->slot_of[slot->worker]);
}

const uint64_t *place_kinds(const struct place_pass *p, const struct place_shape *shape)
{
	uint32_t want = p->sites[shape->site].want;

	return want != PLACE_NOWHERE ? p->wants[want].kinds : NULL;
}

/* ---- where: pool, runtimes, labels ------------------------------------------------- */

static bool same_where(const struct place_pass *p, uint32_t item, uint32_t step)
{
	const struct place_step *a = &p->s->steps[p->wheres[item].step], *b = &p->s->steps[step];

	return str_eq(a->pool, b->pool) && a->sensitivity == b->sensitivity &&
	       (a->nodes > 1) == (b->nodes > 1) && runtime_bits(a) == runtime_bits(b) &&
	       same_labels(a->requires, a->requires_n, b->requires, b->requires_n) &&
	       same_labels(a->avoids, a->avoids_n, b->avoids, b->avoids_n);
}

static uint64_t where_hash(const struct place_step *s, uint64_t seed)
{
	uint64_t h = mix(mix(str_hash(s->pool, seed), runtime_bits(s)),
		s->sensitivity * 2U + (s->nodes > 1));

	for (uint32_t i = 0; i < s->requires_n; i++)
		h = mix(h, label_hash(&s->requires[i], seed));
	h = mix(h, s->requires_n);
	for (uint32_t i = 0; i < s->avoids_n; i++)
		h = mix(h, label_hash(&s->avoids[i], seed));
	return h;
}

static bool has_label(const struct place_slot *slot, const struct place_worker *w,
	const struct place_label *l, uint64_t hash)
{
	for (uint32_t i = 0; i < w->labels_n; i++)
		if (slot->labels[i] == hash && str_eq(w->labels[i].key, l->key) &&
			str_eq(w->labels[i].value, l->value))
			return true;
	return false;
}

struct where_hashes {
	uint64_t pool, requires[PLACE_LABELS_MAX], avoids[PLACE_LABELS_MAX];
	uint32_t runtimes;
};

static bool slot_could(const struct place_pass *p, const struct place_slot *slot,
	const struct place_step *s, const struct where_hashes *h)
{
	const struct place_worker *w = &p->s->workers[slot->worker];

	if (slot->pool != h->pool || (place_runtimes(w, s) & h->runtimes) == 0 ||
		!str_eq(w->pool, s->pool))
		return false;
	for (uint32_t i = 0; i < s->requires_n; i++)
		if (!has_label(slot, w, &s->requires[i], h -> requires[i]))
			return false;
	for (uint32_t i = 0; i < s->avoids_n; i++)
		if (has_label(slot, w, &s->avoids[i], h->avoids[i]))
			return false;
	return true;
}

const struct place_pool place_pool_default = { .policy = PLACE_AUTO,
	.preemption = PLACE_PREEMPT_NONE,
	.sensitivities = 1U << PLACE_PUBLIC | 1U << PLACE_INTERNAL | 1U << PLACE_CONFIDENTIAL };

const struct place_pool *place_pool_of(const struct place_snapshot *s, struct str name)
{
	for (size_t i = 0; i < s->pools_n; i++)
		if (str_eq(s->pools[i].name, name))
			return &s->pools[i];
	return &place_pool_default;
}

static struct place_where make_where(struct place_pass *p, uint32_t step)
{
	const struct place_step *s = &p->s->steps[step];
	uint64_t *could = arena_array_of(p->a, uint64_t, p->slots_n / 64 + 1);
	uint64_t *set = arena_array_of(p->a, uint64_t, p->slots_n / 64 + 1);
	struct where_hashes h = { .pool = str_hash(s->pool, p->s->seed),
		.runtimes = runtime_bits(s) };
	const struct place_pool *pool = place_pool_of(p->s, s->pool);
	bool allowed = place_allows(pool, s);

	BUG_ON(s->sensitivity >= PLACE_SENSITIVITIES);
	BUG_ON(s->requires_n > PLACE_LABELS_MAX || s->avoids_n > PLACE_LABELS_MAX);
	for (uint32_t i = 0; i < s->requires_n; i++)
	h.requires[i] = label_hash(&s->requires[i], p -> s -> seed);
	for (uint32_t i = 0; i < s->avoids_n; i++)
		h.avoids[i] = label_hash(&s->avoids[i], p->s->seed);
	for (uint32_t i = 0; allowed && i < p->slots_n; i++) {
		const struct place_worker *w = &p->s->workers[p->slots[i].worker];
		if (!slot_could(p, &p->slots[i], s, &h))
			continue;
		could[i / 64] |= UINT64_C(1) << (i % 64);
		if (!w->offline && !w->draining)
			set[i / 64] |= UINT64_C(1) << (i % 64);
	}
	return (struct place_where){ .step = step, .slots = set, .could = could, .pool = pool };
}

/* ---- wants, sites, shapes ---------------------------------------------------------- */

static bool same_want(const struct place_pass *p, uint32_t item, uint32_t step)
{
	const struct gpus_want *a = &p->s->steps[p->wants[item].step].gpus,
			       *b = &p->s->steps[step].gpus;

	if (a->memory_min != b->memory_min || a->memory_max != b->memory_max ||
		a->models_n != b->models_n || !str_eq(a->mig, b->mig))
		return false;
	for (size_t i = 0; i < a->models_n; i++)
		if (!str_eq(a->models[i], b->models[i]))
			return false;
	return true;
}

static uint64_t want_hash(const struct gpus_want *w, uint64_t seed)
{
	uint64_t h = mix(mix(mix(seed, w->memory_min), w->memory_max), str_hash(w->mig, seed));

	for (size_t i = 0; i < w->models_n; i++)
		h = mix(h, str_hash(w->models[i], seed));
	return h;
}

static struct place_gpu_want make_want(struct place_pass *p, uint32_t step)
{
	uint64_t *set = arena_array_of(p->a, uint64_t, p->kinds_n / 64 + 1);

	for (uint32_t i = 0; i < p->kinds_n; i++)
		if (gpus_match(&p->s->steps[step].gpus, p->kinds[i]->model, p->kinds[i]->memory,
			    p->kinds[i]->mig))
			set[i / 64] |= UINT64_C(1) << (i % 64);
	return (struct place_gpu_want){ .step = step, .kinds = set };
}

/* Sites and shapes are compared with the candidate that stands behind the last one. */
static bool same_site(const struct place_pass *p, uint32_t item, uint32_t unused)
{
	const struct place_site *a = &p->sites[item], *b = &p->sites[p->sites_n];

	(void)unused;
	return a->where == b->where && a->want == b->want;
}

static bool same_shape(const struct place_pass *p, uint32_t item, uint32_t unused)
{
	const struct place_shape *a = &p->shapes[item], *b = &p->shapes[p->shapes_n];

	(void)unused;
	return a->site == b->site && a->nodes == b->nodes &&
	       memcmp(a->need, b->need, sizeof a->need) == 0;
}

static bool same_front(const struct place_pass *p, uint32_t item, uint32_t unused)
{
	const struct place_front *a = &p->fronts[item], *b = &p->fronts[p->fronts_n];

	(void)unused;
	return a->site == b->site && a->gpus == b->gpus;
}

static int64_t clamp(uint64_t v)
{
	return v <= INT64_MAX ? (int64_t)v : INT64_MAX;
}

struct tables {
	struct place_table wheres, wants, sites, fronts, shapes;
};

static uint32_t site_of(struct place_pass *p, struct tables *t, uint32_t step)
{
	const struct place_step *s = &p->s->steps[step];
	uint64_t seed = p->s->seed;
	struct place_site site = { .step = step, .want = PLACE_NOWHERE };
	uint32_t *at = table_find(&t->wheres, where_hash(s, seed), p, same_where, step);

	if (*at == 0) {
		p->wheres[p->wheres_n] = make_where(p, step);
		*at = ++p->wheres_n;
	}
	site.where = *at - 1;
	if (s->gpus.count != 0) {
		at = table_find(&t->wants, want_hash(&s->gpus, seed), p, same_want, step);
		if (*at == 0) {
			p->wants[p->wants_n] = make_want(p, step);
			*at = ++p->wants_n;
		}
		site.want = *at - 1;
	}
	p->sites[p->sites_n] = site;
	at = table_find(&t->sites, mix(mix(seed, site.where), site.want), p, same_site, step);
	if (*at == 0)
		*at = ++p->sites_n;
	return *at - 1;
}

static uint32_t front_of(struct place_pass *p, struct tables *t, uint32_t site, uint32_t gpus)
{
	struct place_front *front = &p->fronts[p->fronts_n];
	size_t words = p->slots_n / 64 + (size_t)1;

	front->site = site;
	front->gpus = gpus;
	uint32_t *at = table_find(&t->fronts, mix(mix(p->s->seed, site), gpus), p, same_front, 0);
	if (*at == 0) {
		front->slots = arena_array_of(p->a, uint64_t, words);
		memcpy(front->slots, p->wheres[p->sites[site].where].slots,
			words * sizeof *front->slots);
		*at = ++p->fronts_n;
	}
	return *at - 1;
}

static uint32_t shape_of(struct place_pass *p, struct tables *t, uint32_t step)
{
	const struct place_step *s = &p->s->steps[step];
	struct place_shape shape = { .step = step,
		.site = site_of(p, t, step),
		.nodes = place_nodes(s),
		.need = { place_thousandths(s->cpus), clamp(s->memory), clamp(s->disk),
			s->gpus.count } };
	uint64_t h = mix(mix(p->s->seed, shape.site), shape.nodes);

	BUG_ON(shape.nodes > PLACE_NODES_MAX);
	if (s->gpus.count != 0)
		shape.front = front_of(p, t, shape.site, s->gpus.count);

	for (int i = 0; i < DIMS; i++)
		h = mix(h, (uint64_t)shape.need[i]);
	p->shapes[p->shapes_n] = shape;
	uint32_t *at = table_find(&t->shapes, h, p, same_shape, step);
	if (*at == 0)
		*at = ++p->shapes_n;
	return *at - 1;
}

void place_index(struct place_pass *p)
{
	size_t n = p->s->steps_n;
	struct tables t;

	index_workers(p);
	table_init(&t.wheres, n, p->a);
	table_init(&t.wants, n, p->a);
	table_init(&t.sites, n, p->a);
	table_init(&t.fronts, n, p->a);
	table_init(&t.shapes, n, p->a);
	p->wheres = arena_array_of(p->a, struct place_where, n + 1);
	p->wants = arena_array_of(p->a, struct place_gpu_want, n + 1);
	p->sites = arena_array_of(p->a, struct place_site, n + 1);
	p->fronts = arena_array_of(p->a, struct place_front, n + 1);
	p->shapes = arena_array_of(p->a, struct place_shape, n + 1);
	p->shape_of = arena_array_of(p->a, uint32_t, n + 1);
	p->list = arena_array_of(p->a, uint32_t, (size_t)p->slots_n + 1);
	p->kept = arena_array_of(p->a, struct place_keep, PLACE_KEPT_MAX);
	p->over = arena_array_of(p->a, bool, n + 1);
	p->over_why = arena_array_of(p->a, const struct place_blocker *, n + 1);
	p->now = p->s->now;
	for (uint32_t i = 0; i < n; i++)
		p->shape_of[i] = shape_of(p, &t, i);
}
