/*
 * Steps with `cache`: before one is queued, it is asked for whether a step that was the same has
 * succeeded. The first plan only says which steps are to be looked up; it is made anew with what
 * was found. What a found step has put out can be read once the plan is written, as can what a step
 * has that joins others: whatever would have to read it is left to the look after that.
 */
#include "server/sched/plan_inside.h"

enum { HIT_ROWS_MAX = 10000 }; /* one look writes no more, unless a single step has more */

bool plan_is_hit(const struct plan_step *s)
{
	return s->cached != NULL && s->cached->step.n != 0;
}

/* A key is made of what was put out by the steps that it needs; what these need in turn was there
 * before. */
bool plan_is_early(const struct plan *p, size_t i, const struct step_spec *spec)
{
	const struct plan_step *s = &p->run->steps[i];

	for (uint32_t k = p->dag->need_at[i]; k < p->dag->need_at[i + 1]; k++) {
		uint32_t need = p->dag->need[k];
		if (p->hit_now[need] && (s->joins || s->late || spec->has_cache))
			return true;
		if (p->joined_now[need] && spec->has_cache)
			return true;
	}
	return false;
}

static void want(struct plan *p, size_t i, const struct step_spec *spec)
{
	struct step_spec *copy = arena_new_of(p->arena, struct step_spec);

	for (size_t k = 0; k < p->cache_wants_n; k++)
		if (p->cache_wants[k].step == i)
			return;
	*copy = *spec;
	p->cache_wants[p->cache_wants_n++] = (struct plan_cache_want){ i, copy };
}

bool plan_cache(struct plan *p, size_t i, const struct step_spec *spec)
{
	const struct plan_step *s = &p->run->steps[i];
	const struct plan_cached *c = s->cached;

	if (c == NULL && !p->run->cache_looked) {
		want(p, i, spec);
		return false;
	}
	if (c == NULL) { /* what was found just now has made room for it */
		p->leaves = true;
		return false;
	}
	if (plan_is_hit(s) && p->cache_hits != 0 && p->hit_rows + c->rows > HIT_ROWS_MAX) {
		p->leaves = true;
		return false;
	}
	if (c->key.n != 0) {
		p->keyed[p->keyed_n] = s->id;
		p->keys[p->keyed_n++] = c->key;
	}
	if (!plan_is_hit(s))
		return true;
	p->hit_now[i] = true;
	p->hit_rows += c->rows;
	p->hits[p->cache_hits] = s->id;
	p->hit_sources[p->cache_hits++] = c->step;
	plan_end_step(p, i, STEP_SUCCEEDED, REASON_NONE,
		arena_printf(p->arena, "cached: taken over from %.*s", STR_ARG(c->run)));
	return false;
}

int64_t plan_cached_rows(const struct plan *p)
{
	return p->cache_hits != 0 ? p->hit_rows : -1;
}

bool plan_cache_wants(const struct plan *p, struct list *ret)
{
	*ret = (struct list){ p->cache_wants, p->cache_wants_n };
	return p->cache_wants_n != 0;
}

void plan_add_cached(struct db_unit *u, const struct plan *p)
{
	engine_store_cache_keys(u, p->keyed, p->keys, p->keyed_n);
	engine_store_cache_take(u, p->hits, p->hit_sources, p->cache_hits);
}
