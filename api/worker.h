/*
 * Workers: enrolment, and the one exchange by which they work. `sync` is level-triggered: the
 * request says what the worker has, the reply what it should have. The server holds the request
 * until the two differ, or 25 s pass. Everything may be sent again; identity comes from the
 * credential, never from the message.
 */
#ifndef API_WORKER_H
#define API_WORKER_H
#include "api/dataset.h"
#include "api/page.h"
#include "api/pipeline.h"
#include "lib/base/err.h"
#include "lib/json/field.h"

struct arena;

enum { ASSIGNED_POLICIES_MAX = 64, LOG_MATCH_TEXT = 300 };
enum { CHECKPOINTS_MAX = 1024 }; /* steps of which one worker keeps some */

enum worker_state { WORKER_ACTIVE, WORKER_DRAINING, WORKER_DISABLED, WORKER_STATE_COUNT };
extern const char *const worker_state_names[];

struct device {
	struct str uuid, model;
	int64_t memory; /* bytes */
	struct str driver, bus_id, health; /* health: "" is well, else why not */
	struct str mig; /* profile of a MIG slice, "" for a whole GPU */
	int64_t numa; /* node of the host's memory that is nearest */
	bool has_numa;
	struct list links; /* struct str: UUIDs of those that it has NVLink to */
};
extern const struct field device_fields[];

struct worker {
	struct str id, name, pool;
	struct str labels; /* JSON */
	int state;
	struct str release, boot_id;
	struct list runtimes, isolated; /* struct str */
	double cpus;
	int64_t memory, disk_free;
	struct str devices; /* JSON list of devices */
	struct str warnings; /* JSON list of sentences */
	struct str holds; /* JSON list of struct hold */
	int64_t running; /* attempts that it holds */
	int64_t faults, fault_at; /* attempts in a row that failed by its fault; the last one */
	int64_t seen_at, created_at, version;
	bool online;
};
extern const struct field worker_fields[];

struct join_token_new {
	struct str pool;
	struct list labels;
	struct field_span expires_in;
	bool has_expires_in;
};
extern const struct field join_token_new_fields[];

struct enroll {
	struct str name;
};
extern const struct field enroll_fields[];
struct enrolled {
	struct str worker_id, pool, token;
	int64_t expires_at;
};
extern const struct field enrolled_fields[];

/* ---- sync: what the worker has ---- */
enum hold_kind { HOLD_IMAGE, HOLD_DATASET, HOLD_KIND_COUNT };
extern const char *const hold_kind_names[];
enum { HOLDS_MAX = 128 };
struct hold {
	int kind;
	struct str name; /* an image as pipelines write it, the id of a version of a data set */
	int64_t bytes;
};
struct holds {
	struct list items; /* struct hold: those used last first */
};
extern const struct field holds_fields[];
struct sync_attempt {
	struct str id;
	int64_t epoch;
	int state; /* enum attempt_state */
	struct str reason, message, runtime;
	int64_t exit_code, signal;
	bool has_exit_code, has_signal;
	int64_t started_at, ended_at;
	struct str evidence; /* JSON object */
	bool cancelling; /* the cancellation has arrived */
	/* Of a gang's rank: its command waits for the release; which has arrived. */
	bool ready, released;
	struct str address; /* where other ranks reach it, and */
	int64_t port; /* a port that was free there */
};
struct sync_request {
	struct str boot_id, release;
	struct list runtimes; /* struct str */
	struct list isolated; /* struct str: runtimes in which others do not reach a gang's ranks */
	double cpus;
	int64_t memory, disk_free;
	struct list devices; /* struct device */
	struct list attempts; /* struct sync_attempt */
	struct list warnings; /* struct str */
	struct list checkpoints; /* struct str: steps whose checkpoints it keeps */
	struct holds holds; /* not told: as it was told before */
	bool has_holds;
	bool wait; /* hold the request while there is nothing to say */
};
extern const struct field sync_request_fields[];

/* ---- what it should have ---- */
struct staged {
	struct str name; /* of the data set, model or step inside the pipeline */
	struct str ref; /* "ridership/17", for people */
	struct str version; /* its id, of a data set */
	struct list files; /* struct file */
	struct str listing; /* instead, of many files: lines of "DIGEST SIZE PATH" */
};
size_t staged_count(const struct staged *s);
/* Its files, in the arena where they are made of the listing. */
int staged_files(
	const struct staged *s, struct arena *a, struct list *ret, struct err *e) MUST_CHECK;
struct assigned_output {
	struct str name, path;
	int kind; /* enum output_kind */
};
struct assignment {
	struct str attempt, step, run, project, pipeline, step_name;
	int64_t number, epoch;
	struct list runtimes; /* int: the first that the worker offers */
	struct list argv; /* struct str */
	struct str image;
	struct str image_ref; /* exactly that one, once an attempt of the run has found out */
	struct list env; /* struct field_pair */
	int64_t rank, ranks; /* of the gang; ranks 0: it is none */
	int launcher; /* enum launcher_kind */
	struct str repository, commit;
	struct list datasets, models, inputs; /* struct staged */
	struct list outputs; /* struct assigned_output */
	struct list checkpoint; /* struct file: what the attempt of that number left behind */
	int64_t checkpoint_attempt; /* 0: there is none */
	int64_t checkpoint_max; /* bytes of one that the server takes; 0: not said */
	int64_t user_retries; /* how many more failures of the command are followed by an attempt */
	double cpus;
	int64_t memory, shm;
	struct list devices; /* struct str, UUIDs */
	int64_t time_limit, start_timeout; /* microseconds; 0: none */
	int64_t gpu_idle; /* microseconds that its GPUs may be unused; 0: for ever */
	bool gpu_idle_stop; /* then it is stopped; else only a warning is sent */
	int64_t self_stop_after; /* microseconds; 0: keep running while cut off */
	int64_t log_max;
	bool no_system_metrics; /* what it uses of its host is not recorded */
	struct list log_policies; /* struct log_policy, of the step and of Tidemill itself */
	struct list secrets; /* struct secret_use: the worker knows their values */
	struct str token; /* the job's, for MLFLOW_TRACKING_TOKEN and TIDEMILL_TOKEN_FILE */
	struct str tracking_run, experiment_id;
};
/* All ranks of the gang are ready: the command may begin. */
struct rank_place {
	struct str address;
	int64_t port;
};
extern const struct field rank_place_fields[];
struct sync_release {
	struct str attempt;
	int64_t epoch;
	struct list ranks; /* struct rank_place, by rank */
};
struct sync_cancel {
	struct str attempt;
	int64_t epoch;
	struct str reason; /* cancelled, superseded, timeout, preempted */
};
struct sync_reply {
	struct list assign; /* struct assignment: those that the worker does not have yet */
	struct list cancel; /* struct sync_cancel: to be stopped */
	struct list release; /* struct sync_release: their commands may begin */
	struct list forget; /* struct str: ended and stored, may be removed */
	struct list discard; /* struct str: steps that need no checkpoint any more */
	bool drain;
};
extern const struct field sync_reply_fields[];
extern const struct field assignment_fields[];

/* ---- an attempt's effects; each carries the epoch ---- */
struct epoch_query {
	int64_t epoch;
};
extern const struct field epoch_query_fields[];
struct log_put_query {
	int64_t epoch, offset;
};
extern const struct field log_put_query_fields[];
/* What the server holds of the spool. Other than what was sent or asked: go on from there (a gap, a
 * database that lost its last moments, or a digest that did not agree: 0). The worker keeps the
 * whole spool until log_final is answered with the length that it asked for; only then are the
 * bytes durable. */
struct log_position {
	int64_t length;
};
extern const struct field log_position_fields[];
struct log_final {
	int64_t epoch, length, dropped;
	struct str digest; /* sha256 of the whole spool */
};
extern const struct field log_final_fields[];
/* The policies that lines of the log have matched so far, those with matches only. Sent whenever
 * there is a new one, and at the end of the log with the final counts. */
struct log_match {
	int64_t policy; /* position in the assignment's */
	struct str match;
	int action; /* enum log_action */
	struct str label;
	int64_t count; /* of lines */
	int64_t line, time; /* the first one */
	struct str text; /* of that, about where it matches */
};
struct log_matches {
	int64_t epoch;
	struct list matches; /* struct log_match */
};
extern const struct field log_match_fields[];
extern const struct field log_matches_fields[];
/* What somebody should know of an attempt that goes on. The newest one is kept. */
struct attempt_warning {
	int64_t epoch;
	struct str kind, message; /* kind: gpu_idle */
};
extern const struct field attempt_warning_fields[];
/* What an attempt uses of its host: metrics of its tracking run, whose step is the whole second
 * since that began. Keys begin with SYSTEM_METRIC. */
#define SYSTEM_METRIC "system/"
enum { ATTEMPT_METRICS_MAX = 1000 };
struct attempt_metric {
	struct str key;
	double value;
	int64_t time;
};
struct attempt_metrics {
	int64_t epoch;
	struct list metrics; /* struct attempt_metric */
};
extern const struct field attempt_metrics_fields[];
/* Files by their path below $TIDEMILL_OUTPUT: the output's declared path, or something below it. */
struct output_files {
	struct str name;
	struct list files; /* struct file */
	struct str value; /* of kind value: the bytes of its file */
	bool has_value;
};
struct outputs_put {
	int64_t epoch;
	struct list outputs; /* struct output_files */
};
extern const struct field outputs_put_fields[];
/* All that stands in $TIDEMILL_CHECKPOINT_DIR, by paths relative to it. */
struct checkpoint_put {
	int64_t epoch;
	struct list files; /* struct file */
};
extern const struct field checkpoint_put_fields[];

#endif
