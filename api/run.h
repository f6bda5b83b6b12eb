/* Runs, steps, attempts and their logs. */
#ifndef API_RUN_H
#define API_RUN_H
#include "api/page.h"
#include "api/queue.h"
#include "lib/json/field.h"

enum run_state {
	RUN_QUEUED,
	RUN_RUNNING,
	RUN_FINISHING,
	RUN_SUCCEEDED,
	RUN_FAILED,
	RUN_CANCELLED,
	RUN_STATE_COUNT
};
extern const char *const run_state_names[];

enum step_state {
	STEP_WAITING,
	STEP_QUEUED,
	STEP_ASSIGNED,
	STEP_RUNNING,
	STEP_FINISHING,
	STEP_SUCCEEDED,
	STEP_FAILED,
	STEP_CANCELLED,
	STEP_SKIPPED,
	STEP_STATE_COUNT
};
extern const char *const step_state_names[];

enum attempt_state {
	ATTEMPT_ASSIGNED,
	ATTEMPT_PREPARING,
	ATTEMPT_RUNNING,
	ATTEMPT_FINISHING,
	ATTEMPT_SUCCEEDED,
	ATTEMPT_FAILED,
	ATTEMPT_CANCELLED,
	ATTEMPT_LOST,
	ATTEMPT_STATE_COUNT
};
extern const char *const attempt_state_names[];

/* Why an attempt ended: one table for both sides. Blame decides whose retry budget pays. */
/*    id                name                    blame   sentence */
#define REASON_TABLE(X)                                                                            \
	X(NONE, "", USER, "")                                                                      \
	X(EXIT_CODE, "exit_code", USER, "The command ended with an exit code other than 0")        \
	X(SIGNAL, "signal", USER, "The command was ended by a signal")                             \
	X(OOM_KILLED, "oom_killed", USER,                                                          \
		"The kernel ended the command: it needed more memory than it may have")            \
	X(NOT_STARTED, "not_started", USER, "The command could not be started")                    \
	X(OUTPUT_MISSING, "output_missing", USER, "A declared output was not written")             \
	X(OUTPUT_INVALID, "output_invalid", USER, "An output cannot be used as it is")             \
	X(CUDA_OOM, "cuda_oom", USER,                                                              \
		"The command ended because a GPU had not enough memory for it")                    \
	X(TIMEOUT, "timeout", USER, "The time limit passed")                                       \
	X(GPU_IDLE, "gpu_idle", USER, "Its GPUs were not used for too long")                       \
	X(QUEUE_TIMEOUT, "queue_timeout", USER, "No worker took the step in time")                 \
	X(BAD_ASSIGNMENT, "bad_assignment", INFRA, "The step could not be given to a worker")      \
	X(CHECKOUT_FAILED, "checkout_failed", INFRA, "The repository could not be checked out")    \
	X(IMAGE_NOT_FOUND, "image_not_found", USER, "The registry has no such image")              \
	X(IMAGE_PULL, "image_pull", INFRA, "The image could not be fetched")                       \
	X(STAGING_FAILED, "staging_failed", INFRA, "The data could not be brought to the worker")  \
	X(START_TIMEOUT, "start_timeout", INFRA, "The command was not started in time")            \
	X(SECRET_MISSING, "secret_missing", INFRA,                                                 \
		"A secret of the step cannot be had on the worker")                                \
	X(RUNTIME_FAILED, "runtime_failed", INFRA,                                                 \
		"The container or process could not be managed")                                   \
	X(KILLED_OUTSIDE, "killed_outside", INFRA, "Somebody else than Tidemill ended it")         \
	X(DAEMON_RESTARTED, "daemon_restarted", INFRA,                                             \
		"The container daemon restarted, and took the container along")                    \
	X(UPLOAD_FAILED, "upload_failed", INFRA,                                                   \
		"Log or outputs could not be brought to the server")                               \
	X(DISK_FULL, "disk_full", INFRA, "No space was left on the worker")                        \
	X(GPU_FAULT, "gpu_fault", INFRA, "A GPU reported a fault")                                 \
	X(WORKER_LOST, "worker_lost", INFRA, "The worker was not heard of for too long")           \
	X(NEED_FAILED, "need_failed", USER, "A step that it needs did not succeed")                \
	X(NEED_SKIPPED, "need_skipped", USER, "A step that it needs was skipped")                  \
	X(CONDITION_FALSE, "condition_false", USER, "Its condition is false")                      \
	X(METRIC_MISSING, "metric_missing", USER, "No combination can be chosen by the metric")    \
	X(BAD_VALUE, "bad_value", USER, "What another step has put out cannot be used here")       \
	X(MODEL_INVALID, "model_invalid", USER, "The model could not be registered")               \
	X(PREEMPTED, "preempted", PREEMPTED, "A step that goes first took its place")              \
	X(CANCELLED, "cancelled", CANCEL, "It was cancelled")                                      \
	X(GANG_STOPPED, "gang_stopped", CANCEL, "It was stopped because another rank ended")       \
	X(SUPERSEDED, "superseded", INFRA, "A newer attempt has taken over")

enum reason_blame { BLAME_USER, BLAME_INFRA, BLAME_CANCEL, BLAME_PREEMPTED };
enum reason {
#define X(id, name, blame, sentence) REASON_##id,
	REASON_TABLE(X)
#undef X
		REASON_COUNT
};
extern const char *const reason_names[];
const char *reason_sentence(enum reason r);
enum reason_blame reason_blame(enum reason r);
/* Faults of the host itself, as against those of what it was asked to fetch. */
bool reason_is_host(enum reason r);

struct run {
	struct str id, pipeline;
	int64_t number;
	int state;
	struct str reason, message, inputs, labels, repository, commit, trigger, trigger_key,
		decision_id;
	int64_t experiment_id;
	int64_t created_at, started_at, ended_at, version;
	int64_t cancel_requested_at; /* 0: it was not asked for */
	struct str created_by;
	struct str rerun_of; /* the run that it runs again, */
	int rerun_from; /* enum rerun_from */
	bool has_rerun_from;
	bool no_cache; /* it takes nothing from the cache of steps */
	struct list datasets; /* struct run_dataset */
	struct str model_version; /* "ridership/2", when the run registered one */
	struct blocked blocked; /* what one of its steps waits for */
	bool has_blocked;
	struct str project;
};
struct run_dataset {
	struct str name, dataset, version_id;
	int64_t number;
};
extern const struct field run_fields[];

struct run_new {
	struct str pipeline; /* a registered one, or */
	struct str source; /* the text of a Pipeline file */
	struct str ref; /* branch, tag or commit; default: the pipeline's */
	struct str inputs; /* JSON object */
	struct list labels;
	bool no_cache;
};
extern const struct field run_new_fields[];

enum rerun_from { RERUN_FAILED, RERUN_START };
extern const char *const rerun_from_names[];

/* POST …/runs/{run}/rerun */
struct rerun_new {
	int from; /* enum rerun_from */
};
extern const struct field rerun_new_fields[];

struct run_query {
	struct page_query page;
	struct str pipeline;
	int state;
	bool has_state;
};
extern const struct field run_query_fields[];

/* ?wait=30s returns early when the run has ended. */
struct wait_query {
	struct field_span wait;
};
extern const struct field wait_query_fields[];

/* Nothing was run for the step: it stands for one of another run. */
struct step_reuse {
	struct str by, run_id, step_id;
	int64_t ended_at;
};

struct step {
	struct str id, run_id, name;
	int64_t position;
	struct list needs; /* struct str */
	int state;
	struct str reason, message;
	int64_t attempts;
	struct str tracking_run, outputs, spec;
	int64_t created_at, queued_at, started_at, ended_at;
	struct str attempt_id; /* the newest */
	struct blocked blocked;
	bool has_blocked;
	struct str matrix; /* JSON: the values of this combination */
	struct str matrix_of; /* the step that it is a combination of */
	struct str selected; /* the combination that was chosen */
	struct str metric; /* by which they are compared, */
	double metric_value; /* and what this one has come to */
	bool has_metric_value;
	int64_t nodes; /* workers that it runs on at once */
	int64_t checkpoint_attempt, checkpoint_at; /* 0: it has brought none */
	int64_t user_failures, infra_failures; /* attempts that a budget has paid for */
	struct str image_ref;
	struct step_reuse reused;
	bool has_reused;
};
extern const struct field step_fields[];

struct attempt {
	struct str id, step_id, run_id;
	int64_t number, epoch;
	int64_t rank, ranks; /* of its gang; ranks 0: it is none */
	struct str worker_id, worker, runtime;
	struct list devices;
	int state;
	struct str reason, message;
	int64_t exit_code, signal;
	bool has_exit_code, has_signal;
	struct str evidence;
	int64_t created_at, started_at, ended_at;
	int64_t log_bytes, log_lines;
	bool log_complete;
	struct str log_matches; /* JSON list of struct log_match */
	struct str warning; /* the newest one */
	int64_t ready_at; /* when its command could begin and waited for other ranks; 0: never */
	struct str address; /* where those reach it */
};
extern const struct field attempt_fields[];

/* GET …/log: lines as JSON, newest page last; or raw bytes. */
struct log_query {
	int64_t from; /* first line, counted from 1; 0: by tail */
	int64_t tail; /* the last so many lines */
	int64_t limit;
	bool raw; /* the bytes as they were written, both streams in order of arrival */
	bool follow; /* server-sent events: backlog first, then the tail, then `end` */
	int stream; /* enum frame_stream, 0: all */
	bool has_stream;
	struct str grep; /* only lines that hold this, or that this matches */
	bool regex, ignore_case;
	int64_t since; /* only lines from this time on */
	bool has_since;
	int64_t rank; /* of the step's newest attempt */
};
extern const struct field log_query_fields[];

struct log_line {
	int64_t line, time;
	int stream;
	struct str text; /* '\r' progress folded; invalid UTF-8 replaced */
	bool open; /* it has not ended yet and comes again under its number */
};
struct log_page {
	struct list lines;
	int64_t first, last, total; /* line numbers */
	bool complete; /* nothing more will come */
	int64_t dropped;
};
extern const struct field log_line_fields[];
extern const struct field log_page_fields[];

#endif
