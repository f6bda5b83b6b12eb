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

struct run_row {
	struct str id, project_id, pipeline_id, pipeline, spec, inputs, labels, repository, commit;
	const char *trigger;
	struct str trigger_key, decision_id, group, created_by, models;
	const char *group_policy; /* NULL without a group */
	int64_t now; /* microseconds */
};
struct run_steps {
	const struct str *ids, *names, *needs, *specs, *tracking_runs; /* needs, specs: JSON */
	size_t n;
};
/* The run with its steps, all waiting, and their tracking runs. Fails on run_trigger when its
 * trigger has fired before, and with SQLSTATE TM002 when the group refuses it. */
void run_store_add(struct db_unit *u, const struct run_row *r, const struct run_steps *s);
void run_store_add_datasets(struct db_unit *u, struct str run_id, const struct str *names,
	const struct str *version_ids, size_t n);
/* cancel_running: asks the group's other open runs to end. Rows: their ids. */
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
