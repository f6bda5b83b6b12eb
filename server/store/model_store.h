/* Models, their versions and files, aliases with history, and what the end of a run writes. Columns
 * as in schema/queries/model.sql. A number of 0 stands for the newest version. */
#ifndef SERVER_STORE_MODEL_STORE_H
#define SERVER_STORE_MODEL_STORE_H
#include "api/model.h"
#include "lib/db/row.h"

struct model_key {
	struct str project_id, name;
};

void model_store_list(struct db_unit *u, struct str project_id, struct str after, int64_t count);
void model_store_get(struct db_unit *u, struct model_key m);
/* Two statements; one row of the second when it was there. */
void model_store_delete(struct db_unit *u, struct model_key m, struct str actor);
void model_version_store_list(
	struct db_unit *u, struct model_key m, struct str before, int64_t count);
void model_version_store_get(struct db_unit *u, struct model_key m, int64_t number);
void model_file_store_list(
	struct db_unit *u, struct model_key m, int64_t number, struct str after, int64_t count);
void model_file_store_get(struct db_unit *u, struct model_key m, int64_t number, struct str path);

void alias_store_get(struct db_unit *u, struct model_key m, struct str alias);
void alias_store_as_of(struct db_unit *u, struct model_key m, struct str alias, int64_t at);
void alias_store_target(struct db_unit *u, struct model_key m, struct str alias, int64_t number);
void alias_store_history(struct db_unit *u, struct model_key m, struct str before, int64_t count);
void alias_store_delete(struct db_unit *u, struct model_key m, struct str alias, struct str actor);

/* Fails with TM001 (store_changed) when the alias is not where it was: at expected, or, when that
 * is empty, nowhere. */
struct alias_move {
	struct str alias, target, expected, note, actor;
	const char *cause; /* api, gate, rollback, override */
};
void alias_store_move(struct db_unit *u, struct str model_id, const struct alias_move *a);
void alias_store_promote(struct db_unit *u, struct model_key m, const struct alias_move *a);
/* A unit failed because something is not as it was read: read it again. */
bool store_changed(const struct db_rows *rows);

/* The end of a run. */
void finish_store_run(struct db_unit *u, struct str run_id);
void finish_store_outputs(struct db_unit *u, struct str run_id, int64_t count);
void finish_store_steps(struct db_unit *u, struct str run_id);
void finish_store_datasets(struct db_unit *u, struct str run_id);
void finish_store_model(
	struct db_unit *u, struct model_key m, struct str against, struct str promote);
void finish_store_monitors(
	struct db_unit *u, struct model_key m, struct str alias, struct str decision_id);
void finish_store_advance(struct db_unit *u, struct str run_id, int64_t version);
void finish_store_state(struct db_unit *u, struct str run_id, const char *state, struct str reason,
	struct str message);
void finish_store_sweep(struct db_unit *u, int64_t count);
void finish_store_retraining(struct db_unit *u, struct str run_id);
void finish_store_monitor_state(struct db_unit *u, struct str monitor_id, struct str policy_state);
void retraining_store_close(struct db_unit *u, struct str run_id);

struct model_version_new {
	struct str id, run_id, step_id, output, tracking_run, repository, commit, image_digest;
	struct str training_data, datasets, metrics, gate; /* JSON */
	struct str verdict, verdict_reason, metric;
	double level;
	bool has_level;
	struct str created_by, new_model_id; /* of the model, should it not exist */
};
/* Makes the model when it is missing, and a version of it with the files of the step's output. */
void model_version_store_add(
	struct db_unit *u, struct model_key m, const struct model_version_new *v);

#endif
