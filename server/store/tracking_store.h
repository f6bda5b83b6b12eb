/* Experiments, tracking runs, params, tags, metrics and artifacts: MLflow's words and semantics.
 * Rows as the statements in schema/queries/{experiment,tracking,artifact}.sql give them. */
#ifndef SERVER_STORE_TRACKING_STORE_H
#define SERVER_STORE_TRACKING_STORE_H
#include "lib/base/arena.h"
#include "lib/db/row.h"

/* Parallel arrays, as unnest() takes them. */
struct pair_columns {
	const struct str *keys, *values;
	size_t n;
};
struct point_columns {
	const struct str *keys;
	const int64_t *steps, *times;
	const double *values; /* 0 for NaN */
	const bool *nans;
	size_t n;
};

/* ---- experiments ---- */
/* One row with the caller's role; id 0: the project's Default. principal_id may be empty. */
void experiment_store_access(
	struct db_unit *u, struct str principal_id, int64_t id, struct str project_id);
void experiment_store_by_name(struct db_unit *u, struct str project_id, struct str name);
void experiment_store_tags(struct db_unit *u, int64_t id);
/* Two statements; the first gives the new id. An empty location becomes that of our own proxy. */
void experiment_store_add(struct db_unit *u, struct str project_id, struct str name,
	struct str artifact_location, const struct pair_columns *tags);

/* ---- runs ---- */
/* Undoes the unit (ERR_SUPERSEDED by constraint_explain) unless the attempt is current. */
void attempt_store_fence(struct db_unit *u, struct str attempt_id, int64_t epoch);
/* One row with the caller's role, and whether the run belongs to the attempt. */
void tracking_store_access(struct db_unit *u, const struct str *principal_ids,
	const struct str *run_ids, const struct str *attempt_ids, size_t n);
void tracking_store_of_attempt(struct db_unit *u, struct str attempt_id);

struct tracking_new {
	struct str run_id, parent_run, name, user_name;
	int64_t experiment_id, start_time;
	bool has_start_time;
	struct pair_columns tags;
};
/* Two statements; the first has no row when there is no such experiment. */
void tracking_store_add(struct db_unit *u, const struct tracking_new *t);
/* Four statements: info, params, tags, latest metrics. */
void tracking_store_get(struct db_unit *u, struct str run_id);
void tracking_store_info(struct db_unit *u, struct str run_id); /* the first of them */

struct tracking_change {
	const char *status; /* NULL: as it is */
	struct str name; /* empty: as it is */
	int64_t end_time;
	bool has_end_time;
};
void tracking_store_update(struct db_unit *u, int64_t id, const struct tracking_change *t);

/* ---- what is logged ---- */
/* Rows (key, old, new) of params that have another value. */
void param_store_clash(struct db_unit *u, struct str run_id, const struct pair_columns *params);
/* Keys must be unique. A param with another value undoes the unit; param_is_clash() says so. */
void param_store_put(struct db_unit *u, int64_t tracking_id, const struct pair_columns *params);
bool param_is_clash(const struct db_rows *rows);
void tag_store_put(struct db_unit *u, int64_t tracking_id, const struct pair_columns *tags);
/* Three statements: keys, points, latest. Points that are there already are ignored. */
void metric_store_put(
	struct db_unit *u, int64_t tracking_id, int64_t made_day, const struct point_columns *p);

struct metric_after { /* the last point of the page before */
	bool has;
	int64_t time, step;
	double value;
	bool is_nan;
};
/* Rows: value, is_nan, time, step. */
void metric_store_history(struct db_unit *u, struct str run_id, struct str key,
	const struct metric_after *after, int64_t count);
/* Rows per key and bucket; no keys: all, up to 64. */
void metric_store_series(
	struct db_unit *u, struct str run_id, const struct str *keys, size_t n, int64_t buckets);

/* ---- artifacts ---- */
struct artifact_row {
	struct str path, digest /* 32 bytes */, media_type;
	int64_t size;
};
/* No row when the path contradicts others: a part of it is a file, or it is a folder. */
void artifact_store_put(
	struct db_unit *u, int64_t tracking_id, const struct artifact_row *row, struct arena *a);
void artifact_store_get(struct db_unit *u, struct str run_id, struct str path);
/* folder: "" or ending with '/'. Rows: name, path, is_dir, size, digest (hex). */
void artifact_store_list(struct db_unit *u, struct str run_id, struct str folder);

#endif
