/*
 * What a monitor does about a window: a pure function of the rules, the state before, and the
 * window's numbers. The store evaluates it once when a window closes and keeps the state with the
 * decision; a window that late rows re-open is evaluated again from the state that was before it.
 * All time is the data's.
 *
 * Three causes have a state each: performance (score: how many times worse than the champion on its
 * holdout), drift (weighted share of drifted features) and data quality (number of defects). A
 * window is hot when its score passes the limit. The first hot window warns; k hot ones among the
 * last n tested ones are an alert, at which the rule's action falls due; the alert ends after
 * clear_windows windows in a row whose score is below `clear`. A window without enough rows moves
 * nothing but the cooldown. A retraining that is due waits, as long as windows are hot, for what
 * holds it back (enum policy_stop), then starts once and begins the cooldown.
 */
#ifndef SERVER_CORE_POLICY_H
#define SERVER_CORE_POLICY_H
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "lib/stats/perf.h"

enum policy_cause { POLICY_PERFORMANCE, POLICY_DRIFT, POLICY_DATA_QUALITY, POLICY_CAUSES };
const char *policy_cause_name(enum policy_cause c); /* "performance", "drift", "data_quality" */

/* The ladder of the monitor's file, in its order; rollback is the guard's. */
enum policy_action {
	POLICY_RECORD,
	POLICY_WARN,
	POLICY_ALERT,
	POLICY_RETRAIN,
	POLICY_BLOCK,
	POLICY_ROLLBACK,
	POLICY_ACTIONS
};
const char *policy_action_name(enum policy_action a);

enum policy_level { POLICY_FINE, POLICY_WARNED, POLICY_ALERTED, POLICY_LEVELS };
const char *policy_level_name(enum policy_level l); /* "ok", "warn", "alert" */

enum policy_verdict {
	POLICY_UNTESTED, /* nothing to judge by: no rule, no labels, no features */
	POLICY_INSUFFICIENT,
	POLICY_CALM,
	POLICY_HOT,
	POLICY_VERDICTS
};
const char *policy_verdict_name(enum policy_verdict v);

/* What held an action back. */
enum policy_stop {
	POLICY_NOT_STOPPED,
	POLICY_STOP_MUTED,
	POLICY_STOP_DATA_QUALITY, /* a rule that blocks is in alert: broken data never trains */
	POLICY_STOP_OPEN, /* a retraining of the model is running */
	POLICY_STOP_COOLDOWN,
	POLICY_STOP_BUDGET,
	POLICY_STOP_NO_PIPELINE, /* the monitor names none */
	POLICY_STOPS
};
const char *policy_stop_name(enum policy_stop s); /* "" for none, "muted", "cooldown", ... */

enum { POLICY_WINDOWS_MAX = 32, POLICY_BUDGET_MAX = 64, POLICY_COOLDOWN_MAX = 10000 };

struct policy_rule {
	bool used;
	enum policy_action action; /* up to POLICY_BLOCK */
	double limit; /* performance: hot above; drift: hot from; data quality: not read */
	double clear; /* calm below */
	uint32_t k, n; /* 1 <= k <= n <= POLICY_WINDOWS_MAX; data quality: 1 of 1 */
	uint32_t clear_windows;
};

struct policy_rules {
	struct policy_rule cause[POLICY_CAUSES];
	enum stats_score metric;
	uint64_t min_samples;
	uint32_t cooldown; /* windows */
	double backoff; /* x cooldown for each refused challenger in a row; at least 1 */
	bool has_budget;
	uint32_t budget_runs; /* more than POLICY_BUDGET_MAX count as that */
	struct clock_span budget_per;
	uint32_t guard_windows;
	bool guard_rollback;
	bool has_pipeline;
};

/* The state machine of one cause. Plain fields, to be stored as they are. */
struct policy_cause_state {
	enum policy_level level;
	uint32_t history; /* bit i: the i-th newest tested window was hot */
	uint32_t tested; /* windows in the history */
	uint32_t calm; /* calm windows in a row during an alert */
	bool due; /* the action of the alert has not been taken yet */
};

struct policy_state {
	struct policy_cause_state cause[POLICY_CAUSES];
	uint32_t cooldown; /* windows left */
	uint32_t refused; /* challengers in a row */
	uint32_t guard; /* windows left in which a promotion may be taken back */
	bool has_guard_level;
	double guard_level; /* what the replaced version had on the gate's rows */
	bool open; /* a retraining was started and has no outcome yet */
	bool muted;
	int64_t muted_until; /* windows that start before it are muted */
	uint32_t n_started;
	int64_t started[POLICY_BUDGET_MAX]; /* ends of the windows that started one, oldest first */
};

struct policy_feature {
	struct str name;
	bool tested; /* has a value: status ok or constant */
	double value, threshold;
	double critical; /* NaN: none */
	double seasonal, seasonal_critical; /* against the seasonal baseline; NaN: there is none */
	double weight; /* importance; at least 0 */
	bool decides; /* its drift alone makes the window hot (a per-feature rule) */
};

struct policy_defect {
	struct str what; /* "missing_rate of temp", "row_count" */
	double value, limit;
};

struct policy_window {
	int64_t start, end;
	uint64_t rows, labelled;
	bool has_performance;
	double performance, champion; /* the metric here, and the champion's on its holdout */
	const struct policy_feature *features; /* without muted ones */
	size_t n_features;
	const struct policy_defect *defects;
	size_t n_defects;
};

enum { POLICY_SENTENCE_MAX = 640 };

struct policy_outcome {
	enum policy_verdict verdict;
	enum policy_level before, after;
	double score, limit; /* score NaN when there was no verdict */
	uint32_t hot, k, n; /* hot windows among the last n tested */
	uint32_t features, drifted; /* drift: tested, and drifted */
	bool warned, alerted, resolved; /* entered or left in this window */
	enum policy_action action; /* taken, or held back; POLICY_RECORD when nothing was due */
	bool fired; /* taken now */
	enum policy_stop stop; /* what held it back, when not fired */
	char sentence[POLICY_SENTENCE_MAX];
};

struct policy_decision {
	struct policy_outcome cause[POLICY_CAUSES];
	enum policy_cause by; /* the cause of the strongest action, the first of several */
	enum policy_action action;
	bool fired;
	enum policy_stop stop;
	bool retrain, rollback; /* to be carried out by the caller, in the same transaction */
};

void policy_init(struct policy_state *s);
/* Moves *s on by one window. Rules out of their bounds are a bug of the caller. */
void policy_apply(const struct policy_rules *r, struct policy_state *s,
	const struct policy_window *w, struct policy_decision *ret);

/* Outcomes of what was started, each moves *s on. A promotion by hand is one as well. */
void policy_promoted(const struct policy_rules *r, struct policy_state *s, bool has_level,
	double replaced_level);
void policy_refused(const struct policy_rules *r, struct policy_state *s);
void policy_failed(const struct policy_rules *r, struct policy_state *s); /* no challenger came */
void policy_rolled_back(const struct policy_rules *r, struct policy_state *s);
void policy_mute(struct policy_state *s, int64_t until); /* windows that start before it */

/* Is a state that was read back one that policy_apply can have left? */
bool policy_state_sound(const struct policy_state *s);

#endif
