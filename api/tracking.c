#include "api/tracking.h"

#define AT(member)  offsetof(struct THIS, member)
#define ITEMS(type) .sub = type##_fields, .size = sizeof(struct type)
#define R           FIELD_READONLY
#define E           FIELD_OMIT_EMPTY

#define THIS key_value
static const struct field key_value_fields[] = {
	{ "key", FIELD_STR, R, AT(key), .doc = "Key" },
	{ "value", FIELD_STR, R | FIELD_TEXT, AT(value), .max = 8000, .doc = "Value" },
	{ 0 },
};
#undef THIS
#define THIS metric_point
static const struct field metric_point_fields[] = {
	{ "key", FIELD_STR, R, AT(key), .doc = "Key" },
	{ "value", FIELD_REAL, R | FIELD_NONFINITE, AT(value), .doc = "Value" },
	{ "time", FIELD_INT, R, AT(time), .doc = "Milliseconds since 1970" },
	{ "step", FIELD_INT, R, AT(step), .doc = "Step" },
	{ 0 },
};
#undef THIS
#define THIS tracking_run
const struct field tracking_run_fields[] = {
	{ "run_id", FIELD_STR, R, AT(run_id), .doc = "32 hex digits" },
	{ "experiment_id", FIELD_STR, R, AT(experiment_id), .doc = "Its experiment" },
	{ "name", FIELD_STR, R, AT(name), .doc = "Name" },
	{ "status", FIELD_STR, R, AT(status),
		.doc = "RUNNING, SCHEDULED, FINISHED, FAILED or KILLED" },
	{ "lifecycle", FIELD_STR, R, AT(lifecycle), .doc = "active or deleted" },
	{ "artifact_uri", FIELD_STR, R, AT(artifact_uri), .doc = "Where its artifacts are" },
	{ "step_id", FIELD_STR, R | E, AT(step_id), .doc = "The step it belongs to" },
	{ "start_time", FIELD_INT, R, AT(start_time), .doc = "Milliseconds since 1970" },
	{ "end_time", FIELD_INT, R | E, AT(end_time), .doc = "Milliseconds since 1970" },
	{ "params", FIELD_LIST, R, AT(params), ITEMS(key_value), .max = 10000, .doc = "Params" },
	{ "tags", FIELD_LIST, R, AT(tags), ITEMS(key_value), .max = 10000, .doc = "Tags" },
	{ "metrics", FIELD_LIST, R, AT(metrics), ITEMS(metric_point), .max = 100000,
		.doc = "Latest value of each metric" },
	{ 0 },
};
#undef THIS

#define THIS series_query
const struct field series_query_fields[] = {
	{ "key", FIELD_LIST, 0, AT(key), .item = FIELD_STR, .item_max = 250, .max = 64,
		.doc = "Metrics; none: all, up to 64" },
	{ "buckets", FIELD_INT, 0, AT(buckets), .min = 1, .max = 2000, .fallback = "800",
		.doc = "Points per metric at most" },
	{ 0 },
};
#undef THIS
#define THIS series_point
static const struct field series_point_fields[] = {
	{ "step", FIELD_INT, R, AT(step), .doc = "Last step in the bucket" },
	{ "time", FIELD_INT, R, AT(time), .doc = "Its time in milliseconds" },
	{ "last", FIELD_REAL, R | FIELD_NONFINITE, AT(last), .doc = "Its value" },
	{ "min", FIELD_REAL, R | FIELD_NONFINITE, AT(min), .doc = "Least value in the bucket" },
	{ "max", FIELD_REAL, R | FIELD_NONFINITE, AT(max), .doc = "Greatest value in the bucket" },
	{ "count", FIELD_INT, R, AT(count), .doc = "Points in the bucket" },
	{ 0 },
};
#undef THIS
#define THIS series
const struct field series_fields[] = {
	{ "key", FIELD_STR, R, AT(key), .doc = "The metric" },
	{ "points", FIELD_LIST, R, AT(points), ITEMS(series_point), .max = 2000,
		.doc = "In the order of steps" },
	{ "total", FIELD_INT, R, AT(total), .doc = "Points that there are" },
	{ 0 },
};
#undef THIS

#define THIS artifact_query
const struct field artifact_query_fields[] = {
	{ "path", FIELD_STR, 0, AT(path), .max = 1024, .doc = "Folder; the root by default" },
	{ 0 },
};
#undef THIS
#define THIS artifact
const struct field artifact_fields[] = {
	{ "path", FIELD_STR, R, AT(path), .doc = "Relative to the run" },
	{ "is_dir", FIELD_BOOL, R, AT(is_dir), .doc = "A folder" },
	{ "size", FIELD_INT, R, AT(size), .doc = "Bytes; of a folder, of all below it" },
	{ "digest", FIELD_STR, R | E, AT(digest), .doc = "SHA-256 in hex" },
	{ 0 },
};
#undef THIS
