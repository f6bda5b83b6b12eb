#include "api/run.h"

#include "api/pipeline.h"

const char *const run_state_names[] = { "queued", "running", "finishing", "succeeded", "failed",
	"cancelled", NULL };
const char *const step_state_names[] = { "waiting", "queued", "assigned", "running", "finishing",
	"succeeded", "failed", "cancelled", "skipped", NULL };
const char *const attempt_state_names[] = { "assigned", "preparing", "running", "finishing",
	"succeeded", "failed", "cancelled", "lost", NULL };
const char *const rerun_from_names[] = { "failed", "start", NULL };
static const char *const stream_names[] = { "all", "stdout", "stderr", "system", NULL };
_Static_assert(sizeof run_state_names / sizeof *run_state_names == RUN_STATE_COUNT + 1,
	"run states and names differ");
_Static_assert(sizeof step_state_names / sizeof *step_state_names == STEP_STATE_COUNT + 1,
	"step states and names differ");
_Static_assert(sizeof attempt_state_names / sizeof *attempt_state_names == ATTEMPT_STATE_COUNT + 1,
	"attempt states and names differ");

const char *const reason_names[] = {
#define X(id, name, blame, sentence) name,
	REASON_TABLE(X)
#undef X
		NULL
};

static const struct {
	const char *sentence;
	enum reason_blame blame;
} reasons[] = {
#define X(id, name, whose, text) { text, BLAME_##whose },
	REASON_TABLE(X)
#undef X
};

const char *reason_sentence(enum reason r)
{
	return reasons[r].sentence;
}

enum reason_blame reason_blame(enum reason r)
{
	return reasons[r].blame;
}

bool reason_is_host(enum reason r)
{
	return r == REASON_RUNTIME_FAILED || r == REASON_START_TIMEOUT || r == REASON_DISK_FULL ||
	       r == REASON_GPU_FAULT || r == REASON_WORKER_LOST || r == REASON_DAEMON_RESTARTED;
}

#define AT(member)  offsetof(struct THIS, member)
#define HAS(member) FIELD_HAS(struct THIS, member)
#define R           FIELD_READONLY
#define N           FIELD_NULLABLE
#define E           FIELD_OMIT_EMPTY

#define THIS run_dataset
static const struct field run_dataset_fields[] = {
	{ "name", FIELD_STR, R, AT(name), .doc = "Name inside the pipeline" },
	{ "dataset", FIELD_STR, R, AT(dataset), .doc = "Name of the data set" },
	{ "number", FIELD_INT, R, AT(number), .doc = "Number of the version" },
	{ "version_id", FIELD_STR, R, AT(version_id), .doc = "Identity of the version" },
	{ 0 },
};
#undef THIS
#define THIS run
const struct field run_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the run" },
	{ "project", FIELD_STR, R, AT(project), .doc = "Name of the project" },
	{ "pipeline", FIELD_STR, R, AT(pipeline), .doc = "Name of the pipeline" },
	{ "number", FIELD_INT, R | E, AT(number),
		.doc = "Counts the pipeline's runs from 1; none for a run of a file of its own" },
	{ "state", FIELD_ENUM, R, AT(state), .names = run_state_names, .doc = "Where it is" },
	{ "reason", FIELD_STR, R | E, AT(reason), .doc = "Why it ended so" },
	{ "message", FIELD_STR, R | E | FIELD_TEXT, AT(message), .doc = "The same in words" },
	{ "inputs", FIELD_RAW, R, AT(inputs), .doc = "Inputs, with defaults filled in" },
	{ "labels", FIELD_RAW, R, AT(labels), .doc = "Labels" },
	{ "repository", FIELD_STR, R | E, AT(repository), .doc = "Git repository" },
	{ "commit", FIELD_STR, R | E, AT(commit), .doc = "The exact commit" },
	{ "trigger", FIELD_STR, R, AT(trigger),
		.doc = "api, push, schedule, dataset, pipeline, decision or rerun" },
	{ "trigger_key", FIELD_STR, R | E, AT(trigger_key), .doc = "What fired it" },
	{ "rerun_of", FIELD_STR, R | E, AT(rerun_of),
		.doc = "The run that it runs again; it may be gone" },
	{ "rerun_from", FIELD_ENUM, R | E, AT(rerun_from), HAS(has_rerun_from),
		.names = rerun_from_names, .doc = "failed: what had succeeded was taken over" },
	{ "no_cache", FIELD_BOOL, R | E, AT(no_cache), HAS(no_cache),
		.doc = "Nothing is taken from the cache of steps" },
	{ "decision_id", FIELD_STR, R | E, AT(decision_id), .doc = "The decision that started it" },
	{ "experiment_id", FIELD_INT, R, AT(experiment_id),
		.doc = "Experiment of its tracking runs" },
	{ "datasets", FIELD_LIST, R, AT(datasets), .sub = run_dataset_fields,
		.size = sizeof(struct run_dataset), .doc = "What it reads, pinned" },
	{ "model_version", FIELD_STR, R | E, AT(model_version),
		.doc = "NAME/NUMBER of the version that it registered" },
	{ "blocked", FIELD_OBJ, R | E, AT(blocked), HAS(has_blocked), .sub = blocked_fields,
		.size = sizeof(struct blocked),
		.doc = "What one of its steps waits for, one that waits in vain first" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was submitted" },
	{ "created_by", FIELD_STR, R | E, AT(created_by), .doc = "Who submitted it" },
	{ "started_at", FIELD_TIME, R | N, AT(started_at), .doc = "When its first step started" },
	{ "cancel_requested_at", FIELD_TIME, R | N, AT(cancel_requested_at),
		.doc = "When somebody asked to cancel it; until it has ended it is being "
		       "cancelled" },
	{ "ended_at", FIELD_TIME, R | N, AT(ended_at), .doc = "When it ended" },
	{ "version", FIELD_INT, R, AT(version), .doc = "Moves with every change" },
	{ 0 },
};
#undef THIS

#define THIS run_new
const struct field run_new_fields[] = {
	{ "pipeline", FIELD_STR, FIELD_NAME, AT(pipeline), .doc = "A registered pipeline" },
	{ "source", FIELD_STR, FIELD_TEXT, AT(source), .max = 1 << 20,
		.doc = "The text of a Pipeline file, instead" },
	{ "ref", FIELD_STR, 0, AT(ref), .max = 255,
		.doc = "Branch, tag or commit; the pipeline's own by default" },
	{ "inputs", FIELD_RAW, 0, AT(inputs), .max = 65536, .fallback = "{}",
		.schema = "{\"type\":\"object\"}", .doc = "Inputs by name" },
	{ "labels", FIELD_MAP, 0, AT(labels), .max = 32, .item_max = 255, .key_max = 63,
		.doc = "Free words" },
	{ "no_cache", FIELD_BOOL, 0, AT(no_cache),
		.doc = "Run all steps, also those that say cache" },
	{ 0 },
};
#undef THIS
#define THIS rerun_new
const struct field rerun_new_fields[] = {
	{ "from", FIELD_ENUM, 0, AT(from), .names = rerun_from_names, .fallback = "failed",
		.doc = "failed: take over the steps that have succeeded; start: run all anew" },
	{ 0 },
};
#undef THIS
#define THIS run_query
const struct field run_query_fields[] = {
	PAGE_FIELDS(struct run_query),
	{ "pipeline", FIELD_STR, FIELD_NAME, AT(pipeline), .doc = "Only runs of this pipeline" },
	{ "state", FIELD_ENUM, 0, AT(state), HAS(has_state), .names = run_state_names,
		.doc = "Only runs in this state" },
	{ 0 },
};
#undef THIS
#define THIS wait_query
const struct field wait_query_fields[] = {
	{ "wait", FIELD_SPAN, 0, AT(wait), .max = 60 * CLOCK_SECOND,
		.doc = "Answer when the run has ended, or after this long" },
	{ 0 },
};
#undef THIS

#define THIS step_reuse
static const struct field step_reuse_fields[] = {
	{ "by", FIELD_STR, R, AT(by), .doc = "rerun or cache" },
	{ "run_id", FIELD_STR, R, AT(run_id), .doc = "The run in which it ran; it may be gone" },
	{ "step_id", FIELD_STR, R, AT(step_id), .doc = "The step there: its attempts and log" },
	{ "ended_at", FIELD_TIME, R, AT(ended_at), .doc = "When that one ended" },
	{ 0 },
};
#undef THIS
#define THIS step
const struct field step_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the step" },
	{ "run_id", FIELD_STR, R, AT(run_id), .doc = "Its run" },
	{ "name", FIELD_STR, R, AT(name), .doc = "Name in the pipeline" },
	{ "position", FIELD_INT, R, AT(position), .doc = "Order in the file" },
	{ "needs", FIELD_LIST, R, AT(needs), .item = FIELD_STR, .doc = "Steps that it waits for" },
	{ "state", FIELD_ENUM, R, AT(state), .names = step_state_names, .doc = "Where it is" },
	{ "reason", FIELD_STR, R | E, AT(reason), .doc = "Why it ended so" },
	{ "message", FIELD_STR, R | E | FIELD_TEXT, AT(message), .doc = "The same in words" },
	{ "attempts", FIELD_INT, R, AT(attempts), .doc = "Attempts made" },
	{ "attempt_id", FIELD_STR, R | E, AT(attempt_id),
		.doc = "The newest attempt; of a gang: of rank 0" },
	{ "nodes", FIELD_INT, R, AT(nodes), .doc = "Workers that it runs on at once" },
	{ "tracking_run", FIELD_STR, R | E, AT(tracking_run),
		.doc = "MLflow run id, shared by its attempts" },
	{ "blocked", FIELD_OBJ, R | E, AT(blocked), HAS(has_blocked), .sub = blocked_fields,
		.size = sizeof(struct blocked),
		.doc = "What it waits for; …/blockers has the numbers" },
	{ "matrix", FIELD_RAW, R | E, AT(matrix), .doc = "The values of this combination" },
	{ "matrix_of", FIELD_STR, R | E, AT(matrix_of),
		.doc = "The step with the matrix that this is a combination of" },
	{ "selected", FIELD_STR, R | E, AT(selected),
		.doc = "The combination that was chosen: its outputs are this step's" },
	{ "metric", FIELD_STR, R | E, AT(metric), .doc = "What combinations are compared by" },
	{ "metric_value", FIELD_REAL, R | E | FIELD_NONFINITE, AT(metric_value),
		HAS(has_metric_value), .doc = "What this one has come to" },
	{ "outputs", FIELD_RAW, R, AT(outputs), .doc = "Outputs by name: kind, files, bytes" },
	{ "spec", FIELD_RAW, R, AT(spec), .doc = "The step as it runs" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was made" },
	{ "queued_at", FIELD_TIME, R | N, AT(queued_at), .doc = "When it last became ready" },
	{ "started_at", FIELD_TIME, R | N, AT(started_at),
		.doc = "When its first attempt started" },
	{ "ended_at", FIELD_TIME, R | N, AT(ended_at), .doc = "When it ended" },
	{ "checkpoint_attempt", FIELD_INT, R, AT(checkpoint_attempt),
		.doc = "Number of the attempt that brought a checkpoint last; 0: none has" },
	{ "checkpoint_at", FIELD_TIME, R | N, AT(checkpoint_at), .doc = "When that was" },
	{ "user_failures", FIELD_INT, R, AT(user_failures),
		.doc = "Failed attempts that retries.user pays for" },
	{ "infra_failures", FIELD_INT, R, AT(infra_failures),
		.doc = "Failed attempts that retries.infra pays for" },
	{ "reused", FIELD_OBJ, R | E, AT(reused), HAS(has_reused), .sub = step_reuse_fields,
		.size = sizeof(struct step_reuse),
		.doc = "Nothing was run: it stands for a step of another run" },
	{ "image_ref", FIELD_STR, R | E, AT(image_ref),
		.doc = "The image exactly: as the run's first attempt with it has resolved its "
		       "name; "
		       "REPOSITORY@sha256:…, or the id of one that no registry is known to have" },
	{ 0 },
};
#undef THIS

#define THIS attempt
const struct field attempt_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the attempt" },
	{ "step_id", FIELD_STR, R, AT(step_id), .doc = "Its step" },
	{ "run_id", FIELD_STR, R, AT(run_id), .doc = "Its run" },
	{ "number", FIELD_INT, R, AT(number), .doc = "Counts from 1" },
	{ "rank", FIELD_INT, R, AT(rank), .doc = "In its gang, whose ranks share the number" },
	{ "ranks", FIELD_INT, R, AT(ranks), .doc = "Of its gang; 0: it is none" },
	{ "address", FIELD_STR, R | E, AT(address), .doc = "Where the other ranks reach it" },
	{ "ready_at", FIELD_TIME, R | N, AT(ready_at),
		.doc = "When its command could begin, and waited for those of the other ranks" },
	{ "epoch", FIELD_INT, R, AT(epoch), .doc = "Fences its effects" },
	{ "worker_id", FIELD_STR, R, AT(worker_id), .doc = "Where it runs" },
	{ "worker", FIELD_STR, R, AT(worker), .doc = "Name of the worker" },
	{ "runtime", FIELD_STR, R | E, AT(runtime), .doc = "docker or process" },
	{ "devices", FIELD_LIST, R, AT(devices), .item = FIELD_STR, .doc = "UUIDs of its GPUs" },
	{ "state", FIELD_ENUM, R, AT(state), .names = attempt_state_names, .doc = "Where it is" },
	{ "reason", FIELD_STR, R | E, AT(reason), .doc = "Why it ended so" },
	{ "message", FIELD_STR, R | E | FIELD_TEXT, AT(message), .doc = "The same in words" },
	{ "exit_code", FIELD_INT, R | N, AT(exit_code), HAS(has_exit_code),
		.doc = "Of the command" },
	{ "signal", FIELD_INT, R | N, AT(signal), HAS(has_signal),
		.doc = "That ended the command" },
	{ "evidence", FIELD_RAW, R, AT(evidence), .doc = "What the reason rests on" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was assigned" },
	{ "started_at", FIELD_TIME, R | N, AT(started_at), .doc = "When the command started" },
	{ "ended_at", FIELD_TIME, R | N, AT(ended_at), .doc = "When it ended" },
	{ "log_bytes", FIELD_INT, R, AT(log_bytes), .doc = "Bytes of the spool that are stored" },
	{ "log_lines", FIELD_INT, R, AT(log_lines), .doc = "Lines that are stored" },
	{ "log_complete", FIELD_BOOL, R, AT(log_complete),
		.doc = "Length and digest were agreed with the worker" },
	{ "log_matches", FIELD_RAW, R, AT(log_matches),
		.doc = "Log policies that lines of its log matched: how many, and the first" },
	{ "warning", FIELD_STR, R | E, AT(warning), .doc = "What should be known while it runs" },
	{ 0 },
};
#undef THIS

#define THIS log_query
const struct field log_query_fields[] = {
	{ "from", FIELD_INT, 0, AT(from), .min = 1, .max = INT64_MAX, .doc = "First line" },
	{ "tail", FIELD_INT, 0, AT(tail), .min = 0, .max = 100000, .doc = "The last lines" },
	{ "limit", FIELD_INT, 0, AT(limit), .min = 1, .max = 10000, .fallback = "1000",
		.doc = "Lines per page" },
	{ "raw", FIELD_BOOL, 0, AT(raw), .doc = "The bytes as they were written" },
	{ "follow", FIELD_BOOL, 0, AT(follow), .doc = "Server-sent events: backlog, tail, end" },
	{ "stream", FIELD_ENUM, 0, AT(stream), HAS(has_stream), .names = stream_names,
		.fallback = "all", .doc = "One stream only" },
	{ "grep", FIELD_STR, FIELD_OMIT_EMPTY, AT(grep), .min = 1, .max = 1000,
		.doc = "Only lines that hold this text; last says up to where the log was "
		       "searched, go on behind it" },
	{ "regex", FIELD_BOOL, 0, AT(regex), .doc = "grep is a regular expression of RE2" },
	{ "ignore_case", FIELD_BOOL, 0, AT(ignore_case), .doc = "grep matches in either case" },
	{ "since", FIELD_TIME, FIELD_OMIT_EMPTY, AT(since), HAS(has_since),
		.doc = "Only lines of this time and later; as with grep" },
	{ "rank", FIELD_INT, 0, AT(rank), .min = 0, .max = NODES_MAX - 1,
		.doc = "Of a step's gang: whose log" },
	{ 0 },
};
#undef THIS
#define THIS log_line
const struct field log_line_fields[] = {
	{ "line", FIELD_INT, R, AT(line), .doc = "Number, counted from 1" },
	{ "time", FIELD_TIME, R, AT(time), .doc = "When it was read" },
	{ "stream", FIELD_ENUM, R, AT(stream), .names = stream_names,
		.doc = "Where it was written" },
	{ "text", FIELD_STR, R | FIELD_TEXT, AT(text), .max = 1 << 20,
		.doc = "The line, with progress folded" },
	{ "open", FIELD_BOOL, R | FIELD_OMIT_EMPTY, AT(open), HAS(open),
		.doc = "It has not ended yet and comes again under its number" },
	{ 0 },
};
#undef THIS
#define THIS log_page
const struct field log_page_fields[] = {
	{ "lines", FIELD_LIST, R, AT(lines), .sub = log_line_fields,
		.size = sizeof(struct log_line), .max = 10000, .doc = "The lines" },
	{ "first", FIELD_INT, R, AT(first), .doc = "Number of the first line here" },
	{ "last", FIELD_INT, R, AT(last), .doc = "Number of the last line here" },
	{ "total", FIELD_INT, R, AT(total), .doc = "Lines stored so far" },
	{ "complete", FIELD_BOOL, R, AT(complete), .doc = "Nothing more will come" },
	{ "dropped", FIELD_INT, R, AT(dropped), .doc = "Bytes that could not be kept" },
	{ 0 },
};
#undef THIS
