#include "lib/base/map.h"

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/base/mem.h"

struct slot {
	char *key; /* NULL: never used */
	size_t n;
	uint64_t hash;
	void *value; /* NULL with a key: removed */
};

struct map {
	struct slot *slots;
	size_t cap, used, live; /* used counts removed slots too */
	uint64_t seed;
};

struct map *map_new(void)
{
	struct map *m = mem_new_of(struct map);

	id_random(&m->seed, sizeof m->seed);
	return m;
}

void map_free(struct map *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->cap; i++)
		mem_free(m->slots[i].key);
	mem_free(m->slots);
	mem_free(m);
}

static struct slot *probe(const struct map *m, struct str key, uint64_t hash)
{
	size_t at = (size_t)hash & (m->cap - 1);

	for (;; at = (at + 1) & (m->cap - 1)) {
		struct slot *s = &m->slots[at];
		if (s->key == NULL ||
			(s->hash == hash && str_eq((struct str){ s->key, s->n }, key)))
			return s;
	}
}

static void rebuild(struct map *m)
{
	struct slot *old = m->slots;
	size_t cap = m->cap;

	m->cap = 16;
	while (m->cap < 4 * (m->live + 1))
		m->cap *= 2;
	m->slots = mem_new(m->cap, sizeof *m->slots);
	m->used = m->live;
	for (size_t i = 0; i < cap; i++) {
		if (old[i].key == NULL)
			continue;
		if (old[i].value == NULL)
			mem_free(old[i].key);
		else
			*probe(m, (struct str){ old[i].key, old[i].n }, old[i].hash) = old[i];
	}
	mem_free(old);
}

void *map_get(const struct map *m, struct str key)
{
	return m->cap != 0 ? probe(m, key, str_hash(key, m->seed))->value : NULL;
}

void *map_put(struct map *m, struct str key, void *value)
{
	uint64_t hash = str_hash(key, m->seed);

	BUG_ON(value == NULL);
	if (2 * (m->used + 1) > m->cap)
		rebuild(m);
	struct slot *s = probe(m, key, hash);
	void *before = s->value;
	if (s->key == NULL) {
		*s = (struct slot){ mem_dupn(key.p, key.n), key.n, hash, NULL };
		m->used++;
	}
	m->live += before == NULL;
	s->value = value;
	return before;
}

void *map_remove(struct map *m, struct str key)
{
	if (m->cap == 0)
		return NULL;
	struct slot *s = probe(m, key, str_hash(key, m->seed));
	void *before = s->value;
	if (before != NULL) {
		s->value = NULL;
		m->live--;
	}
	return before;
}

size_t map_count(const struct map *m)
{
	return m->live;
}

bool map_next(const struct map *m, size_t *at, struct str *ret_key, void **ret_value)
{
	for (; *at < m->cap; ++*at) {
		const struct slot *s = &m->slots[*at];
		if (s->value == NULL)
			continue;
		*ret_key = (struct str){ s->key, s->n };
		*ret_value = s->value;
		++*at;
		return true;
	}
	return false;
}
