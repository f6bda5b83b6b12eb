/* The tables of bindings, one of each file of handlers; main.c hands them to rest_new(). */
#ifndef SERVER_REST_HANDLERS_H
#define SERVER_REST_HANDLERS_H
#include "server/rest/call.h"

extern const struct binding project_bindings[];
extern const struct binding auth_bindings[];
extern const struct binding server_bindings[];
extern const struct binding log_ingest_bindings[];
extern const struct binding log_final_bindings[];
extern const struct binding log_bindings[];
extern const struct binding event_bindings[];
extern const struct binding metrics_bindings[];
extern const struct binding retention_bindings[];
extern const struct binding blob_bindings[];
extern const struct binding dataset_bindings[];
extern const struct binding dataset_create_bindings[];
extern const struct binding pipeline_bindings[];
extern const struct binding run_bindings[];
extern const struct binding rerun_bindings[];
extern const struct binding pool_bindings[];
extern const struct binding queue_bindings[];
extern const struct binding worker_bindings[];
extern const struct binding sync_bindings[];
extern const struct binding attempt_bindings[];
extern const struct binding attempt_metrics_bindings[];
extern const struct binding model_bindings[];
extern const struct binding monitor_bindings[];
extern const struct binding observation_bindings[];
extern const struct binding tracking_bindings[];

#endif
