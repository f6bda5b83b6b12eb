/* server/sched/plan.h: steps that are looked up in the cache before they are queued. */
#include "api/pipeline.h"
#include "server/sched/plan.h"
#include "server/sched/spec.h"
#include "tests/unit/unit.h"

enum { STEPS = 3 };

struct planned {
	struct arena *a;
	struct plan_run run;
	struct plan_step steps[STEPS];
	struct step_spec specs[STEPS];
	struct str need[STEPS];
	struct plan_cached found, none;
	struct plan *plan;
};

/* s0 ← s1 ← s2; the first two say cache. */
static void begin(struct planned *p)
{
	static const char *const names[] = { "s0", "s1", "s2" };

	*p = (struct planned){ .a = arena_new(1 << 22),
		.found = { STR("key"), STR("st_old"), STR("run_old") },
		.none = { .key = STR("key") } };
	for (size_t i = 0; i < STEPS; i++) {
		p->specs[i] = (struct step_spec){ .run = STR("[\"true\"]"), .has_cache = i < 2 };
		p->need[i] = str_c(names[i > 0 ? i - 1 : 0]);
		p->steps[i] = (struct plan_step){ .id = str_c(names[i]),
			.name = str_c(names[i]),
			.parsed = &p->specs[i],
			.needs = { &p->need[i], i > 0 ? 1 : 0 },
			.state = STEP_WAITING };
	}
	p->run = (struct plan_run){ .id = STR("run"),
		.project_id = STR("prj"),
		.admitted = true,
		.state = RUN_QUEUED,
		.steps = p->steps,
		.n = STEPS };
}

static void make(struct planned *p)
{
	struct err e;

	assert_int_equal(plan_make(&p->run, 1000000, 1, p->a, &p->plan, &e), 0);
	assert_non_null(p->plan);
}

static void check_states(const struct planned *p, int a, int b, int c)
{
	assert_int_equal(plan_step_state(p->plan, 0), a);
	assert_int_equal(plan_step_state(p->plan, 1), b);
	assert_int_equal(plan_step_state(p->plan, 2), c);
}

void test_plan_cache__a_step_is_looked_up_before_it_is_queued(void **state)
{
	struct planned p;
	struct list wants;

	(void)state;
	begin(&p);
	make(&p);
	assert_true(plan_cache_wants(p.plan, &wants));
	assert_int_equal(wants.n, 1);
	assert_int_equal(list_at(&wants, struct plan_cache_want, 0)->step, 0);
	check_states(&p, STEP_WAITING, STEP_WAITING, STEP_WAITING);
	p.run.cache_looked = true;
	p.steps[0].cached = &p.none;
	make(&p);
	assert_false(plan_cache_wants(p.plan, &wants));
	assert_false(plan_leaves(p.plan));
	check_states(&p, STEP_QUEUED, STEP_WAITING, STEP_WAITING);
	assert_int_equal(plan_queue(p.plan)->n, 1);
	p.none.key = STR("");
	make(&p);
	check_states(&p, STEP_QUEUED, STEP_WAITING, STEP_WAITING);
	arena_drop(p.a);
}

void test_plan_cache__what_is_found_is_not_run(void **state)
{
	struct planned p;
	struct list wants;

	(void)state;
	begin(&p);
	p.run.cache_looked = true;
	p.steps[0].cached = &p.found;
	make(&p);
	check_states(&p, STEP_SUCCEEDED, STEP_WAITING, STEP_WAITING);
	assert_int_equal(plan_queue(p.plan)->n, 0);
	/* Nothing runs, and the next one can be looked up only once this is written. */
	assert_int_equal(plan_run_state(p.plan), RUN_QUEUED);
	assert_false(plan_cache_wants(p.plan, &wants));
	assert_true(plan_leaves(p.plan));
	arena_drop(p.a);
}

void test_plan_cache__what_needs_it_is_queued_at_once_unless_it_is_filled_in(void **state)
{
	struct planned p;

	(void)state;
	begin(&p);
	p.run.cache_looked = true;
	p.steps[0].cached = &p.found;
	p.specs[1].has_cache = false;
	make(&p);
	check_states(&p, STEP_SUCCEEDED, STEP_QUEUED, STEP_WAITING);
	assert_false(plan_leaves(p.plan));
	p.steps[1].late = true;
	make(&p);
	check_states(&p, STEP_SUCCEEDED, STEP_WAITING, STEP_WAITING);
	assert_true(plan_leaves(p.plan));
	arena_drop(p.a);
}

void test_plan_cache__a_run_of_nothing_but_hits_ends_without_running(void **state)
{
	struct planned p;

	(void)state;
	begin(&p);
	p.run.cache_looked = true;
	p.steps[0].state = p.steps[1].state = STEP_SUCCEEDED;
	p.steps[0].reused = p.steps[1].reused = true;
	p.specs[2].has_cache = true;
	p.steps[2].cached = &p.found;
	make(&p);
	check_states(&p, STEP_SUCCEEDED, STEP_SUCCEEDED, STEP_SUCCEEDED);
	assert_int_equal(plan_run_state(p.plan), RUN_SUCCEEDED);
	assert_int_equal(plan_events(p.plan)->n, 2); /* step.succeeded, run.succeeded */
	arena_drop(p.a);
}

void test_plan_cache__what_needs_a_join_is_looked_up_once_that_is_written(void **state)
{
	struct planned p;
	struct list wants;

	(void)state;
	/* s0 is the only combination of s1, of which s2 needs what was chosen, or all. */
	for (int selects = 0; selects < 2; selects++) {
		begin(&p);
		p.specs[0].has_cache = p.specs[1].has_cache = false;
		p.specs[2].has_cache = true;
		p.specs[1].matrix.has_select = selects;
		p.steps[0].state = STEP_SUCCEEDED;
		p.steps[0].matrix_of = p.steps[1].name;
		p.steps[0].has_metric = true;
		p.steps[0].metric = 1;
		p.steps[1].joins = true;
		make(&p);
		check_states(&p, STEP_SUCCEEDED, STEP_SUCCEEDED, STEP_WAITING);
		assert_false(plan_cache_wants(p.plan, &wants));
		assert_true(plan_leaves(p.plan));
		p.steps[1].state = STEP_SUCCEEDED;
		make(&p);
		assert_true(plan_cache_wants(p.plan, &wants));
		p.steps[1].state = STEP_WAITING;
		p.specs[2].has_cache = false;
		make(&p);
		check_states(&p, STEP_SUCCEEDED, STEP_SUCCEEDED, STEP_QUEUED);
		arena_drop(p.a);
	}
}

void test_plan_cache__only_what_needs_a_hit_is_left(void **state)
{
	struct planned p;
	struct spec_scope scope = { .run_id = STR("run") };

	(void)state;
	begin(&p);
	/* s0 and s1 stand apart, both are found; s2 joins s1. */
	p.run.cache_looked = true;
	p.run.scope = &scope;
	p.steps[0].cached = p.steps[1].cached = &p.found;
	p.steps[0].late = p.steps[1].late = true;
	p.steps[1].needs.n = 0;
	p.steps[2].joins = true;
	make(&p);
	check_states(&p, STEP_SUCCEEDED, STEP_SUCCEEDED, STEP_WAITING);
	assert_true(plan_leaves(p.plan));
	p.need[2] = STR("s0");
	p.steps[1].cached = NULL;
	p.specs[1].has_cache = false;
	p.steps[1].joins = p.steps[2].joins = p.steps[1].late = false;
	p.steps[2].late = true;
	make(&p);
	check_states(&p, STEP_SUCCEEDED, STEP_QUEUED, STEP_WAITING);
	assert_true(plan_leaves(p.plan));
	arena_drop(p.a);
}

void test_plan_cache__a_look_takes_only_so_much(void **state)
{
	struct planned p;
	struct plan_cached other;

	(void)state;
	begin(&p);
	p.run.cache_looked = true;
	p.steps[1].needs.n = 0;
	other = p.found;
	p.found.rows = 9000;
	other.rows = 1000;
	p.steps[0].cached = &p.found;
	p.steps[1].cached = &other;
	make(&p);
	check_states(&p, STEP_SUCCEEDED, STEP_SUCCEEDED, STEP_QUEUED);
	assert_int_equal(plan_cached_rows(p.plan), 10000);
	assert_false(plan_leaves(p.plan));
	other.rows = 1001;
	make(&p);
	check_states(&p, STEP_SUCCEEDED, STEP_WAITING, STEP_WAITING);
	assert_int_equal(plan_cached_rows(p.plan), 9000);
	assert_true(plan_leaves(p.plan));
	/* One alone may have more, or it would never be taken. */
	p.steps[0].state = STEP_SUCCEEDED;
	p.steps[0].cached = NULL;
	other.rows = 1000000;
	make(&p);
	check_states(&p, STEP_SUCCEEDED, STEP_SUCCEEDED, STEP_QUEUED);
	p.steps[1].cached = &p.none;
	make(&p);
	assert_int_equal(plan_cached_rows(p.plan), -1);
	arena_drop(p.a);
}
