/* What becomes of a step when all that it needs has succeeded. */
#include "api/run.h"
#include "lib/json/field.h"
#include "server/sched/plan_inside.h"
#include "server/sched/spec.h"

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
	if (spec_render_step(spec, p->run->scope, p->arena, &e) < 0) {
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

int plan_step_ready(struct plan *p, size_t i, struct err *e)
{
	const struct plan_step *s = &p->run->steps[i];
	struct step_spec spec;

	if (plan_spec_of(p, s, &spec, e) < 0)
		return -1;
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

void plan_add_ready(struct db_unit *u, const struct plan *p)
{
	engine_store_step_specs(u, p->spec_ids, p->specs, p->specs_n);
	if (p->run->look)
		engine_store_look(u, p->run->id, false);
}
