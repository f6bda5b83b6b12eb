/*
 * What users write in tidemill.yaml: `kind: Pipeline`. The same tables read YAML and JSON and print
 * the published JSON Schema. Values may hold ${…}, which server/core/render replaces when a run is
 * made; a field that is checked only after that is a string here.
 */
#ifndef API_PIPELINE_H
#define API_PIPELINE_H
#include "api/page.h"
#include "lib/json/field.h"

enum { NODES_MAX = 64 }; /* workers of one step */
enum { STEPS_MAX = 1000, ARGV_MAX = 256, ENV_MAX = 256, WORD_MAX = 65536, RUN_MAX = 65536 };
/* Bytes of one output of kind value, and of all that a step has, and a run. */
enum { VALUE_MAX = 65536, VALUES_MAX = 262144, RUN_VALUES_MAX = 16 << 20 };

struct metadata {
	struct str name;
	struct list labels, annotations; /* struct field_pair */
};
extern const struct field metadata_fields[];

enum input_type {
	INPUT_STRING,
	INPUT_INTEGER,
	INPUT_NUMBER,
	INPUT_BOOLEAN,
	INPUT_DATE,
	INPUT_TYPE_COUNT
};
extern const char *const input_type_names[];

struct input_spec {
	struct str name;
	int type;
	struct str value; /* the default, as JSON text; empty: must be given */
	double min, max;
	bool has_min, has_max;
	struct list choices; /* struct str */
	struct str description;
};

struct dataset_ref {
	struct str key; /* the name inside the pipeline */
	struct str name;
	struct str version; /* "latest" or a number, as JSON text */
};

struct model_ref {
	struct str key;
	struct str name, alias;
	bool optional;
};

enum concurrency_policy { CONCURRENCY_QUEUE, CONCURRENCY_CANCEL_RUNNING, CONCURRENCY_REFUSE };
extern const char *const concurrency_policy_names[];

enum runtime_kind { RUNTIME_DOCKER, RUNTIME_PROCESS, RUNTIME_KUBERNETES, RUNTIME_COUNT };
extern const char *const runtime_names[];

enum output_kind {
	OUTPUT_FILES,
	OUTPUT_MODEL,
	OUTPUT_PREDICTIONS,
	OUTPUT_OBSERVATIONS,
	OUTPUT_VALUE, /* a short text, for ${steps.NAME.outputs.KEY} */
	OUTPUT_KIND_COUNT
};
extern const char *const output_kind_names[];

struct output_spec {
	struct str name;
	struct str path; /* below $TIDEMILL_OUTPUT */
	int kind;
	struct str monitor; /* of observations */
};

struct gpu_request {
	int64_t count;
	struct list model; /* struct str: any of these */
	struct str memory; /* "40GiB.." */
	struct str mig; /* profile of a slice, or "any"; "": whole GPUs */
};

struct resources {
	double cpus;
	int64_t memory, disk, shm;
	struct str gpus; /* JSON text: 2, "H100:4", "24GB..80GB:2" or an object */
};

/* Of what a step reads and writes; the numbers of server/core/place.h. */
enum sensitivity {
	SENSITIVITY_PUBLIC,
	SENSITIVITY_INTERNAL,
	SENSITIVITY_CONFIDENTIAL,
	SENSITIVITY_RESTRICTED,
	SENSITIVITY_COUNT
};
extern const char *const sensitivity_names[];
/* Whose environment the ranks of a step get: docs/distributed.md. */
enum launcher_kind {
	LAUNCHER_PLAIN,
	LAUNCHER_TORCHRUN,
	LAUNCHER_RAY,
	LAUNCHER_TENSORFLOW,
	LAUNCHER_JAX,
	LAUNCHER_MPI,
	LAUNCHER_COUNT
};
extern const char *const launcher_names[];

struct placement {
	bool preemptible;
	struct str pool;
	int sensitivity;
	struct list requires, avoids; /* struct field_pair */
	int64_t priority;
	int64_t nodes; /* workers at once */
	int launcher; /* enum launcher_kind */
	bool has_launcher;
};
/* The nodes of a step that runs as a gang, which one with a launcher does on one worker, too; 0 of
 * one that does not. */
int64_t placement_ranks(const struct placement *p);

enum idle_action { IDLE_WARN, IDLE_STOP, IDLE_ACTION_COUNT };
extern const char *const idle_action_names[];

/* GPUs that are held and not used. */
struct gpu_idle {
	struct field_span after;
	int action; /* enum idle_action */
};

struct timeouts {
	struct field_span queue, start, run;
	struct gpu_idle gpu_idle;
	bool has_gpu_idle;
};

struct backoff {
	struct field_span first, max;
	double factor;
};

struct retries {
	int64_t user, infra, preempted;
	struct backoff backoff;
};

enum lost_policy { LOST_KEEP, LOST_STOP };
extern const char *const lost_policy_names[];

struct on_lost {
	int policy;
	struct field_span lost_after, self_stop_after;
};

enum log_action { LOG_LABEL, LOG_STOP_RETRYING, LOG_AVOID_NODE, LOG_NOTIFY, LOG_ACTION_COUNT };
extern const char *const log_action_names[];

enum { LOG_POLICIES_MAX = 32 };
/* What follows from a line of the log that the pattern matches. */
struct log_policy {
	struct str match; /* RE2 */
	int action; /* enum log_action */
	struct str label; /* for people; "" when there is none */
};
extern const struct field log_policy_fields[];

enum select_mode { SELECT_MIN, SELECT_MAX };
extern const char *const select_mode_names[];

struct matrix_select {
	struct str metric;
	int mode; /* enum select_mode */
};

struct matrix_spec {
	struct str values; /* JSON object: lists of texts, numbers and booleans by key */
	int64_t max_parallel;
	struct matrix_select select;
	bool has_select;
};

struct log_spec {
	int64_t max; /* bytes */
	struct list policies; /* struct log_policy */
	bool defaults; /* Tidemill's own policies apply as well */
};

enum system_metrics { SYSTEM_METRICS_ON, SYSTEM_METRICS_OFF, SYSTEM_METRICS_COUNT };
extern const char *const system_metrics_names[];

/* What is recorded of a step beside what it logs itself. */
struct metrics_spec {
	int system; /* enum system_metrics: what it uses of its host */
};

enum secret_as { SECRET_FILE, SECRET_ENV, SECRET_AS_COUNT };
extern const char *const secret_as_names[];

enum { SECRETS_MAX = 16 };
/* A secret that the step may read, by its name on the workers. */
struct secret_use {
	struct str name;
	int as; /* enum secret_as */
};
extern const struct field secret_use_fields[];

/* What two steps must have alike, beside their commands, to be the same. */
enum cache_part { CACHE_CODE, CACHE_IMAGE, CACHE_DATASETS, CACHE_INPUTS, CACHE_PART_COUNT };
extern const char *const cache_part_names[];

struct cache_spec {
	struct list by; /* int, enum cache_part; none: all */
	struct field_span max_age;
};

struct step_spec {
	struct str name;
	struct list needs; /* struct str */
	struct matrix_spec matrix;
	bool has_matrix;
	struct str condition; /* `if`: true or false, or ${…}; "": true */
	struct str run; /* JSON text: a list, or a string for /bin/sh -c */
	struct str image;
	struct list runtimes; /* int, enum runtime_kind, in order of preference */
	struct resources resources;
	bool has_resources;
	struct placement placement;
	struct field_span time_limit; /* = timeouts.run */
	struct timeouts timeouts;
	struct retries retries;
	struct on_lost on_lost;
	struct list env; /* struct field_pair */
	struct list outputs; /* struct output_spec */
	struct list secrets; /* struct secret_use */
	struct log_spec logs;
	struct metrics_spec metrics;
	struct cache_spec cache;
	bool has_cache;
};

struct step_defaults {
	struct list runtimes;
	struct str image;
	struct resources resources;
	bool has_resources;
	struct list env;
};

struct training_data {
	struct str dataset, column, from, to;
};

struct requirement {
	struct str metric;
	double min, max;
	bool has_min, has_max;
};

enum gate_test { GATE_TEST_PAIRED_BOOTSTRAP, GATE_TEST_COUNT };
extern const char *const gate_test_names[];

struct gate_test_spec {
	int kind;
	int64_t draws;
	struct str margin; /* JSON text: 0.05 or "2%" */
	double alpha;
	int64_t min_rows;
};

struct slice_spec {
	struct list by; /* struct str */
	struct str max_regression;
	int64_t min_rows;
};

struct approve_spec {
	int64_t people;
};

enum gate_metric { GATE_MAE, GATE_RMSE, GATE_ACCURACY, GATE_METRIC_COUNT };
extern const char *const gate_metric_names[];

struct gate_spec {
	struct str predictions; /* "evaluate.predictions" */
	int metric;
	struct list require;
	struct str against;
	struct gate_test_spec test;
	struct slice_spec slices;
	bool has_slices;
	struct approve_spec approve;
	struct str promote;
};

struct model_spec {
	struct str name, from;
	struct training_data training_data;
	bool has_training_data;
	struct gate_spec gate;
	bool has_gate;
};

struct dataset_trigger {
	struct str name;
};
/* The numbers of enum schedule_missed in server/core/schedule.h. */
enum missed_policy { MISSED_NONE, MISSED_LAST, MISSED_ALL };
extern const char *const missed_policy_names[];
enum dst_policy { DST_ONCE, DST_SKIP };
extern const char *const dst_policy_names[];

struct schedule_trigger {
	struct str cron, timezone;
	int dst, missed;
	int64_t max;
};
extern const struct field schedule_trigger_fields[];
enum upstream_state { UPSTREAM_SUCCEEDED, UPSTREAM_FAILED, UPSTREAM_ENDED };
extern const char *const upstream_state_names[];
struct pipeline_trigger {
	struct str name;
	int state;
};
/* One of them. */
struct trigger_spec {
	struct dataset_trigger dataset;
	struct schedule_trigger schedule;
	struct pipeline_trigger pipeline;
	bool has_dataset, has_schedule, has_pipeline;
};

struct concurrency {
	struct str group;
	int policy;
};

struct pipeline_spec {
	struct list inputs; /* struct input_spec */
	struct list datasets; /* struct dataset_ref */
	struct list models; /* struct model_ref */
	struct list triggers; /* struct trigger_spec */
	struct concurrency concurrency;
	bool has_concurrency;
	struct step_defaults defaults;
	struct list steps; /* struct step_spec */
	struct model_spec model;
	bool has_model;
};
extern const struct field pipeline_spec_fields[];
extern const struct field step_spec_fields[];
extern const struct field gate_spec_fields[];
extern const struct field gpu_request_fields[];
extern const struct field trigger_spec_fields[];

/* The whole file. */
struct pipeline_file {
	struct str api_version;
	int kind;
	struct metadata metadata;
	struct pipeline_spec spec;
};
extern const struct field pipeline_file_fields[];
/* Only apiVersion and kind, to tell which table reads a file; other members are ignored by a loose
 * decoding. */
struct file_head {
	struct str api_version, kind;
};
extern const struct field file_head_fields[];

/* How a schedule stands. */
struct pipeline_schedule {
	struct str cron, timezone;
	int64_t next_at; /* 0: never again */
};
/* A run that a trigger has not been able to start so far. */
struct pipeline_owed {
	struct str trigger, key, error;
	int64_t tries, try_at;
};

/* As the API shows it. */
struct pipeline {
	struct str id, name, repository, ref, path, commit;
	struct str spec; /* JSON */
	struct str source;
	bool paused;
	int64_t created_at, version;
	struct list schedules; /* struct pipeline_schedule */
	struct list owed; /* struct pipeline_owed */
};
extern const struct field pipeline_fields[];
extern const struct field pipeline_item_fields[]; /* the same in a list: without spec and source */

/* PUT …/pipelines/{pipeline}: from a repository at a ref, or with the file's text. What is absent
 * stays as it is, null goes back to none or to the default. */
struct pipeline_put {
	struct str repository, ref, path, source;
	bool no_repository, no_ref, no_path; /* null was given */
};
extern const struct field pipeline_put_fields[];

#endif
