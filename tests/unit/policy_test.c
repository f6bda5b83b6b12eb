#include "server/core/policy.h"
#include "tests/unit/unit.h"

#include <math.h>

/* Quarters from 2004 on, as the demo has them. */
static void quarter(int i, struct policy_window *w)
{
	struct clock_span q = { .months = 3 };
	int64_t at = clock_days((struct clock_date){ 2004, 1, 1 }) * CLOCK_DAY;

	for (int k = 0; k < i; k++)
		at = clock_add(at, q, 1);
	memset(w, 0, sizeof(*w));
	w->start = at;
	w->end = clock_add(at, q, 1);
	w->rows = w->labelled = 91;
	w->has_performance = true;
	w->champion = 1.31;
}

static struct policy_rules demo_rules(void)
{
	struct policy_rules r = { .metric = STATS_MAE,
		.min_samples = 60,
		.cooldown = 4,
		.backoff = 2,
		.has_budget = true,
		.budget_runs = 1,
		.budget_per = { .us = 180 * CLOCK_DAY },
		.guard_windows = 3,
		.guard_rollback = true,
		.has_pipeline = true };

	r.cause[POLICY_PERFORMANCE] =
		(struct policy_rule){ true, POLICY_RETRAIN, 1.5, 1.3, 2, 3, 1 };
	r.cause[POLICY_DRIFT] = (struct policy_rule){ true, POLICY_ALERT, 0.2, 0.1, 2, 3, 2 };
	r.cause[POLICY_DATA_QUALITY] = (struct policy_rule){ .used = true, .action = POLICY_BLOCK };
	return r;
}

/* Plays one window with this error. */
static struct policy_outcome play(
	const struct policy_rules *r, struct policy_state *s, int at, double error)
{
	struct policy_window w;
	static struct policy_decision d;

	quarter(at, &w);
	w.performance = error;
	policy_apply(r, s, &w, &d);
	assert_true(policy_state_sound(s));
	return d.cause[POLICY_PERFORMANCE];
}

void test_policy__the_first_hot_window_warns_and_the_second_of_three_retrains(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_outcome o;
	struct policy_state s;

	(void)state;
	policy_init(&s);
	for (int i = 0; i < 15; i++) {
		o = play(&r, &s, i, 1.4);
		assert_int_equal(o.action, POLICY_RECORD);
		assert_int_equal(o.after, POLICY_FINE);
	}
	assert_string_equal(o.sentence,
		"The error (mae) of window 2007-07-01 to 2007-10-01 was 1.4, 1.07 times the "
		"champion's 1.31; the limit is 1.5 times: all is well.");
	o = play(&r, &s, 15, 2.2);
	assert_true(o.warned && o.fired);
	assert_int_equal(o.action, POLICY_WARN);
	assert_string_equal(o.sentence,
		"The error (mae) of window 2007-10-01 to 2008-01-01 was 2.2, 1.68 times the "
		"champion's 1.31; the limit is 1.5 times; hot in 1 of the last 3 windows: this is "
		"a "
		"warning; with 1 more, retraining is due.");
	o = play(&r, &s, 16, 3.42);
	assert_true(o.alerted && o.fired);
	assert_int_equal(o.action, POLICY_RETRAIN);
	assert_string_equal(o.sentence,
		"The error (mae) of window 2008-01-01 to 2008-04-01 was 3.42, 2.61 times the "
		"champion's 1.31; the limit is 1.5 times; hot in 2 of the last 3 windows: "
		"retraining "
		"is started.");
	assert_true(s.open);
	assert_int_equal(s.cooldown, 4);
}

void test_policy__exactly_the_limit_is_not_hot(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_state s;
	struct policy_window w;
	struct policy_decision d;

	(void)state;
	policy_init(&s);
	quarter(0, &w);
	w.champion = 2;
	w.performance = 3;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_PERFORMANCE].verdict, POLICY_CALM);
	w.performance = 3.0001;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_PERFORMANCE].verdict, POLICY_HOT);
}

void test_policy__one_retraining_at_a_time(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_outcome o;
	struct policy_state s;

	(void)state;
	policy_init(&s);
	s.open = true;
	play(&r, &s, 0, 3);
	o = play(&r, &s, 1, 3);
	assert_false(o.fired);
	assert_int_equal(o.stop, POLICY_STOP_OPEN);
	assert_string_equal(policy_stop_name(o.stop), "open");
	assert_non_null(strstr(o.sentence, "retraining is due, but another retraining"));
	/* It waits, and fires once that is over, but only in a hot window. */
	policy_failed(&r, &s);
	o = play(&r, &s, 2, 1.9);
	assert_int_equal(o.verdict, POLICY_CALM);
	assert_int_equal(o.action, POLICY_RECORD);
	o = play(&r, &s, 3, 3);
	assert_true(o.fired);
	assert_int_equal(o.action, POLICY_RETRAIN);
}

void test_policy__a_refused_challenger_lengthens_the_cooldown(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_outcome o;
	struct policy_state s;
	int at = 2;

	(void)state;
	r.has_budget = false;
	policy_init(&s);
	play(&r, &s, 0, 3);
	assert_true(play(&r, &s, 1, 3).fired);
	policy_refused(&r, &s);
	assert_int_equal(s.cooldown, 8);
	for (int i = 0; i < 7; i++) {
		o = play(&r, &s, at++, 3);
		assert_int_equal(o.stop, POLICY_STOP_COOLDOWN);
	}
	assert_non_null(
		strstr(o.sentence, "the cooldown lasts 1 more window, after 1 refused challenger"));
	o = play(&r, &s, at++, 3);
	assert_true(o.fired);
	policy_refused(&r, &s);
	assert_int_equal(s.cooldown, 16);
	for (int i = 0; i < 60; i++)
		policy_refused(&r, &s);
	assert_int_equal(s.cooldown, POLICY_COOLDOWN_MAX);
	assert_true(policy_state_sound(&s));
	policy_promoted(&r, &s, false, 0);
	assert_int_equal(s.refused, 0);
}

void test_policy__the_budget_counts_in_the_datas_time(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_outcome o;
	struct policy_state s;

	(void)state;
	r.cooldown = 0;
	r.budget_per = (struct clock_span){ .us = 365 * CLOCK_DAY };
	policy_init(&s);
	play(&r, &s, 0, 3);
	assert_true(play(&r, &s, 1, 3).fired);
	policy_refused(&r, &s);
	for (int at = 2; at < 5; at++) {
		o = play(&r, &s, at, 3);
		assert_int_equal(o.stop, POLICY_STOP_BUDGET);
	}
	assert_non_null(strstr(o.sentence, "the budget of 1 retraining in this period is used up"));
	assert_true(play(&r, &s, 5, 3).fired);
	r.budget_runs = 0;
	policy_refused(&r, &s);
	assert_int_equal(play(&r, &s, 30, 3).stop, POLICY_STOP_BUDGET);
	/* The list of starts never overflows. */
	r.has_budget = false;
	for (int i = 31; i < 200; i++) {
		policy_failed(&r, &s);
		play(&r, &s, i, 3);
	}
	assert_int_equal(s.n_started, POLICY_BUDGET_MAX);
}

void test_policy__hysteresis_keeps_the_alert_until_it_is_clearly_over(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_outcome o;
	struct policy_state s;

	(void)state;
	r.cause[POLICY_PERFORMANCE].clear_windows = 2;
	policy_init(&s);
	play(&r, &s, 0, 3);
	play(&r, &s, 1, 3);
	policy_failed(&r, &s);
	s.cause[POLICY_PERFORMANCE].due = false;
	o = play(&r, &s, 2, 1.31 * 1.4); /* below the limit, not below clear */
	assert_int_equal(o.after, POLICY_ALERTED);
	assert_non_null(strstr(o.sentence, "the alert stands until it is below 1.3"));
	o = play(&r, &s, 3, 1.31);
	assert_non_null(strstr(o.sentence, "calm in 1 of the 2 windows that end the alert"));
	o = play(&r, &s, 4, 3);
	assert_int_equal(o.action, POLICY_RECORD);
	assert_non_null(
		strstr(o.sentence, "the alert stands, and what it calls for has been done"));
	play(&r, &s, 5, 1.31);
	o = play(&r, &s, 6, 1.31);
	assert_true(o.resolved);
	assert_int_equal(o.after, POLICY_FINE);
	assert_int_equal(s.cause[POLICY_PERFORMANCE].history, 0);
	/* A warning stands until it is clear as well. */
	play(&r, &s, 7, 3);
	assert_int_equal(play(&r, &s, 8, 1.31 * 1.4).after, POLICY_WARNED);
	assert_int_equal(play(&r, &s, 9, 1.31).after, POLICY_FINE);
}

void test_policy__small_and_unlabelled_windows_decide_nothing(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_state s, before;
	struct policy_window w;
	struct policy_decision d;

	(void)state;
	policy_init(&s);
	play(&r, &s, 0, 3);
	s.cooldown = 3;
	before = s;
	quarter(1, &w);
	w.performance = 9;
	w.labelled = 59;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_PERFORMANCE].verdict, POLICY_INSUFFICIENT);
	assert_string_equal(d.cause[POLICY_PERFORMANCE].sentence,
		"There are 59 labelled rows in window 2004-04-01 to 2004-07-01, fewer than the 60 "
		"that a verdict needs: nothing is decided.");
	w.labelled = 1;
	policy_apply(&r, &s, &w, &d);
	assert_non_null(
		strstr(d.cause[POLICY_PERFORMANCE].sentence, "There is 1 labelled row in "));
	s.cooldown = 2;
	assert_true(isnan(d.cause[POLICY_PERFORMANCE].score));
	assert_memory_equal(&s.cause[POLICY_PERFORMANCE], &before.cause[POLICY_PERFORMANCE],
		sizeof(s.cause[0]));
	assert_int_equal(s.cooldown, 2);
	w.has_performance = false;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_PERFORMANCE].verdict, POLICY_UNTESTED);
	assert_false(d.retrain);
	w.has_performance = true;
	w.labelled = 91;
	w.performance = (double)NAN;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_PERFORMANCE].verdict, POLICY_UNTESTED);
	r.cause[POLICY_PERFORMANCE].used = false;
	w.performance = 9;
	policy_apply(&r, &s, &w, &d);
	assert_string_equal(
		d.cause[POLICY_PERFORMANCE].sentence, "The monitor has no rule for performance.");
}

static struct policy_feature feature(const char *name, double value, double weight)
{
	return (struct policy_feature){ .name = str_c(name),
		.tested = !isnan(value),
		.value = value,
		.threshold = 0.2,
		.critical = 0.05,
		.seasonal = (double)NAN,
		.seasonal_critical = (double)NAN,
		.weight = weight };
}

void test_policy__drift_alerts_and_names_the_features(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_feature f[] = { feature("temp", 0.3, 1), feature("rain", 5.8, 1),
		feature("wind", 0.01, 2), feature("snow", NAN, 1) };
	struct policy_state s;
	struct policy_window w;
	struct policy_decision d;

	(void)state;
	policy_init(&s);
	for (int i = 0; i < 2; i++) {
		quarter(i, &w);
		w.has_performance = false;
		w.features = f;
		w.n_features = 4;
		policy_apply(&r, &s, &w, &d);
	}
	assert_int_equal(d.by, POLICY_DRIFT);
	assert_int_equal(d.action, POLICY_ALERT);
	assert_true(d.fired && !d.retrain);
	assert_string_equal(d.cause[POLICY_DRIFT].sentence,
		"2 of 3 features drifted in window 2004-04-01 to 2004-07-01, a weighted share of "
		"0.5; "
		"the limit is 0.2; most of all rain 5.8 (limit 0.2), temp 0.3 (limit 0.2); hot in "
		"2 of "
		"the last 3 windows: an alert is raised.");
	/* Below its critical value nothing has drifted; nor when the season was like this before.
	 */
	f[0].critical = 0.31;
	f[1].seasonal = 0.1;
	quarter(2, &w);
	w.features = f;
	w.n_features = 4;
	w.has_performance = false;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_DRIFT].drifted, 0);
	assert_int_equal(d.cause[POLICY_DRIFT].verdict, POLICY_CALM);
	/* A feature with a rule of its own decides alone. */
	f[0].critical = 0;
	f[0].weight = 0.001;
	f[0].decides = true;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_DRIFT].verdict, POLICY_HOT);
	w.n_features = 0;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_DRIFT].verdict, POLICY_UNTESTED);
}

void test_policy__broken_data_blocks_retraining(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_defect defect = { STR("missing_rate of temp"), 0.4, 0.02 };
	struct policy_state s, muted;
	struct policy_window w;
	struct policy_decision d;

	(void)state;
	policy_init(&s);
	play(&r, &s, 0, 3);
	quarter(1, &w);
	w.performance = 3;
	w.defects = &defect;
	w.n_defects = 1;
	muted = s;
	policy_mute(&muted, w.end);
	policy_apply(&r, &muted, &w, &d);
	assert_true(d.cause[POLICY_DATA_QUALITY].fired);
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.by, POLICY_DATA_QUALITY);
	assert_int_equal(d.action, POLICY_BLOCK);
	assert_true(d.fired && !d.retrain);
	assert_int_equal(d.cause[POLICY_PERFORMANCE].stop, POLICY_STOP_DATA_QUALITY);
	assert_string_equal(d.cause[POLICY_DATA_QUALITY].sentence,
		"The data of window 2004-04-01 to 2004-07-01 is broken: missing_rate of temp is "
		"0.4, "
		"the limit is 0.02: nothing is trained until it is good again.");
	/* Still broken: still blocked, without a second alarm. */
	quarter(2, &w);
	w.performance = 3;
	w.defects = &defect;
	w.n_defects = 1;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_DATA_QUALITY].action, POLICY_RECORD);
	assert_false(d.retrain);
	/* Good again: what was due is done. */
	assert_true(play(&r, &s, 3, 3).fired);
	assert_int_equal(s.cause[POLICY_DATA_QUALITY].level, POLICY_FINE);
}

void test_policy__two_causes_start_one_retraining(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_feature f[] = { feature("temp", 0.3, 1) };
	struct policy_state s;
	struct policy_window w;
	struct policy_decision d;

	(void)state;
	r.cause[POLICY_DRIFT].action = POLICY_RETRAIN;
	policy_init(&s);
	for (int i = 0; i < 2; i++) {
		quarter(i, &w);
		w.performance = 3;
		w.features = f;
		w.n_features = 1;
		policy_apply(&r, &s, &w, &d);
	}
	assert_true(d.retrain);
	assert_int_equal(d.by, POLICY_PERFORMANCE);
	assert_int_equal(d.cause[POLICY_DRIFT].stop, POLICY_STOP_OPEN);
	assert_int_equal(s.n_started, 1);
}

void test_policy__a_mute_holds_back_until_it_ends(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_outcome o;
	struct policy_state s;
	struct policy_window w;

	(void)state;
	policy_init(&s);
	quarter(2, &w);
	policy_mute(&s, w.start);
	o = play(&r, &s, 0, 3);
	assert_false(o.fired);
	assert_int_equal(o.stop, POLICY_STOP_MUTED);
	assert_non_null(
		strstr(o.sentence, "a warning is due, but the monitor is muted until 2004-07-01"));
	o = play(&r, &s, 1, 3);
	assert_int_equal(o.action, POLICY_RETRAIN);
	assert_int_equal(o.stop, POLICY_STOP_MUTED);
	o = play(&r, &s, 2, 3);
	assert_true(o.fired);
}

void test_policy__without_a_pipeline_nothing_is_started(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_state s;

	(void)state;
	r.has_pipeline = false;
	policy_init(&s);
	play(&r, &s, 0, 3);
	assert_int_equal(play(&r, &s, 1, 3).stop, POLICY_STOP_NO_PIPELINE);
	assert_false(s.open);
}

void test_policy__a_promotion_starts_over_and_its_guard_takes_it_back(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_outcome o;
	struct policy_state s, promoted;

	(void)state;
	policy_init(&s);
	play(&r, &s, 0, 3);
	play(&r, &s, 1, 3);
	policy_promoted(&r, &s, true, 3.5);
	assert_false(s.open);
	assert_int_equal(s.guard, 3);
	assert_int_equal(s.cause[POLICY_PERFORMANCE].level, POLICY_FINE);
	promoted = s;
	/* Hot, but not worse than what it replaced. */
	o = play(&r, &s, 2, 3.4);
	assert_int_equal(o.action, POLICY_WARN);
	/* Hot and worse. */
	o = play(&r, &s, 3, 3.6);
	assert_int_equal(o.action, POLICY_ROLLBACK);
	assert_true(o.fired);
	assert_non_null(strstr(o.sentence,
		"and worse than the 3.5 of the version that it replaced: the version that it "
		"replaced is taken back"));
	policy_rolled_back(&r, &s);
	assert_int_equal(s.guard, 0);
	assert_int_equal(s.cooldown, 8);
	assert_int_equal(s.cause[POLICY_PERFORMANCE].tested, 0);
	/* The guard ends after its windows, or is switched off. */
	s = promoted;
	for (int i = 2; i < 5; i++)
		play(&r, &s, i, 1.31);
	assert_int_equal(s.guard, 0);
	assert_int_equal(play(&r, &s, 5, 9).action, POLICY_WARN);
	s = promoted;
	r.guard_rollback = false;
	assert_int_equal(play(&r, &s, 2, 9).action, POLICY_WARN);
}

void test_policy__a_score_that_should_be_high_is_judged_from_the_other_side(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_state s;
	struct policy_window w;
	struct policy_decision d;

	(void)state;
	r.metric = STATS_ACCURACY;
	policy_init(&s);
	quarter(0, &w);
	w.champion = 0.9;
	w.performance = 0.5;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_PERFORMANCE].verdict, POLICY_HOT);
	assert_non_null(strstr(d.cause[POLICY_PERFORMANCE].sentence,
		"The accuracy of window 2004-01-01 to 2004-04-01 was 0.5, the champion's is 0.9, "
		"1.8 "
		"times as much; the limit is 1.5 times"));
	w.performance = 0;
	policy_apply(&r, &s, &w, &d);
	assert_true(isinf(d.cause[POLICY_PERFORMANCE].score));
	w.performance = 0.95;
	policy_apply(&r, &s, &w, &d);
	assert_int_equal(d.cause[POLICY_PERFORMANCE].verdict, POLICY_CALM);
}

void test_policy__a_rule_that_only_records_or_warns_does_no_more(void **state)
{
	struct policy_rules r = demo_rules();
	struct policy_state s;
	struct policy_outcome o;

	(void)state;
	r.cause[POLICY_PERFORMANCE].action = POLICY_RECORD;
	policy_init(&s);
	for (int i = 0; i < 5; i++) {
		o = play(&r, &s, i, 3);
		assert_int_equal(o.action, POLICY_RECORD);
		assert_false(o.fired);
	}
	assert_int_equal(o.after, POLICY_ALERTED);
	assert_non_null(strstr(o.sentence, ": recorded."));
	r.cause[POLICY_PERFORMANCE].action = POLICY_WARN;
	policy_init(&s);
	play(&r, &s, 0, 3);
	assert_int_equal(play(&r, &s, 1, 3).action, POLICY_WARN);
	assert_int_equal(play(&r, &s, 2, 3).action, POLICY_RECORD);
	assert_false(s.open);
}

void test_policy__a_long_sentence_is_cut_not_overrun(void **state)
{
	struct policy_rules r = demo_rules();
	static char name[5000];
	struct policy_defect defects[5];
	struct policy_state s;
	struct policy_window w;
	struct policy_decision d;

	(void)state;
	memset(name, 'x', sizeof(name));
	for (int i = 0; i < 5; i++)
		defects[i] = (struct policy_defect){ { name, sizeof(name) }, 1e300, -1e-300 };
	policy_init(&s);
	quarter(0, &w);
	w.start += 123456789;
	w.defects = defects;
	w.n_defects = 5;
	policy_apply(&r, &s, &w, &d);
	assert_in_range(
		strlen(d.cause[POLICY_DATA_QUALITY].sentence), 100, POLICY_SENTENCE_MAX - 1);
}

void test_policy__states_that_cannot_be_are_seen(void **state)
{
	struct policy_state s;

	(void)state;
	policy_init(&s);
	assert_true(policy_state_sound(&s));
	s.cause[1].history = 1;
	assert_false(policy_state_sound(&s));
	policy_init(&s);
	s.n_started = POLICY_BUDGET_MAX + 1;
	assert_false(policy_state_sound(&s));
	policy_init(&s);
	s.cause[0].tested = 33;
	assert_false(policy_state_sound(&s));
	policy_init(&s);
	s.has_guard_level = true;
	s.guard_level = (double)NAN;
	assert_false(policy_state_sound(&s));
}
