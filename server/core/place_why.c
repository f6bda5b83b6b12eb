#include "server/core/place_inside.h"

#include "lib/base/num.h"
#include "server/core/names.h"

/*
 * Two kinds of answer. Where no worker could ever take the step, the check that the last of them
 * failed: the workers that came furthest are the ones to do something about. Where some could, each
 * amount that none of them has free; and if each is free somewhere, the worker that meets the most.
 */

/* ---- no worker could ------------------------------------------------------------- */

static bool worker_has(const struct place_worker *w, const struct place_label *l)
{
	for (uint32_t i = 0; i < w->labels_n; i++)
		if (str_eq(w->labels[i].key, l->key) && str_eq(w->labels[i].value, l->value))
			return true;
	return false;
}

static bool offers(const struct place_worker *w, const struct place_step *s)
{
	for (uint8_t i = 0; i < s->runtimes_n; i++)
		if ((w->runtimes >> s->runtimes[i] & 1) != 0)
			return true;
	return false;
}

/* The first check that the worker fails; they are in the order of the enum. */
static enum place_blocker_kind refusal(const struct place_worker *w, const struct place_step *s)
{
	if (!str_eq(w->pool, s->pool))
		return PLACE_NO_POOL;
	if (w->offline)
		return PLACE_OFFLINE;
	if (w->draining)
		return PLACE_DRAINING;
	if (!offers(w, s))
		return PLACE_RUNTIME;
	for (uint32_t i = 0; i < s->requires_n; i++)
		if (!worker_has(w, &s->requires[i]))
			return PLACE_REQUIRES;
	return PLACE_AVOIDS;
}

/* The label that shuts out most of the workers that failed at `kind`. */
static void blame_label(
	const struct place_pass *p, const struct place_step *s, struct place_blocker *b)
{
	bool requires = b->kind == PLACE_REQUIRES;
	const struct place_label *labels = requires ? s->requires : s->avoids;
	uint32_t n = requires ? s->requires_n : s->avoids_n, most = 0;

	for (uint32_t l = 0; l < n; l++) {
		uint32_t count = 0;
		for (size_t i = 0; i < p->s->workers_n; i++) {
			const struct place_worker *w = &p->s->workers[i];
			if (refusal(w, s) == b->kind && worker_has(w, &labels[l]) != requires)
				count++;
		}
		if (count <= most)
			continue;
		most = count;
		b->what = labels[l].key;
		b->value = labels[l].value;
	}
}

static void why_nowhere(struct place_pass *p, struct place_shape *shape)
{
	const struct place_step *s = &p->s->steps[shape->step];
	struct place_blocker *b = arena_new_of(p->a, struct place_blocker);

	b->kind = PLACE_NO_POOL;
	for (size_t i = 0; i < p->s->workers_n; i++) {
		enum place_blocker_kind kind = refusal(&p->s->workers[i], s);
		if (kind > b->kind) {
			b->kind = kind;
			b->workers = 0;
		}
		b->workers += kind == b->kind;
	}
	if (b->kind == PLACE_NO_POOL)
		b->what = s->pool;
	if (b->kind == PLACE_REQUIRES || b->kind == PLACE_AVOIDS)
		blame_label(p, s, b);
	shape->blockers = b;
	shape->blockers_n = 1;
}

/* ---- some could, but not now ----------------------------------------------------- */

static int64_t clamp(uint64_t v)
{
	return v <= INT64_MAX ? (int64_t)v : INT64_MAX;
}

static void amounts(const struct place_pass *p, uint32_t at, const uint64_t *kinds,
	int64_t free[DIMS], int64_t all[DIMS])
{
	const struct place_slot *slot = &p->slots[at];
	const struct place_worker *w = &p->s->workers[slot->worker];
	uint32_t gpus;

	free[DIM_CPUS] = slot->cpus;
	free[DIM_MEMORY] = clamp(slot->memory);
	free[DIM_DISK] = clamp(slot->disk);
	free[DIM_GPUS] = place_matching(p, slot, kinds, &gpus);
	all[DIM_CPUS] = place_thousandths(w->cpus);
	all[DIM_MEMORY] = clamp(w->memory);
	all[DIM_DISK] = clamp(w->disk_free);
	all[DIM_GPUS] = gpus;
}

static const uint64_t *kinds_of(const struct place_pass *p, const struct place_site *site)
{
	return site->want != PLACE_NOWHERE ? p->wants[site->want].kinds : NULL;
}

static void measure(struct place_pass *p, struct place_site *site)
{
	const uint64_t *set = p->wheres[site->where].slots;
	int64_t free[DIMS], all[DIMS];

	for (int d = 0; d < DIMS; d++)
		site->most[d] = (struct place_most){ .free = -1, .all = 0 };
	for (uint32_t i = 0; i < p->slots_n; i++) {
		if (!place_bit(set, i))
			continue;
		amounts(p, i, kinds_of(p, site), free, all);
		for (int d = 0; d < DIMS; d++) {
			struct place_most *m = &site->most[d];
			if (free[d] > m->free) {
				m->free = free[d];
				m->at = i;
			}
			if (all[d] > m->all)
				m->all = all[d];
		}
	}
	site->known = true;
}

static void name_worker(const struct place_pass *p, uint32_t at, struct place_blocker *b)
{
	const struct place_worker *w = &p->s->workers[p->slots[at].worker];

	b->worker = w->id;
	b->worker_name = w->name.n != 0 ? w->name : w->id;
}

/* What a set of dimensions (bits) is called; `what` of PLACE_TOGETHER. */
static struct str dims_text(struct arena *a, unsigned dims)
{
	static const char *const names[DIMS] = { "cpus", "memory", "disk", "gpus" };
	struct str text = STR_NONE;

	for (unsigned d = 0; d < DIMS; d++) {
		if ((dims >> d & 1) == 0)
			continue;
		text = text.n == 0 ? str_c(names[d])
				   : arena_printf(a, "%.*s, %s", STR_ARG(text), names[d]);
	}
	return text;
}

static void why_together(
	struct place_pass *p, const struct place_shape *shape, struct place_blocker *b)
{
	const struct place_site *site = &p->sites[shape->site];
	const uint64_t *set = p->wheres[site->where].slots;
	unsigned lacks = 0;
	int64_t wants = 0;

	for (int d = 0; d < DIMS; d++)
		wants += shape->need[d] > 0;
	*b = (struct place_blocker){ .kind = PLACE_TOGETHER,
		.workers = p->wheres[site->where].fits,
		.need = wants,
		.most_free = -1,
		.most_all = wants };
	for (uint32_t i = 0; i < p->slots_n; i++) {
		int64_t free[DIMS], all[DIMS], met = 0;
		unsigned lacking = 0;
		if (!place_bit(set, i))
			continue;
		amounts(p, i, kinds_of(p, site), free, all);
		for (int d = 0; d < DIMS; d++) {
			if (free[d] < shape->need[d])
				lacking |= 1U << d;
			else
				met += shape->need[d] > 0;
		}
		if (met <= b->most_free)
			continue;
		b->most_free = met;
		lacks = lacking;
		name_worker(p, i, b);
	}
	b->what = dims_text(p->a, lacks);
}

void place_why(struct place_pass *p, struct place_shape *shape)
{
	static const enum place_blocker_kind kinds[DIMS] = { PLACE_CPUS, PLACE_MEMORY, PLACE_DISK,
		PLACE_GPUS };
	struct place_site *site = &p->sites[shape->site];
	struct place_blocker *b;
	uint32_t n = 0;

	if (p->wheres[site->where].fits == 0) {
		why_nowhere(p, shape);
		return;
	}
	if (!site->known)
		measure(p, site);
	b = arena_array_of(p->a, struct place_blocker, DIMS);
	for (int d = 0; d < DIMS; d++) {
		const struct place_most *m = &site->most[d];
		if (shape->need[d] <= m->free)
			continue;
		b[n] = (struct place_blocker){ .kind = kinds[d],
			.workers = p->wheres[site->where].fits,
			.need = shape->need[d],
			.most_free = m->free,
			.most_all = m->all };
		name_worker(p, m->at, &b[n++]);
	}
	if (n == 0)
		why_together(p, shape, &b[n++]);
	shape->blockers = b;
	shape->blockers_n = n;
}

/* ---- in words -------------------------------------------------------------------- */

const char *place_blocker_name(enum place_blocker_kind k)
{
	static const char *const names[PLACE_BLOCKER_KINDS] = { "pool", "offline", "draining",
		"runtime", "requires", "avoids", "cpus", "memory", "disk", "gpus", "together" };

	BUG_ON((unsigned)k >= PLACE_BLOCKER_KINDS);
	return names[k];
}

enum { AMOUNT_MAX = 48 };

static const char *amount(char out[AMOUNT_MAX], enum place_blocker_kind k, int64_t v)
{
	char size[NUM_SIZE_MAX];

	if (k == PLACE_MEMORY || k == PLACE_DISK)
		(void)str_print(out, AMOUNT_MAX, "%s", num_format_size(size, (uint64_t)v));
	else if (k == PLACE_CPUS && v % 1000 != 0)
		(void)str_print(out, AMOUNT_MAX, "%lld.%03lld", (long long)(v / 1000),
			(long long)(v % 1000));
	else
		(void)str_print(
			out, AMOUNT_MAX, "%lld", (long long)(k == PLACE_CPUS ? v / 1000 : v));
	return out;
}

static void explain_amount(char out[PLACE_TEXT_MAX], const struct place_blocker *b)
{
	static const char *const units[PLACE_BLOCKER_KINDS] = { [PLACE_CPUS] = " CPUs",
		[PLACE_MEMORY] = " of memory",
		[PLACE_DISK] = " of disk",
		[PLACE_GPUS] = " matching GPUs" };
	char need[AMOUNT_MAX], most_free[AMOUNT_MAX], all[AMOUNT_MAX];

	(void)amount(need, b->kind, b->need);
	(void)amount(most_free, b->kind, b->most_free);
	(void)amount(all, b->kind, b->most_all);
	if (b->most_all < b->need)
		(void)str_print(out, PLACE_TEXT_MAX,
			"needs %s%s on one worker; none of the %u that it may use has more than %s",
			need, units[b->kind], b->workers, all);
	else
		(void)str_print(out, PLACE_TEXT_MAX,
			"needs %s%s on one worker; %.*s has most free: %s", need, units[b->kind],
			STR_ARG(names_shown(b->worker_name)), most_free);
}

const char *place_explain(char out[PLACE_TEXT_MAX], const struct place_blocker *b)
{
	struct str what = names_shown(b->what), value = names_shown(b->value),
		   name = names_shown(b->worker_name);

	switch (b->kind) {
	case PLACE_NO_POOL:
		(void)str_print(
			out, PLACE_TEXT_MAX, "no worker belongs to pool '%.*s'", STR_ARG(what));
		break;
	case PLACE_OFFLINE:
		(void)str_print(out, PLACE_TEXT_MAX, "no worker of its pool is online (%u offline)",
			b->workers);
		break;
	case PLACE_DRAINING:
		(void)str_print(out, PLACE_TEXT_MAX,
			"no worker of its pool takes new work (%u draining)", b->workers);
		break;
	case PLACE_RUNTIME:
		(void)str_print(out, PLACE_TEXT_MAX,
			"no worker offers a runtime that the step accepts (%u online)", b->workers);
		break;
	case PLACE_REQUIRES:
	case PLACE_AVOIDS:
		(void)str_print(out, PLACE_TEXT_MAX,
			"no worker %s (%u online); most often it is %.*s=%.*s",
			b->kind == PLACE_REQUIRES ? "has all labels that the step requires"
						  : "is free of the labels that the step avoids",
			b->workers, STR_ARG(what), STR_ARG(value));
		break;
	case PLACE_TOGETHER:
		(void)str_print(out, PLACE_TEXT_MAX,
			"no worker has all that it needs free at once; %.*s lacks %.*s only",
			STR_ARG(name), STR_ARG(what));
		break;
	default: explain_amount(out, b);
	}
	return out;
}
