#include "api/run.h"
#include "lib/base/fs.h"
#include "server/core/fsm.h"
#include "server/core/retry.h"
#include "tests/unit/unit.h"

static const struct fsm *const machines[] = { &fsm_run, &fsm_step, &fsm_attempt };

void test_fsm__has_the_states_of_the_api(void **state)
{
	static const char *const *const names[] = { run_state_names, step_state_names,
		attempt_state_names };
	static const int counts[] = { RUN_STATE_COUNT, STEP_STATE_COUNT, ATTEMPT_STATE_COUNT };

	(void)state;
	for (size_t m = 0; m < 3; m++) {
		assert_int_equal(machines[m]->states_n, counts[m]);
		for (int s = 0; s < counts[m]; s++) {
			assert_string_equal(fsm_name(machines[m], s), names[m][s]);
			assert_int_equal(fsm_parse(machines[m], str_c(names[m][s])), s);
		}
		assert_string_equal(fsm_name(machines[m], counts[m]), "?");
		assert_int_equal(fsm_parse(machines[m], STR("Running")), -1);
	}
	assert_int_equal((int)RETRY_BLAME_USER, (int)BLAME_USER);
	assert_int_equal((int)RETRY_BLAME_INFRA, (int)BLAME_INFRA);
	assert_int_equal((int)RETRY_BLAME_CANCEL, (int)BLAME_CANCEL);
}

/* The names between the parentheses of "CREATE TABLE <name> (… CHECK (state IN (…". */
static void check_constraint(struct str sql, const struct fsm *f)
{
	char head[64];
	struct str list, name;
	int n = 0;

	assert_true(str_print(head, sizeof head, "CREATE TABLE %s (", f->name));
	ptrdiff_t at = str_find(sql, str_c(head));
	assert_true(at >= 0);
	sql = str_slice(sql, (size_t)at, sql.n);
	at = str_find(sql, STR("CHECK (state IN ("));
	assert_true(at >= 0 && at < str_find(sql, STR("\n);")));
	list = str_slice(sql, (size_t)at + 17, sql.n);
	list = str_slice(list, 0, (size_t)str_find_char(list, ')'));
	while (str_next(&list, ',', &name)) {
		name = str_trim(name);
		assert_true(name.n > 2 && name.p[0] == '\'' && name.p[name.n - 1] == '\'');
		assert_int_equal(fsm_parse(f, str_slice(name, 1, name.n - 2)), n);
		n++;
	}
	assert_int_equal(n, f->states_n);
}

void test_fsm__has_the_states_of_the_schema(void **state)
{
	struct buf sql;
	struct err e;

	(void)state;
	buf_init(&sql, 1 << 20);
	assert_int_equal(fs_read("schema/migrations/0001_init.sql", &sql, &e), 0);
	for (size_t m = 0; m < 3; m++)
		check_constraint(buf_str(&sql), machines[m]);
	buf_done(&sql);
}

void test_fsm__every_pair_leads_to_a_state_or_nowhere(void **state)
{
	(void)state;
	for (size_t m = 0; m < 3; m++) {
		const struct fsm *f = machines[m];
		for (int s = 0; s < f->states_n; s++) {
			for (int e = 0; e < f->events_n; e++) {
				int to = fsm_next(f, s, e);
				assert_in_range(to + 1, 0, (uintmax_t)f->states_n);
				/* What has ended stays as it is. */
				if (fsm_ended(f, s) && to != -1)
					assert_int_equal(to, s);
				/* A repeated event changes nothing more. */
				if (to != -1)
					assert_int_equal(fsm_next(f, to, e), to);
			}
		}
		assert_int_equal(fsm_next(f, -1, 0), -1);
		assert_int_equal(fsm_next(f, f->states_n, 0), -1);
		assert_int_equal(fsm_next(f, 0, -1), -1);
		assert_int_equal(fsm_next(f, 0, f->events_n), -1);
		assert_false(fsm_ended(f, -1));
		assert_false(fsm_ended(f, f->states_n));
	}
}

/* From every state that has not ended an end can be reached, and every state from the start. */
void test_fsm__nothing_is_a_trap_or_out_of_reach(void **state)
{
	(void)state;
	for (size_t m = 0; m < 3; m++) {
		const struct fsm *f = machines[m];
		bool reached[16] = { false }, ends[16] = { false };
		reached[f->start] = true;
		for (int s = f->first_end; s < f->states_n; s++)
			ends[s] = true;
		for (int round = 0; round < f->states_n; round++)
			for (int s = 0; s < f->states_n; s++)
				for (int e = 0; e < f->events_n; e++) {
					int to = fsm_next(f, s, e);
					if (to < 0)
						continue;
					reached[to] = reached[to] || reached[s];
					ends[s] = ends[s] || ends[to];
				}
		for (int s = 0; s < f->states_n; s++)
			if (!reached[s] || !ends[s])
				fail_msg("%s: %s", f->name, fsm_name(f, s));
	}
}

void test_fsm__a_report_leads_to_the_state_that_it_reports(void **state)
{
	(void)state;
	assert_int_equal((int)FSM_ATTEMPT_STATES, (int)FSM_ATTEMPT_EVENTS);
	for (int s = 0; s < FSM_ATTEMPT_STATES; s++)
		for (int e = 0; e < FSM_ATTEMPT_EVENTS; e++) {
			int to = fsm_next(&fsm_attempt, s, e);
			assert_true(to == -1 || to == e);
			/* An open attempt never goes back; it may jump ahead. */
			assert_int_equal(to == e, fsm_ended(&fsm_attempt, s) ? e == s : e >= s);
		}
	assert_int_equal(fsm_next(&fsm_run, FSM_RUN_FINISHING, FSM_RUN_CANCEL), -1);
	assert_int_equal(fsm_next(&fsm_step, FSM_STEP_RUNNING, FSM_STEP_RETRY), FSM_STEP_QUEUED);
	assert_int_equal(fsm_next(&fsm_step, FSM_STEP_FAILED, FSM_STEP_RETRY), -1);
}

void test_fsm__prints_a_diagram(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 10000);
	fsm_print(&fsm_run, &out);
	assert_false(buf_failed(&out));
	assert_string_equal(out.p, "stateDiagram-v2\n"
				   "\t[*] --> queued\n"
				   "\tqueued --> running: start\n"
				   "\tqueued --> finishing: finish\n"
				   "\tqueued --> succeeded: succeed\n"
				   "\tqueued --> failed: fail\n"
				   "\tqueued --> cancelled: cancel\n"
				   "\trunning --> finishing: finish\n"
				   "\trunning --> succeeded: succeed\n"
				   "\trunning --> failed: fail\n"
				   "\trunning --> cancelled: cancel\n"
				   "\tfinishing --> succeeded: succeed\n"
				   "\tfinishing --> failed: fail\n"
				   "\tsucceeded --> [*]\n"
				   "\tfailed --> [*]\n"
				   "\tcancelled --> [*]\n");
	buf_done(&out);
}

void test_fsm__the_documented_diagrams_are_current(void **state)
{
	struct buf doc, one;
	struct err e;

	(void)state;
	buf_init(&doc, 1 << 20);
	buf_init(&one, 1 << 16);
	assert_int_equal(fs_read("docs/states.md", &doc, &e), 0);
	for (size_t m = 0; m < 3; m++) {
		buf_clear(&one);
		buf_adds(&one, "```mermaid\n");
		fsm_print(machines[m], &one);
		buf_adds(&one, "```\n");
		if (str_find(buf_str(&doc), buf_str(&one)) < 0)
			fail_msg("docs/states.md: the diagram of a %s must be\n%s",
				machines[m]->name, one.p);
	}
	buf_done(&doc);
	buf_done(&one);
}

void test_fsm__every_reason_is_documented(void **state)
{
	struct buf doc;
	struct err e;
	char name[80];

	(void)state;
	buf_init(&doc, 1 << 20);
	assert_int_equal(fs_read("docs/states.md", &doc, &e), 0);
	for (int i = REASON_NONE + 1; i < REASON_COUNT; i++) {
		(void)str_print(name, sizeof name, "`%s`", reason_names[i]);
		if (str_find(buf_str(&doc), str_c(name)) < 0)
			fail_msg("docs/states.md does not say what %s rests on", name);
	}
	buf_done(&doc);
}
