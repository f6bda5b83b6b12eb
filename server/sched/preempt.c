#include "server/sched/preempt.h"

#include "server/sched/fleet.h"
#include "server/sched/pool.h"

static struct str why(const struct place_snapshot *s, const struct place_preempted *p,
	const struct place_victim *v, struct arena *a)
{
	const struct place_step *step = &s->steps[p->step];

	if (v->reclaimed)
		return STR("its quota grants that, which was borrowed");
	return arena_printf(a, "priority %d > %d", step->priority, s->running[v->running].priority);
}

static struct str workers_of(
	const struct place_snapshot *s, const struct place_preempted *p, struct arena *a)
{
	struct str text = STR_NONE;

	for (uint32_t i = 0; i < p->workers_n; i++) {
		struct str id = s->workers[p->workers[i]].id;
		text = i == 0 ? arena_str(a, id)
			      : arena_printf(a, "%.*s,%.*s", STR_ARG(text), STR_ARG(id));
	}
	return text;
}

void preempt_fill(const struct place_snapshot *s, const struct place_result *r, struct arena *a,
	struct preempt_rows *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < r->preempted_n; i++)
		n += r->preempted[i].victims_n;
	*ret = (struct preempt_rows){ .attempt_ids = arena_array_of(a, struct str, n + 1),
		.by_steps = arena_array_of(a, struct str, n + 1),
		.whys = arena_array_of(a, struct str, n + 1),
		.step_ids = arena_array_of(a, struct str, r->preempted_n + 1),
		.workers = arena_array_of(a, struct str, r->preempted_n + 1) };
	for (size_t i = 0; i < r->preempted_n; i++) {
		const struct place_preempted *p = &r->preempted[i];
		struct str step = arena_str(a, s->steps[p->step].id);
		for (uint32_t k = 0; k < p->victims_n; k++) {
			size_t at = ret->attempts_n++;
			ret->attempt_ids[at] = arena_str(a, s->running[p->victims[k].running].id);
			ret->by_steps[at] = step;
			ret->whys[at] = why(s, p, &p->victims[k], a);
		}
		ret->step_ids[ret->steps_n] = step;
		ret->workers[ret->steps_n++] = workers_of(s, p, a);
	}
}

static bool was_asked(const struct db_rows *rows, struct str attempt)
{
	for (size_t i = 0; i < rows->n; i++)
		if (str_eq(db_str(rows, i, 0), attempt))
			return true;
	return false;
}

static void note_cleared(struct pool *pool, struct str step, struct str workers)
{
	struct str ids[PLACE_NODES_MAX];
	struct list list = { ids, 0 };

	while (list.n < PLACE_NODES_MAX && str_next(&workers, ',', &ids[list.n]))
		list.n++;
	pool_cleared(pool, step, &list);
}

void preempt_take_over(const struct preempt_rows *asked, const struct db_rows *rows,
	struct pool *pool, struct fleet *fleet, int64_t now)
{
	size_t by = rows->n != 0 ? db_col(rows, "preempted_by") : 0;

	for (size_t i = 0; i < rows->n; i++) {
		pool_preempted(pool, db_str(rows, i, 0), db_str(rows, i, by), now);
		fleet_wake(fleet, db_str(rows, i, 1));
	}
	for (size_t i = 0; i < asked->attempts_n; i++)
		if (!was_asked(rows, asked->attempt_ids[i]))
			pool_not_preempted(pool, asked->attempt_ids[i]);
	for (size_t i = 0; i < asked->steps_n; i++)
		for (size_t k = 0; k < rows->n; k++)
			if (str_eq(db_str(rows, k, by), asked->step_ids[i])) {
				note_cleared(pool, asked->step_ids[i], asked->workers[i]);
				break;
			}
}
