#include "api/worker.h"

#include "api/pipeline.h"
#include "api/run.h"

const char *const worker_state_names[] = { "active", "draining", "disabled", NULL };

#define AT(member)  offsetof(struct THIS, member)
#define HAS(member) FIELD_HAS(struct THIS, member)
#define ITEMS(type) .sub = type##_fields, .size = sizeof(struct type)
#define R           FIELD_READONLY
#define Q           FIELD_REQUIRED
#define E           FIELD_OMIT_EMPTY

#define THIS device
const struct field device_fields[] = {
	{ "uuid", FIELD_STR, Q, AT(uuid), .min = 1, .max = 127, .doc = "GPU-… or MIG-…" },
	{ "model", FIELD_STR, Q, AT(model), .max = 127, .doc = "As the driver names it" },
	{ "memory", FIELD_INT, Q, AT(memory), .min = 0, .max = INT64_MAX, .doc = "Bytes" },
	{ "driver", FIELD_STR, E, AT(driver), .max = 63, .doc = "Version of the driver" },
	{ "bus_id", FIELD_STR, E, AT(bus_id), .max = 63, .doc = "PCI address" },
	{ "health", FIELD_STR, E, AT(health), .max = 255,
		.doc = "Empty when well, else what is wrong" },
	{ "mig", FIELD_STR, E, AT(mig), .max = 63, .doc = "Profile of a MIG slice" },
	{ "numa", FIELD_INT, E, AT(numa), HAS(has_numa), .max = 1023,
		.doc = "NUMA node of the host that is nearest to it" },
	{ "links", FIELD_LIST, E, AT(links), .item = FIELD_STR, .item_max = 127, .max = 63,
		.doc = "UUIDs of the GPUs that it has NVLink to" },
	{ 0 },
};
#undef THIS

#define THIS worker
const struct field worker_fields[] = {
	{ "id", FIELD_STR, R, AT(id), .doc = "Identity of the worker" },
	{ "name", FIELD_STR, R, AT(name), .doc = "Unique name" },
	{ "pool", FIELD_STR, R, AT(pool), .doc = "Its pool" },
	{ "labels", FIELD_RAW, R, AT(labels), .doc = "Labels for placement" },
	{ "state", FIELD_ENUM, R, AT(state), .names = worker_state_names,
		.doc = "What an operator wants of it" },
	{ "online", FIELD_BOOL, R, AT(online), .doc = "Heard of lately" },
	{ "release", FIELD_STR, R, AT(release), .doc = "Version of its program" },
	{ "boot_id", FIELD_STR, R, AT(boot_id), .doc = "Changes when its host restarts" },
	{ "runtimes", FIELD_LIST, R, AT(runtimes), .item = FIELD_STR, .doc = "What it can start" },
	{ "isolated", FIELD_LIST, R | E, AT(isolated), .item = FIELD_STR,
		.doc = "Runtimes in which the ranks of a step on several workers would not reach "
		       "each other, so that it gets none" },
	{ "cpus", FIELD_REAL, R, AT(cpus), .doc = "CPU cores" },
	{ "memory", FIELD_INT, R, AT(memory), .doc = "Bytes of memory" },
	{ "disk_free", FIELD_INT, R, AT(disk_free), .doc = "Bytes free in its work folder" },
	{ "devices", FIELD_RAW, R, AT(devices), .doc = "GPUs" },
	{ "warnings", FIELD_RAW, R, AT(warnings), .doc = "What its self-check found" },
	{ "holds", FIELD_RAW, R, AT(holds),
		.doc = "Images and versions of data sets that it holds, those used last first" },
	{ "running", FIELD_INT, R, AT(running), .doc = "Attempts that it holds" },
	{ "faults", FIELD_INT, R, AT(faults),
		.doc = "Attempts in a row that failed by its fault; with 3 or more it is taken "
		       "last for half an hour" },
	{ "fault_at", FIELD_TIME, R | FIELD_NULLABLE, AT(fault_at),
		.doc = "When the last of them did" },
	{ "seen_at", FIELD_TIME, R | FIELD_NULLABLE, AT(seen_at),
		.doc = "When it was last heard of" },
	{ "created_at", FIELD_TIME, R, AT(created_at), .doc = "When it was enrolled" },
	{ "version", FIELD_INT, R, AT(version), .doc = "Moves with every change; the ETag" },
	{ 0 },
};
#undef THIS

#define THIS join_token_new
const struct field join_token_new_fields[] = {
	{ "pool", FIELD_STR, FIELD_NAME, AT(pool), .fallback = "default",
		.doc = "Pool of the worker" },
	{ "labels", FIELD_MAP, 0, AT(labels), .max = 32, .item_max = 255, .key_max = 63,
		.doc = "Labels of the worker" },
	{ "expires_in", FIELD_SPAN, 0, AT(expires_in),
		FIELD_HAS(struct join_token_new, has_expires_in), .min = CLOCK_MINUTE,
		.max = CLOCK_DAY, .fallback = "1h",
		.doc = "Life of the join token; it does not outlive its maker's" },
	{ 0 },
};
#undef THIS
#define THIS enroll
const struct field enroll_fields[] = {
	{ "name", FIELD_STR, Q | FIELD_NAME, AT(name), .doc = "Unique name of the worker" },
	{ 0 },
};
#undef THIS
#define THIS enrolled
const struct field enrolled_fields[] = {
	{ "worker_id", FIELD_STR, R, AT(worker_id), .doc = "Identity of the worker" },
	{ "pool", FIELD_STR, R, AT(pool), .doc = "Its pool" },
	{ "token", FIELD_STR, R, AT(token), .doc = "Its credential; shown once" },
	{ "expires_at", FIELD_TIME, R, AT(expires_at), .doc = "When the credential ends" },
	{ 0 },
};
#undef THIS

const char *const hold_kind_names[] = { "image", "dataset", NULL };
#define THIS hold
static const struct field hold_fields[] = {
	{ "kind", FIELD_ENUM, Q, AT(kind), .names = hold_kind_names, .doc = "What it is" },
	{ "name", FIELD_STR, Q, AT(name), .min = 1, .max = 511,
		.doc = "An image as pipelines write it; the id of a version of a data set" },
	{ "bytes", FIELD_INT, Q, AT(bytes), .max = INT64_MAX, .doc = "Its size; 0: not known" },
	{ 0 },
};
#undef THIS
#define THIS holds
const struct field holds_fields[] = {
	{ "items", FIELD_LIST, Q, AT(items), ITEMS(hold), .max = HOLDS_MAX,
		.doc = "Those used last first" },
	{ 0 },
};
#undef THIS

#define THIS sync_attempt
static const struct field sync_attempt_fields[] = {
	{ "id", FIELD_STR, Q, AT(id), .min = 1, .max = 40, .doc = "Identity of the attempt" },
	{ "epoch", FIELD_INT, Q, AT(epoch), .min = 1, .max = INT64_MAX, .doc = "Its epoch" },
	{ "state", FIELD_ENUM, Q, AT(state), .names = attempt_state_names, .doc = "Where it is" },
	{ "reason", FIELD_STR, E, AT(reason), .max = 63, .doc = "Why it ended so" },
	{ "message", FIELD_STR, E | FIELD_TEXT, AT(message), .max = 4000,
		.doc = "The same in words" },
	{ "runtime", FIELD_STR, E, AT(runtime), .max = 31, .doc = "What runs it" },
	{ "exit_code", FIELD_INT, E, AT(exit_code), HAS(has_exit_code), .min = 0, .max = 255,
		.doc = "Of the command" },
	{ "signal", FIELD_INT, E, AT(signal), HAS(has_signal), .min = 1, .max = 64,
		.doc = "That ended the command" },
	{ "started_at", FIELD_TIME, E, AT(started_at), .doc = "When the command started" },
	{ "ended_at", FIELD_TIME, E, AT(ended_at), .doc = "When it ended" },
	{ "evidence", FIELD_RAW, E, AT(evidence), .max = 16384, .schema = "{\"type\":\"object\"}",
		.doc = "What the reason rests on" },
	{ "cancelling", FIELD_BOOL, E, AT(cancelling), .doc = "The cancellation has arrived" },
	{ "ready", FIELD_BOOL, E, AT(ready), .doc = "Its command waits to be released" },
	{ "released", FIELD_BOOL, E, AT(released), .doc = "The release has arrived" },
	{ "address", FIELD_STR, E, AT(address), .max = 255,
		.doc = "Where other ranks reach this one" },
	{ "port", FIELD_INT, E, AT(port), .max = 65535, .doc = "That was free there" },
	{ 0 },
};
#undef THIS
#define THIS sync_request
const struct field sync_request_fields[] = {
	{ "boot_id", FIELD_STR, Q, AT(boot_id), .min = 1, .max = 63,
		.doc = "Changes when the host restarts" },
	{ "release", FIELD_STR, Q, AT(release), .max = 31, .doc = "Version of the program" },
	{ "runtimes", FIELD_LIST, Q, AT(runtimes), .item = FIELD_STR, .item_max = 31, .max = 8,
		.doc = "What it can start" },
	{ "isolated", FIELD_LIST, E, AT(isolated), .item = FIELD_STR, .item_max = 31, .max = 8,
		.doc = "Runtimes in which others do not reach the ranks of a step on several "
		       "workers" },
	{ "cpus", FIELD_REAL, Q, AT(cpus), .rmin = 0.01, .rmax = 100000, .doc = "CPU cores" },
	{ "memory", FIELD_INT, Q, AT(memory), .min = 1, .max = INT64_MAX,
		.doc = "Bytes of memory" },
	{ "disk_free", FIELD_INT, Q, AT(disk_free), .min = 0, .max = INT64_MAX,
		.doc = "Bytes free in its work folder" },
	{ "devices", FIELD_LIST, 0, AT(devices), ITEMS(device), .max = 256, .doc = "GPUs" },
	{ "attempts", FIELD_LIST, 0, AT(attempts), ITEMS(sync_attempt), .max = 4096,
		.doc = "What it holds" },
	{ "warnings", FIELD_LIST, 0, AT(warnings), .item = FIELD_STR, .item_max = 400, .max = 32,
		.doc = "What its self-check found" },
	{ "checkpoints", FIELD_LIST, E, AT(checkpoints), .item = FIELD_STR, .item_max = 40,
		.max = CHECKPOINTS_MAX, .doc = "Steps whose checkpoints it keeps" },
	{ "holds", FIELD_OBJ, E, AT(holds), HAS(has_holds), .sub = holds_fields,
		.doc = "Images and data that steps find there; without it as it was told before" },
	{ "wait", FIELD_BOOL, 0, AT(wait),
		.doc = "Hold the request while there is nothing to say" },
	{ 0 },
};
#undef THIS

#define THIS staged
static const struct field staged_fields[] = {
	{ "name", FIELD_STR, Q, AT(name), .max = 63, .doc = "Name inside the pipeline" },
	{ "ref", FIELD_STR, E, AT(ref), .max = 255, .doc = "Which version, for people" },
	{ "version", FIELD_STR, E, AT(version), .max = 40, .doc = "Its identity, of a data set" },
	{ "files", FIELD_LIST, 0, AT(files), ITEMS(file), .max = FILES_MAX, .doc = "Its files" },
	{ "listing", FIELD_STR, E | FIELD_TEXT, AT(listing), .max = 64 << 20,
		.doc = "Instead, when they are many: a line for each, with digest, size and path" },
	{ 0 },
};
#undef THIS
#define THIS assigned_output
static const struct field assigned_output_fields[] = {
	{ "name", FIELD_STR, Q, AT(name), .max = 63, .doc = "Name of the output" },
	{ "path", FIELD_STR, Q, AT(path), .max = 1024, .doc = "Below $TIDEMILL_OUTPUT" },
	{ "kind", FIELD_ENUM, Q, AT(kind), .names = output_kind_names,
		.doc = "What the server does with it" },
	{ 0 },
};
#undef THIS
#define THIS assignment
const struct field assignment_fields[] = {
	{ "attempt", FIELD_STR, Q, AT(attempt), .max = 40, .doc = "Identity of the attempt" },
	{ "step", FIELD_STR, Q, AT(step), .max = 40, .doc = "Identity of the step" },
	{ "run", FIELD_STR, Q, AT(run), .max = 40, .doc = "Identity of the run" },
	{ "project", FIELD_STR, Q, AT(project), .max = 63, .doc = "Name of the project" },
	{ "pipeline", FIELD_STR, Q, AT(pipeline), .max = 63, .doc = "Name of the pipeline" },
	{ "step_name", FIELD_STR, Q, AT(step_name), .max = 63, .doc = "Name of the step" },
	{ "number", FIELD_INT, Q, AT(number), .min = 1, .doc = "Counts attempts from 1" },
	{ "epoch", FIELD_INT, Q, AT(epoch), .min = 1, .doc = "Fences the attempt's effects" },
	{ "runtimes", FIELD_LIST, Q, AT(runtimes), .item = FIELD_ENUM, .names = runtime_names,
		.max = RUNTIME_COUNT, .doc = "The first that the worker offers" },
	{ "argv", FIELD_LIST, Q | FIELD_TEXT, AT(argv), .item = FIELD_STR, .item_max = WORD_MAX,
		.min = 1, .max = ARGV_MAX, .doc = "The command" },
	{ "image", FIELD_STR, E, AT(image), .max = 512, .doc = "Container image" },
	{ "image_ref", FIELD_STR, E, AT(image_ref), .max = 511,
		.doc = "The same by its digest, once an attempt of the run has resolved it" },
	{ "env", FIELD_MAP, E | FIELD_TEXT, AT(env), .max = 512, .item_max = WORD_MAX,
		.doc = "Environment" },
	{ "rank", FIELD_INT, E, AT(rank), .max = NODES_MAX - 1, .doc = "In its gang" },
	{ "ranks", FIELD_INT, E, AT(ranks), .max = NODES_MAX,
		.doc = "Of its gang, which starts together; 0: it is none" },
	{ "launcher", FIELD_ENUM, E, AT(launcher), .names = launcher_names,
		.doc = "Whose variables a rank gets" },
	{ "repository", FIELD_STR, E, AT(repository), .max = 1024, .doc = "To be checked out, at" },
	{ "commit", FIELD_STR, E, AT(commit), .max = 64, .doc = "this commit" },
	{ "datasets", FIELD_LIST, E, AT(datasets), ITEMS(staged), .max = 64, .doc = "Data sets" },
	{ "models", FIELD_LIST, E, AT(models), ITEMS(staged), .max = 64, .doc = "Models" },
	{ "inputs", FIELD_LIST, E, AT(inputs), ITEMS(staged), .max = 100,
		.doc = "Outputs of needed steps" },
	{ "outputs", FIELD_LIST, E, AT(outputs), ITEMS(assigned_output), .max = 64,
		.doc = "What is kept" },
	{ "checkpoint", FIELD_LIST, E, AT(checkpoint), ITEMS(file), .max = FILES_MAX,
		.doc = "What an earlier attempt left to go on from" },
	{ "checkpoint_attempt", FIELD_INT, E, AT(checkpoint_attempt), .min = 0, .max = INT64_MAX,
		.doc = "Which attempt that was, by number; 0: none" },
	{ "checkpoint_max", FIELD_INT, E, AT(checkpoint_max), .min = 0, .max = INT64_MAX,
		.doc = "Bytes of the largest checkpoint that may be sent; 0: not said" },
	{ "user_retries", FIELD_INT, E, AT(user_retries),
		.doc = "Failures of the command that will be followed by another attempt" },
	{ "cpus", FIELD_REAL, Q, AT(cpus), .doc = "CPU cores" },
	{ "memory", FIELD_INT, Q, AT(memory), .doc = "Bytes of memory" },
	{ "shm", FIELD_INT, E, AT(shm), .doc = "Bytes of /dev/shm" },
	{ "devices", FIELD_LIST, E, AT(devices), .item = FIELD_STR, .item_max = 127, .max = 64,
		.doc = "UUIDs of its GPUs" },
	{ "time_limit", FIELD_INT, E, AT(time_limit),
		.doc = "Microseconds that the command may run" },
	{ "start_timeout", FIELD_INT, E, AT(start_timeout),
		.doc = "Microseconds until the command must have started" },
	{ "gpu_idle", FIELD_INT, E, AT(gpu_idle),
		.doc = "Microseconds that its GPUs may be unused; 0: for ever" },
	{ "gpu_idle_stop", FIELD_BOOL, 0, AT(gpu_idle_stop),
		.doc = "It is stopped then; else only a warning is sent" },
	{ "self_stop_after", FIELD_INT, E, AT(self_stop_after),
		.doc = "Microseconds without a renewal after which the command ends itself" },
	{ "log_max", FIELD_INT, E, AT(log_max), .doc = "Bytes of log" },
	{ "no_system_metrics", FIELD_BOOL, FIELD_OMIT_EMPTY, AT(no_system_metrics),
		.doc = "What it uses of its host is not recorded" },
	{ "log_policies", FIELD_LIST, E, AT(log_policies), ITEMS(log_policy),
		.max = ASSIGNED_POLICIES_MAX, .doc = "What is looked for in the log" },
	{ "secrets", FIELD_LIST, E, AT(secrets), ITEMS(secret_use), .max = SECRETS_MAX,
		.doc = "Names of the worker's secrets that the step may read" },
	{ "token", FIELD_STR, E, AT(token), .max = 128, .doc = "The job's token" },
	{ "tracking_run", FIELD_STR, E, AT(tracking_run), .max = 64, .doc = "MLFLOW_RUN_ID" },
	{ "experiment_id", FIELD_STR, E, AT(experiment_id), .max = 32,
		.doc = "MLFLOW_EXPERIMENT_ID" },
	{ 0 },
};
#undef THIS
#define THIS sync_cancel
static const struct field sync_cancel_fields[] = {
	{ "attempt", FIELD_STR, Q, AT(attempt), .max = 40, .doc = "Identity of the attempt" },
	{ "epoch", FIELD_INT, Q, AT(epoch), .doc = "Its epoch" },
	{ "reason", FIELD_STR, Q, AT(reason), .max = 63, .doc = "Why" },
	{ 0 },
};
#undef THIS
#define THIS rank_place
const struct field rank_place_fields[] = {
	{ "address", FIELD_STR, Q, AT(address), .min = 1, .max = 255, .doc = "Of the rank" },
	{ "port", FIELD_INT, Q, AT(port), .min = 1, .max = 65535, .doc = "That was free there" },
	{ 0 },
};
#undef THIS
#define THIS sync_release
static const struct field sync_release_fields[] = {
	{ "attempt", FIELD_STR, Q, AT(attempt), .max = 40, .doc = "Identity of the attempt" },
	{ "epoch", FIELD_INT, Q, AT(epoch), .doc = "Its epoch" },
	{ "ranks", FIELD_LIST, Q, AT(ranks), ITEMS(rank_place), .max = NODES_MAX,
		.doc = "Where each rank of the gang is" },
	{ 0 },
};
#undef THIS
#define THIS sync_reply
const struct field sync_reply_fields[] = {
	{ "assign", FIELD_LIST, E, AT(assign), ITEMS(assignment), .max = 4096,
		.doc = "To be started" },
	{ "cancel", FIELD_LIST, E, AT(cancel), ITEMS(sync_cancel), .max = 4096,
		.doc = "To be stopped" },
	{ "release", FIELD_LIST, E, AT(release), ITEMS(sync_release), .max = 4096,
		.doc = "Whose command may begin" },
	{ "forget", FIELD_LIST, E, AT(forget), .item = FIELD_STR, .item_max = 40, .max = 4096,
		.doc = "Ended and stored" },
	{ "discard", FIELD_LIST, E, AT(discard), .item = FIELD_STR, .item_max = 40,
		.max = CHECKPOINTS_MAX, .doc = "Steps that need no checkpoint any more" },
	{ "drain", FIELD_BOOL, E, AT(drain), .doc = "Nothing more will be assigned" },
	{ 0 },
};
#undef THIS

#define EPOCH "epoch", FIELD_INT, Q, AT(epoch), .min = 1, .max = INT64_MAX, .doc = "Of the attempt"
#define THIS  epoch_query
const struct field epoch_query_fields[] = { { EPOCH }, { 0 } };
#undef THIS
#define THIS log_put_query
const struct field log_put_query_fields[] = {
	{ EPOCH },
	{ "offset", FIELD_INT, Q, AT(offset), .min = 0, .max = INT64_MAX,
		.doc = "Where the bytes stand in the spool" },
	{ 0 },
};
#undef THIS
#define THIS log_position
const struct field log_position_fields[] = {
	{ "length", FIELD_INT, R, AT(length), .doc = "Bytes of the spool that are stored" },
	{ 0 },
};
#undef THIS
#define THIS log_final
const struct field log_final_fields[] = {
	{ EPOCH },
	{ "length", FIELD_INT, Q, AT(length), .min = 0, .max = INT64_MAX,
		.doc = "Bytes of the spool" },
	{ "digest", FIELD_STR, Q, AT(digest), .min = 64, .max = 64, .doc = "SHA-256 of the spool" },
	{ "dropped", FIELD_INT, 0, AT(dropped), .min = 0, .max = INT64_MAX,
		.doc = "Bytes that could not be kept" },
	{ 0 },
};
#undef THIS
#define THIS output_files
static const struct field output_files_fields[] = {
	{ "name", FIELD_STR, Q | FIELD_NAME, AT(name), .doc = "Name of the output" },
	{ "files", FIELD_LIST, Q, AT(files), ITEMS(file), .max = FILES_MAX,
		.doc = "Its files, uploaded before" },
	{ "value", FIELD_STR, FIELD_TEXT | FIELD_OMIT_EMPTY, AT(value), HAS(has_value),
		.max = VALUE_MAX, .doc = "The bytes of the file of an output of kind value" },
	{ 0 },
};
#undef THIS
#define THIS outputs_put
const struct field outputs_put_fields[] = {
	{ EPOCH },
	{ "outputs", FIELD_LIST, Q, AT(outputs), ITEMS(output_files), .max = 64,
		.doc = "All outputs of the attempt" },
	{ 0 },
};
#undef THIS
#define THIS attempt_warning
const struct field attempt_warning_fields[] = {
	{ "epoch", FIELD_INT, Q, AT(epoch), .min = 1, .max = INT64_MAX, .doc = "Of the attempt" },
	{ "kind", FIELD_STR, Q | FIELD_NAME, AT(kind), .doc = "What it is about: gpu_idle" },
	{ "message", FIELD_STR, Q, AT(message), .min = 1, .max = 500, .doc = "For people" },
	{ 0 },
};
#undef THIS
#define THIS attempt_metric
static const struct field attempt_metric_fields[] = {
	{ "key", FIELD_STR, Q, AT(key), .min = 8, .max = 250, .doc = "Begins with system/" },
	{ "value", FIELD_REAL, Q, AT(value), .doc = "What was seen" },
	{ "time", FIELD_TIME, Q, AT(time), .doc = "When it was seen" },
	{ 0 },
};
#undef THIS
#define THIS attempt_metrics
const struct field attempt_metrics_fields[] = {
	{ EPOCH },
	{ "metrics", FIELD_LIST, Q, AT(metrics), ITEMS(attempt_metric), .max = ATTEMPT_METRICS_MAX,
		.doc = "What the attempt has used" },
	{ 0 },
};
#undef THIS
#define THIS log_match
const struct field log_match_fields[] = {
	{ "policy", FIELD_INT, Q, AT(policy), .min = 0, .max = ASSIGNED_POLICIES_MAX - 1,
		.doc = "Position among the assignment's policies" },
	{ "match", FIELD_STR, Q, AT(match), .min = 1, .max = 1000, .doc = "Its pattern" },
	{ "action", FIELD_ENUM, Q, AT(action), .names = log_action_names, .doc = "Its action" },
	{ "label", FIELD_STR, FIELD_NAME | E, AT(label), .doc = "Its label" },
	{ "count", FIELD_INT, Q, AT(count), .min = 1, .max = INT64_MAX, .doc = "Lines that match" },
	{ "line", FIELD_INT, Q, AT(line), .min = 1, .max = INT64_MAX,
		.doc = "Number of the first one" },
	{ "time", FIELD_TIME, Q, AT(time), .doc = "When it was written" },
	{ "text", FIELD_STR, 0, AT(text), .max = LOG_MATCH_TEXT, .doc = "What it says" },
	{ 0 },
};
#undef THIS
#define THIS log_matches
const struct field log_matches_fields[] = {
	{ "epoch", FIELD_INT, Q, AT(epoch), .min = 1, .max = INT64_MAX, .doc = "Of the attempt" },
	{ "matches", FIELD_LIST, Q, AT(matches), ITEMS(log_match), .max = ASSIGNED_POLICIES_MAX,
		.doc = "Policies that lines have matched so far" },
	{ 0 },
};
#undef THIS
#define THIS checkpoint_put
const struct field checkpoint_put_fields[] = {
	{ EPOCH },
	{ "files", FIELD_LIST, Q, AT(files), ITEMS(file), .max = FILES_MAX,
		.doc = "All files of the checkpoint, uploaded before" },
	{ 0 },
};
#undef THIS
