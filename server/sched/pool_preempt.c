#include "server/sched/pool_inside.h"

/* What is ended for steps that go first, in the memory. */

void pool_preempted(struct pool *p, struct str attempt_id, struct str by_step, int64_t now)
{
	struct holding *h = map_get(p->attempts, attempt_id);

	if (h == NULL)
		return;
	h->preempted_by = arena_str(h->arena, by_step);
	h->asked_at = now;
}

void pool_not_preempted(struct pool *p, struct str attempt_id)
{
	struct holding *h = map_get(p->attempts, attempt_id);

	if (h != NULL)
		h->fixed = true;
}

void pool_cleared(struct pool *p, struct str step_id, const struct list *workers)
{
	struct waiting *w = map_get(p->steps, step_id);

	if (w == NULL)
		return;
	w->cleared_on =
		(struct list){ arena_array_of(w->arena, struct str, workers->n + 1), workers->n };
	for (size_t i = 0; i < workers->n; i++)
		*list_at(&w->cleared_on, struct str, i) =
			arena_str(w->arena, *list_at(workers, struct str, i));
}
