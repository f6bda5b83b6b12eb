/* Runs, steps and attempts: making them, and what the API shows of them. The engine's own reads and
 * writes are in engine_store.h. */
#ifndef SERVER_STORE_RUN_STORE_H
#define SERVER_STORE_RUN_STORE_H
#include "api/run.h"
#include "lib/db/row.h"

/* Columns: id, name, repository, ref, path, source, paused. */
void run_store_pipeline(struct db_unit *u, struct str project_id, struct str name);
/* One row (id, number) when there is such a version; number 0: the newest. */
void run_store_dataset(struct db_unit *u, struct str project_id, struct str name, int64_t number);
void run_store_model(struct db_unit *u, struct str project_id, struct str name, struct str alias);

/* cancel_running: asks the group's other open runs to end, with an event for each. */
void run_store_group_cancel(
	struct db_unit *u, struct str project_id, struct str group, struct str except_id);

void run_store_get(struct db_unit *u, struct str id);
void run_store_list(struct db_unit *u, struct str project_id, const struct run_query *q,
	struct str before, int64_t count);
void run_store_cancel(struct db_unit *u, struct str id); /* one row when it exists */
void run_store_delete(
	struct db_unit *u, struct str id, struct str actor); /* one row when it had ended */
void step_store_list(struct db_unit *u, struct str run_id, struct str after, int64_t count);
void step_store_get(struct db_unit *u, struct str id);
void attempt_store_list(struct db_unit *u, struct str step_id, struct str after, int64_t count);

#endif
