#include "server/core/place_victims.h"

#include <stdlib.h>
#include <string.h>

enum { TRIALS_MAX = 20000 };

static int by_cost(const void *pa, const void *pb)
{
	const struct victim *a = pa, *b = pb;

	if (a->attempts != b->attempts)
		return a->attempts < b->attempts ? -1 : 1;
	if (a->lost != b->lost)
		return a->lost < b->lost ? -1 : 1;
	return str_cmp(a->id, b->id);
}

struct search {
	const struct victim *v;
	uint32_t n;
	int64_t most[VICTIMS_MAX + 1][VICTIM_DIMS]; /* of one, from there on */
	uint32_t chosen[VICTIMS_MAX];
	uint32_t trials;
	bool found;
	struct victims_choice *best;
};

static bool enough(const int64_t lacks[VICTIM_DIMS])
{
	for (int d = 0; d < VICTIM_DIMS; d++)
		if (lacks[d] > 0)
			return false;
	return true;
}

static bool hopeless(
	const struct search *s, uint32_t from, uint32_t left, const int64_t lacks[VICTIM_DIMS])
{
	for (int d = 0; d < VICTIM_DIMS; d++)
		if (lacks[d] > s->most[from][d] * left)
			return true;
	return false;
}

/* All ways to take `left` more, from there on, that may be cheaper than the best. */
static void search(struct search *s, uint32_t from, uint32_t depth, uint32_t left,
	const int64_t lacks[VICTIM_DIMS], struct victims_cost cost)
{
	if (left == 0) {
		if (!enough(lacks) || !victims_cheaper(cost, s->best->cost))
			return;
		s->found = true;
		s->best->n = depth;
		s->best->cost = cost;
		memcpy(s->best->chosen, s->chosen, depth * sizeof *s->chosen);
		return;
	}
	for (uint32_t i = from; i + left <= s->n && s->trials < TRIALS_MAX; i++) {
		int64_t then[VICTIM_DIMS];
		if (hopeless(s, i, left, lacks))
			return;
		s->trials++;
		const struct victims_cost sum = { cost.attempts + s->v[i].attempts,
			cost.lost + s->v[i].lost };
		if (!victims_cheaper((struct victims_cost){ sum.attempts + left - 1, sum.lost },
			    s->best->cost))
			continue;
		for (int d = 0; d < VICTIM_DIMS; d++)
			then[d] = lacks[d] - s->v[i].gives[d];
		s->chosen[depth] = i;
		search(s, i + 1, depth + 1, left - 1, then, sum);
	}
}

/* What gives the most of what is lacking, one after the other; then without those that were not
 * needed after all. */
static void near_to_it(struct search *s, const int64_t lacks[VICTIM_DIMS])
{
	struct victims_choice c = { .n = 0 };
	bool taken[VICTIMS_MAX] = { false };
	int64_t left[VICTIM_DIMS];

	memcpy(left, lacks, sizeof left);
	while (!enough(left) && c.n < s->n) {
		uint32_t best = 0;
		double most = -1;
		for (uint32_t i = 0; i < s->n; i++) {
			double share = 0;
			for (int d = 0; d < VICTIM_DIMS && !taken[i]; d++)
				if (left[d] > 0)
					share += (double)s->v[i].gives[d] / (double)left[d];
			if (!taken[i] && share > most) {
				most = share;
				best = i;
			}
		}
		taken[best] = true;
		c.chosen[c.n++] = best;
		for (int d = 0; d < VICTIM_DIMS; d++)
			left[d] -= s->v[best].gives[d];
	}
	for (uint32_t i = c.n; i-- > 0;) {
		const struct victim *v = &s->v[c.chosen[i]];
		int64_t without[VICTIM_DIMS];
		for (int d = 0; d < VICTIM_DIMS; d++)
			without[d] = left[d] + v->gives[d];
		if (enough(without)) {
			memcpy(left, without, sizeof left);
			c.chosen[i] = c.chosen[--c.n];
			continue;
		}
		c.cost.attempts += v->attempts;
		c.cost.lost += v->lost;
	}
	if (enough(left) && victims_cheaper(c.cost, s->best->cost)) {
		*s->best = c;
		s->found = true;
	}
}

bool victims_choose(
	struct victim *v, uint32_t n, const int64_t lacks[VICTIM_DIMS], struct victims_choice *ret)
{
	struct search s = { .v = v, .n = n, .best = ret };
	int64_t all[VICTIM_DIMS];

	memcpy(all, lacks, sizeof all);
	for (uint32_t i = 0; i < n; i++)
		for (int d = 0; d < VICTIM_DIMS; d++)
			all[d] -= v[i].gives[d];
	if (!enough(all))
		return false;
	qsort(v, n, sizeof *v, by_cost);
	for (uint32_t i = n; i-- > 0;)
		for (int d = 0; d < VICTIM_DIMS; d++)
			s.most[i][d] =
				v[i].gives[d] > s.most[i + 1][d] ? v[i].gives[d] : s.most[i + 1][d];
	for (uint32_t k = 1; k <= n && k <= ret->cost.attempts && s.trials < TRIALS_MAX; k++)
		search(&s, 0, 0, k, lacks, (struct victims_cost){ 0, 0 });
	if (!s.found && s.trials >= TRIALS_MAX)
		near_to_it(&s, lacks);
	return s.found;
}
