#include "tests/sim/sim.h"

/* What workers hold of images and data: those that ran there last, by books of our own. */

static uint32_t *lru_of(const struct sim_trace *t, uint32_t worker)
{
	return &t->held[(size_t)worker * SIM_HELD];
}

static bool holds(const struct sim_trace *t, uint32_t worker, uint32_t good)
{
	for (uint32_t i = 0; i < SIM_HELD; i++)
		if (lru_of(t, worker)[i] == good + 1)
			return true;
	return false;
}

void sim_held_see(struct sim *m, struct place_step *steps)
{
	const struct sim_trace *t = m->t;
	struct place_good *goods = arena_array_of(m->arena, struct place_good, t->goods_n + 1u);
	uint32_t *numbers = arena_array_of(m->arena, uint32_t, m->s.steps_n + 1);

	if (t->blind)
		return;
	for (uint32_t g = 0; g < t->goods_n; g++) {
		uint32_t *at = arena_array_of(m->arena, uint32_t, t->workers_n + 1u);
		goods[g] = (struct place_good){ .name = arena_printf(m->arena, "image:%u", g),
			.bytes = t->good_bytes[g],
			.workers = at };
		for (uint32_t w = 0; w < t->workers_n; w++)
			if (holds(t, w, g))
				at[goods[g].workers_n++] = w;
	}
	for (size_t i = 0; i < m->s.steps_n; i++) {
		const struct sim_step *s = &t->steps[m->step_of[i]];
		numbers[i] = s->good - 1;
		steps[i].goods = &numbers[i];
		steps[i].goods_n = s->good != 0;
	}
	m->s.goods = goods;
	m->s.goods_n = t->goods_n;
}

void sim_held_book(struct sim *m)
{
	const struct sim_trace *t = m->t;

	for (size_t i = 0; i < m->r.placed_n; i++) {
		const struct place_assignment *a = &m->r.placed[i];
		uint32_t good = t->steps[m->step_of[a->step]].good, *lru = lru_of(t, a->worker);
		uint32_t at = 0;
		if (good == 0)
			continue;
		m->report.wanted++;
		m->report.held += holds(t, a->worker, good - 1);
		while (at + 1 < SIM_HELD && lru[at] != good)
			at++;
		memmove(&lru[1], &lru[0], at * sizeof *lru);
		lru[0] = good;
	}
}
