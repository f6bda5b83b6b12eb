#include "lib/base/mem.h"
#include "server/sched/goods.h"
#include "server/sched/pool_inside.h"

/*
 * Of all that workers hold, a snapshot has what its steps need: a table of the hashes of that, in
 * which everything that workers hold is looked up. Linear in both, and nothing at all when no step
 * needs anything.
 */

enum { SEED = 0x7469646d };

uint64_t goods_key(enum hold_kind kind, struct str name)
{
	return str_hash(name, SEED + (uint64_t)kind) | 1; /* never 0 */
}

struct str goods_keys(const struct holds *h, struct arena *a)
{
	struct goods_key *keys = arena_array_of(a, struct goods_key, h->items.n + 1);

	for (size_t i = 0; i < h->items.n; i++) {
		const struct hold *x = list_at(&h->items, struct hold, i);
		keys[i] = (struct goods_key){ goods_key((enum hold_kind)x->kind, x->name),
			(uint64_t)x->bytes };
	}
	return (struct str){ (const char *)keys, h->items.n * sizeof *keys };
}

/* ---- the table ---- */

struct entry {
	uint64_t key;
	struct place_good good;
	uint32_t *workers;
	uint32_t at; /* among the snapshot's, when somebody holds it */
};

struct table {
	struct entry *entries;
	size_t mask, n;
};

static struct entry *find(const struct table *t, uint64_t key)
{
	size_t at = (size_t)(key ^ key >> 32) & t->mask;

	while (t->entries[at].key != 0 && t->entries[at].key != key)
		at = (at + 1) & t->mask;
	return &t->entries[at];
}

static void want_all(struct table *t, struct waiting *const *steps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < steps[i]->wants_n; k++) {
			struct entry *x = find(t, steps[i]->wants[k].key);
			t->n += x->key == 0;
			x->key = steps[i]->wants[k].key;
			x->good.name = steps[i]->wants[k].name;
		}
}

/* Counts the holders first; then there is room, and they are noted. */
static void hold_all(struct table *t, const struct pool *p)
{
	for (size_t i = 0; i < map_count(p->hosts); i++) {
		const struct host *h = p->order[i];
		for (uint32_t k = 0; k < h->holds_n; k++) {
			struct entry *x = find(t, h->holds[k].key);
			if (x->key == 0)
				continue;
			if (x->workers != NULL)
				x->workers[x->good.workers_n] = h->at;
			x->good.workers_n++;
			if (h->holds[k].bytes > x->good.bytes)
				x->good.bytes = h->holds[k].bytes;
		}
	}
}

static void number_all(struct table *t, struct arena *a, struct place_snapshot *ret)
{
	struct place_good *goods = arena_array_of(a, struct place_good, t->n + 1);

	for (size_t i = 0; i <= t->mask; i++) {
		struct entry *x = &t->entries[i];
		if (x->good.workers_n == 0)
			continue;
		x->at = (uint32_t)ret->goods_n;
		x->good.workers = x->workers;
		goods[ret->goods_n++] = x->good;
	}
	ret->goods = goods;
}

static void make_room(struct table *t, struct arena *a)
{
	for (size_t i = 0; i <= t->mask; i++) {
		struct entry *x = &t->entries[i];
		if (x->good.workers_n != 0)
			x->workers = arena_array_of(a, uint32_t, x->good.workers_n);
		x->good.workers_n = 0;
	}
}

static void give_steps(const struct table *t, struct waiting *const *waiting,
	struct place_step *steps, size_t n, struct arena *a)
{
	for (size_t i = 0; i < n; i++) {
		const struct waiting *w = waiting[i];
		uint32_t *goods = w->wants_n != 0 ? arena_array_of(a, uint32_t, w->wants_n) : NULL;
		for (uint32_t k = 0; k < w->wants_n; k++) {
			const struct entry *x = find(t, w->wants[k].key);
			if (x->good.workers_n != 0)
				goods[steps[i].goods_n++] = x->at;
		}
		steps[i].goods = goods;
	}
}

void pool_see_goods(struct pool *p, struct waiting *const *waiting, struct place_step *steps,
	size_t n, struct arena *a, struct place_snapshot *ret)
{
	struct table t = { .mask = 15 };
	size_t wants = 0;

	for (size_t i = 0; i < n; i++)
		wants += waiting[i]->wants_n;
	if (wants == 0)
		return;
	while (t.mask < 2 * wants)
		t.mask = 2 * t.mask + 1;
	t.entries = arena_array_of(a, struct entry, t.mask + 1);
	want_all(&t, waiting, n);
	hold_all(&t, p);
	make_room(&t, a);
	hold_all(&t, p);
	number_all(&t, a, ret);
	give_steps(&t, waiting, steps, n, a);
}

/* ---- the memory ---- */

static void add_want(struct waiting *w, enum hold_kind kind, struct str name)
{
	uint64_t key = goods_key(kind, name);

	for (uint32_t i = 0; i < w->wants_n; i++)
		if (w->wants[i].key == key)
			return;
	if (name.n != 0 && w->wants_n < PLACE_GOODS_MAX)
		w->wants[w->wants_n++] = (struct pool_want){ key, arena_str(w->arena, name) };
}

void pool_want_goods(struct waiting *w, const struct jsn *request)
{
	const struct jsn *data = jsn_get(request, "data");
	struct str image = jsn_get_str(jsn_get(request, "image"));

	if (image.n == 0 && jsn_count(data) == 0)
		return;
	w->wants = arena_array_of(w->arena, struct pool_want, PLACE_GOODS_MAX);
	add_want(w, HOLD_IMAGE, image);
	for (size_t i = 0; i < jsn_count(data); i++)
		add_want(w, HOLD_DATASET, jsn_get_str(jsn_at(data, i)));
}

/* Bytes as goods_keys made them. */
static void set_holds(struct host *h, struct str keys)
{
	uint32_t n = (uint32_t)(keys.n / sizeof(struct goods_key));
	struct goods_key *holds = arena_array_of(h->arena, struct goods_key, (size_t)HOLDS_MAX);

	if (n > HOLDS_MAX)
		n = HOLDS_MAX;
	if (h->holds != NULL)
		holds = (struct goods_key *)(uintptr_t)h->holds; /* there is room for as many */
	if (n != 0)
		memcpy(holds, keys.p, n * sizeof *holds);
	h->holds = holds;
	h->holds_n = n;
}

void pool_read_holds(struct host *h, struct str keys)
{
	if (keys.n != 0)
		set_holds(h, keys);
}

void pool_worker_holds(struct pool *p, struct str worker_id, struct str keys)
{
	struct host *h = map_get(p->hosts, worker_id);

	if (h != NULL && (h->holds != NULL || keys.n != 0))
		set_holds(h, keys);
}
