/* The commands that do more than call one operation, by the file that has them. */
#ifndef CLI_NOUNS_H
#define CLI_NOUNS_H
#include "cli/command.h"

/* auth.c */
command_fn cmd_auth_login, cmd_auth_logout, cmd_auth_status, cmd_token_create, cmd_principal_create,
	cmd_worker_join_token;
/* project.c */
command_fn cmd_project_create, cmd_project_show, cmd_project_retention, cmd_project_delete,
	cmd_member_set, cmd_retention_run, cmd_quota_show, cmd_quota_set, cmd_pool_set;
/* apply.c */
command_fn cmd_apply, cmd_pipeline_register, cmd_pipeline_show;
/* run.c */
command_fn cmd_run_submit, cmd_run_rerun, cmd_run_cancel, cmd_run_wait, cmd_run_artifacts;
/* queue.c */
command_fn cmd_run_show, cmd_run_list, cmd_queue_why;
/* logs.c */
command_fn cmd_run_logs;
/* dataset.c */
command_fn cmd_dataset_create, cmd_dataset_push, cmd_dataset_download, cmd_model_download;
/* monitor.c */
command_fn cmd_alias_set, cmd_monitor_observe, cmd_monitor_labels, cmd_monitor_close,
	cmd_monitor_forget, cmd_monitor_mute, cmd_drift_explain;
/* misc.c */
command_fn cmd_events, cmd_api_call_raw, cmd_version, cmd_completion, cmd_help;

#endif
