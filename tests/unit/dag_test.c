#include "server/core/dag.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <time.h>

/* "a; b: a; c: a b" */
static size_t parse(struct arena *a, const char *text, struct dag_step steps[16])
{
	struct str rest = str_c(text), one;
	size_t n = 0;

	while (str_next(&rest, ';', &one)) {
		ptrdiff_t colon = str_find_char(one, ':');
		struct str needs = colon < 0 ? STR("") : str_slice(one, (size_t)colon + 1, one.n);
		struct str *list = arena_array_of(a, struct str, 16), word;
		size_t k = 0;
		if (colon >= 0)
			one = str_slice(one, 0, (size_t)colon);
		while (str_next(&needs, ' ', &word))
			if (word.n != 0)
				list[k++] = word;
		steps[n++] = (struct dag_step){ str_trim(one), list, k };
	}
	return n;
}

static void fails(const char *text, const char *field, const char *msg)
{
	struct arena *a = arena_new(100000);
	struct dag_step steps[16];
	size_t n = parse(a, text, steps);
	struct dag d;
	struct err e = { 0 };

	assert_int_equal(dag_build(steps, n, a, &d, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.field, field);
	assert_string_equal(e.msg, msg);
	arena_drop(a);
}

void test_dag__names_the_fault(void **state)
{
	(void)state;
	fails("train; eval: trian", "/eval/needs/0",
		"there is no step 'trian'; did you mean 'train'?");
	fails("a; b: a b", "/b/needs/1", "a step cannot need itself");
	fails("a; b: a a", "/b/needs/1", "'a' is named twice");
	fails("a; b; a", "/a", "is the name of two steps");
	fails("a: b; b: a", "/a/needs", "steps need each other in a circle: a → b → a");
	fails("x; t: c; a: x c; b: a; c: b", "/c/needs",
		"steps need each other in a circle: c → b → a → c");
}

void test_dag__orders_by_position_where_it_can(void **state)
{
	static const uint32_t want[] = { 1, 0, 2, 4, 3 };
	struct arena *a = arena_new(100000);
	struct dag_step steps[16];
	struct dag d;
	struct err e;

	(void)state;
	size_t n = parse(a, "c: a; a; b; e: d c; d: b", steps);
	assert_int_equal(dag_build(steps, n, a, &d, &e), 0);
	assert_memory_equal(d.order, want, sizeof want);
	assert_int_equal(d.need_at[4] - d.need_at[3], 2);
	assert_int_equal(d.need[d.need_at[3]], 4);
	assert_int_equal(d.need[d.need_at[3] + 1], 0);
	assert_int_equal(dag_build(NULL, 0, a, &d, &e), 0);
	assert_int_equal(d.n, 0);
	arena_drop(a);
}

/* Each state is one letter: W Q A R F S X(failed) C K(skipped). */
static void advances(const char *graph, const char *states, bool cancelling, const char *want,
	enum dag_outcome outcome)
{
	static const char letters[] = "WQARFSXCK";
	struct arena *a = arena_new(100000);
	struct dag_step steps[16];
	size_t n = parse(a, graph, steps);
	struct dag_next next;
	char got[17] = { 0 };
	int s[16];
	struct dag d;
	struct err e;

	assert_int_equal(dag_build(steps, n, a, &d, &e), 0);
	for (size_t i = 0; i < n; i++) {
		s[i] = (int)(strchr(letters, states[i]) - letters);
		got[i] = '.';
	}
	dag_advance(&d, s, cancelling, a, &next);
	for (size_t i = 0; i < next.ready_n; i++)
		got[next.ready[i]] = 'Q';
	for (size_t i = 0; i < next.skip_n; i++)
		got[next.skip[i]] = 'K';
	for (size_t i = 0; i < next.cancel_n; i++)
		got[next.cancel[i]] = 'C';
	assert_string_equal(got, want);
	assert_int_equal(next.outcome, outcome);
	arena_drop(a);
}

void test_dag__advances(void **state)
{
	const char *chain = "a; b: a; c: b", *fork = "a; b; c: a b; d: b";

	(void)state;
	advances(chain, "WWW", false, "Q..", DAG_GOING);
	advances(chain, "RWW", false, "...", DAG_GOING);
	advances(chain, "SWW", false, ".Q.", DAG_GOING);
	advances(chain, "SSS", false, "...", DAG_SUCCEEDED);
	advances(chain, "XWW", false, ".KK", DAG_FAILED);
	advances(chain, "CWW", false, ".KK", DAG_CANCELLED);
	advances(chain, "SFW", false, "...", DAG_GOING);
	/* One branch fails, the other runs on. */
	advances(fork, "XSWW", false, "..KQ", DAG_GOING);
	advances(fork, "XSKS", false, "....", DAG_FAILED);
	advances(fork, "XCKK", false, "....", DAG_FAILED);
	advances(fork, "SQWW", false, "....", DAG_GOING);
	/* What was skipped fails nothing. */
	advances(fork, "KSWW", false, "..KQ", DAG_GOING);
	advances(fork, "KSKS", false, "....", DAG_SUCCEEDED);
	advances(fork, "KSKS", true, "....", DAG_SUCCEEDED);
	advances(fork, "KSCS", true, "....", DAG_CANCELLED);
	advances(chain, "KWW", false, ".KK", DAG_SUCCEEDED);
}

/* What joins others goes by those of them that were not skipped. */
void test_dag__joins(void **state)
{
	static const char *const states[] = { "SSS", "SKS", "KKS", "KKK", "SXK", "SWK", "CSS" };
	static const int want[] = { 'Q', 'Q', 'Q', 'K', 'K', '.', 'K' };
	static const char letters[] = "WQARFSXCK";
	struct arena *a = arena_new(100000);
	struct dag_step steps[16];
	size_t n = parse(a, "a; b; c; all: a b c", steps);
	struct dag_next next;
	struct dag d;
	struct err e;

	(void)state;
	steps[3].joins = true;
	assert_int_equal(dag_build(steps, n, a, &d, &e), 0);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		int s[4] = { 0 }, got = '.';
		for (size_t k = 0; k < 3; k++)
			s[k] = (int)(strchr(letters, states[i][k]) - letters);
		dag_advance(&d, s, false, a, &next);
		for (size_t k = 0; k < next.ready_n; k++)
			got = next.ready[k] == 3 ? 'Q' : got;
		for (size_t k = 0; k < next.skip_n; k++)
			got = next.skip[k] == 3 ? 'K' : got;
		assert_int_equal(got, want[i]);
	}
	arena_drop(a);
}

void test_dag__cancelling_starts_nothing_new(void **state)
{
	const char *fork = "a; b; c: a b; d: b";

	(void)state;
	advances(fork, "RQWW", true, ".CCC", DAG_GOING);
	advances(fork, "SQWW", true, ".CCC", DAG_CANCELLED);
	advances(fork, "XCCC", true, "....", DAG_CANCELLED);
	advances(fork, "AWWW", true, ".CCC", DAG_GOING);
	/* The cancellation came too late to change anything. */
	advances(fork, "SSSS", true, "....", DAG_SUCCEEDED);
}

void test_dag__has_limits(void **state)
{
	struct arena *a = arena_new(4 << 20);
	struct dag_step *steps = arena_array_of(a, struct dag_step, DAG_STEPS_MAX + 1);
	struct dag d;
	struct err e;

	(void)state;
	for (size_t i = 0; i <= DAG_STEPS_MAX; i++)
		steps[i].name = arena_printf(a, "s%04zu", i);
	assert_int_equal(dag_build(steps, DAG_STEPS_MAX + 1, a, &d, &e), -1);
	assert_string_equal(e.msg, "has 1001 steps; at most 1000 are allowed");
	assert_int_equal(dag_build(steps, DAG_STEPS_MAX, a, &d, &e), 0);

	/* One circle through all of them: the message is cut, never the check. */
	struct str *names = arena_array_of(a, struct str, DAG_STEPS_MAX);
	for (size_t i = 0; i < DAG_STEPS_MAX; i++) {
		names[i] = steps[(i + 1) % DAG_STEPS_MAX].name;
		steps[i].needs = &names[i];
		steps[i].needs_n = 1;
	}
	assert_int_equal(dag_build(steps, DAG_STEPS_MAX, a, &d, &e), -1);
	assert_true(str_starts(
		str_c(e.msg), STR("steps need each other in a circle: s0000 → s0001 → ")));
	assert_true(str_ends(str_c(e.msg), STR(" → …")));

	struct str *many = arena_array_of(a, struct str, DAG_EDGES_MAX + 1);
	for (size_t i = 0; i <= DAG_EDGES_MAX; i++)
		many[i] = steps[i % 100].name;
	steps[200].needs = many;
	steps[200].needs_n = DAG_EDGES_MAX + 1;
	assert_int_equal(dag_build(steps, DAG_STEPS_MAX, a, &d, &e), -1);
	assert_string_equal(e.msg, "has more than 10000 needs in all");
	arena_drop(a);
}

static uint32_t next_random(uint64_t *s)
{
	*s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*s >> 33);
}

/* Random graphs without circles, walked to their end with random results: every step ends, nothing
 * starts before its needs have succeeded, and nothing is skipped without a reason. */
void test_dag__random_walks_end(void **state)
{
	uint64_t seed = (uint64_t)time(NULL), r = seed;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (int round = 0; round < 200; round++) {
		struct arena *a = arena_new(1 << 20);
		size_t n = 1 + next_random(&r) % 12;
		struct dag_step steps[12] = { 0 };
		int states[12] = { 0 };
		struct dag_next next = { .outcome = DAG_GOING };
		struct dag d;
		struct err e;
		for (size_t i = 0; i < n; i++)
			steps[i].name = arena_printf(a, "s%zu", i);
		for (size_t i = 0; i < n; i++) {
			struct str *needs = arena_array_of(a, struct str, n);
			size_t k = 0;
			/* Needs point backwards along a random turn of the positions. */
			for (size_t j = 0; j < n; j++)
				if ((j * 5 + 3) % 13 < (i * 5 + 3) % 13 && next_random(&r) % 3 == 0)
					needs[k++] = steps[j].name;
			steps[i].needs = needs;
			steps[i].needs_n = k;
		}
		assert_int_equal(dag_build(steps, n, a, &d, &e), 0);
		for (size_t turn = 0; next.outcome == DAG_GOING; turn++) {
			assert_true(turn <= n + 1);
			dag_advance(&d, states, false, a, &next);
			for (size_t i = 0; i < next.ready_n; i++) {
				uint32_t s = next.ready[i];
				for (uint32_t k = d.need_at[s]; k < d.need_at[s + 1]; k++)
					assert_int_equal(states[d.need[k]], FSM_STEP_SUCCEEDED);
				states[s] = FSM_STEP_QUEUED;
			}
			for (size_t i = 0; i < next.skip_n; i++)
				states[next.skip[i]] = FSM_STEP_SKIPPED;
			/* One of the queued steps ends. */
			size_t from = next_random(&r) % n;
			for (size_t i = 0; i < n; i++) {
				int *s = &states[(from + i) % n];
				if (*s != FSM_STEP_QUEUED)
					continue;
				*s = next_random(&r) % 4 == 0 ? FSM_STEP_FAILED
							      : FSM_STEP_SUCCEEDED;
				break;
			}
		}
		arena_drop(a);
	}
}
