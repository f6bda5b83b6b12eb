/* The tables of bindings of this folder; main.c hands them to rest_new(). */
#ifndef SERVER_MLFLOW_HANDLERS_H
#define SERVER_MLFLOW_HANDLERS_H
#include "server/rest/call.h"

extern const struct binding mlflow_experiment_bindings[];
extern const struct binding mlflow_run_bindings[];
extern const struct binding mlflow_batch_bindings[];
extern const struct binding mlflow_history_bindings[];
extern const struct binding mlflow_artifact_bindings[];

#endif
