#include "server/core/place_near.h"

#include <string.h>

/*
 * A search over the classes of GPUs that are alike: how many to take of each. What a set costs
 * follows from its own pairs alone: of the pairs of all, those that stay are all of them, less
 * those in which somebody chosen takes part.
 */

enum { NEAR_MAX = 64 }; /* as many as links can name; what comes behind is taken in order */

/* Pairs that are not linked, and that are on different nodes. */
struct apart {
	uint32_t links, nodes;
};

struct search {
	const uint32_t *from;
	uint32_t n, want;
	uint64_t unlinked[NEAR_MAX]; /* by GPU: which of the others it has no link to */
	uint64_t elsewhere[NEAR_MAX]; /* …, which are on another node */
	uint64_t classes[NEAR_MAX]; /* bit sets of GPUs that are alike */
	uint32_t classes_n;
	struct apart all; /* of all pairs together */
	struct apart best[2]; /* of the chosen, of those that stay */
	uint64_t chosen;
	uint32_t tries;
	bool found;
};

static uint32_t count(uint64_t set)
{
	return (uint32_t)__builtin_popcountll(set);
}

static int compare(struct apart a, struct apart b)
{
	if (a.links != b.links)
		return a.links < b.links ? -1 : 1;
	return (a.nodes > b.nodes) - (a.nodes < b.nodes);
}

static bool alike(const struct search *s, uint32_t a, uint32_t b)
{
	uint64_t others = ~(UINT64_C(1) << a | UINT64_C(1) << b);

	return ((s->unlinked[a] ^ s->unlinked[b]) & others) == 0 &&
	       ((s->elsewhere[a] ^ s->elsewhere[b]) & others) == 0 &&
	       (s->elsewhere[a] >> b & 1) == 0;
}

static void find_classes(struct search *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t c = 0;
		while (c < s->classes_n && !alike(s, (uint32_t)__builtin_ctzll(s->classes[c]), i))
			c++;
		s->classes_n += c == s->classes_n;
		s->classes[c] |= UINT64_C(1) << i;
	}
}

static void find_pairs(struct search *s, const struct place_worker *w)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct place_gpu *g = &w->gpus[s->from[i]];
		for (uint32_t k = 0; k < s->n; k++) {
			const struct place_gpu *h = &w->gpus[s->from[k]];
			if (k == i)
				continue;
			if (s->from[k] >= NEAR_MAX || (g->links >> s->from[k] & 1) == 0)
				s->unlinked[i] |= UINT64_C(1) << k;
			if (g->numa != h->numa && g->numa != 0 && h->numa != 0)
				s->elsewhere[i] |= UINT64_C(1) << k;
		}
		s->all.links += count(s->unlinked[i]);
		s->all.nodes += count(s->elsewhere[i]);
	}
	s->all.links /= 2;
	s->all.nodes /= 2;
}

/* `taken` is what is chosen so far, `apart` its pairs, `parts` in how many pairs of all its GPUs
 * take part. */
struct partial {
	uint64_t taken;
	uint32_t n;
	struct apart apart, parts;
};

static void settle(struct search *s, const struct partial *p)
{
	struct apart left = { s->all.links - p->parts.links + p->apart.links,
		s->all.nodes - p->parts.nodes + p->apart.nodes };
	uint64_t differ = p->taken ^ s->chosen;
	int c = s->found ? compare(p->apart, s->best[0]) : -1;

	if (c == 0)
		c = compare(left, s->best[1]);
	if (c == 0) /* who has the first that the other has not */
		c = (p->taken & differ & -differ) != 0 ? -1 : 1;
	if (c >= 0)
		return;
	s->found = true;
	s->chosen = p->taken;
	s->best[0] = p->apart;
	s->best[1] = left;
}

static void add(const struct search *s, struct partial *p, uint32_t gpu)
{
	p->apart.links += count(p->taken & s->unlinked[gpu]);
	p->apart.nodes += count(p->taken & s->elsewhere[gpu]);
	p->parts.links += count(s->unlinked[gpu]);
	p->parts.nodes += count(s->elsewhere[gpu]);
	p->taken |= UINT64_C(1) << gpu;
	p->n++;
}

/* From class c on, with as many as there may be of it first. Bounded by the number of classes. */
static void choose(struct search *s, uint32_t c, struct partial p)
{
	struct partial by_n[NEAR_MAX + 1];
	uint32_t most = 0, rest = 0;

	if (s->tries >= PLACE_NEAR_TRIES && s->found)
		return;
	s->tries++;
	if (s->found && compare(p.apart, s->best[0]) > 0)
		return;
	if (p.n == s->want) {
		settle(s, &p);
		return;
	}
	if (c == s->classes_n)
		return;
	for (uint32_t k = c + 1; k < s->classes_n; k++)
		rest += count(s->classes[k]);
	by_n[0] = p;
	for (uint64_t left = s->classes[c]; left != 0 && p.n < s->want; left &= left - 1) {
		add(s, &p, (uint32_t)__builtin_ctzll(left));
		by_n[++most] = p;
	}
	for (uint32_t k = most + 1; k-- > 0 && by_n[k].n + rest >= s->want;)
		choose(s, c + 1, by_n[k]);
}

/* Whether the worker has told anything by which they differ. */
static bool told(const struct place_worker *w, const uint32_t *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (w->gpus[from[i]].links != 0 || w->gpus[from[i]].numa != w->gpus[from[0]].numa)
			return true;
	return false;
}

void place_nearest(const struct place_worker *w, const uint32_t *from, uint32_t n, uint32_t want,
	uint32_t *ret)
{
	struct search s = { .from = from, .n = n, .want = want };
	uint32_t got = 0;

	if (want >= n || n > NEAR_MAX || !told(w, from, n)) {
		memcpy(ret, from, want * sizeof *ret);
		return;
	}
	find_pairs(&s, w);
	find_classes(&s);
	choose(&s, 0, (struct partial){ 0 });
	for (uint32_t i = 0; i < n; i++)
		if ((s.chosen >> i & 1) != 0)
			ret[got++] = from[i];
	BUG_ON(got != want);
}
