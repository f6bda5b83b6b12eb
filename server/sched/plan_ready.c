/* What becomes of a step when all that it needs has succeeded, or never will. */
#include "api/run.h"
#include "lib/base/num.h"
#include "lib/json/field.h"
#include "server/sched/plan_inside.h"
#include "server/sched/spec.h"

#include <math.h>

void plan_end_step(
	struct plan *p, size_t i, enum step_state state, enum reason reason, struct str message)
{
	plan_set_step(p, i,
		&(struct plan_change){ .state = (int)state,
			.reason = str_c(reason_names[reason]),
			.message = message });
	p->ended = true;
}

/* ---- matrices ---- */

/* As many of its like as may be are on their way. */
static bool is_full(const struct plan *p, const struct plan_step *s)
{
	int64_t n = 0;

	if (s->slots == 0)
		return false;
	for (size_t i = 0; i < p->run->n; i++)
		if (p->states[i] >= STEP_QUEUED && p->states[i] <= STEP_FINISHING &&
			str_eq(p->run->steps[i].matrix_of, s->matrix_of))
			n++;
	return n >= s->slots;
}

struct choice {
	const struct plan_step *best;
	struct str missing; /* a combination without the metric */
	size_t n; /* that were compared */
};

static struct choice choose(const struct plan *p, size_t join, const struct matrix_select *select)
{
	struct choice c = { .best = NULL };

	for (size_t i = 0; i < p->run->n; i++) {
		const struct plan_step *s = &p->run->steps[i];
		if (p->states[i] != STEP_SUCCEEDED ||
			!str_eq(s->matrix_of, p->run->steps[join].name))
			continue;
		c.n++;
		if (!s->has_metric && c.missing.n == 0)
			c.missing = s->name;
		if (!s->has_metric || isnan(s->metric))
			continue;
		if (c.best == NULL || (select->mode == SELECT_MIN ? s->metric < c.best->metric
								  : s->metric > c.best->metric))
			c.best = s;
	}
	return c;
}

/* Steps that become ready in the same turn find there what it has put out. */
static void take(struct plan *p, size_t i, const struct plan_step *source)
{
	size_t k = p->takers_n++;

	p->takers[k] = p->run->steps[i].id;
	p->sources[k] = source->id;
	p->joined[k] = p->run->steps[i].name;
	p->chosen[k] = source->name;
}

static void join_best(struct plan *p, size_t i, const struct matrix_select *select)
{
	struct choice c = choose(p, i, select);
	char value[NUM_DOUBLE_MAX];

	if (c.missing.n != 0) {
		plan_end_step(p, i, STEP_FAILED, REASON_METRIC_MISSING,
			arena_printf(p->arena, "%.*s has recorded no metric %.*s",
				STR_ARG(c.missing), STR_ARG(select->metric)));
	} else if (c.best == NULL) {
		plan_end_step(p, i, STEP_FAILED, REASON_METRIC_MISSING,
			arena_printf(p->arena,
				"the metric %.*s is a number in none of the combinations",
				STR_ARG(select->metric)));
	} else {
		take(p, i, c.best);
		plan_end_step(p, i, STEP_SUCCEEDED, REASON_NONE,
			arena_printf(p->arena, "%.*s was chosen: %.*s %s, the %s of %zu",
				STR_ARG(c.best->name), STR_ARG(select->metric),
				num_format_double(value, c.best->metric),
				select->mode == SELECT_MIN ? "least" : "greatest", c.n));
	}
}

static void join_all(struct plan *p, size_t i)
{
	p->gatherers[p->gatherers_n++] = p->run->steps[i].id;
	plan_end_step(p, i, STEP_SUCCEEDED, REASON_NONE, STR(""));
}

int plan_step_ready(struct plan *p, size_t i, struct err *e)
{
	const struct plan_step *s = &p->run->steps[i];
	struct step_spec spec;

	if (is_full(p, s)) /* it is looked at again when one of the others has ended */
		return 0;
	if (plan_spec_of(p, s, &spec, e) < 0)
		return -1;
	if (plan_is_early(p, i, &spec)) {
		p->leaves = true;
		return 0;
	}
	if (s->joins) {
		p->joined_now[i] = true;
		if (spec.matrix.has_select)
			join_best(p, i, &spec.matrix.select);
		else
			join_all(p, i);
		return 0;
	}
	if (s->late && !plan_fill_in(p, i, &spec))
		return 0;
	if (str_is(spec.condition, "false")) {
		plan_end_step(p, i, STEP_SKIPPED, REASON_CONDITION_FALSE,
			str_c(reason_sentence(REASON_CONDITION_FALSE)));
		return 0;
	}
	if (spec.has_cache && !plan_cache(p, i, &spec))
		return 0;
	plan_set_step(p, i, &(struct plan_change){ .state = STEP_QUEUED });
	plan_queue_step(p, i, &spec, 0);
	if (s->late)
		p->open_bytes += p->specs[p->specs_n - 1].n;
	return 0;
}

/* What did not succeed of what a step needs, in words. */
void plan_skip_step(struct plan *p, const struct dag *d, size_t i)
{
	enum reason reason = REASON_NEED_SKIPPED;
	struct str name = STR("");

	for (uint32_t k = d->need_at[i]; k < d->need_at[i + 1]; k++) {
		int state = p->states[d->need[k]];
		if (state < STEP_FAILED || (reason == REASON_NEED_FAILED && name.n != 0))
			continue;
		if (p->bad[d->need[k]])
			reason = REASON_NEED_FAILED;
		if (p->bad[d->need[k]] || name.n == 0)
			name = p->run->steps[d->need[k]].name;
	}
	plan_set_step(p, i,
		&(struct plan_change){ .state = STEP_SKIPPED,
			.reason = str_c(reason_names[reason]),
			.message = arena_printf(
				p->arena, "%s: %.*s", reason_sentence(reason), STR_ARG(name)) });
}

void plan_cancel_step(struct plan *p, size_t i)
{
	p->unqueue[p->unqueue_n++] = p->run->steps[i].id;
	plan_set_step(p, i,
		&(struct plan_change){ .state = STEP_CANCELLED,
			.reason = str_c(reason_names[REASON_CANCELLED]),
			.message = str_c(reason_sentence(REASON_CANCELLED)) });
}

void plan_add_ready(struct db_unit *u, const struct plan *p)
{
	engine_store_step_specs(u, p->spec_ids, p->specs, p->specs_n);
	engine_store_gather(u, p->gatherers, p->gatherers_n);
	engine_store_take(u, p->takers, p->sources, p->takers_n);
	plan_add_cached(u, p);
}
