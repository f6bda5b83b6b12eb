/* server/sched/plan.h: steps that are filled in with what others have put out, a lot of it. */
#include "api/pipeline.h"
#include "lib/base/map.h"
#include "server/sched/plan.h"
#include "server/sched/spec.h"
#include "tests/unit/unit.h"

enum { STEPS = 257, VALUE = 64 << 10 };

struct planned {
	struct arena *a;
	struct plan_run run;
	struct plan_step steps[STEPS];
	struct step_spec specs[STEPS];
	struct field_pair env;
	struct str need;
	struct spec_scope scope;
	struct map *values;
	struct plan_value ok, text;
	struct plan *plan;
};

/* The first step has succeeded and put out what all others name. */
static struct planned *begin(struct str ok)
{
	struct arena *a = arena_new(128 << 20);
	struct planned *p = arena_new_of(a, struct planned);
	char *text = arena_alloc(a, VALUE);

	p->a = a;
	p->need = STR("check");
	p->env = (struct field_pair){ STR("TEXT"), STR("${steps.check.outputs.text}") };
	p->scope = (struct spec_scope){ .run_id = STR("run") };
	p->values = map_new();
	p->ok = (struct plan_value){ .text = ok, .size = (int64_t)ok.n, .here = true };
	memset(text, 'x', VALUE);
	p->text = (struct plan_value){ .text = { text, VALUE }, .size = VALUE, .here = true };
	(void)map_put(p->values, STR("steps.check.outputs.ok"), &p->ok);
	(void)map_put(p->values, STR("steps.check.outputs.text"), &p->text);
	for (size_t i = 0; i < STEPS; i++) {
		struct str name = arena_printf(p->a, "s%zu", i);
		p->specs[i] = (struct step_spec){ .run = STR("[\"true\"]"),
			.env = { &p->env, 1 },
			.condition = STR("${steps.check.outputs.ok}") };
		p->steps[i] = (struct plan_step){ .id = name,
			.name = i == 0 ? p->need : name,
			.parsed = &p->specs[i],
			.needs = { &p->need, i > 0 ? 1 : 0 },
			.late = i > 0,
			.state = i > 0 ? STEP_WAITING : STEP_SUCCEEDED };
	}
	p->run = (struct plan_run){ .id = STR("run"),
		.project_id = STR("prj"),
		.admitted = true,
		.state = RUN_RUNNING,
		.scope = &p->scope,
		.values = p->values,
		.steps = p->steps,
		.n = STEPS };
	return p;
}

static void end(struct planned *p)
{
	map_free(p->values);
	arena_drop(p->a);
}

/* How many steps are in the state after one more look, which finds what the one before has left. */
static size_t look(struct planned *p, enum step_state state)
{
	struct err e;
	size_t n = 0;

	assert_int_equal(plan_make(&p->run, 1000000, 1, p->a, &p->plan, &e), 0);
	assert_non_null(p->plan);
	for (size_t i = 1; i < STEPS; i++) {
		p->steps[i].state = plan_step_state(p->plan, i);
		n += p->steps[i].state == (int)state;
	}
	return n;
}

void test_plan_late__skipped_steps_hold_nothing(void **state)
{
	struct planned *p;
	size_t before = 0, looks = 0;

	(void)state;
	p = begin(STR("false"));
	do {
		size_t now = look(p, STEP_SKIPPED);
		/* Not all at once, but each look goes on and says whether there is to be another.
		 */
		assert_true(now > before && now - before < 200);
		assert_int_equal(plan_leaves(p->plan), now < STEPS - 1);
		before = now;
		looks++;
	} while (plan_leaves(p->plan));
	assert_true(looks == 2);
	assert_int_equal(before, STEPS - 1);
	assert_int_equal(plan_run_state(p->plan), RUN_SUCCEEDED);
	end(p);
}

void test_plan_late__steps_wait_while_others_hold_much(void **state)
{
	struct planned *p;
	struct str spec;
	struct err e;

	(void)state;
	p = begin(STR("true"));
	size_t queued = look(p, STEP_QUEUED);
	assert_true(queued > 100 && queued < 200);
	assert_false(plan_leaves(p->plan));
	spec = arena_printf(
		p->a, "{\"name\": \"s\", \"env\": {\"TEXT\": \"%.*s\"}}", STR_ARG(p->text.text));
	for (size_t i = 1; i < STEPS; i++)
		if (p->steps[i].state == STEP_QUEUED) {
			p->steps[i].late = false;
			p->steps[i].parsed = NULL;
			p->steps[i].spec = spec;
		}
	p->run.look = true;
	assert_int_equal(look(p, STEP_QUEUED), queued);
	/* The end of all of them is seen in one look: nothing else would begin the next ones. */
	for (size_t i = 1; i < STEPS; i++)
		if (p->steps[i].state == STEP_QUEUED) {
			p->steps[i].state = STEP_RUNNING;
			p->steps[i].attempt_state = ATTEMPT_SUCCEEDED;
		}
	assert_int_equal(plan_make(&p->run, 1000000, 1, p->a, &p->plan, &e), 0);
	assert_int_equal(plan_queue(p->plan)->n, STEPS - 1 - queued);
	end(p);
}
