/* What becomes of a step when all that it needs has succeeded, or never will. */
#include "api/run.h"
#include "lib/base/num.h"
#include "lib/json/field.h"
#include "server/sched/plan_inside.h"
#include "server/sched/spec.h"

#include <math.h>

enum { SPEC_MAX = 4 << 20 };

static void end_step(
	struct plan *p, size_t i, enum step_state state, enum reason reason, struct str message)
{
	plan_set_step(p, i,
		&(struct plan_change){ .state = (int)state,
			.reason = str_c(reason_names[reason]),
			.message = message });
	p->ended = true;
}

/* With what other steps have put out; false when that cannot be, and the step has failed. */
static bool fill_in(struct plan *p, size_t i, struct step_spec *spec)
{
	struct err e;
	struct buf b;

	BUG_ON(p->run->scope == NULL);
	struct spec_scope scope = *p->run->scope;
	scope.matrix = p->run->steps[i].matrix;
	scope.outputs = p->outputs;
	if (spec_render_step(spec, &scope, p->arena, &e) < 0) {
		end_step(p, i, STEP_FAILED, REASON_BAD_VALUE,
			arena_printf(p->arena, "%s: %s", e.field[0] == '/' ? e.field + 1 : e.field,
				e.msg));
		return false;
	}
	buf_init(&b, SPEC_MAX);
	field_encode(step_spec_fields, spec, &b);
	BUG_ON(buf_failed(&b)); /* commands and variables have a lower limit */
	p->spec_ids[p->specs_n] = p->run->steps[i].id;
	p->specs[p->specs_n++] = buf_keep(&b, p->arena);
	return true;
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

/* What was chosen has put out what the step does: for steps that become ready in the same turn. */
static void share_values(struct plan *p, struct str join, struct str chosen)
{
	const struct list *all = &p->outputs;
	struct str prefix = arena_printf(p->arena, "steps.%.*s.outputs.", STR_ARG(chosen));
	struct field_pair *pairs = arena_array_of(p->arena, struct field_pair, 2 * all->n + 1);
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct field_pair *v = list_at(all, struct field_pair, i);
		pairs[n++] = *v;
		if (str_starts(v->key, prefix))
			pairs[n++] = (struct field_pair){
				arena_printf(p->arena, "steps.%.*s.outputs.%.*s", STR_ARG(join),
					STR_ARG(str_slice(v->key, prefix.n, v->key.n))),
				v->value
			};
	}
	p->outputs = (struct list){ pairs, n };
}

static void take(struct plan *p, size_t i, struct str source)
{
	p->takers[p->takers_n] = p->run->steps[i].id;
	p->sources[p->takers_n++] = source;
}

static void join_best(struct plan *p, size_t i, const struct matrix_select *select)
{
	struct choice c = choose(p, i, select);
	char value[NUM_DOUBLE_MAX];

	if (c.missing.n != 0) {
		end_step(p, i, STEP_FAILED, REASON_METRIC_MISSING,
			arena_printf(p->arena, "%.*s has recorded no metric %.*s",
				STR_ARG(c.missing), STR_ARG(select->metric)));
	} else if (c.best == NULL) {
		end_step(p, i, STEP_FAILED, REASON_METRIC_MISSING,
			arena_printf(p->arena,
				"the metric %.*s is a number in none of the combinations",
				STR_ARG(select->metric)));
	} else {
		take(p, i, c.best->id);
		share_values(p, p->run->steps[i].name, c.best->name);
		end_step(p, i, STEP_SUCCEEDED, REASON_NONE,
			arena_printf(p->arena, "%.*s was chosen: %.*s %s, the %s of %zu",
				STR_ARG(c.best->name), STR_ARG(select->metric),
				num_format_double(value, c.best->metric),
				select->mode == SELECT_MIN ? "least" : "greatest", c.n));
	}
}

static void join_all(struct plan *p, size_t i)
{
	p->gatherers[p->gatherers_n++] = p->run->steps[i].id;
	end_step(p, i, STEP_SUCCEEDED, REASON_NONE, STR(""));
}

int plan_step_ready(struct plan *p, size_t i, struct err *e)
{
	const struct plan_step *s = &p->run->steps[i];
	struct step_spec spec;

	if (is_full(p, s)) /* it is looked at again when one of the others has ended */
		return 0;
	if (plan_spec_of(p, s, &spec, e) < 0)
		return -1;
	if (s->joins) {
		if (spec.matrix.has_select)
			join_best(p, i, &spec.matrix.select);
		else
			join_all(p, i);
		return 0;
	}
	if (s->late && !fill_in(p, i, &spec))
		return 0;
	if (str_is(spec.condition, "false")) {
		end_step(p, i, STEP_SKIPPED, REASON_CONDITION_FALSE,
			str_c(reason_sentence(REASON_CONDITION_FALSE)));
		return 0;
	}
	plan_set_step(p, i, &(struct plan_change){ .state = STEP_QUEUED });
	plan_queue_step(p, i, &spec, 0);
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
	if (p->run->look)
		engine_store_look(u, p->run->id, false);
}
