/* What is shown of each object; `-o json` has everything. */
#include "cli/view.h"

#define VIEW(noun, key, ...)                                                                       \
	static const struct column noun##_columns[] = { __VA_ARGS__, { 0 } };                      \
	const struct view view_##noun = { key, noun##_columns }
#define T       COLUMN_TIME
#define DETAILS .show_only = true
#define NARROW  .gives_way = true
#define LENGTH                                                                                     \
	{                                                                                          \
		"DURATION", "/started_at", COLUMN_LENGTH, .until = "/ended_at", NARROW             \
	}
#define SHAPED(as) COLUMN_SHAPE, .shape = shape_##as, DETAILS

VIEW(token, "/id", { "ID", "/id" }, { "NAME", "/name" }, { "KIND", "/kind" },
	{ "PROJECT", "/project" }, { "ROLE", "/role" }, { "CREATED", "/created_at", T, NARROW },
	{ "EXPIRES", "/expires_at", T }, { "LAST USED", "/last_used_at", T, NARROW },
	{ "REVOKED", "/revoked_at", T }, { "TOKEN", "/token", DETAILS });

VIEW(principal, "/name", { "ID", "/id" }, { "NAME", "/name" }, { "ADMIN", "/admin" },
	{ "CREATED", "/created_at", T }, { "DISABLED", "/disabled_at", T });

VIEW(self, "/name", { "NAME", "/name" }, { "PRINCIPAL", "/principal" }, { "KIND", "/kind" },
	{ "ADMIN", "/admin" }, { "PROJECT", "/project" }, { "TOKEN EXPIRES", "/expires_at", T });

VIEW(project, "/name", { "NAME", "/name" }, { "ID", "/id", DETAILS },
	{ "CREATED", "/created_at", T }, { "RETENTION", "/retention", COLUMN_PAIRS },
	{ "DESCRIPTION", "/description" });

VIEW(member, "/principal", { "PRINCIPAL", "/principal" }, { "ROLE", "/role" });

VIEW(project_content, "/runs", { "RUNS", "/runs" }, { "NOT ENDED", "/active_runs" },
	{ "PIPELINES", "/pipelines" }, { "DATASETS", "/datasets" },
	{ "DATASET VERSIONS", "/dataset_versions" }, { "MODELS", "/models" },
	{ "MODEL VERSIONS", "/model_versions" }, { "MONITORS", "/monitors" },
	{ "WINDOWS", "/windows" }, { "TRACKING RUNS", "/tracking_runs" },
	{ "ARTIFACTS", "/artifacts" }, { "MEMBERS", "/members" }, { "DRY RUN", "/dry_run" });

VIEW(retention, "/bytes", { "DRY RUN", "/dry_run" }, { "RUNS", "/runs" }, { "LOGS", "/logs" },
	{ "ARTIFACTS", "/artifacts" }, { "WINDOWS", "/windows" }, { "BLOBS", "/blobs" },
	{ "BYTES", "/bytes", COLUMN_SIZE });

VIEW(dataset, "/name", { "NAME", "/name" }, { "ID", "/id", DETAILS }, { "LATEST", "/latest" },
	{ "CREATED", "/created_at", T }, { "LABELS", "/labels", COLUMN_PAIRS },
	{ "DESCRIPTION", "/description" });

VIEW(dataset_version, "/number", { "DATA SET", "/dataset" }, { "NUMBER", "/number" },
	{ "FILES", "/files" }, { "BYTES", "/bytes", COLUMN_SIZE }, { "ID", "/id", DETAILS },
	{ "DIGEST", "/digest", DETAILS }, { "PARENT", "/parent_id", DETAILS },
	{ "RUN", "/run_id", DETAILS }, { "CREATED", "/created_at", T },
	{ "LABELS", "/labels", COLUMN_PAIRS }, { "DESCRIPTION", "/description" });

VIEW(file, "/path", { "PATH", "/path" }, { "BYTES", "/size", COLUMN_SIZE },
	{ "SHA256", "/digest" });

VIEW(pipeline, "/name", { "NAME", "/name" }, { "ID", "/id", DETAILS },
	{ "REPOSITORY", "/repository" }, { "REF", "/ref" }, { "PATH", "/path", NARROW },
	{ "COMMIT", "/commit", COLUMN_COMMIT, NARROW }, { "PAUSED", "/paused" },
	{ "CREATED", "/created_at", T }, { "INPUTS", "/spec/inputs", SHAPED(inputs) },
	{ "DATA", "/spec/datasets", SHAPED(dataset_refs) },
	{ "MODELS", "/spec/models", SHAPED(model_refs) },
	{ "TRIGGERS", "/spec/triggers", SHAPED(triggers) }, { "NEXT", "", SHAPED(schedules) },
	{ "OWED", "/owed", SHAPED(owed) },
	{ "CONCURRENCY", "/spec/concurrency", COLUMN_PAIRS, DETAILS },
	{ "STEPS", "/spec/steps", SHAPED(steps) }, { "REGISTERS", "/spec/model", SHAPED(model) });

VIEW(run, "/id", { "ID", "/id" }, { "PIPELINE", "/pipeline" }, { "NUMBER", "/number", NARROW },
	{ "STATE", "/state", COLUMN_STATE }, { "TRIGGER", "/trigger", NARROW },
	{ "CREATED", "/created_at", T }, { "STARTED", "/started_at", T, DETAILS },
	{ "CANCEL REQUESTED", "/cancel_requested_at", T, DETAILS },
	{ "ENDED", "/ended_at", T, DETAILS }, LENGTH, { "MODEL", "/model_version", NARROW },
	{ "INPUTS", "/inputs", COLUMN_PAIRS, DETAILS }, { "DATA", "/datasets", SHAPED(datasets) },
	{ "REPOSITORY", "/repository", DETAILS }, { "COMMIT", "/commit", COLUMN_COMMIT, DETAILS },
	{ "TRIGGERED BY", "/trigger_key", DETAILS }, { "RUNS AGAIN", "/rerun_of", DETAILS },
	{ "FROM", "/rerun_from", DETAILS }, { "WITHOUT CACHE", "/no_cache", DETAILS },
	{ "DECISION", "/decision_id", DETAILS }, { "SUBMITTED BY", "/created_by", DETAILS },
	{ "LABELS", "/labels", COLUMN_PAIRS, DETAILS }, { "REASON", "/reason" },
	{ "MESSAGE", "/message" }, { "WAITS FOR", "/blocked", COLUMN_BLOCKED });

VIEW(step, "/id", { "NAME", "/name" }, { "ID", "/id" }, { "STATE", "/state", COLUMN_STATE },
	{ "ATTEMPTS", "/attempts", NARROW }, { "METRIC", "/metric" },
	{ "VALUE", "/metric_value", COLUMN_REAL }, { "CHOSEN", "/selected" },
	{ "VALUES", "/matrix", COLUMN_PAIRS, DETAILS }, { "STARTED", "/started_at", T },
	{ "ENDED", "/ended_at", T, DETAILS }, LENGTH, { "NEEDS", "/needs", NARROW },
	{ "RUN", "/run_id", DETAILS }, { "COMMAND", "/spec/run", SHAPED(command) },
	{ "OUTPUTS", "/outputs", SHAPED(outputs) }, { "ATTEMPT", "/attempt_id", DETAILS },
	{ "TRACKING RUN", "/tracking_run", DETAILS }, { "IMAGE", "/image_ref" },
	{ "TAKEN FROM", "/reused/run_id" }, { "REASON", "/reason" }, { "MESSAGE", "/message" },
	{ "WAITS FOR", "/blocked", COLUMN_BLOCKED });

VIEW(quota, "/project", { "PROJECT", "/project" }, { "WEIGHT", "/weight", COLUMN_REAL },
	{ "GPUS USED", "/gpus/used" }, { "GRANTED", "/gpus/nominal" }, { "BORROW", "/gpus/borrow" },
	{ "STEPS USED", "/steps/used" }, { "GRANTED", "/steps/nominal" },
	{ "BORROW", "/steps/borrow" });

VIEW(pool, "/name", { "NAME", "/name" }, { "WORKERS", "/workers" }, { "POLICY", "/policy" },
	{ "SENSITIVITY", "/sensitivity" }, { "PREEMPTION", "/preemption" });

VIEW(wait, "/step_id", { "PLACE", "/position" }, { "POOL", "/pool", NARROW },
	{ "PRIORITY", "/priority", NARROW }, { "SINCE", "/queued_at", T },
	{ "PIPELINE", "/pipeline" }, { "STEP", "/name" }, { "ID", "/step_id" },
	{ "RUN", "/run_id", NARROW }, { "GPUS", "/gpus", NARROW },
	{ "WAITS FOR", "/blockers/0", COLUMN_BLOCKED });

VIEW(attempt, "/id", { "ID", "/id" }, { "NUMBER", "/number" }, { "RANK", "", COLUMN_RANK },
	{ "STATE", "/state", COLUMN_STATE }, { "WORKER", "/worker" },
	{ "RUNTIME", "/runtime", NARROW }, { "EXIT", "/exit_code" }, { "SIGNAL", "/signal" },
	{ "STARTED", "/started_at", T }, LENGTH, { "LOG LINES", "/log_lines", NARROW },
	{ "REASON", "/reason" }, { "MESSAGE", "/message" }, { "WARNING", "/warning" });

/* Of a step on several workers, below its run. */
VIEW(rank, "/id", { "RANK", "/rank" }, { "WORKER", "/worker" },
	{ "GPUS", "/devices", COLUMN_COUNT }, { "STATE", "/state", COLUMN_STATE },
	{ "EXIT", "/exit_code" }, { "SIGNAL", "/signal" }, { "STARTED", "/started_at", T, NARROW },
	{ "REASON", "/reason", NARROW }, { "MESSAGE", "/message" });

/* Of a failed step's last attempt, below its run. */
VIEW(end, "/id", { "REASON", "/reason" }, { "MESSAGE", "/message" }, { "WORKER", "/worker" },
	{ "EXIT", "/exit_code" }, { "SIGNAL", "/signal" }, { "KILLED BY", "/evidence/killed_by" },
	{ "PEAK MEMORY", "/evidence/peak_memory", COLUMN_SIZE },
	{ "OF THE CONTAINER", "/evidence/container_memory_peak", COLUMN_SIZE },
	{ "MEMORY LIMIT", "/evidence/container_memory_limit", COLUMN_SIZE },
	{ "READ FROM DISK", "/evidence/read_bytes", COLUMN_SIZE },
	{ "WRITTEN TO DISK", "/evidence/written_bytes", COLUMN_SIZE },
	{ "PROCESSOR TIME", "/evidence", SHAPED(usage) },
	{ "OUTPUT", "/evidence/stdout_bytes", COLUMN_SIZE },
	{ "ERROR OUTPUT", "/evidence/stderr_bytes", COLUMN_SIZE },
	{ "OUTPUT LOST", "/evidence/lost_bytes", COLUMN_SIZE },
	{ "OUTPUT DROPPED", "/evidence/dropped_bytes", COLUMN_SIZE },
	{ "IMAGE", "/evidence/image_ref" }, { "IMAGE ID", "/evidence/image_id" },
	{ "IMAGE IS", "/evidence/image_fault" }, { "RESUMED", "/evidence/resumed" },
	{ "CHECKPOINT", "/evidence/checkpoint" },
	{ "LOG MATCHES", "/log_matches", SHAPED(matches) },
	{ "LOG ENDS WITH", "/evidence/log_tail", SHAPED(lines) });

VIEW(artifact, "/path", { "PATH", "/path" }, { "FOLDER", "/is_dir" },
	{ "BYTES", "/size", COLUMN_SIZE }, { "SHA256", "/digest" });

VIEW(model, "/name", { "NAME", "/name" }, { "ID", "/id", DETAILS }, { "LATEST", "/latest" },
	{ "ALIASES", "/aliases", COLUMN_PAIRS }, { "CREATED", "/created_at", T },
	{ "DESCRIPTION", "/description" });

VIEW(model_version, "/number", { "MODEL", "/model" }, { "NUMBER", "/number" },
	{ "ID", "/id", DETAILS }, { "ALIASES", "/aliases" }, { "METRIC", "/metric" },
	{ "LEVEL", "/level", COLUMN_REAL }, { "VERDICT", "/verdict", COLUMN_STATE },
	{ "TRAINED FROM", "/training_data/from", NARROW }, { "TO", "/training_data/to", NARROW },
	{ "CREATED", "/created_at", T }, { "RUN", "/run_id", NARROW },
	{ "STEP", "/step_id", DETAILS }, { "TRACKING RUN", "/tracking_run", DETAILS },
	{ "REPOSITORY", "/repository", DETAILS }, { "COMMIT", "/commit", COLUMN_COMMIT, DETAILS },
	{ "IMAGE", "/image_digest", DETAILS },
	{ "TRAINING DATA", "/training_data", SHAPED(training_data) },
	{ "DATA SETS", "/datasets", SHAPED(datasets) },
	{ "METRICS", "/metrics", COLUMN_PAIRS, DETAILS },
	{ "LABELS", "/labels", COLUMN_PAIRS, DETAILS }, { "REASON", "/verdict_reason" },
	{ "CHECKS", "/gate/items", SHAPED(checks) });

VIEW(alias, "/number", { "ALIAS", "/alias" }, { "NUMBER", "/number" },
	{ "SINCE", "/changed_at", T });

VIEW(alias_change, "/id", { "AT", "/at", T }, { "ALIAS", "/alias" }, { "NUMBER", "/number" },
	{ "PREVIOUS", "/previous" }, { "CAUSE", "/cause" }, { "BY", "/actor" },
	{ "NOTE", "/note" });

VIEW(monitor, "/name", { "NAME", "/name" }, { "ID", "/id", DETAILS }, { "MODEL", "/model" },
	{ "ALIAS", "/alias" }, { "CHAMPION", "/champion" }, { "CREATED", "/created_at", T },
	{ "MUTES", "/mutes", COLUMN_TEXT, DETAILS }, { "LATE ROWS", "/late_rows", DETAILS },
	{ "WINDOW", "/spec/window", COLUMN_PAIRS, DETAILS },
	{ "METRIC", "/spec/performance/metric", DETAILS },
	{ "POLICY", "/spec/policy", COLUMN_PAIRS, DETAILS },
	{ "RETRAINS", "/spec/retrain/pipeline", DETAILS },
	{ "POLICY STATE", "/policy_state", COLUMN_PAIRS, DETAILS });

VIEW(window, "/id", { "START", "/start", COLUMN_DATE }, { "END", "/end", COLUMN_DATE, NARROW },
	{ "ID", "/id" }, { "STATE", "/state", NARROW }, { "SEVERITY", "/severity", COLUMN_STATE },
	{ "ROWS", "/rows", NARROW }, { "LABELLED", "/labelled", NARROW },
	{ "LEFT OUT", "/left_out" }, { "ERROR", "/performance", COLUMN_REAL },
	{ "LEVEL", "/level", COLUMN_REAL, NARROW }, { "DRIFTED", "/drift_share", COLUMN_SHARE },
	{ "MODEL", "/model_version", NARROW }, { "REASON", "/reason" });

VIEW(drift_value, "/feature", { "FEATURE", "/feature" }, { "BASELINE", "/baseline" },
	{ "METRIC", "/metric" }, { "VALUE", "/value", COLUMN_REAL },
	{ "THRESHOLD", "/threshold", COLUMN_REAL, NARROW },
	{ "CRITICAL", "/critical", COLUMN_REAL, NARROW }, { "P", "/p", COLUMN_REAL, NARROW },
	{ "DRIFTED", "/drifted" }, { "STATUS", "/status" });

VIEW(decision, "/id", { "ID", "/id" }, { "MONITOR", "/monitor", NARROW },
	{ "WINDOW", "/window_start", COLUMN_DATE }, { "CAUSE", "/cause" },
	{ "ACTION", "/action", COLUMN_STATE }, { "FIRED", "/fired", NARROW },
	{ "SUPPRESSED BY", "/suppressed_by", NARROW }, { "RUN", "/run_id", NARROW },
	{ "RUN STATE", "/run_state", COLUMN_STATE, NARROW }, { "MODEL", "/model_version", NARROW },
	{ "VERDICT", "/verdict", COLUMN_STATE, NARROW }, { "TAKEN", "/created_at", T, NARROW },
	{ "REASON", "/reason" });

VIEW(observation, "/rows", { "ROWS", "/rows" }, { "DUPLICATES", "/duplicates" },
	{ "LATE", "/late" }, { "UNKNOWN", "/unknown" }, { "WINDOWS", "/windows" },
	{ "REOPENED", "/reopened" }, { "REPLAYED", "/replayed" });

VIEW(forgotten, "/windows", { "WINDOWS", "/windows" }, { "ROWS", "/rows" },
	{ "DECISIONS", "/decisions" }, { "HELD BY", "/held_by" }, { "DRY RUN", "/dry_run" });

VIEW(closed, "/closed", { "CLOSED", "/closed" }, { "DECISIONS", "/decisions" });

VIEW(worker, "/name", { "NAME", "/name" }, { "ID", "/id" }, { "POOL", "/pool" },
	{ "STATE", "/state", COLUMN_STATE }, { "ONLINE", "/online" }, { "RUNNING", "/running" },
	{ "RUNTIMES", "/runtimes", NARROW }, { "ISOLATED", "/isolated", DETAILS },
	{ "CPUS", "/cpus", COLUMN_REAL, NARROW }, { "MEMORY", "/memory", COLUMN_SIZE, NARROW },
	{ "DISK FREE", "/disk_free", COLUMN_SIZE, DETAILS },
	{ "GPUS", "/devices", SHAPED(devices) }, { "HOLDS", "/holds", SHAPED(holds) },
	{ "LABELS", "/labels", COLUMN_PAIRS, NARROW }, { "RELEASE", "/release", DETAILS },
	{ "SEEN", "/seen_at", T }, { "WARNINGS", "/warnings" });

VIEW(event, "/id", { "ID", "/id" }, { "AT", "/at", T }, { "TYPE", "/type" },
	{ "SUBJECT", "/subject" }, { "PARENT", "/parent" }, { "BY", "/actor" },
	{ "DATA", "/data", COLUMN_PAIRS });
