#include "api/auth.h"
#include "api/dataset.h"
#include "api/event.h"
#include "api/model.h"
#include "api/monitor.h"
#include "api/pipeline.h"
#include "api/pool.h"
#include "api/queue.h"
#include "api/route.h"
#include "api/run.h"
#include "api/tracking.h"
#include "api/worker.h"

#define P         "/api/v1/projects/{project}"
#define IN(type)  .body = BODY_JSON, .in = type##_fields, .in_size = sizeof(struct type)
#define OUT(type) .reply = REPLY_OBJECT, .out = type##_fields, .out_size = sizeof(struct type)
#define LIST(type)                                                                                 \
	.reply = REPLY_LIST, .out = type##_fields, .out_size = sizeof(struct type),                \
	QUERY(list_query)
#define LIST_OF(type) .reply = REPLY_LIST, .out = type##_fields, .out_size = sizeof(struct type)
#define QUERY(type)   .query = type##_fields, .query_size = sizeof(struct type)
#define STREAM_IN     .body = BODY_STREAM
#define ROWS_IN       .body = BODY_ROWS, .flags = ROUTE_BATCH
#define STREAM_OUT    .reply = REPLY_STREAM
#define RAW_OUT       .reply = REPLY_RAW
#define EMPTY         .reply = REPLY_EMPTY
#define IDEM          .flags = ROUTE_IDEMPOTENT
#define MATCH         .flags = ROUTE_IF_MATCH

const struct route routes[] = {
	/* who */
	{ "auth.bootstrap", "POST", "/api/v1/auth/bootstrap", PERM_BOOTSTRAP, .ok = 201,
		OUT(credential),
		.doc = "Exchange the bootstrap token for the first administrator's token" },
	{ "auth.self", "GET", "/api/v1/auth/self", PERM_SELF, .ok = 200, OUT(self),
		.doc = "Who the caller is" },
	{ "sessions.create", "POST", "/api/v1/auth/session", PERM_PUBLIC, .ok = 201,
		IN(session_new), OUT(session),
		.doc = "Log the dashboard in with a token; sets a cookie" },
	{ "sessions.delete", "DELETE", "/api/v1/auth/session", PERM_SELF, .ok = 204, EMPTY,
		.doc = "Log out" },
	{ "tokens.list", "GET", "/api/v1/tokens", PERM_SELF, .ok = 200, LIST(credential),
		.doc = "The caller's tokens" },
	{ "tokens.create", "POST", "/api/v1/tokens", PERM_SELF, .ok = 201, IDEM, IN(credential_new),
		OUT(credential), .doc = "Make a token; it can do no more than the caller" },
	{ "tokens.revoke", "DELETE", "/api/v1/tokens/{token}", PERM_SELF, .ok = 204, EMPTY,
		.doc = "Revoke a token of the caller; administrators any" },
	{ "principals.list", "GET", "/api/v1/principals", PERM_ADMIN, .ok = 200, LIST(principal),
		.doc = "All principals" },
	{ "principals.create", "POST", "/api/v1/principals", PERM_ADMIN, .ok = 201, IDEM,
		IN(principal_new), OUT(principal), .doc = "Make a principal" },
	{ "principals.token", "POST", "/api/v1/principals/{principal}/tokens", PERM_ADMIN,
		.ok = 201, IDEM, IN(credential_new), OUT(credential),
		.doc = "Make a token for a principal" },
	{ "principals.disable", "DELETE", "/api/v1/principals/{principal}", PERM_ADMIN, .ok = 204,
		EMPTY, .doc = "Shut a principal out; its tokens and sessions end" },

	/* projects */
	{ "projects.list", "GET", "/api/v1/projects", PERM_SELF, .ok = 200, LIST(project),
		.doc = "Projects that the caller may see" },
	{ "projects.create", "POST", "/api/v1/projects", PERM_ADMIN, .ok = 201, IDEM,
		IN(project_new), OUT(project), .doc = "Make a project" },
	{ "projects.get", "GET", P, PERM_READ, .ok = 200, OUT(project), .doc = "A project" },
	{ "projects.update", "PATCH", P, PERM_OWN, .ok = 200, MATCH, IN(project_patch),
		OUT(project), .doc = "Change description or retention" },
	{ "projects.delete", "DELETE", P, PERM_ADMIN, .ok = 204, MATCH, QUERY(dry_run_query),
		.reply = REPLY_DRY, .out = project_content_fields,
		.out_size = sizeof(struct project_content),
		.doc = "Remove a project and all that it holds, once its runs have ended" },
	{ "quotas.list", "GET", "/api/v1/quotas", PERM_ADMIN, .ok = 200, LIST(quota),
		.doc = "Quotas of all projects, and what they hold" },
	{ "quotas.get", "GET", P "/quota", PERM_READ, .ok = 200, OUT(quota),
		.doc = "What the project may hold of the workers, and holds" },
	{ "quotas.put", "PUT", P "/quota", PERM_ADMIN, .ok = 200, IN(quota_put), OUT(quota),
		.doc = "Change its quota; what is left out has no limit" },
	{ "pools.list", "GET", "/api/v1/pools", PERM_SELF, .ok = 200, LIST(worker_pool),
		.doc = "Pools that have workers, or of which something was set" },
	{ "pools.get", "GET", "/api/v1/pools/{pool}", PERM_SELF, .ok = 200, OUT(worker_pool),
		.doc = "A pool" },
	{ "pools.put", "PUT", "/api/v1/pools/{pool}", PERM_ADMIN, .ok = 200, IN(worker_pool_put),
		OUT(worker_pool),
		.doc = "Set what holds of a pool; what is left out is as by default. If-Match "
		       "when it must not have changed" },
	{ "pools.delete", "DELETE", "/api/v1/pools/{pool}", PERM_ADMIN, .ok = 204, EMPTY,
		.doc = "Let it be as by default; its workers stay" },
	{ "members.list", "GET", P "/members", PERM_READ, .ok = 200, LIST(member),
		.doc = "Members and their roles" },
	{ "members.put", "PUT", P "/members/{principal}", PERM_OWN, .ok = 200, IN(member_put),
		OUT(member), .doc = "Add a member or change its role" },
	{ "members.delete", "DELETE", P "/members/{principal}", PERM_OWN, .ok = 204, EMPTY,
		.doc = "Remove a member" },
	{ "retention.run", "POST", P "/retention", PERM_OWN, .ok = 200, QUERY(dry_run_query),
		OUT(retention_report),
		.doc = "Apply the project's retention now, or say what would go" },

	/* data sets */
	{ "blobs.put", "PUT", P "/blobs/{digest}", PERM_SUBMIT, .ok = 201, STREAM_IN, OUT(blob),
		.doc = "Upload bytes under their SHA-256; nothing happens when they are there" },
	{ "blobs.head", "GET", P "/blobs/{digest}", PERM_SUBMIT, .ok = 200, OUT(blob),
		.doc = "Whether bytes are there already" },
	{ "datasets.list", "GET", P "/datasets", PERM_READ, .ok = 200, LIST(dataset),
		.doc = "Data sets" },
	{ "datasets.create", "POST", P "/datasets", PERM_SUBMIT, .ok = 201, IDEM, IN(dataset_new),
		OUT(dataset), .doc = "Make a data set" },
	{ "datasets.get", "GET", P "/datasets/{dataset}", PERM_READ, .ok = 200, OUT(dataset),
		.doc = "A data set" },
	{ "datasets.delete", "DELETE", P "/datasets/{dataset}", PERM_OPERATE, .ok = 204,
		QUERY(dry_run_query), EMPTY,
		.doc = "Remove a data set that no run or model needs" },
	{ "dataset_versions.list", "GET", P "/datasets/{dataset}/versions", PERM_READ, .ok = 200,
		LIST(dataset_version), .doc = "Versions, newest first" },
	{ "dataset_versions.create", "POST", P "/datasets/{dataset}/versions", PERM_SUBMIT,
		.ok = 201, IDEM, .in_max = 4 << 20, IN(dataset_version_new), OUT(dataset_version),
		.doc = "Make a version of uploaded files; starts what waits for it" },
	{ "dataset_versions.get", "GET", P "/datasets/{dataset}/versions/{number}", PERM_READ,
		.ok = 200, OUT(dataset_version), .doc = "A version; \"latest\" is the newest" },
	{ "dataset_versions.files", "GET", P "/datasets/{dataset}/versions/{number}/files",
		PERM_READ, .ok = 200, LIST(file), .doc = "Its files" },
	{ "dataset_versions.file", "GET", P "/datasets/{dataset}/versions/{number}/files/{path*}",
		PERM_READ, .ok = 200, STREAM_OUT, .doc = "Bytes of a file" },

	/* pipelines and runs */
	{ "pipelines.list", "GET", P "/pipelines", PERM_READ, .ok = 200, .reply = REPLY_LIST,
		.out = pipeline_item_fields, .out_size = sizeof(struct pipeline), QUERY(list_query),
		.doc = "Pipelines, without their files" },
	{ "pipelines.get", "GET", P "/pipelines/{pipeline}", PERM_READ, .ok = 200, OUT(pipeline),
		.doc = "A pipeline" },
	{ "pipelines.put", "PUT", P "/pipelines/{pipeline}", PERM_OPERATE, .ok = 200,
		.in_max = 2 << 20, QUERY(dry_put_query), IN(pipeline_put), OUT(pipeline),
		.doc = "Register a pipeline or change it; what is absent stays" },
	{ "pipelines.pause", "POST", P "/pipelines/{pipeline}/pause", PERM_OPERATE, .ok = 200,
		OUT(pipeline),
		.doc = "Let its triggers do nothing; what they would have started "
		       "meanwhile is passed over" },
	{ "pipelines.resume", "POST", P "/pipelines/{pipeline}/resume", PERM_OPERATE, .ok = 200,
		OUT(pipeline), .doc = "Let its triggers start runs again" },
	{ "pipelines.delete", "DELETE", P "/pipelines/{pipeline}", PERM_OPERATE, .ok = 204, EMPTY,
		.doc = "Remove a pipeline; its runs stay" },
	{ "runs.list", "GET", P "/runs", PERM_READ, .ok = 200, QUERY(run_query), LIST_OF(run),
		.doc = "Runs, newest first" },
	{ "runs.create", "POST", P "/runs", PERM_SUBMIT, .ok = 201, IDEM, .in_max = 2 << 20,
		IN(run_new), OUT(run), .doc = "Submit a run" },
	{ "runs.get", "GET", "/api/v1/runs/{run}", PERM_READ, .flags = ROUTE_WAIT, .ok = 200,
		QUERY(wait_query), OUT(run), .doc = "A run; ?wait= answers when it has ended" },
	{ "runs.cancel", "POST", "/api/v1/runs/{run}/cancel", PERM_SUBMIT, .ok = 200, OUT(run),
		.doc = "Cancel a run; again does no harm" },
	{ "runs.rerun", "POST", "/api/v1/runs/{run}/rerun", PERM_SUBMIT, .ok = 201, IDEM,
		IN(rerun_new), OUT(run),
		.doc = "Run an ended run again, as a new one; from what failed, or all of it" },
	{ "runs.delete", "DELETE", "/api/v1/runs/{run}", PERM_OPERATE, .ok = 204, EMPTY,
		.doc = "Remove an ended run with its logs and artifacts" },
	{ "steps.list", "GET", "/api/v1/runs/{run}/steps", PERM_READ, .ok = 200, LIST(step),
		.doc = "Steps of a run, in order" },
	{ "steps.get", "GET", "/api/v1/steps/{step}", PERM_READ, .ok = 200, OUT(step),
		.doc = "A step" },
	{ "steps.blockers", "GET", "/api/v1/steps/{step}/blockers", PERM_READ, .ok = 200,
		OUT(step_wait), .doc = "Why a step waits, and what would let it start" },
	{ "runs.blockers", "GET", "/api/v1/runs/{run}/blockers", PERM_READ, .ok = 200,
		LIST(step_wait), .doc = "The same of all steps of a run that wait" },
	{ "queue.list", "GET", P "/queue", PERM_READ, .ok = 200, QUERY(queue_query),
		LIST_OF(step_wait),
		.doc = "The project's steps that want a worker, in the order of their turn" },
	{ "attempts.list", "GET", "/api/v1/steps/{step}/attempts", PERM_READ, .ok = 200,
		LIST(attempt), .doc = "Attempts of a step" },
	{ "steps.outputs", "GET", "/api/v1/steps/{step}/outputs/{output}/{path*}", PERM_READ,
		.ok = 200, STREAM_OUT, .doc = "Bytes of an output's file" },
	{ "logs.step", "GET", "/api/v1/steps/{step}/log", PERM_READ, .ok = 200, QUERY(log_query),
		STREAM_OUT,
		.types = { "application/json", "application/octet-stream", "text/event-stream" },
		.doc = "Log of the step's newest attempt" },
	{ "logs.attempt", "GET", "/api/v1/attempts/{attempt}/log", PERM_READ, .ok = 200,
		QUERY(log_query), STREAM_OUT,
		.types = { "application/json", "application/octet-stream", "text/event-stream" },
		.doc = "Log of an attempt" },

	/* tracking, for dashboard and CLI */
	{ "tracking.get", "GET", "/api/v1/tracking-runs/{tracking}", PERM_READ, .ok = 200,
		OUT(tracking_run), .doc = "Params, tags and latest metrics" },
	{ "tracking.series", "GET", "/api/v1/tracking-runs/{tracking}/series", PERM_READ, .ok = 200,
		QUERY(series_query), LIST_OF(series), .doc = "Metrics in buckets, for charts" },
	{ "tracking.artifacts", "GET", "/api/v1/tracking-runs/{tracking}/artifacts", PERM_READ,
		.ok = 200, QUERY(artifact_query), LIST_OF(artifact),
		.doc = "Artifacts in a folder" },
	{ "tracking.artifact", "GET", "/api/v1/tracking-runs/{tracking}/artifacts/{path*}",
		PERM_READ, .ok = 200, STREAM_OUT, .doc = "Bytes of an artifact" },

	/* models */
	{ "models.list", "GET", P "/models", PERM_READ, .ok = 200, LIST(model), .doc = "Models" },
	{ "models.get", "GET", P "/models/{model}", PERM_READ, .ok = 200, OUT(model),
		.doc = "A model" },
	{ "models.delete", "DELETE", P "/models/{model}", PERM_OWN, .ok = 204, EMPTY,
		.doc = "Remove a model that no monitor watches, with all versions" },
	{ "model_versions.list", "GET", P "/models/{model}/versions", PERM_READ, .ok = 200,
		LIST(model_version), .doc = "Versions, newest first" },
	{ "model_versions.get", "GET", P "/models/{model}/versions/{number}", PERM_READ, .ok = 200,
		OUT(model_version), .doc = "A version, with its lineage and what the gate said" },
	{ "model_versions.files", "GET", P "/models/{model}/versions/{number}/files", PERM_READ,
		.ok = 200, LIST(file), .doc = "Its files" },
	{ "model_versions.file", "GET", P "/models/{model}/versions/{number}/files/{path*}",
		PERM_READ, .ok = 200, STREAM_OUT, .doc = "Bytes of a file" },
	{ "aliases.get", "GET", P "/models/{model}/aliases/{alias}", PERM_READ, .ok = 200,
		QUERY(as_of_query), OUT(alias),
		.doc = "Which version has an alias, now or at a time" },
	{ "aliases.put", "PUT", P "/models/{model}/aliases/{alias}", PERM_OPERATE, .ok = 200,
		IN(alias_put), OUT(alias),
		.doc = "Move an alias; If-Match when it exists, force when the gate said no" },
	{ "aliases.delete", "DELETE", P "/models/{model}/aliases/{alias}", PERM_OPERATE, .ok = 204,
		EMPTY, .doc = "Remove an alias, unless a monitor watches what has it" },
	{ "aliases.history", "GET", P "/models/{model}/aliases", PERM_READ, .ok = 200,
		LIST(alias_change), .doc = "Who moved which alias when and why, newest first" },

	/* monitors */
	{ "monitors.list", "GET", P "/monitors", PERM_READ, .ok = 200, LIST(monitor),
		.doc = "Monitors" },
	{ "monitors.get", "GET", P "/monitors/{monitor}", PERM_READ, .ok = 200, OUT(monitor),
		.doc = "A monitor" },
	{ "monitors.put", "PUT", P "/monitors/{monitor}", PERM_OPERATE, .ok = 200,
		.in_max = 1 << 20, QUERY(dry_put_query), .body = BODY_YAML,
		.in = monitor_file_fields, .in_size = sizeof(struct monitor_file), OUT(monitor),
		.doc = "Make a monitor or replace its spec" },
	{ "monitors.delete", "DELETE", P "/monitors/{monitor}", PERM_OPERATE, .ok = 204, EMPTY,
		.doc = "Remove a monitor with its windows" },
	{ "observations.add", "POST", P "/monitors/{monitor}/observations", PERM_SUBMIT, .ok = 200,
		ROWS_IN, QUERY(observation_query), OUT(observation_result),
		.doc = "Production rows as CSV or NDJSON, of any length" },
	{ "labels.add", "POST", P "/monitors/{monitor}/labels", PERM_SUBMIT, .ok = 200, ROWS_IN,
		QUERY(observation_query), OUT(observation_result),
		.doc = "Late labels: id, time, label as CSV or NDJSON" },
	{ "windows.list", "GET", P "/monitors/{monitor}/windows", PERM_READ, .ok = 200,
		LIST(window), .doc = "Windows, newest first" },
	{ "windows.close", "POST", P "/monitors/{monitor}/windows/close", PERM_OPERATE, .ok = 200,
		IN(window_close), OUT(window_close_result),
		.doc = "Close a window: compute, judge, decide" },
	{ "windows.delete", "POST", P "/monitors/{monitor}/windows/delete", PERM_OPERATE, .ok = 200,
		QUERY(dry_run_query), IN(window_delete), OUT(window_delete_result),
		.doc = "Take windows away as if their rows had never come, or say what would go" },
	{ "windows.metrics", "GET", P "/monitors/{monitor}/windows/{window}/metrics", PERM_READ,
		.ok = 200, LIST_OF(drift_value), .doc = "Every metric of a window" },
	{ "monitors.heat", "GET", P "/monitors/{monitor}/heat", PERM_READ, .ok = 200,
		QUERY(heat_query), RAW_OUT,
		.doc = "Feature by window: {windows: […], features: [{name, values: […]}]}" },
	{ "monitors.mute", "POST", P "/monitors/{monitor}/mutes", PERM_OPERATE, .ok = 200, IN(mute),
		OUT(monitor), .doc = "Mute a feature or the monitor until a time" },
	{ "decisions.list", "GET", P "/monitors/{monitor}/decisions", PERM_READ, .ok = 200,
		LIST(decision), .doc = "Decisions, newest first" },
	{ "decisions.get", "GET", "/api/v1/decisions/{decision}", PERM_READ, .ok = 200,
		OUT(decision), .doc = "A decision with all that it rests on" },

	/* workers */
	{ "workers.join_token", "POST", "/api/v1/workers/join-tokens", PERM_ADMIN, .ok = 201, IDEM,
		IN(join_token_new), OUT(credential), .doc = "A token that enrols one worker" },
	{ "workers.enroll", "POST", "/api/v1/workers/enroll", PERM_JOIN, .ok = 201, IN(enroll),
		OUT(enrolled), .doc = "Enrol a worker with a join token" },
	{ "workers.list", "GET", "/api/v1/workers", PERM_SELF, .ok = 200, LIST(worker),
		.doc = "Workers" },
	{ "workers.get", "GET", "/api/v1/workers/{worker}", PERM_SELF, .ok = 200, OUT(worker),
		.doc = "A worker" },
	{ "workers.drain", "POST", "/api/v1/workers/{worker}/drain", PERM_ADMIN, .ok = 200,
		OUT(worker), .doc = "Assign nothing more to it" },
	{ "workers.resume", "POST", "/api/v1/workers/{worker}/resume", PERM_ADMIN, .ok = 200,
		OUT(worker), .doc = "Assign to it again" },
	{ "workers.delete", "DELETE", "/api/v1/workers/{worker}", PERM_ADMIN, .ok = 204, EMPTY,
		.doc = "Remove a worker that holds nothing; its credential ends" },
	{ "workers.sync", "POST", "/api/v1/workers/self/sync", PERM_WORKER, .ok = 200,
		.in_max = 4 << 20, IN(sync_request), OUT(sync_reply),
		.doc = "What the worker has, against what it should have" },
	{ "attempts.blob", "GET", "/api/v1/workers/self/attempts/{attempt}/blobs/{digest}",
		PERM_WORKER, .ok = 200, QUERY(epoch_query), STREAM_OUT,
		.doc = "Bytes that the attempt needs" },
	{ "attempts.upload", "PUT", "/api/v1/workers/self/attempts/{attempt}/blobs/{digest}",
		PERM_WORKER, .ok = 201, QUERY(epoch_query), STREAM_IN, OUT(blob),
		.doc = "Bytes of an output" },
	{ "attempts.outputs", "POST", "/api/v1/workers/self/attempts/{attempt}/outputs",
		PERM_WORKER, .ok = 204, .in_max = 4 << 20, IN(outputs_put), EMPTY,
		.doc = "Commit the outputs of an attempt" },
	{ "attempts.checkpoint", "POST", "/api/v1/workers/self/attempts/{attempt}/checkpoint",
		PERM_WORKER, .ok = 204, .in_max = 4 << 20, IN(checkpoint_put), EMPTY,
		.doc = "Commit what a later attempt may go on from, in place of what there was" },
	{ "attempts.log_matches", "PUT", "/api/v1/workers/self/attempts/{attempt}/log/matches",
		PERM_WORKER, .ok = 204, IN(log_matches), EMPTY,
		.doc = "Log policies that lines have matched so far" },
	{ "attempts.warn", "POST", "/api/v1/workers/self/attempts/{attempt}/warning", PERM_WORKER,
		.ok = 204, IN(attempt_warning), EMPTY,
		.doc = "Something that people should know while the attempt runs" },
	{ "attempts.metrics", "POST", "/api/v1/workers/self/attempts/{attempt}/metrics",
		PERM_WORKER, .ok = 204, IN(attempt_metrics), EMPTY,
		.doc = "What the attempt uses of its host, for its tracking run" },
	{ "attempts.log", "PUT", "/api/v1/workers/self/attempts/{attempt}/log", PERM_WORKER,
		.ok = 200, QUERY(log_put_query), .in_max = 8 << 20, STREAM_IN, OUT(log_position),
		.doc = "A piece of the log; the reply says what is stored" },
	{ "attempts.log_final", "POST", "/api/v1/workers/self/attempts/{attempt}/log/final",
		PERM_WORKER, .ok = 200, IN(log_final), OUT(log_position),
		.doc = "Agree on length and digest of the whole log" },

	/* operations */
	{ "scheduler.snapshot", "GET", "/api/v1/scheduler/snapshot", PERM_ADMIN, .ok = 200,
		STREAM_OUT, .types = { "application/x-ndjson" },
		.doc = "All that the scheduler sees and decides now, as NDJSON to be replayed" },
	{ "events.stream", "GET", P "/events", PERM_READ, .ok = 200, QUERY(event_query), STREAM_OUT,
		.types = { "text/event-stream" }, .doc = "Server-sent events of the project" },
	{ "server.version", "GET", "/api/v1/version", PERM_PUBLIC, .ok = 200, RAW_OUT,
		.doc = "Version of the API" },
	{ "server.openapi", "GET", "/api/v1/openapi.json", PERM_PUBLIC, .ok = 200, RAW_OUT,
		.doc = "This document" },
	{ "server.contract", "GET", "/openapi.json", PERM_PUBLIC, .ok = 200, RAW_OUT,
		.doc = "The same, where one looks first" },
	{ "server.schema", "GET", "/api/v1/schemas/{kind}", PERM_PUBLIC, .ok = 200, RAW_OUT,
		.doc = "JSON Schema of pipeline.json or monitor.json" },
	{ "server.livez", "GET", "/livez", PERM_PUBLIC, .ok = 200, STREAM_OUT,
		.types = { "text/plain" }, .doc = "The process runs" },
	{ "server.readyz", "GET", "/readyz", PERM_PUBLIC, .ok = 200, STREAM_OUT,
		.types = { "text/plain" },
		.doc = "It can serve: database reached, schema current, not draining" },
	{ "server.metrics", "GET", "/metrics", PERM_SELF, .ok = 200, STREAM_OUT,
		.types = { "text/plain" }, .doc = "Prometheus metrics" },

/* MLflow */
#define M       "/api/2.0/mlflow"
#define A       "/api/2.0/mlflow-artifacts/artifacts"
#define FLOW    .flags = ROUTE_MLFLOW, .ok = 200, RAW_OUT
#define FLOW_IN .body = BODY_JSON, .in_max = 16 << 20
	{ "mlflow.experiments.create", "POST", M "/experiments/create", PERM_TRACK_WRITE, FLOW,
		FLOW_IN, .doc = "MLflow: make an experiment" },
	{ "mlflow.experiments.get", "GET", M "/experiments/get", PERM_TRACK_READ, FLOW,
		.doc = "MLflow: an experiment" },
	{ "mlflow.experiments.get_by_name", "GET", M "/experiments/get-by-name", PERM_TRACK_READ,
		FLOW, .doc = "MLflow: an experiment by name" },
	{ "mlflow.runs.create", "POST", M "/runs/create", PERM_TRACK_WRITE, FLOW, FLOW_IN,
		.doc = "MLflow: make a tracking run" },
	{ "mlflow.runs.get", "GET", M "/runs/get", PERM_TRACK_READ, FLOW,
		.doc = "MLflow: a tracking run" },
	{ "mlflow.runs.update", "POST", M "/runs/update", PERM_TRACK_WRITE, FLOW, FLOW_IN,
		.doc = "MLflow: status, end time, name" },
	{ "mlflow.runs.log_metric", "POST", M "/runs/log-metric", PERM_TRACK_WRITE, FLOW, FLOW_IN,
		.doc = "MLflow: a metric point" },
	{ "mlflow.runs.log_parameter", "POST", M "/runs/log-parameter", PERM_TRACK_WRITE, FLOW,
		FLOW_IN, .doc = "MLflow: a param" },
	{ "mlflow.runs.set_tag", "POST", M "/runs/set-tag", PERM_TRACK_WRITE, FLOW, FLOW_IN,
		.doc = "MLflow: a tag" },
	{ "mlflow.runs.log_batch", "POST", M "/runs/log-batch", PERM_TRACK_WRITE, FLOW, FLOW_IN,
		.doc = "MLflow: metrics, params and tags" },
	{ "mlflow.metrics.get_history", "GET", M "/metrics/get-history", PERM_TRACK_READ, FLOW,
		.doc = "MLflow: all points of a metric" },
	{ "mlflow.artifacts.list", "GET", M "/artifacts/list", PERM_TRACK_READ, FLOW,
		.doc = "MLflow: artifacts of a run" },
	{ "mlflow.artifacts.list_proxy", "GET", A, PERM_TRACK_READ, FLOW,
		.doc = "MLflow: files below an artifact path" },
	{ "mlflow.artifacts.put", "PUT", A "/{path*}", PERM_TRACK_WRITE, FLOW, STREAM_IN,
		.doc = "MLflow: upload an artifact" },
	{ "mlflow.artifacts.get", "GET", A "/{path*}", PERM_TRACK_READ, .flags = ROUTE_MLFLOW,
		.ok = 200, STREAM_OUT, .doc = "MLflow: download an artifact" },
	{ 0 },
};
const size_t routes_count = sizeof routes / sizeof routes[0] - 1;

const struct route *route_find(const char *id)
{
	for (const struct route *r = routes; r->id != NULL; r++)
		if (strcmp(r->id, id) == 0)
			return r;
	return NULL;
}

const char *const *route_body_types(enum route_body b)
{
	static const char *const json[] = { "application/json", NULL };
	static const char *const yaml[] = { "application/json", "application/yaml",
		"application/x-yaml", "text/yaml", NULL };
	static const char *const rows[] = { "text/csv", "application/x-ndjson", "application/csv",
		"application/ndjson", "application/jsonl", NULL };
	static const char *const any[] = { NULL };

	switch (b) {
	case BODY_JSON: return json;
	case BODY_YAML: return yaml;
	case BODY_ROWS: return rows;
	case BODY_NONE:
	case BODY_STREAM: break;
	}
	return any;
}

const char *permission_name(enum permission p)
{
	static const char *const names[PERM_COUNT] = { "public", "self", "read", "submit",
		"operate", "own", "admin", "worker", "join", "bootstrap", "track_read",
		"track_write" };

	return names[p];
}
