#include "server/core/place_inside.h"

/* Shares are of what somebody holds at all: what nobody has must be fetched anywhere. */

static uint64_t bytes_of(const struct place_good *g)
{
	enum { LEAST = 1 }; /* what has no size is there or not, too */
	const uint64_t most = UINT64_C(1) << 50; /* of 33, times PLACE_HELD_ALL, no sum overflows */

	return g->bytes < LEAST ? LEAST : g->bytes > most ? most : g->bytes;
}

void place_goods(struct place_pass *p, uint32_t step)
{
	const struct place_step *s = &p->s->steps[step];
	uint64_t all = 0;

	BUG_ON(s->goods_n > PLACE_GOODS_MAX);
	for (uint32_t i = 0; i < s->goods_n; i++) {
		const struct place_good *g = &p->s->goods[s->goods[i]];
		all += bytes_of(g);
		for (uint32_t k = 0; k < g->workers_n; k++)
			p->held_bytes[p->slot_of[g->workers[k]]] += bytes_of(g);
	}
	for (uint32_t i = 0; i < s->goods_n; i++) {
		const struct place_good *g = &p->s->goods[s->goods[i]];
		for (uint32_t k = 0; k < g->workers_n; k++) {
			uint32_t at = p->slot_of[g->workers[k]];
			uint64_t share = p->held_bytes[at] * PLACE_HELD_ALL / all;
			p->held[at] = (uint16_t)(share != 0 ? share : 1);
			p->held_any = true;
		}
	}
}

void place_goods_done(struct place_pass *p, uint32_t step)
{
	const struct place_step *s = &p->s->steps[step];

	for (uint32_t i = 0; i < s->goods_n; i++) {
		const struct place_good *g = &p->s->goods[s->goods[i]];
		for (uint32_t k = 0; k < g->workers_n; k++) {
			uint32_t at = p->slot_of[g->workers[k]];
			p->held[at] = 0;
			p->held_bytes[at] = 0;
		}
	}
	p->held_any = false;
}
