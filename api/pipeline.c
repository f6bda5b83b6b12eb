#include "api/pipeline.h"

const char *const input_type_names[] = { "string", "integer", "number", "boolean", "date", NULL };
const char *const concurrency_policy_names[] = { "queue", "cancel_running", "refuse", NULL };
const char *const runtime_names[] = { "docker", "process", "kubernetes", NULL };
const char *const launcher_names[] = { "plain", "torchrun", "ray", "tensorflow", "jax", "mpi",
	NULL };
const char *const output_kind_names[] = { "files", "model", "predictions", "observations", "value",
	NULL };
const char *const missed_policy_names[] = { "none", "last", "all", NULL };
const char *const dst_policy_names[] = { "once", "skip", NULL };
const char *const upstream_state_names[] = { "succeeded", "failed", "ended", NULL };
const char *const sensitivity_names[] = { "public", "internal", "confidential", "restricted",
	NULL };
_Static_assert(sizeof sensitivity_names / sizeof *sensitivity_names == SENSITIVITY_COUNT + 1,
	"sensitivities and names differ");
const char *const cache_part_names[] = { "code", "image", "datasets", "inputs", NULL };
const char *const secret_as_names[] = { "file", "env", NULL };
const char *const idle_action_names[] = { "warn", "stop", NULL };
const char *const log_action_names[] = { "label", "stop_retrying", "avoid_node", "notify", NULL };
const char *const lost_policy_names[] = { "keep", "stop", NULL };
const char *const gate_test_names[] = { "paired_bootstrap", NULL };
const char *const gate_metric_names[] = { "mae", "rmse", "accuracy", NULL };
const char *const select_mode_names[] = { "min", "max", NULL };
static const char *const pipeline_kinds[] = { "Pipeline", NULL };

#define AT(member)  offsetof(struct THIS, member)
#define HAS(member) FIELD_HAS(struct THIS, member)
#define ITEMS(type) .sub = type##_fields, .size = sizeof(struct type)
#define R           FIELD_READONLY
#define Q           FIELD_REQUIRED

#define THIS metadata
const struct field metadata_fields[] = {
	{ "name", FIELD_STR, Q | FIELD_NAME, AT(name), .doc = "Unique in its project" },
	{ "labels", FIELD_MAP, FIELD_OMIT_EMPTY, AT(labels), .max = 32, .item_max = 255,
		.key_max = 63, .doc = "Free words for selectors" },
	{ "annotations", FIELD_MAP, FIELD_OMIT_EMPTY, AT(annotations), .max = 32, .item_max = 4000,
		.doc = "Free words for people" },
	{ 0 },
};
#undef THIS

#define THIS input_spec
static const struct field input_spec_fields[] = {
	{ "type", FIELD_ENUM, Q, AT(type), .names = input_type_names, .doc = "What may be given" },
	{ "default", FIELD_RAW, FIELD_OMIT_EMPTY, AT(value), .max = 4096,
		.doc = "Used when nothing is given; without one the input must be given" },
	{ "min", FIELD_REAL, FIELD_OMIT_EMPTY, AT(min), HAS(has_min), .doc = "Least number" },
	{ "max", FIELD_REAL, FIELD_OMIT_EMPTY, AT(max), HAS(has_max), .doc = "Greatest number" },
	{ "choices", FIELD_LIST, FIELD_OMIT_EMPTY, AT(choices), .item = FIELD_STR, .item_max = 255,
		.max = 100, .doc = "The strings that are allowed" },
	{ "description", FIELD_STR, FIELD_OMIT_EMPTY, AT(description), .max = 400,
		.doc = "For people" },
	{ 0 },
};
#undef THIS
#define THIS dataset_ref
static const struct field dataset_ref_fields[] = {
	{ "name", FIELD_STR, Q | FIELD_NAME, AT(name), .doc = "Name of the data set" },
	{ "version", FIELD_RAW, FIELD_OMIT_EMPTY, AT(version), .max = 64, .fallback = "\"latest\"",
		.doc = "latest, or a number; pinned when the run is made" },
	{ 0 },
};
#undef THIS
#define THIS model_ref
static const struct field model_ref_fields[] = {
	{ "name", FIELD_STR, Q | FIELD_NAME, AT(name), .doc = "Name of the model" },
	{ "alias", FIELD_STR, Q | FIELD_NAME, AT(alias), .doc = "Alias that chooses the version" },
	{ "optional", FIELD_BOOL, 0, AT(optional), .doc = "Run without it while there is none" },
	{ 0 },
};
#undef THIS

#define THIS output_spec
static const struct field output_spec_fields[] = {
	{ "path", FIELD_STR, Q, AT(path), .min = 1, .max = 1024,
		.doc = "File or folder below $TIDEMILL_OUTPUT" },
	{ "kind", FIELD_ENUM, 0, AT(kind), .names = output_kind_names, .fallback = "files",
		.doc = "What the server does with it" },
	{ "monitor", FIELD_STR, FIELD_NAME | FIELD_OMIT_EMPTY, AT(monitor),
		.doc = "The monitor that observations feed" },
	{ 0 },
};
#undef THIS

#define THIS gpu_request
const struct field gpu_request_fields[] = {
	{ "count", FIELD_INT, Q, AT(count), .min = 1, .max = 64, .doc = "GPUs" },
	{ "model", FIELD_LIST, FIELD_OMIT_EMPTY, AT(model), .item = FIELD_STR, .item_max = 63,
		.max = 16, .doc = "Any of these models" },
	{ "memory", FIELD_STR, FIELD_OMIT_EMPTY, AT(memory), .max = 63,
		.doc = "Range of memory per GPU, as 40GiB.. or 24GB..80GB" },
	{ "mig", FIELD_STR, FIELD_OMIT_EMPTY | FIELD_NULLABLE, AT(mig), .max = 31,
		.doc = "Profile of MIG slices, as 1g.18gb, or any; without it, whole GPUs" },
	{ 0 },
};
#undef THIS
#define THIS resources
static const struct field resources_fields[] = {
	{ "cpus", FIELD_REAL, FIELD_OMIT_EMPTY, AT(cpus), .rmin = 0.01, .rmax = 1024,
		.fallback = "1", .doc = "CPU cores" },
	{ "memory", FIELD_SIZE, 0, AT(memory), .min = 4 << 20, .fallback = "1GiB",
		.doc = "Bytes of memory" },
	{ "disk", FIELD_SIZE, 0, AT(disk), .min = 0, .fallback = "0",
		.doc = "Bytes of free disk that the worker must have" },
	{ "shm", FIELD_SIZE, 0, AT(shm), .min = 0, .fallback = "0",
		.doc = "Bytes of /dev/shm; 0: the default" },
	{ "gpus", FIELD_RAW, FIELD_OMIT_EMPTY, AT(gpus), .max = 1024,
		.doc = "2, \"H100:4\", \"24GB..80GB:2\", \"1g.18gb:1\" or {count, model, memory, "
		       "mig}" },
	{ 0 },
};
#undef THIS
int64_t placement_ranks(const struct placement *p)
{
	return p->nodes > 1 || p->has_launcher ? p->nodes : 0;
}

#define THIS placement
static const struct field placement_fields[] = {
	{ "pool", FIELD_STR, FIELD_NAME | FIELD_OMIT_EMPTY, AT(pool), .fallback = "default",
		.doc = "Pool of workers" },
	{ "requires", FIELD_MAP, FIELD_OMIT_EMPTY, AT(requires), .max = 32, .item_max = 255,
		.doc = "Labels that the worker must have" },
	{ "avoids", FIELD_MAP, FIELD_OMIT_EMPTY, AT(avoids), .max = 32, .item_max = 255,
		.doc = "Labels that it must not have" },
	{ "priority", FIELD_INT, 0, AT(priority), .min = -1000, .max = 1000,
		.doc = "Greater goes first" },
	{ "sensitivity", FIELD_ENUM, 0, AT(sensitivity), .names = sensitivity_names,
		.fallback = "internal", .doc = "It goes only to a pool that allows it" },
	{ "preemptible", FIELD_BOOL, 0, AT(preemptible), .fallback = "true",
		.doc = "Where its pool preempts: it may be ended for a step that goes first, and "
		       "begins again" },
	{ "nodes", FIELD_INT, 0, AT(nodes), .min = 1, .max = NODES_MAX, .fallback = "1",
		.doc = "Workers that it runs on at once, each with all of its resources" },
	{ "launcher", FIELD_ENUM, FIELD_OMIT_EMPTY, AT(launcher), HAS(has_launcher),
		.names = launcher_names,
		.doc = "Whose variables each of them gets: plain when there are several" },
	{ 0 },
};
#undef THIS
#define THIS gpu_idle
static const struct field gpu_idle_fields[] = {
	{ "after", FIELD_SPAN, Q, AT(after), .min = CLOCK_SECOND,
		.doc = "So long no GPU of the step was used by 5 percent or more" },
	{ "action", FIELD_ENUM, 0, AT(action), .names = idle_action_names, .fallback = "warn",
		.doc = "warn: an event step.warning; stop: the command is stopped" },
	{ 0 },
};
#undef THIS
#define THIS timeouts
static const struct field timeouts_fields[] = {
	{ "queue", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(queue), .min = CLOCK_SECOND,
		.doc = "Longest wait for a worker" },
	{ "start", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(start), .min = CLOCK_SECOND, .fallback = "30m",
		.doc = "From assignment to the command's start" },
	{ "run", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(run), .min = CLOCK_SECOND,
		.doc = "Longest run of the command; the same as time_limit" },
	{ "gpu_idle", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(gpu_idle), HAS(has_gpu_idle),
		.sub = gpu_idle_fields, .doc = "GPUs that are held and not used" },
	{ 0 },
};
#undef THIS
#define THIS backoff
static const struct field backoff_fields[] = {
	{ "first", FIELD_SPAN, 0, AT(first), .min = 0, .max = CLOCK_DAY, .fallback = "10s",
		.doc = "Longest wait before the second attempt; 0s: none before any" },
	{ "factor", FIELD_REAL, 0, AT(factor), .rmin = 1, .rmax = 100, .fallback = "2",
		.doc = "How much longer it is before each further one" },
	{ "max", FIELD_SPAN, 0, AT(max), .min = 0, .max = 30 * CLOCK_DAY, .fallback = "10m",
		.doc = "No wait is longer" },
	{ 0 },
};
#undef THIS
#define THIS retries
static const struct field retries_fields[] = {
	{ "user", FIELD_INT, 0, AT(user), .min = 0, .max = 100, .fallback = "0",
		.doc = "Further attempts after the command failed" },
	{ "infra", FIELD_INT, 0, AT(infra), .min = 0, .max = 100, .fallback = "5",
		.doc = "Further attempts after a fault of ours or of the worker" },
	{ "preempted", FIELD_INT, 0, AT(preempted), .min = 0, .max = 1000, .fallback = "20",
		.doc = "Further attempts after a step that goes first took its place" },
	{ "backoff", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(backoff), .sub = backoff_fields,
		.doc = "Wait before another attempt: random, up to a limit that grows" },
	{ 0 },
};
#undef THIS
#define THIS on_lost
static const struct field on_lost_fields[] = {
	{ "policy", FIELD_ENUM, 0, AT(policy), .names = lost_policy_names, .fallback = "keep",
		.doc = "keep: the work goes on while the worker is cut off; stop: it ends itself" },
	{ "lost_after", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(lost_after), .min = 10 * CLOCK_SECOND,
		.fallback = "30m",
		.doc = "keep: no second attempt before this long without a word" },
	{ "self_stop_after", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(self_stop_after),
		.min = 10 * CLOCK_SECOND, .fallback = "60s",
		.doc = "stop: the command ends itself after this long without a renewal" },
	{ 0 },
};
#undef THIS
#define THIS secret_use
const struct field secret_use_fields[] = {
	{ "name", FIELD_STR, Q | FIELD_NAME, AT(name),
		.doc = "Name of the secret on the workers, below the project" },
	{ "as", FIELD_ENUM, 0, AT(as), .names = secret_as_names, .fallback = "file",
		.doc = "file: its path is in TIDEMILL_SECRET_<NAME>; env: its value is" },
	{ 0 },
};
#undef THIS
#define THIS log_policy
const struct field log_policy_fields[] = {
	{ "match", FIELD_STR, Q, AT(match), .min = 1, .max = 1000,
		.doc = "Regular expression of RE2, looked for in every line" },
	{ "action", FIELD_ENUM, 0, AT(action), .names = log_action_names, .fallback = "label",
		.doc = "What follows: label: it is noted; stop_retrying: the command is not tried "
		       "again; avoid_node: the next attempt goes to another worker; notify: an "
		       "event step.log_matched at once. Each is noted" },
	{ "label", FIELD_STR, FIELD_NAME | FIELD_OMIT_EMPTY, AT(label),
		.doc = "Name of what was found, for people" },
	{ 0 },
};
#undef THIS
#define THIS matrix_select
static const struct field matrix_select_fields[] = {
	{ "metric", FIELD_STR, Q, AT(metric), .min = 1, .max = 250,
		.doc = "A metric that every combination records" },
	{ "mode", FIELD_ENUM, 0, AT(mode), .names = select_mode_names, .fallback = "min",
		.doc = "Whether its least or its greatest last value is the best" },
	{ 0 },
};
#undef THIS
#define THIS matrix_spec
static const struct field matrix_spec_fields[] = {
	{ "values", FIELD_RAW, Q, AT(values), .max = 65536,
		.schema = "{\"type\":\"object\",\"minProperties\":1,\"maxProperties\":16,"
			  "\"additionalProperties\":{\"type\":\"array\",\"minItems\":1,"
			  "\"maxItems\":256,\"items\":{\"type\":[\"string\",\"number\","
			  "\"boolean\"]}}}",
		.doc = "Lists of values by key: each combination is a step, at most 256" },
	{ "max_parallel", FIELD_INT, 0, AT(max_parallel), .min = 1, .max = 256, .fallback = "256",
		.doc = "How many of them may be queued or run at a time" },
	{ "select", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(select), HAS(has_select),
		.sub = matrix_select_fields,
		.doc = "Which combination's outputs are those of the step; without it all are, "
		       "each in a folder of its own" },
	{ 0 },
};
#undef THIS
#define THIS log_spec
static const struct field log_spec_fields[] = {
	{ "max", FIELD_SIZE, 0, AT(max), .min = 1 << 16, .fallback = "1GiB",
		.doc = "Bytes of log that are kept: of a longer one the start and, once the "
		       "command has ended, the last 256 KiB, a quarter at most" },
	{ "policies", FIELD_LIST, FIELD_OMIT_EMPTY, AT(policies), ITEMS(log_policy),
		.max = LOG_POLICIES_MAX, .doc = "What follows from lines of the log" },
	{ "defaults", FIELD_BOOL, 0, AT(defaults), .fallback = "true",
		.doc = "Whether Tidemill's own policies apply as well" },
	{ 0 },
};
#undef THIS

const char *const system_metrics_names[] = { "on", "off", NULL };
#define THIS metrics_spec
static const struct field metrics_spec_fields[] = {
	{ "system", FIELD_ENUM, 0, AT(system), .names = system_metrics_names, .fallback = "on",
		.doc = "Whether what the step uses of its host is recorded as system/… in its "
		       "metrics" },
	{ 0 },
};
#undef THIS

#define THIS cache_spec
static const struct field cache_spec_fields[] = {
	{ "by", FIELD_LIST, FIELD_OMIT_EMPTY, AT(by), .item = FIELD_ENUM, .names = cache_part_names,
		.min = 1, .max = CACHE_PART_COUNT,
		.doc = "What must be the same beside command, variables and the rest of the step; "
		       "all of them without it" },
	{ "max_age", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(max_age), .min = CLOCK_SECOND,
		.fallback = "30d", .doc = "How old the other one may be" },
	{ 0 },
};
#undef THIS

#define RUNTIMES                                                                                   \
	"runtimes", FIELD_LIST, FIELD_OMIT_EMPTY, AT(runtimes),                                    \
		.item = FIELD_ENUM, .names = runtime_names, .max = RUNTIME_COUNT,                  \
		.doc = "The first one that the chosen worker offers"
#define ENVIRONMENT                                                                                \
	"env", FIELD_MAP, FIELD_TEXT | FIELD_OMIT_EMPTY, AT(env),                                  \
		.max = ENV_MAX, .item_max = WORD_MAX, .doc = "Environment variables"
#define IMAGE "image", FIELD_STR, FIELD_OMIT_EMPTY, AT(image), .max = 512, .doc = "Container image"
#define THIS  step_spec
const struct field step_spec_fields[] = {
	{ "needs", FIELD_LIST, FIELD_NAME | FIELD_OMIT_EMPTY, AT(needs), .item = FIELD_STR,
		.max = 100,
		.doc = "Steps that must have succeeded; their outputs are in "
		       "TIDEMILL_INPUT_<STEP>" },
	{ "matrix", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(matrix), HAS(has_matrix),
		.sub = matrix_spec_fields,
		.doc = "Run the step once for each combination of values, ${matrix.KEY}" },
	{ "if", FIELD_STR, FIELD_OMIT_EMPTY, AT(condition), .min = 1, .max = 255,
		.doc = "Skip the step, and what needs it, unless this is true: ${…} of a boolean" },
	{ "run", FIELD_RAW, Q, AT(run), .max = RUN_MAX,
		.schema =
			"{\"oneOf\":[{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
			"\"minItems\":1,\"maxItems\":256},{\"type\":\"string\",\"minLength\":1}]}",
		.doc = "A list (no shell) or a string (/bin/sh -c)" },
	{ IMAGE },
	{ RUNTIMES },
	{ "resources", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(resources), HAS(has_resources),
		.sub = resources_fields, .doc = "What the step needs" },
	{ "placement", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(placement), .sub = placement_fields,
		.doc = "Where it may run" },
	{ "time_limit", FIELD_SPAN, FIELD_OMIT_EMPTY, AT(time_limit), .min = CLOCK_SECOND,
		.doc = "Longest run of the command" },
	{ "timeouts", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(timeouts), .sub = timeouts_fields,
		.doc = "Limits of each phase" },
	{ "retries", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(retries), .sub = retries_fields,
		.doc = "Budgets of further attempts" },
	{ "on_lost", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(on_lost), .sub = on_lost_fields,
		.doc = "When the worker is cut off" },
	{ ENVIRONMENT },
	{ "outputs", FIELD_DICT, FIELD_NAME | FIELD_OMIT_EMPTY, AT(outputs), ITEMS(output_spec),
		.max = 64, .doc = "What is kept of $TIDEMILL_OUTPUT, by name" },
	{ "secrets", FIELD_LIST, FIELD_OMIT_EMPTY, AT(secrets), ITEMS(secret_use),
		.max = SECRETS_MAX, .doc = "What the step may read of the worker's secrets" },
	{ "cache", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(cache), HAS(has_cache), .sub = cache_spec_fields,
		.doc = "Take over what an identical step has put out, instead of running it" },
	{ "logs", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(logs), .sub = log_spec_fields,
		.doc = "Limits of the log, and what follows from its lines" },
	{ "metrics", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(metrics), .sub = metrics_spec_fields,
		.doc = "What is recorded of the step beside what it logs itself" },
	{ 0 },
};
#undef THIS
#define THIS step_defaults
static const struct field step_defaults_fields[] = {
	{ RUNTIMES },
	{ IMAGE },
	{ "resources", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(resources), HAS(has_resources),
		.sub = resources_fields, .doc = "What a step needs that does not say" },
	{ ENVIRONMENT },
	{ 0 },
};
#undef THIS

#define THIS training_data
static const struct field training_data_fields[] = {
	{ "dataset", FIELD_STR, Q, AT(dataset), .min = 1, .max = 63,
		.doc = "A key of spec.datasets" },
	{ "column", FIELD_STR, Q, AT(column), .min = 1, .max = 255, .doc = "The column of dates" },
	{ "from", FIELD_STR, Q, AT(from), .min = 1, .max = 255, .doc = "First day, or ${…}" },
	{ "to", FIELD_STR, Q, AT(to), .min = 1, .max = 255, .doc = "Last day, or ${…}" },
	{ 0 },
};
#undef THIS
#define THIS requirement
static const struct field requirement_fields[] = {
	{ "metric", FIELD_STR, Q, AT(metric), .min = 1, .max = 63, .doc = "mae, rmse or accuracy" },
	{ "min", FIELD_REAL, FIELD_OMIT_EMPTY, AT(min), HAS(has_min), .doc = "Must not be below" },
	{ "max", FIELD_REAL, FIELD_OMIT_EMPTY, AT(max), HAS(has_max), .doc = "Must not be above" },
	{ 0 },
};
#undef THIS
#define THIS gate_test_spec
static const struct field gate_test_spec_fields[] = {
	{ "kind", FIELD_ENUM, 0, AT(kind), .names = gate_test_names, .fallback = "paired_bootstrap",
		.doc = "Paired test on the same rows" },
	{ "draws", FIELD_INT, 0, AT(draws), .min = 100, .max = 100000, .fallback = "2000",
		.doc = "Resamplings" },
	{ "margin", FIELD_RAW, FIELD_OMIT_EMPTY, AT(margin), .max = 32, .fallback = "0",
		.doc = "How much worse still counts as equal: in the metric's units, or \"2%\" of "
		       "the champion's" },
	{ "alpha", FIELD_REAL, FIELD_OMIT_EMPTY, AT(alpha), .rmin = 0.0001, .rmax = 0.5,
		.fallback = "0.05", .doc = "Level of the test" },
	{ "min_rows", FIELD_INT, 0, AT(min_rows), .min = 1, .max = 1000000000, .fallback = "80",
		.doc = "Fewer rows cannot decide" },
	{ 0 },
};
#undef THIS
#define THIS slice_spec
static const struct field slice_spec_fields[] = {
	{ "by", FIELD_LIST, Q, AT(by), .item = FIELD_STR, .item_max = 63, .min = 1, .max = 16,
		.doc = "Slice columns of the predictions" },
	{ "max_regression", FIELD_RAW, FIELD_OMIT_EMPTY, AT(max_regression), .max = 32,
		.fallback = "\"20%\"", .doc = "No slice may be worse by more" },
	{ "min_rows", FIELD_INT, 0, AT(min_rows), .min = 1, .max = 1000000000, .fallback = "20",
		.doc = "Smaller slices are not judged" },
	{ 0 },
};
#undef THIS
#define THIS approve_spec
static const struct field approve_spec_fields[] = {
	{ "people", FIELD_INT, 0, AT(people), .min = 0, .max = 20, .fallback = "0",
		.doc = "Approvals that are needed" },
	{ 0 },
};
#undef THIS
#define THIS gate_spec
const struct field gate_spec_fields[] = {
	{ "predictions", FIELD_STR, Q, AT(predictions), .min = 3, .max = 127,
		.doc = "STEP.OUTPUT with the rows that both models scored" },
	{ "metric", FIELD_ENUM, Q, AT(metric), .names = gate_metric_names,
		.doc = "What is compared" },
	{ "require", FIELD_LIST, FIELD_OMIT_EMPTY, AT(require), ITEMS(requirement), .max = 16,
		.doc = "Absolute limits" },
	{ "against", FIELD_STR, FIELD_NAME | FIELD_OMIT_EMPTY, AT(against),
		.doc = "Alias to compare with; skipped when it has no version" },
	{ "test", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(test), .sub = gate_test_spec_fields,
		.doc = "How the difference is tested" },
	{ "slices", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(slices), HAS(has_slices),
		.sub = slice_spec_fields, .doc = "No slice may suffer" },
	{ "approve", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(approve), .sub = approve_spec_fields,
		.doc = "People who must agree" },
	{ "promote", FIELD_STR, FIELD_NAME | FIELD_OMIT_EMPTY, AT(promote),
		.doc = "Alias that moves when all hold" },
	{ 0 },
};
#undef THIS
#define THIS model_spec
static const struct field model_spec_fields[] = {
	{ "name", FIELD_STR, Q | FIELD_NAME, AT(name), .doc = "Name of the model" },
	{ "from", FIELD_STR, Q, AT(from), .min = 3, .max = 127,
		.doc = "STEP.OUTPUT with the model's files" },
	{ "training_data", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(training_data), HAS(has_training_data),
		.sub = training_data_fields,
		.doc = "The rows it was trained on: the monitor's reference" },
	{ "gate", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(gate), HAS(has_gate), .sub = gate_spec_fields,
		.doc = "What must hold before the alias moves" },
	{ 0 },
};
#undef THIS

#define THIS dataset_trigger
static const struct field dataset_trigger_fields[] = {
	{ "name", FIELD_STR, Q | FIELD_NAME, AT(name),
		.doc = "Each new version of this data set starts a run" },
	{ 0 },
};
#undef THIS
#define THIS schedule_trigger
const struct field schedule_trigger_fields[] = {
	{ "cron", FIELD_STR, Q, AT(cron), .min = 1, .max = 255,
		.doc = "Minute, hour, day of the month, month, day of the week; or @hourly, "
		       "@daily, @weekly, @monthly, @yearly" },
	{ "timezone", FIELD_STR, 0, AT(timezone), .min = 1, .max = 63, .fallback = "UTC",
		.doc = "IANA time zone, as Europe/Berlin" },
	{ "dst", FIELD_ENUM, 0, AT(dst), .names = dst_policy_names, .fallback = "once",
		.doc = "A time that the clocks go over: once, when they do; or skip" },
	{ "missed", FIELD_ENUM, 0, AT(missed), .names = missed_policy_names, .fallback = "last",
		.doc = "Which of the times that passed while no server ran are started late" },
	{ "max", FIELD_INT, 0, AT(max), .min = 1, .max = 100, .fallback = "10",
		.doc = "With missed all: the newest so many" },
	{ 0 },
};
#undef THIS
#define THIS pipeline_trigger
static const struct field pipeline_trigger_fields[] = {
	{ "name", FIELD_STR, Q | FIELD_NAME, AT(name),
		.doc = "Each run of this pipeline that ends starts a run" },
	{ "state", FIELD_ENUM, 0, AT(state), .names = upstream_state_names, .fallback = "succeeded",
		.doc = "How it must have ended; ended: in any way" },
	{ 0 },
};
#undef THIS
#define THIS trigger_spec
const struct field trigger_spec_fields[] = {
	{ "dataset", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(dataset), HAS(has_dataset),
		.sub = dataset_trigger_fields, .doc = "On a new version of a data set" },
	{ "schedule", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(schedule), HAS(has_schedule),
		.sub = schedule_trigger_fields, .doc = "At times of the clock" },
	{ "pipeline", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(pipeline), HAS(has_pipeline),
		.sub = pipeline_trigger_fields, .doc = "At the end of another pipeline's run" },
	{ 0 },
};
#undef THIS
#define THIS concurrency
static const struct field concurrency_fields[] = {
	{ "group", FIELD_STR, Q | FIELD_NAME, AT(group), .doc = "One run of the group at a time" },
	{ "policy", FIELD_ENUM, 0, AT(policy), .names = concurrency_policy_names,
		.fallback = "queue", .doc = "What a second run does" },
	{ 0 },
};
#undef THIS

#define THIS pipeline_spec
const struct field pipeline_spec_fields[] = {
	{ "inputs", FIELD_DICT, FIELD_NAME | FIELD_OMIT_EMPTY, AT(inputs), ITEMS(input_spec),
		.max = 256, .doc = "Typed inputs, by name" },
	{ "datasets", FIELD_DICT, FIELD_NAME | FIELD_OMIT_EMPTY, AT(datasets), ITEMS(dataset_ref),
		.max = 64, .doc = "Staged read-only; path in TIDEMILL_DATASET_<NAME>" },
	{ "models", FIELD_DICT, FIELD_NAME | FIELD_OMIT_EMPTY, AT(models), ITEMS(model_ref),
		.max = 64, .doc = "Staged when the alias exists; path in TIDEMILL_MODEL_<NAME>" },
	{ "triggers", FIELD_LIST, FIELD_OMIT_EMPTY, AT(triggers), ITEMS(trigger_spec), .max = 32,
		.doc = "What starts a run by itself" },
	{ "concurrency", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(concurrency), HAS(has_concurrency),
		.sub = concurrency_fields, .doc = "Runs that must not overlap" },
	{ "defaults", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(defaults), .sub = step_defaults_fields,
		.doc = "For steps that do not say" },
	{ "steps", FIELD_DICT, Q | FIELD_NAME, AT(steps), ITEMS(step_spec), .min = 1,
		.max = STEPS_MAX, .doc = "The steps, by name" },
	{ "model", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(model), HAS(has_model), .sub = model_spec_fields,
		.doc = "Registered when all steps succeed" },
	{ 0 },
};
#undef THIS

#define API_VERSION                                                                                \
	"apiVersion", FIELD_STR, Q, AT(api_version), .min = 1, .max = 32, .doc = "tidemill/v1"
#define THIS pipeline_file
const struct field pipeline_file_fields[] = {
	{ API_VERSION },
	{ "kind", FIELD_ENUM, Q, AT(kind), .names = pipeline_kinds, .doc = "Pipeline" },
	{ "metadata", FIELD_OBJ, Q, AT(metadata), .sub = metadata_fields,
		.doc = "Name and labels" },
	{ "spec", FIELD_OBJ, Q, AT(spec), .sub = pipeline_spec_fields, .doc = "The pipeline" },
	{ 0 },
};
#undef THIS
#define THIS file_head
const struct field file_head_fields[] = {
	{ API_VERSION },
	{ "kind", FIELD_STR, Q, AT(kind), .min = 1, .max = 63, .doc = "Pipeline or Monitor" },
	{ 0 },
};
#undef THIS

#define THIS pipeline_schedule
static const struct field pipeline_schedule_fields[] = {
	{ "cron", FIELD_STR, R, AT(cron), .doc = "As it is in the file" },
	{ "timezone", FIELD_STR, R, AT(timezone), .doc = "As it is in the file" },
	{ "next_at", FIELD_TIME, R | FIELD_NULLABLE, AT(next_at),
		.doc = "When it starts a run next; null: never again" },
	{ 0 },
};
#undef THIS
#define THIS pipeline_owed
static const struct field pipeline_owed_fields[] = {
	{ "trigger", FIELD_STR, R, AT(trigger), .doc = "schedule, pipeline or dataset" },
	{ "key", FIELD_STR, R, AT(key),
		.doc = "The time, the run that has ended, or the new version" },
	{ "tries", FIELD_INT, R, AT(tries), .doc = "How often it was tried" },
	{ "try_at", FIELD_TIME, R, AT(try_at), .doc = "When it is tried again" },
	{ "error", FIELD_STR, R, AT(error), .doc = "Why it could not be started" },
	{ 0 },
};
#undef THIS
#define THIS pipeline
#define PIPELINE_ITEM                                                                              \
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the pipeline" },                         \
		{ "name", FIELD_STR, R, AT(name), .doc = "Unique in its project" },                \
		{ "repository", FIELD_STR, R, AT(repository),                                      \
			.doc = "Git repository; empty when the text was given" },                  \
		{ "ref", FIELD_STR, R, AT(ref),                                                    \
			.doc = "Branch or tag that runs take when they name none" },               \
		{ "path", FIELD_STR, R, AT(path), .doc = "The file in the repository" },           \
		{ "commit", FIELD_STR, R, AT(commit), .doc = "The commit that spec was read at" }, \
		{ "paused", FIELD_BOOL, R, AT(paused), .doc = "Triggers do nothing" },             \
		{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was made" },        \
	{                                                                                          \
		"version", FIELD_INT, R, AT(version), .doc = "Moves with every change; the ETag"   \
	}
const struct field pipeline_item_fields[] = { PIPELINE_ITEM, { 0 } };
const struct field pipeline_fields[] = {
	PIPELINE_ITEM,
	{ "spec", FIELD_RAW, R, AT(spec), .max = 1 << 20, .doc = "The pipeline as it was read" },
	{ "source", FIELD_STR, R | FIELD_TEXT, AT(source), .max = 1 << 20,
		.doc = "The text as it was written" },
	{ "schedules", FIELD_LIST, R, AT(schedules), ITEMS(pipeline_schedule),
		.doc = "How its schedules stand" },
	{ "owed", FIELD_LIST, R, AT(owed), ITEMS(pipeline_owed),
		.doc = "Runs that triggers have not been able to start so far" },
	{ 0 },
};
#undef THIS
#define THIS pipeline_put
const struct field pipeline_put_fields[] = {
	{ "repository", FIELD_STR, FIELD_NULLABLE, AT(repository),
		.null = FIELD_HAS(struct THIS, no_repository), .max = 1024,
		.doc = "Git repository: an https or ssh URL, or a path where the server allows "
		       "it; absent: as it is; null: none, the text alone counts" },
	{ "ref", FIELD_STR, FIELD_NULLABLE, AT(ref), .null = FIELD_HAS(struct THIS, no_ref),
		.min = 1, .max = 255,
		.doc = "Branch, tag or commit; absent: as it is; at first and with null: main" },
	{ "path", FIELD_STR, FIELD_NULLABLE, AT(path), .null = FIELD_HAS(struct THIS, no_path),
		.min = 1, .max = 255,
		.doc = "The file in the repository; absent: as it is; at first and with null: "
		       "tidemill.yaml" },
	{ "source", FIELD_STR, FIELD_TEXT | FIELD_OMIT_EMPTY, AT(source), .min = 1, .max = 1 << 20,
		.doc = "The file's text, for a pipeline without a repository" },
	{ 0 },
};
#undef THIS
