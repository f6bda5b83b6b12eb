/* Monitors, observations, windows, drift metrics and decisions. Columns as in
 * schema/queries/monitor.sql. */
#ifndef SERVER_STORE_MONITOR_STORE_H
#define SERVER_STORE_MONITOR_STORE_H
#include "api/monitor.h"
#include "lib/db/row.h"

struct monitor_key {
	struct str project_id, name;
};

void monitor_store_list(struct db_unit *u, struct str project_id, struct str after, int64_t count);
void monitor_store_get(struct db_unit *u, struct monitor_key m);
/* One row, always: what a new spec is held against. */
struct monitor_row {
	struct str id, project_id, name, spec, source, model_id, alias, created_by;
};
void monitor_store_look(
	struct db_unit *u, const struct monitor_row *m, struct str model, struct str pipeline);
void monitor_store_add(struct db_unit *u, const struct monitor_row *m);
/* Guarded by the version: TM001 (store_changed). */
void monitor_store_update(struct db_unit *u, const struct monitor_row *m, int64_t version);
void monitor_store_advance(struct db_unit *u, struct str id, int64_t version);
/* Three statements; the last one's row says that it was there. */
void monitor_store_delete(struct db_unit *u, struct monitor_key m, struct str actor); /* row: id */
/* One row when the version fits. */
struct monitor_mutes {
	struct str mutes, policy_state; /* JSON */
	int64_t version;
};
void monitor_store_mute(struct db_unit *u, struct monitor_key m, const struct monitor_mutes *x);

/* Observations. */
void monitor_store_champion(struct db_unit *u, struct monitor_key m);
void reference_store_files(struct db_unit *u, struct str dataset_version_id);
struct reference_row {
	struct str id, monitor_id, model_version_id, profile;
	int64_t spec_version, rows;
};
void reference_store_add(struct db_unit *u, const struct reference_row *r);
void reference_store_get(struct db_unit *u, const struct reference_row *r);

struct stage_rows {
	struct str *row_ids, *cells;
	int64_t *times, *starts, *ends;
	bool *no_time, *no_window, *no_prediction, *no_label;
	double *predictions, *labels;
	size_t n;
};
void stage_store_add(
	struct db_unit *u, struct str stage_id, int64_t first, const struct stage_rows *r);
struct stage_commit {
	struct str monitor_id, stage_id, batch_id, hash;
	int64_t spec_version, layout, per_window;
	struct clock_span late;
};
/* One row, one column: a JSON object of observation_result. TM001: the spec has changed; TM003:
 * other bytes came under this batch's name before. */
void stage_store_commit(struct db_unit *u, const struct stage_commit *c);
void stage_store_commit_labels(struct db_unit *u, const struct stage_commit *c);
void stage_store_drop(struct db_unit *u, struct str stage_id);
void stage_store_sweep(struct db_unit *u);

/* Windows. */
void window_store_list(struct db_unit *u, struct monitor_key m, struct str before, int64_t count);
void window_store_exists(struct db_unit *u, struct monitor_key m, struct str window_id);
void window_store_metrics(struct db_unit *u, struct monitor_key m, struct str window_id);
void heat_store_windows(struct db_unit *u, struct monitor_key m, int64_t count);
void heat_store_values(struct db_unit *u, struct monitor_key m, int64_t count, const char *metric);
struct window_wanted {
	bool has_start, has_before, complete;
	int64_t start, before;
	const struct str *skip; /* ids */
	size_t n_skip;
};
void window_store_next(struct db_unit *u, struct str monitor_id, const struct window_wanted *w);
/* One row, one column: a JSON object of window_delete_result. */
void window_store_delete(struct db_unit *u, struct str monitor_id, const struct window_delete *w,
	struct str actor, bool dry_run);
void window_store_sweep(struct db_unit *u, int64_t count);

/* What a closing reads: seven statements, in the order of this list. */
enum {
	CLOSE_MONITOR,
	CLOSE_WINDOW,
	CLOSE_VERSION,
	CLOSE_REFERENCE,
	CLOSE_LAYOUTS,
	CLOSE_EARLIER,
	CLOSE_OPEN
};
void close_store_read(struct db_unit *u, struct str monitor_id, struct str window_id);
void close_store_rows(
	struct db_unit *u, int64_t made, struct str window_id, struct str after, int64_t count);
void window_store_advance(struct db_unit *u, struct str window_id, int64_t version);
struct window_closed {
	struct str id, reference_id, model_version_id, policy_before;
	int64_t revision, left_out;
	double performance, level, drift_share; /* NaN: none */
	const char *severity;
};
void window_store_closed(struct db_unit *u, const struct window_closed *w);
struct drift_rows {
	struct str *features, *metrics, *statuses;
	double *values, *criticals, *ps, *thresholds; /* NaN: none */
	bool *drifted;
	size_t n;
};
void drift_store_add(struct db_unit *u, int64_t made, struct str window_id, int64_t revision,
	const struct drift_rows *r);
struct decision_row {
	struct str id, monitor_id, window_id, suppressed_by, reason, inputs, run_id, supersedes;
	int64_t revision, spec_version;
	const char *cause, *action;
	bool fired;
};
void decision_store_add(struct db_unit *u, const struct decision_row *d);
void decision_store_outcome(struct db_unit *u, struct str window_id);
void retraining_store_add(
	struct db_unit *u, struct str model_id, struct str decision_id, struct str run_id);
void monitor_store_set_policy(struct db_unit *u, struct str id, struct str policy_state);

void decision_store_list(struct db_unit *u, struct monitor_key m, struct str before, int64_t count);
void decision_store_get(struct db_unit *u, struct str id);

#endif
