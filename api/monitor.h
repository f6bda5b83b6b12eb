/* Monitors: what users write (`kind: Monitor`), windows, drift metrics and decisions. */
#ifndef API_MONITOR_H
#define API_MONITOR_H
#include "api/page.h"
#include "api/pipeline.h"
#include "lib/json/field.h"

enum feature_type { FEATURE_NUMERIC, FEATURE_CATEGORY, FEATURE_TYPE_COUNT };
extern const char *const feature_type_names[];

struct subject_spec {
	struct str model, alias;
};
struct columns_spec {
	struct str id, time, prediction, label;
};
struct features_spec {
	struct list include, exclude; /* struct str, globs */
	struct list types; /* struct field_pair: glob -> numeric | category */
	struct str weights; /* JSON text: 1 or {feature: weight} */
};
struct window_spec {
	struct field_span size; /* by the time column, or */
	int64_t rows; /* every so many rows */
	bool has_rows;
};

enum test_kind { TEST_PSI, TEST_KS, TEST_WASSERSTEIN, TEST_JENSEN_SHANNON, TEST_KIND_COUNT };
extern const char *const test_kind_names[];

struct tests_spec {
	int numeric, categorical; /* enum test_kind: which metric judges */
	double warn, alert, alpha;
};
struct performance_spec {
	int metric; /* enum gate_metric */
};

enum monitor_action {
	ACTION_RECORD,
	ACTION_WARN,
	ACTION_ALERT,
	ACTION_RETRAIN,
	ACTION_BLOCK,
	ACTION_COUNT
};
extern const char *const monitor_action_names[];

struct performance_rule {
	int action;
	double max_ratio, clear_ratio;
	int64_t k, n;
};
struct drift_rule {
	int action;
	double share, clear;
	int64_t k, n, clear_windows;
};
struct quality_rule {
	int action;
};
struct budget_spec {
	int64_t runs;
	struct field_span per;
};
struct guard_spec {
	int64_t windows;
	bool rollback;
};
struct policy_spec {
	struct performance_rule performance;
	bool has_performance;
	struct drift_rule drift;
	bool has_drift;
	struct quality_rule data_quality;
	bool has_data_quality;
	int64_t cooldown; /* windows */
	double backoff;
	struct budget_spec budget;
	bool has_budget;
	struct guard_spec guard;
	bool has_guard;
	struct approve_spec approve;
};
struct retrain_spec {
	struct str pipeline;
	struct list inputs; /* struct field_pair, with ${window.start} and dates */
};

struct monitor_spec {
	struct subject_spec subject;
	int reference; /* only "training" */
	struct columns_spec columns;
	struct features_spec features;
	struct window_spec window;
	struct field_span late, ahead;
	int64_t min_samples;
	struct tests_spec tests;
	struct performance_spec performance;
	bool has_performance;
	struct policy_spec policy;
	struct retrain_spec retrain;
	bool has_retrain;
};
extern const struct field monitor_spec_fields[];

struct monitor_file {
	struct str api_version;
	int kind;
	struct metadata metadata;
	struct monitor_spec spec;
};
extern const struct field monitor_file_fields[];

struct monitor {
	struct str id, name, spec, source, model, alias;
	struct str champion; /* "ridership/2", "" when the alias has no version */
	struct str policy_state; /* JSON */
	struct str mutes; /* JSON */
	int64_t late_rows, created_at, version;
};
extern const struct field monitor_fields[];

struct window {
	struct str id, monitor_id;
	int64_t start, end;
	struct str state;
	int64_t revision, rows, labelled, left_out;
	struct str model_version, severity;
	double performance, drift_share, level;
	bool has_performance, has_drift_share, has_level;
	int64_t closed_at;
	struct str reason; /* the first sentence of its decisions */
};
extern const struct field window_fields[];

struct drift_value {
	struct str feature, baseline, metric, status;
	double value, critical, p, threshold;
	bool has_value, has_critical, has_p, has_threshold, drifted;
};
extern const struct field drift_value_fields[];

struct decision {
	struct str id, project, monitor_id, monitor, window_id;
	int64_t window_start, window_end, revision;
	struct str cause, action;
	bool fired;
	struct str suppressed_by, reason, inputs, run_id, outcome, supersedes;
	struct str run_state, model_version, verdict; /* of what it started */
	int64_t created_at;
};
extern const struct field decision_fields[];

/* Feature × window table of the dashboard: one metric of each feature over the newest windows. */
struct heat_query {
	int64_t windows;
	int metric;
};
extern const struct field heat_query_fields[];

struct observation_query {
	struct str batch;
};
extern const struct field observation_query_fields[];
struct observation_result {
	int64_t rows, duplicates, late, horizon, unknown, windows, reopened;
	bool replayed;
};
extern const struct field observation_result_fields[];

/* POST …/windows/close: the window that starts at this time, or all that have ended before it. */
struct window_close {
	int64_t start, before;
};
extern const struct field window_close_fields[];
struct window_close_result {
	int64_t closed;
	struct list decisions; /* struct str, ids */
};
extern const struct field window_close_result_fields[];

/* POST …/windows/delete: the window that starts at this time, or all within [from, to). */
struct window_delete {
	int64_t start, from, to;
};
extern const struct field window_delete_fields[];
struct window_delete_result {
	int64_t windows, rows, decisions;
	struct str held_by;
	bool dry_run;
};
extern const struct field window_delete_result_fields[];

struct mute {
	struct str feature; /* empty: the whole monitor */
	int64_t until;
	struct str reason;
};
extern const struct field mute_fields[];

#endif
