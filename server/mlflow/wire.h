/* MLflow's objects as JSON, from rows of the store. Lists without items are left out. */
#ifndef SERVER_MLFLOW_WIRE_H
#define SERVER_MLFLOW_WIRE_H
#include "lib/db/row.h"
#include "lib/json/json_write.h"

/* The rows of tracking_store_get(): info, params, tags, latest metrics. */
void wire_run(struct jsn_out *w, const struct db_rows rows[4]);
void wire_run_info(struct jsn_out *w, const struct db_rows *info);
void wire_pairs(struct jsn_out *w, const char *name, const struct db_rows *rows);
/* A row of experiment_store_access() or _by_name(), and the rows of its tags. */
void wire_experiment(struct jsn_out *w, const struct db_rows *row, const struct db_rows *tags);
void wire_metric(struct jsn_out *w, struct str key, double value, int64_t time, int64_t step);

#endif
