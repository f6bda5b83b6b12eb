/* Tracking: the native view for dashboard and CLI, and MLflow's messages on the wire. */
#ifndef API_TRACKING_H
#define API_TRACKING_H
#include "lib/json/field.h"

struct key_value {
	struct str key, value;
};
struct metric_point {
	struct str key;
	double value;
	int64_t time, step; /* time: milliseconds */
};

/* GET …/tracking-runs/{id}: everything but the histories. */
struct tracking_run {
	struct str run_id, experiment_id, name, status, lifecycle, artifact_uri, step_id;
	int64_t start_time, end_time; /* milliseconds, 0: none */
	struct list params, tags; /* struct key_value */
	struct list metrics; /* struct metric_point: latest of each key */
};
extern const struct field tracking_run_fields[];

/* One metric, cut into buckets along the steps; what a chart draws. */
struct series_query {
	struct list key; /* struct str */
	int64_t buckets;
};
extern const struct field series_query_fields[];
struct series_point {
	int64_t step, time, count;
	double last, min, max;
};
struct series {
	struct str key;
	struct list points; /* struct series_point */
	int64_t total;
};
extern const struct field series_fields[];

struct artifact_query {
	struct str path;
};
extern const struct field artifact_query_fields[];
struct artifact {
	struct str path;
	bool is_dir;
	int64_t size;
	struct str digest;
};
extern const struct field artifact_fields[];

#endif
