#include "api/monitor.h"

const char *const feature_type_names[] = { "numeric", "category", NULL };
const char *const test_kind_names[] = { "psi", "ks", "wasserstein", "jensen_shannon", NULL };
const char *const monitor_action_names[] = { "record", "warn", "alert", "retrain", "block", NULL };
static const char *const monitor_kinds[] = { "Monitor", NULL };
static const char *const reference_names[] = { "training", NULL };
_Static_assert(sizeof monitor_action_names / sizeof *monitor_action_names == ACTION_COUNT + 1,
	"actions and names differ");

#define AT(member)  offsetof(struct THIS, member)
#define HAS(member) FIELD_HAS(struct THIS, member)
#define R           FIELD_READONLY
#define Q           FIELD_REQUIRED
#define N           FIELD_NULLABLE
#define E           FIELD_OMIT_EMPTY

#define THIS subject_spec
static const struct field subject_fields[] = {
	{ "model", FIELD_STR, Q | FIELD_NAME, AT(model), .doc = "The model" },
	{ "alias", FIELD_STR, FIELD_NAME | FIELD_OMIT_EMPTY, AT(alias), .fallback = "champion",
		.doc = "The alias that is watched" },
	{ 0 },
};
#undef THIS
#define THIS columns_spec
static const struct field columns_fields[] = {
	{ "id", FIELD_STR, Q, AT(id), .min = 1, .max = 255,
		.doc = "Identifies a row; labels come by it" },
	{ "time", FIELD_STR, Q, AT(time), .min = 1, .max = 255, .doc = "Date or time of the row" },
	{ "prediction", FIELD_STR, Q, AT(prediction), .min = 1, .max = 255,
		.doc = "What the model said" },
	{ "label", FIELD_STR, FIELD_OMIT_EMPTY, AT(label), .max = 255,
		.doc = "What was true; may come later" },
	{ 0 },
};
#undef THIS
#define THIS features_spec
static const struct field features_fields[] = {
	{ "include", FIELD_LIST, FIELD_OMIT_EMPTY, AT(include), .item = FIELD_STR, .item_max = 255,
		.max = 256, .doc = "Names or globs; none: all columns" },
	{ "exclude", FIELD_LIST, FIELD_OMIT_EMPTY, AT(exclude), .item = FIELD_STR, .item_max = 255,
		.max = 256, .doc = "Names or globs that are left out" },
	{ "types", FIELD_MAP, FIELD_OMIT_EMPTY, AT(types), .max = 256, .item_max = 15,
		.doc = "Name or glob to numeric or category, where the data would say otherwise" },
	{ "weights", FIELD_RAW, FIELD_OMIT_EMPTY, AT(weights), .max = 16384, .fallback = "1",
		.doc = "1, or weight by feature" },
	{ 0 },
};
#undef THIS
#define THIS window_spec
static const struct field window_spec_fields[] = {
	{ "size", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(size), .min = CLOCK_MINUTE,
		.doc = "Length by the time column" },
	{ "rows", FIELD_INT, 0, AT(rows), HAS(has_rows), .min = 10, .max = 1000000000,
		.doc = "Or a number of rows" },
	{ 0 },
};
#undef THIS
#define THIS tests_spec
static const struct field tests_fields[] = {
	{ "numeric", FIELD_ENUM, 0, AT(numeric), .names = test_kind_names, .fallback = "psi",
		.doc = "Judges numeric features" },
	{ "categorical", FIELD_ENUM, 0, AT(categorical), .names = test_kind_names,
		.fallback = "psi", .doc = "Judges categories" },
	{ "warn", FIELD_REAL, FIELD_OMIT_EMPTY, AT(warn), .rmin = 0, .rmax = 1e6, .fallback = "0.1",
		.doc = "From here a feature is shown as warm" },
	{ "alert", FIELD_REAL, FIELD_OMIT_EMPTY, AT(alert), .rmin = 0, .rmax = 1e6,
		.fallback = "0.2", .doc = "From here it has drifted, when also significant" },
	{ "alpha", FIELD_REAL, FIELD_OMIT_EMPTY, AT(alpha), .rmin = 1e-9, .rmax = 0.5,
		.fallback = "0.01", .doc = "Level, divided by the number of features" },
	{ 0 },
};
#undef THIS
#define THIS performance_spec
static const struct field performance_fields[] = {
	{ "metric", FIELD_ENUM, Q, AT(metric), .names = gate_metric_names,
		.doc = "What is measured when labels are there" },
	{ 0 },
};
#undef THIS

#define ACTION(word)                                                                               \
	"action", FIELD_ENUM, 0, AT(action), .names = monitor_action_names, .fallback = word,      \
					     .doc = "What happens when it fires"
#define THIS performance_rule
static const struct field performance_rule_fields[] = {
	{ ACTION("retrain") },
	{ "max_ratio", FIELD_REAL, FIELD_OMIT_EMPTY, AT(max_ratio), .rmin = 1, .rmax = 1000,
		.fallback = "1.5", .doc = "Hot from this multiple of the champion's level" },
	{ "clear_ratio", FIELD_REAL, FIELD_OMIT_EMPTY, AT(clear_ratio), .rmin = 1, .rmax = 1000,
		.fallback = "1.3", .doc = "Calm below this multiple" },
	{ "k", FIELD_INT, 0, AT(k), .min = 1, .max = 32, .fallback = "2",
		.doc = "So many hot windows" },
	{ "n", FIELD_INT, 0, AT(n), .min = 1, .max = 32, .fallback = "3",
		.doc = "of the last so many" },
	{ 0 },
};
#undef THIS
#define THIS drift_rule
static const struct field drift_rule_fields[] = {
	{ ACTION("alert") },
	{ "share", FIELD_REAL, FIELD_OMIT_EMPTY, AT(share), .rmin = 0.000001, .rmax = 1,
		.fallback = "0.2", .doc = "Hot from this weighted share of drifted features" },
	{ "clear", FIELD_REAL, FIELD_OMIT_EMPTY, AT(clear), .rmin = 0, .rmax = 1, .fallback = "0.1",
		.doc = "Calm below this share" },
	{ "k", FIELD_INT, 0, AT(k), .min = 1, .max = 32, .fallback = "2",
		.doc = "So many hot windows" },
	{ "n", FIELD_INT, 0, AT(n), .min = 1, .max = 32, .fallback = "3",
		.doc = "of the last so many" },
	{ "clear_windows", FIELD_INT, 0, AT(clear_windows), .min = 1, .max = 32, .fallback = "2",
		.doc = "Calm windows until all is well" },
	{ 0 },
};
#undef THIS
#define THIS quality_rule
static const struct field quality_rule_fields[] = { { ACTION("block") }, { 0 } };
#undef THIS
#define THIS budget_spec
static const struct field budget_fields[] = {
	{ "runs", FIELD_INT, Q, AT(runs), .min = 0, .max = 1000000, .doc = "Retrainings" },
	{ "per", FIELD_SPAN, Q, AT(per), .min = CLOCK_HOUR,
		.doc = "in so much of the data's time" },
	{ 0 },
};
#undef THIS
#define THIS guard_spec
static const struct field guard_fields[] = {
	{ "windows", FIELD_INT, Q, AT(windows), .min = 0, .max = 1000,
		.doc = "Windows after a promotion that are watched" },
	{ "rollback", FIELD_BOOL, 0, AT(rollback),
		.doc = "Give the alias back when they are worse" },
	{ 0 },
};
#undef THIS
#define THIS approve_spec
static const struct field approve_fields[] = {
	{ "people", FIELD_INT, 0, AT(people), .min = 0, .max = 0, .fallback = "0",
		.doc = "Approvals before a retraining; 0 in this version" },
	{ 0 },
};
#undef THIS
#define THIS policy_spec
static const struct field policy_fields[] = {
	{ "performance", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(performance), HAS(has_performance),
		.sub = performance_rule_fields, .doc = "When the error grows" },
	{ "drift", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(drift), HAS(has_drift), .sub = drift_rule_fields,
		.doc = "When inputs move" },
	{ "data_quality", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(data_quality), HAS(has_data_quality),
		.sub = quality_rule_fields, .doc = "When the data is broken" },
	{ "cooldown", FIELD_INT, 0, AT(cooldown), .min = 0, .max = 10000, .fallback = "0",
		.doc = "Windows after a retraining" },
	{ "backoff", FIELD_REAL, FIELD_OMIT_EMPTY, AT(backoff), .rmin = 1, .rmax = 100,
		.fallback = "2", .doc = "Factor on the cooldown after each refused challenger" },
	{ "budget", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(budget), HAS(has_budget), .sub = budget_fields,
		.doc = "Most retrainings per period" },
	{ "guard", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(guard), HAS(has_guard), .sub = guard_fields,
		.doc = "After a promotion" },
	{ "approve", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(approve), .sub = approve_fields,
		.doc = "People who must agree" },
	{ 0 },
};
#undef THIS
#define THIS retrain_spec
static const struct field retrain_fields[] = {
	{ "pipeline", FIELD_STR, Q | FIELD_NAME, AT(pipeline),
		.doc = "The pipeline that trains again" },
	{ "inputs", FIELD_MAP, FIELD_OMIT_EMPTY, AT(inputs), .max = 256, .item_max = 1024,
		.doc = "Its inputs; ${window.start - 3y} and the like are filled in" },
	{ 0 },
};
#undef THIS

#define THIS monitor_spec
const struct field monitor_spec_fields[] = {
	{ "subject", FIELD_OBJ, Q, AT(subject), .sub = subject_fields, .doc = "What is watched" },
	{ "reference", FIELD_ENUM, 0, AT(reference), .names = reference_names,
		.fallback = "training",
		.doc = "What windows are compared with: the version's training data" },
	{ "columns", FIELD_OBJ, Q, AT(columns), .sub = columns_fields,
		.doc = "Columns that are never features" },
	{ "features", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(features), .sub = features_fields,
		.doc = "Which columns are features" },
	{ "window", FIELD_OBJ, Q, AT(window), .sub = window_spec_fields,
		.doc = "How the data is cut" },
	{ "late", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(late), .fallback = "0s",
		.doc = "Rows and labels this late re-open a window" },
	{ "ahead", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(ahead), .fallback = "1d",
		.doc = "Rows may lie one window and so much beyond the server's clock, no "
		       "further" },
	{ "min_samples", FIELD_INT, 0, AT(min_samples), .min = 1, .max = 1000000000,
		.fallback = "200", .doc = "Fewer rows decide nothing, and make no others late" },
	{ "tests", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(tests), .sub = tests_fields,
		.doc = "How features are judged" },
	{ "performance", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(performance), HAS(has_performance),
		.sub = performance_fields, .doc = "How the model is judged" },
	{ "policy", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(policy), .sub = policy_fields,
		.doc = "What follows, by cause" },
	{ "retrain", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(retrain), HAS(has_retrain),
		.sub = retrain_fields, .doc = "What a retraining starts" },
	{ 0 },
};
#undef THIS
#define THIS monitor_file
const struct field monitor_file_fields[] = {
	{ "apiVersion", FIELD_STR, Q, AT(api_version), .min = 1, .max = 32, .doc = "tidemill/v1" },
	{ "kind", FIELD_ENUM, Q, AT(kind), .names = monitor_kinds, .doc = "Monitor" },
	{ "metadata", FIELD_OBJ, Q, AT(metadata), .sub = metadata_fields,
		.doc = "Name and labels" },
	{ "spec", FIELD_OBJ, Q, AT(spec), .sub = monitor_spec_fields, .doc = "The monitor" },
	{ 0 },
};
#undef THIS

#define THIS monitor
const struct field monitor_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the monitor" },
	{ "name", FIELD_STR, R, AT(name), .doc = "Unique in its project" },
	{ "model", FIELD_STR, R, AT(model), .doc = "The model that it watches" },
	{ "alias", FIELD_STR, R, AT(alias), .doc = "The alias that it watches" },
	{ "champion", FIELD_STR, R | E, AT(champion),
		.doc = "NAME/NUMBER of the version that has the alias" },
	{ "spec", FIELD_RAW, R, AT(spec), .max = 1 << 20, .doc = "The monitor as it was read" },
	{ "source", FIELD_STR, R | FIELD_TEXT, AT(source), .max = 1 << 20,
		.doc = "The text as it was written" },
	{ "policy_state", FIELD_RAW, R, AT(policy_state), .doc = "Where its policy stands" },
	{ "mutes", FIELD_RAW, R, AT(mutes), .doc = "What is muted until when" },
	{ "late_rows", FIELD_INT, R, AT(late_rows),
		.doc = "Rows and labels that came too late and were left out, ever" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was made" },
	{ "version", FIELD_INT, R, AT(version), .doc = "Moves with every change; the ETag" },
	{ 0 },
};
#undef THIS

#define THIS window
const struct field window_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the window" },
	{ "monitor_id", FIELD_STR, R, AT(monitor_id), .doc = "Its monitor" },
	{ "start", FIELD_TIME, R, AT(start), .doc = "First instant, in the data's time" },
	{ "end", FIELD_TIME, R, AT(end), .doc = "First instant after it" },
	{ "state", FIELD_STR, R, AT(state), .doc = "open or closed" },
	{ "revision", FIELD_INT, R, AT(revision), .doc = "How often it was closed" },
	{ "rows", FIELD_INT, R, AT(rows), .doc = "Rows" },
	{ "labelled", FIELD_INT, R, AT(labelled), .doc = "Rows with a label" },
	{ "left_out", FIELD_INT, R | E, AT(left_out),
		.doc = "Those of them that performance leaves out: the label or its distance from "
		       "the prediction is greater than 1e75" },
	{ "model_version", FIELD_STR, R | E, AT(model_version),
		.doc = "NAME/NUMBER of the version it is compared with" },
	{ "severity", FIELD_STR, R, AT(severity), .doc = "none, ok, warn, alert or insufficient" },
	{ "performance", FIELD_REAL, R | N, AT(performance), HAS(has_performance),
		.doc = "Value of the monitor's metric" },
	{ "level", FIELD_REAL, R | N, AT(level), HAS(has_level),
		.doc = "The champion's value on its holdout" },
	{ "drift_share", FIELD_REAL, R | N, AT(drift_share), HAS(has_drift_share),
		.doc = "Weighted share of drifted features" },
	{ "closed_at", FIELD_TIME, R | N, AT(closed_at), .doc = "When it was last closed" },
	{ "reason", FIELD_STR, R | E | FIELD_TEXT, AT(reason), .max = 4000,
		.doc = "What was decided, in words" },
	{ 0 },
};
#undef THIS

#define THIS drift_value
const struct field drift_value_fields[] = {
	{ "feature", FIELD_STR, R, AT(feature),
		.doc = "Name of the column; empty for the window as a whole" },
	{ "baseline", FIELD_STR, R, AT(baseline), .doc = "training, previous, seasonal or anchor" },
	{ "metric", FIELD_STR, R, AT(metric),
		.doc = "psi, ks, wasserstein, jensen_shannon, missing_rate, row_count, "
		       "left_out_count, mae, …" },
	{ "status", FIELD_STR, R, AT(status),
		.doc = "ok, partial (of rows that are not too large), overflow (there is no finite "
		       "value), no_data, insufficient, all_missing, constant or type_changed" },
	{ "value", FIELD_REAL, R | N | FIELD_NONFINITE, AT(value), HAS(has_value),
		.doc = "The number" },
	{ "critical", FIELD_REAL, R | N | FIELD_NONFINITE, AT(critical), HAS(has_critical),
		.doc = "What noise alone reaches at this level" },
	{ "p", FIELD_REAL, R | N, AT(p), HAS(has_p), .doc = "p-value, where there is one" },
	{ "threshold", FIELD_REAL, R | N, AT(threshold), HAS(has_threshold),
		.doc = "The limit that it was held against" },
	{ "drifted", FIELD_BOOL, R, AT(drifted), .doc = "Large and significant" },
	{ 0 },
};
#undef THIS

#define THIS decision
const struct field decision_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the decision" },
	{ "project", FIELD_STR, R, AT(project), .doc = "Name of the project" },
	{ "monitor_id", FIELD_STR, R, AT(monitor_id), .doc = "Its monitor" },
	{ "monitor", FIELD_STR, R, AT(monitor), .doc = "Name of the monitor" },
	{ "window_id", FIELD_STR, R, AT(window_id), .doc = "The window that was judged" },
	{ "window_start", FIELD_TIME, R, AT(window_start), .doc = "Its first instant" },
	{ "window_end", FIELD_TIME, R, AT(window_end), .doc = "First instant after it" },
	{ "revision", FIELD_INT, R, AT(revision), .doc = "Which closing of the window" },
	{ "cause", FIELD_STR, R, AT(cause), .doc = "performance, drift or data_quality" },
	{ "action", FIELD_STR, R, AT(action),
		.doc = "record, warn, alert, retrain, block or rollback" },
	{ "fired", FIELD_BOOL, R, AT(fired), .doc = "Whether the action was taken" },
	{ "suppressed_by", FIELD_STR, R | E, AT(suppressed_by), .doc = "Why it was not" },
	{ "reason", FIELD_STR, R | FIELD_TEXT, AT(reason), .max = 4000, .doc = "In words" },
	{ "inputs", FIELD_RAW, R, AT(inputs), .max = 1 << 20,
		.doc = "Values, thresholds, history" },
	{ "run_id", FIELD_STR, R | E, AT(run_id), .doc = "The retraining that it started" },
	{ "run_state", FIELD_STR, R | E, AT(run_state), .doc = "Where that is" },
	{ "model_version", FIELD_STR, R | E, AT(model_version),
		.doc = "NAME/NUMBER that it registered" },
	{ "verdict", FIELD_STR, R | E, AT(verdict), .doc = "What the gate said of it" },
	{ "outcome", FIELD_RAW, R, AT(outcome), .doc = "What came of it in the windows after" },
	{ "supersedes", FIELD_STR, R | E, AT(supersedes),
		.doc = "The decision on the same window before it was re-opened" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was taken" },
	{ 0 },
};
#undef THIS

#define THIS heat_query
const struct field heat_query_fields[] = {
	{ "windows", FIELD_INT, 0, AT(windows), .min = 1, .max = 200, .fallback = "40",
		.doc = "Newest windows" },
	{ "metric", FIELD_ENUM, 0, AT(metric), .names = test_kind_names, .fallback = "psi",
		.doc = "Metric of the cells" },
	{ 0 },
};
#undef THIS
#define THIS observation_query
const struct field observation_query_fields[] = {
	{ "batch", FIELD_STR, FIELD_OMIT_EMPTY, AT(batch), .max = 255,
		.doc = "Identity of the batch; also Idempotency-Key" },
	{ 0 },
};
#undef THIS
#define THIS observation_result
const struct field observation_result_fields[] = {
	{ "rows", FIELD_INT, R, AT(rows), .doc = "Rows that were added" },
	{ "duplicates", FIELD_INT, R, AT(duplicates), .doc = "Rows that were there already" },
	{ "late", FIELD_INT, R, AT(late), .doc = "Rows that came too late and were left out" },
	{ "horizon", FIELD_TIME, R | E, AT(horizon),
		.doc = "When rows were late: windows that ended before this time take none any "
		       "more" },
	{ "unknown", FIELD_INT, R, AT(unknown), .doc = "Labels of rows that are not there" },
	{ "windows", FIELD_INT, R, AT(windows), .doc = "Windows that were touched" },
	{ "reopened", FIELD_INT, R, AT(reopened),
		.doc = "Of these, closed ones that are open again, to be closed anew" },
	{ "replayed", FIELD_BOOL, R, AT(replayed), .doc = "The batch had been taken before" },
	{ 0 },
};
#undef THIS
#define THIS window_close
const struct field window_close_fields[] = {
	{ "start", FIELD_TIME, 0, AT(start), .doc = "The window that starts here" },
	{ "before", FIELD_TIME, 0, AT(before),
		.doc = "All windows that end at or before this time" },
	{ 0 },
};
#undef THIS
#define THIS window_close_result
const struct field window_close_result_fields[] = {
	{ "closed", FIELD_INT, R, AT(closed), .doc = "Windows closed" },
	{ "decisions", FIELD_LIST, R, AT(decisions), .item = FIELD_STR, .max = 10000,
		.doc = "Identities of the decisions" },
	{ 0 },
};
#undef THIS
#define THIS window_delete
const struct field window_delete_fields[] = {
	{ "start", FIELD_TIME, 0, AT(start), .doc = "The window that starts here" },
	{ "from", FIELD_TIME, 0, AT(from), .doc = "All windows that start at or after this time" },
	{ "to", FIELD_TIME, 0, AT(to), .doc = "and end at or before this one" },
	{ 0 },
};
#undef THIS
#define THIS window_delete_result
const struct field window_delete_result_fields[] = {
	{ "windows", FIELD_INT, R, AT(windows), .doc = "Windows removed" },
	{ "rows", FIELD_INT, R, AT(rows), .doc = "Rows that they held" },
	{ "decisions", FIELD_INT, R, AT(decisions), .doc = "Decisions on them" },
	{ "held_by", FIELD_STR, R | E, AT(held_by),
		.doc = "In a dry run: the decision that forbids it, since it has started "
		       "something" },
	{ "dry_run", FIELD_BOOL, R, AT(dry_run), .doc = "Nothing was removed" },
	{ 0 },
};
#undef THIS
#define THIS mute
const struct field mute_fields[] = {
	{ "feature", FIELD_STR, FIELD_OMIT_EMPTY, AT(feature), .max = 255,
		.doc = "One feature; empty: the whole monitor" },
	{ "until", FIELD_TIME, Q, AT(until), .doc = "In the data's time" },
	{ "reason", FIELD_STR, Q | FIELD_TEXT, AT(reason), .min = 1, .max = 1000, .doc = "Why" },
	{ 0 },
};
#undef THIS
