/* All commands. Rows of one noun stand together; help prints them in this order. */
#include "cli/generic.h"
#include "cli/nouns.h"
#include "cli/view.h"

#define FLAGS(...)                                                                                 \
	(const struct flag[])                                                                      \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}
#define LISTS   FLAGS(LIMIT_FLAG)
#define DELETES FLAGS(YES_FLAG)
#define EXPIRES                                                                                    \
	{                                                                                          \
		"expires-in", FLAG_TEXT, .arg = "TIME", .doc = "How long it is good for (90d)"     \
	}
#define DESCRIPTION                                                                                \
	{                                                                                          \
		"description", FLAG_TEXT, .arg = "TEXT", .doc = "For people"                       \
	}
#define LABEL                                                                                      \
	{                                                                                          \
		"label", FLAG_LIST, .arg = "NAME=VALUE", .doc = "A label"                          \
	}
#define BATCH                                                                                      \
	{                                                                                          \
		"batch", FLAG_TEXT,                                                                \
			.arg = "ID",                                                               \
			.doc = "Identity of the rows: sent twice, they count once (their SHA-256)" \
	}
#define AGES                                                                                       \
	{ "runs", FLAG_TEXT, .arg = "AGE", .doc = "Ended runs go after this age; 'keep': never" }, \
		{ "logs", FLAG_TEXT, .arg = "AGE", .doc = "Logs of ended attempts" },              \
		{ "artifacts", FLAG_TEXT, .arg = "AGE", .doc = "Artifacts of ended runs" },        \
	{                                                                                          \
		"windows", FLAG_TEXT, .arg = "AGE", .doc = "Rows of closed windows"                \
	}
#define FILE_FLAG(what)                                                                            \
	{                                                                                          \
		"file", FLAG_TEXT, .letter = 'f', .arg = "FILE", .doc = (what)                     \
	}
#define REF                                                                                        \
	{                                                                                          \
		"ref", FLAG_TEXT, .arg = "REF",                                                    \
				  .doc = "Branch, tag or commit (as it is; at first main)"         \
	}
#define LOG_FLAGS                                                                                  \
	{ "step", FLAG_TEXT, .arg = "NAME", .doc = "Only this step" },                             \
		{ "attempt", FLAG_TEXT, .arg = "ID",                                               \
			.doc = "This attempt instead of the newest" },                             \
		{ "follow", FLAG_BOOL, .doc = "Go on until the run has ended" },                   \
		{ "tail", FLAG_INT, .arg = "N", .doc = "Only the last lines of each step" },       \
		{ "rank", FLAG_TEXT, .arg = "N|all",                                               \
			.doc = "Of a step on several workers: whose log; 0 if not given" },        \
		{ "grep", FLAG_TEXT, .arg = "TEXT",                                                \
			.doc = "Only lines that hold this text, with their numbers" },             \
		{ "regex", FLAG_BOOL, .doc = "TEXT is a regular expression" },                     \
		{ "ignore-case", FLAG_BOOL, .doc = "TEXT matches in either case" },                \
		{ "since", FLAG_SPAN, .arg = "TIME", .doc = "Only lines of the last so long" },    \
		{ "raw", FLAG_BOOL, .doc = "The bytes as they were written" },                     \
	{                                                                                          \
		"timestamps", FLAG_BOOL, .letter = 't', .doc = "The time of each line"             \
	}
#define WAIT_FLAGS                                                                                 \
	{ "timeout", FLAG_SPAN, .arg = "TIME",                                                     \
		.doc = "Stop waiting after this long (exit code 7)" },                             \
	{                                                                                          \
		"fail-on-refused", FLAG_BOOL,                                                      \
			.doc = "Exit code 12 when the gate did not promote the model"              \
	}

const struct command commands[] = {
	{ "auth login", "",
		FLAGS({ "bootstrap", FLAG_BOOL,
			.doc = "The token is a bootstrap token: make the first administrator" }),
		cmd_auth_login, "auth.self", &view_self,
		"Keep server, project and a token, which is asked for or read from stdin" },
	{ "auth logout", "", FLAGS({ "revoke", FLAG_BOOL, .doc = "Revoke the token as well" }),
		cmd_auth_logout, "tokens.revoke", NULL, "Forget the token" },
	{ "auth status", "", NULL, cmd_auth_status, "auth.self", &view_self,
		"Who the server says we are" },

	{ "token create", "NAME",
		FLAGS({ "for", FLAG_TEXT, .arg = "PRINCIPAL", .doc = "For somebody else" },
			{ "kind", FLAG_TEXT, .arg = "KIND",
				.doc = "pat for a person, ci for a system" },
			{ "role", FLAG_TEXT, .arg = "ROLE",
				.doc = "The most it may do: viewer, ci, operator, owner" },
			{ "only-project", FLAG_TEXT, .arg = "NAME",
				.doc = "The only project it opens" },
			EXPIRES),
		cmd_token_create, "tokens.create", &view_token,
		"Make a token, which is shown once" },
	{ "token list", "", LISTS, generic_list, "tokens.list", &view_token, "Our tokens" },
	{ "token revoke", "TOKEN_ID", DELETES, generic_delete, "tokens.revoke", NULL,
		"Revoke a token" },

	{ "principal list", "", LISTS, generic_list, "principals.list", &view_principal,
		"People and systems" },
	{ "principal create", "NAME", FLAGS({ "admin", FLAG_BOOL, .doc = "May do everything" }),
		cmd_principal_create, "principals.create", &view_principal, "Make one" },
	{ "principal disable", "NAME", DELETES, generic_delete, "principals.disable", NULL,
		"Shut one out" },

	{ "project create", "NAME", FLAGS(DESCRIPTION, AGES), cmd_project_create, "projects.create",
		&view_project, "Make a project" },
	{ "project list", "", LISTS, generic_list, "projects.list", &view_project, "Projects" },
	{ "project show", "[NAME]", NULL, cmd_project_show, "projects.get", &view_project,
		"A project; ours without a name" },
	{ "project retention", "", FLAGS(AGES), cmd_project_retention, "projects.update",
		&view_project, "Show or change the ages after which things go" },
	{ "project delete", "NAME",
		FLAGS({ "dry-run", FLAG_BOOL, .query = true, .doc = "Only say what would go" },
			YES_FLAG),
		cmd_project_delete, "projects.delete", &view_project_content,
		"Remove a project and all that it holds" },
	{ "project members", "", LISTS, generic_list, "members.list", &view_member,
		"Members and their roles" },
	{ "member set", "PRINCIPAL ROLE", NULL, cmd_member_set, "members.put", &view_member,
		"Add a member, or change its role: viewer, ci, operator, owner" },
	{ "member remove", "PRINCIPAL", DELETES, generic_delete, "members.delete", NULL,
		"Remove a member" },
	{ "retention run", "",
		FLAGS({ "dry-run", FLAG_BOOL, .query = true, .doc = "Only say what would go" },
			YES_FLAG),
		cmd_retention_run, "retention.run", &view_retention,
		"Apply the project's retention now" },

	{ "apply", "",
		FLAGS({ "file", FLAG_LIST, .letter = 'f', .arg = "FILE",
			      .doc = "A Pipeline or Monitor; '-' is stdin" },
			{ "repository", FLAG_TEXT, .arg = "URL",
				.doc = "Pipelines are read from this repository at each run (as it "
				       "is)" },
			{ "detach", FLAG_BOOL,
				.doc = "Take the file's text itself, apart from any repository" },
			REF,
			{ "path", FLAG_TEXT, .arg = "PATH",
				.doc = "The file in the repository (with --repository the name of "
				       "FILE)" }),
		cmd_apply, NULL, NULL, "Make or change what files describe, and say what changed" },

	{ "pipeline register", "NAME REPOSITORY",
		FLAGS(REF, { "path", FLAG_TEXT, .arg = "PATH",
				   .doc = "The file in the repository (as it is; at first "
					  "tidemill.yaml)" }),
		cmd_pipeline_register, "pipelines.put", &view_pipeline,
		"Register a pipeline that is in a repository" },
	{ "pipeline list", "", LISTS, generic_list, "pipelines.list", &view_pipeline, "Pipelines" },
	{ "pipeline show", "NAME",
		FLAGS({ "source", FLAG_BOOL, .doc = "Only the file, as it was written" }),
		cmd_pipeline_show, "pipelines.get", &view_pipeline, "A pipeline" },
	{ "pipeline pause", "NAME", NULL, generic_post, "pipelines.pause", &view_pipeline,
		"Let its triggers do nothing" },
	{ "pipeline resume", "NAME", NULL, generic_post, "pipelines.resume", &view_pipeline,
		"Let its triggers start runs again" },
	{ "pipeline delete", "NAME", DELETES, generic_delete, "pipelines.delete", NULL,
		"Remove a pipeline; its runs stay" },

	{ "run submit", "[PIPELINE]",
		FLAGS(FILE_FLAG("A Pipeline file instead of a registered pipeline"),
			{ "pipeline", FLAG_TEXT, .arg = "NAME", .doc = "The same as the argument" },
			{ "input", FLAG_LIST, .letter = 'i', .arg = "NAME=VALUE",
				.doc = "An input" },
			{ "ref", FLAG_TEXT, .arg = "REF",
				.doc = "Branch, tag or commit (the pipeline's)" },
			LABEL,
			{ "no-cache", FLAG_BOOL,
				.doc = "Run all steps, also those that say cache" },
			{ "wait", FLAG_BOOL, .doc = "Wait for its end; the exit code tells it" },
			{ "follow", FLAG_BOOL, .doc = "Wait, and show the logs meanwhile" },
			WAIT_FLAGS),
		cmd_run_submit, "runs.create", &view_run, "Submit a run" },
	{ "run list", "",
		FLAGS(LIMIT_FLAG,
			{ "pipeline", FLAG_TEXT, .query = true, .arg = "NAME",
				.doc = "Only runs of this pipeline" },
			{ "state", FLAG_TEXT, .query = true, .arg = "STATE",
				.doc = "Only runs in this state" }),
		cmd_run_list, "runs.list", &view_run, "Runs, newest first" },
	{ "run show", "RUN", NULL, cmd_run_show, "runs.get", &view_run, "A run" },
	{ "run steps", "RUN", LISTS, generic_list, "steps.list", &view_step, "Its steps" },
	{ "run step", "STEP_ID", NULL, generic_show, "steps.get", &view_step, "A step" },
	{ "run attempts", "STEP_ID", LISTS, generic_list, "attempts.list", &view_attempt,
		"Attempts of a step" },
	{ "run wait", "RUN",
		FLAGS({ "follow", FLAG_BOOL, .doc = "Show the logs meanwhile" }, WAIT_FLAGS),
		cmd_run_wait, "runs.get", &view_run, "Wait for its end; the exit code tells it" },
	{ "run logs", "RUN", FLAGS(LOG_FLAGS), cmd_run_logs, "logs.step", NULL,
		"Logs of its steps; with -o json each line is an object with its step and "
		"attempt" },
	{ "run artifacts", "RUN",
		FLAGS({ "step", FLAG_TEXT, .arg = "NAME", .doc = "Of this step" },
			{ "path", FLAG_TEXT, .query = true, .arg = "FOLDER",
				.doc = "In this folder" }),
		cmd_run_artifacts, "tracking.artifacts", &view_artifact,
		"Artifacts of a step, or of a tracking run" },
	{ "run rerun", "RUN",
		FLAGS({ "from", FLAG_TEXT, .arg = "WHERE",
			      .doc = "failed (else): keep what has succeeded; start: all anew" },
			{ "wait", FLAG_BOOL, .doc = "Wait for its end; the exit code tells it" },
			{ "follow", FLAG_BOOL, .doc = "Wait, and show the logs meanwhile" },
			WAIT_FLAGS),
		cmd_run_rerun, "runs.rerun", &view_run,
		"Run an ended run again, as a new run with all that it had pinned" },
	{ "run cancel", "RUN", NULL, cmd_run_cancel, "runs.cancel", &view_run,
		"Cancel it; one that has ended stays as it is" },
	{ "run delete", "RUN", DELETES, generic_delete, "runs.delete", NULL,
		"Remove an ended run with its logs and artifacts" },
	{ "logs", "RUN", FLAGS(LOG_FLAGS), cmd_run_logs, "logs.step", NULL,
		"The same as run logs" },

	{ "quota list", "", LISTS, generic_list, "quotas.list", &view_quota,
		"Quotas of all projects, and what they hold" },
	{ "quota show", "[PROJECT]", NULL, cmd_quota_show, "quotas.get", &view_quota,
		"What a project may hold of the workers, and holds; ours without a name" },
	{ "quota set", "PROJECT",
		FLAGS({ "gpus", FLAG_TEXT, .arg = "N",
			      .doc = "GPUs granted: what others borrow gives way; 'none': no "
				     "limit" },
			{ "gpus-borrow", FLAG_TEXT, .arg = "N", .doc = "GPUs beyond that" },
			{ "steps", FLAG_TEXT, .arg = "N",
				.doc = "Running steps granted; 'none': no limit" },
			{ "steps-borrow", FLAG_TEXT, .arg = "N",
				.doc = "Running steps beyond that" },
			{ "weight", FLAG_TEXT, .arg = "W",
				.doc = "Twice the weight, twice the share where projects "
				       "compete" }),
		cmd_quota_set, "quotas.put", &view_quota,
		"Change a project's quota; what is not given stays" },

	{ "pool list", "", LISTS, generic_list, "pools.list", &view_pool,
		"Pools that have workers, or of which something was set" },
	{ "pool show", "POOL", NULL, generic_show, "pools.get", &view_pool,
		"What holds of a pool of workers" },
	{ "pool set", "POOL",
		FLAGS({ "policy", FLAG_TEXT, .arg = "POLICY",
			      .doc = "auto: GPUs are packed, steps without GPUs are spread; pack: "
				     "the fullest worker that fits; spread: the emptiest" },
			{ "sensitivity", FLAG_TEXT, .arg = "WORDS",
				.doc = "Which steps may come: of public, internal, confidential "
				       "and restricted, with commas between" },
			{ "preemption", FLAG_TEXT, .arg = "WHO",
				.doc = "none; quota: who is within his quota ends the work of "
				       "who borrows; priority: that, and a greater priority "
				       "ends the work of a smaller one" }),
		cmd_pool_set, "pools.put", &view_pool,
		"Change what holds of a pool; what is not given stays" },
	{ "pool remove", "POOL", DELETES, generic_delete, "pools.delete", NULL,
		"Forget what was set of a pool: it is as by default; its workers stay" },

	{ "queue list", "",
		FLAGS(LIMIT_FLAG, { "pool", FLAG_TEXT, .query = true, .arg = "NAME",
					  .doc = "Only steps that want this pool" }),
		generic_list, "queue.list", &view_wait,
		"Steps that want a worker, in the order of their turn" },
	{ "queue why", "STEP_OR_RUN", NULL, cmd_queue_why, "steps.blockers", &view_wait,
		"Why a step waits, or each of a run's; what would help" },

	{ "dataset create", "NAME", FLAGS(DESCRIPTION, LABEL), cmd_dataset_create,
		"datasets.create", &view_dataset, "Make a data set" },
	{ "dataset list", "", LISTS, generic_list, "datasets.list", &view_dataset, "Data sets" },
	{ "dataset show", "NAME", NULL, generic_show, "datasets.get", &view_dataset, "A data set" },
	{ "dataset versions", "NAME", LISTS, generic_list, "dataset_versions.list",
		&view_dataset_version, "Its versions, newest first" },
	{ "dataset push", "NAME PATH...",
		FLAGS({ "append", FLAG_BOOL, .doc = "Add the files to the newest version's" },
			DESCRIPTION, LABEL),
		cmd_dataset_push, "dataset_versions.create", &view_dataset_version,
		"Upload files and folders as a new version; makes the data set when there is "
		"none" },
	{ "dataset files", "NAME VERSION", LISTS, generic_list, "dataset_versions.files",
		&view_file, "Files of a version; \"latest\" is the newest" },
	{ "dataset download", "NAME VERSION FOLDER", NULL, cmd_dataset_download,
		"dataset_versions.files", NULL, "Bring a version's files into a folder" },
	{ "dataset delete", "NAME",
		FLAGS({ "dry-run", FLAG_BOOL, .query = true,
			      .doc = "Only say whether it could go" },
			YES_FLAG),
		generic_delete, "datasets.delete", NULL,
		"Remove a data set that no run or model needs" },

	{ "model list", "", LISTS, generic_list, "models.list", &view_model, "Models" },
	{ "model show", "NAME", NULL, generic_show, "models.get", &view_model, "A model" },
	{ "model versions", "NAME", LISTS, generic_list, "model_versions.list", &view_model_version,
		"Its versions, newest first" },
	{ "model version", "NAME NUMBER", NULL, generic_show, "model_versions.get",
		&view_model_version, "A version, with its lineage and the gate's verdict" },
	{ "model alias set", "NAME ALIAS NUMBER",
		FLAGS({ "note", FLAG_TEXT, .arg = "TEXT", .doc = "Why; kept in the history" },
			{ "force", FLAG_BOOL,
				.doc = "Also when the version's gate has refused it; needs "
				       "--note" }),
		cmd_alias_set, "aliases.put", &view_alias, "Move an alias to a version" },
	{ "model alias show", "NAME ALIAS",
		FLAGS({ "as-of", FLAG_TEXT, .query = true, .arg = "TIME", .doc = "At this time" }),
		generic_show, "aliases.get", &view_alias, "Which version has an alias" },
	{ "model alias history", "NAME", LISTS, generic_list, "aliases.history", &view_alias_change,
		"Who moved which alias when and why" },
	{ "model alias remove", "NAME ALIAS", DELETES, generic_delete, "aliases.delete", NULL,
		"Remove an alias" },
	{ "model files", "NAME NUMBER", LISTS, generic_list, "model_versions.files", &view_file,
		"Files of a version" },
	{ "model download", "NAME NUMBER FOLDER", NULL, cmd_model_download, "model_versions.files",
		NULL, "Bring a version's files into a folder" },
	{ "model delete", "NAME", DELETES, generic_delete, "models.delete", NULL,
		"Remove a model that no monitor watches, with all versions" },

	{ "monitor list", "", LISTS, generic_list, "monitors.list", &view_monitor, "Monitors" },
	{ "monitor show", "NAME", NULL, generic_show, "monitors.get", &view_monitor, "A monitor" },
	{ "monitor windows", "NAME", LISTS, generic_list, "windows.list", &view_window,
		"Its windows, newest first" },
	{ "monitor metrics", "NAME WINDOW_ID", NULL, generic_list, "windows.metrics",
		&view_drift_value, "Every metric of a window" },
	{ "monitor decisions", "NAME", LISTS, generic_list, "decisions.list", &view_decision,
		"Its decisions, newest first" },
	{ "monitor observe", "NAME FILE", FLAGS(BATCH), cmd_monitor_observe, "observations.add",
		&view_observation, "Send production's rows, CSV or NDJSON, also packed (.gz)" },
	{ "monitor labels", "NAME FILE", FLAGS(BATCH), cmd_monitor_labels, "labels.add",
		&view_observation, "Send labels that came late: id, time, label" },
	{ "monitor close", "NAME",
		FLAGS({ "start", FLAG_TEXT, .arg = "TIME", .doc = "The window that starts then" },
			{ "before", FLAG_TEXT, .arg = "TIME",
				.doc = "All windows that end at or before this time (now)" }),
		cmd_monitor_close, "windows.close", &view_closed,
		"Close windows: compute, judge, decide" },
	{ "monitor forget", "NAME",
		FLAGS({ "start", FLAG_TEXT, .arg = "TIME", .doc = "The window that starts then" },
			{ "from", FLAG_TEXT, .arg = "TIME",
				.doc = "All windows that start at or after this time" },
			{ "to", FLAG_TEXT, .arg = "TIME", .doc = "and end at or before this one" },
			{ "dry-run", FLAG_BOOL, .query = true, .doc = "Only say what would go" },
			YES_FLAG),
		cmd_monitor_forget, "windows.delete", &view_forgotten,
		"Take windows away as if their rows had never come" },
	{ "monitor mute", "NAME",
		FLAGS({ "feature", FLAG_TEXT, .arg = "NAME", .doc = "One feature (all)" },
			{ "until", FLAG_TEXT, .arg = "TIME", .doc = "In the data's time" },
			{ "reason", FLAG_TEXT, .arg = "TEXT", .doc = "Why" }),
		cmd_monitor_mute, "monitors.mute", &view_monitor,
		"Mute a feature or all until a time" },
	{ "monitor delete", "NAME", DELETES, generic_delete, "monitors.delete", NULL,
		"Remove a monitor with its windows" },
	{ "drift explain", "DECISION", NULL, cmd_drift_explain, "decisions.get", &view_decision,
		"What a decision rests on, and what came of it" },

	{ "worker list", "", LISTS, generic_list, "workers.list", &view_worker, "Workers" },
	{ "worker show", "WORKER_ID", NULL, generic_show, "workers.get", &view_worker, "A worker" },
	{ "worker drain", "WORKER_ID", NULL, generic_post, "workers.drain", &view_worker,
		"Assign nothing more to it" },
	{ "worker resume", "WORKER_ID", NULL, generic_post, "workers.resume", &view_worker,
		"Assign to it again" },
	{ "worker delete", "WORKER_ID", DELETES, generic_delete, "workers.delete", NULL,
		"Remove a worker that holds nothing" },
	{ "worker join-token", "",
		FLAGS({ "pool", FLAG_TEXT, .arg = "NAME", .doc = "Pool of the worker (default)" },
			LABEL,
			{ "expires-in", FLAG_TEXT, .arg = "TIME",
				.doc = "How long it is good for (1h)" }),
		cmd_worker_join_token, "workers.join_token", &view_token,
		"A token that enrols one worker" },

	{ "events", "",
		FLAGS({ "topic", FLAG_LIST, .arg = "ID", .doc = "Only of this object" },
			{ "from", FLAG_INT, .arg = "ID", .doc = "After this event" },
			{ "follow", FLAG_BOOL,
				.doc = "Go on; else end when nothing comes for some seconds" }),
		cmd_events, "events.stream", &view_event,
		"What happens in the project; with -o json each event on a line of its own" },
	{ "api", "METHOD PATH",
		FLAGS({ "data", FLAG_TEXT, .letter = 'd', .arg = "JSON", .doc = "The body" },
			FILE_FLAG("The body from a file; '-' is stdin")),
		cmd_api_call_raw, NULL, NULL, "Call any address of the API" },
	{ "version", "", NULL, cmd_version, "server.version", NULL,
		"Version of program and server" },
	{ "completion", "SHELL", NULL, cmd_completion, NULL, NULL,
		"Print the completion of a shell: bash, zsh or fish" },
	{ "help", "[WORD...]", NULL, cmd_help, NULL, NULL,
		"Help; also of exit-codes, environment" },
	{ 0 },
};
