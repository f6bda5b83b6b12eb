#include "server/store/model_store.h"

#include "gen/sql.h"

static struct db_arg optional(struct str s)
{
	return db_opt(s.n != 0, DB_TEXT(s));
}

static struct db_arg text(struct str s)
{
	return DB_TEXT(s.p != NULL ? s : STR(""));
}

static struct db_arg newest_or(int64_t number)
{
	return db_opt(number != 0, DB_INT(number));
}

void model_store_list(struct db_unit *u, struct str project_id, struct str after, int64_t count)
{
	db_stmt(u, SQL_MODEL_LIST, DB_TEXT(project_id), DB_TEXT(after), DB_INT(count));
}

void model_store_get(struct db_unit *u, struct model_key m)
{
	db_stmt(u, SQL_MODEL_GET, DB_TEXT(m.project_id), DB_TEXT(m.name));
}

void model_store_delete(struct db_unit *u, struct model_key m, struct str actor)
{
	db_stmt(u, SQL_MODEL_ALIASES_DELETE, DB_TEXT(m.project_id), DB_TEXT(m.name));
	db_stmt(u, SQL_MODEL_DELETE, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(actor));
}

void model_version_store_list(
	struct db_unit *u, struct model_key m, struct str before, int64_t count)
{
	db_stmt(u, SQL_MODEL_VERSION_LIST, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(before),
		DB_INT(count));
}

void model_version_store_get(struct db_unit *u, struct model_key m, int64_t number)
{
	db_stmt(u, SQL_MODEL_VERSION_GET, DB_TEXT(m.project_id), DB_TEXT(m.name),
		newest_or(number));
}

void model_file_store_list(
	struct db_unit *u, struct model_key m, int64_t number, struct str after, int64_t count)
{
	db_stmt(u, SQL_MODEL_FILE_LIST, DB_TEXT(m.project_id), DB_TEXT(m.name), newest_or(number),
		DB_TEXT(after), DB_INT(count));
}

void model_file_store_get(struct db_unit *u, struct model_key m, int64_t number, struct str path)
{
	db_stmt(u, SQL_MODEL_FILE_GET, DB_TEXT(m.project_id), DB_TEXT(m.name), newest_or(number),
		DB_TEXT(path));
}

void alias_store_get(struct db_unit *u, struct model_key m, struct str alias)
{
	db_stmt(u, SQL_ALIAS_GET, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(alias));
}

void alias_store_as_of(struct db_unit *u, struct model_key m, struct str alias, int64_t at)
{
	db_stmt(u, SQL_ALIAS_AS_OF, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(alias),
		DB_TIME(at));
}

void alias_store_target(struct db_unit *u, struct model_key m, struct str alias, int64_t number)
{
	db_stmt(u, SQL_ALIAS_TARGET, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(alias),
		DB_INT(number));
}

void alias_store_history(struct db_unit *u, struct model_key m, struct str before, int64_t count)
{
	db_stmt(u, SQL_ALIAS_HISTORY, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(before),
		DB_INT(count));
}

void alias_store_delete(struct db_unit *u, struct model_key m, struct str alias, struct str actor)
{
	db_stmt(u, SQL_ALIAS_DELETE, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(alias),
		optional(actor));
}

void alias_store_move(struct db_unit *u, struct str model_id, const struct alias_move *a)
{
	db_stmt(u, SQL_ALIAS_MOVE, DB_TEXT(model_id), DB_TEXT(a->alias), DB_TEXT(a->target),
		optional(a->expected), DB_TEXTZ(a->cause), text(a->note), optional(a->actor));
}

void alias_store_promote(struct db_unit *u, struct model_key m, const struct alias_move *a)
{
	db_stmt(u, SQL_ALIAS_PROMOTE, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(a->alias),
		DB_TEXT(a->target), optional(a->expected), DB_TEXTZ(a->cause), text(a->note),
		optional(a->actor));
}

bool store_changed(const struct db_rows *rows)
{
	return rows->fault != NULL && strcmp(rows->fault->sqlstate, "TM001") == 0;
}

void finish_store_run(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_FINISH_RUN, DB_TEXT(run_id));
}

void finish_store_outputs(struct db_unit *u, struct str run_id, int64_t count)
{
	db_stmt(u, SQL_FINISH_OUTPUTS, DB_TEXT(run_id), DB_INT(count));
}

void finish_store_steps(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_FINISH_STEPS, DB_TEXT(run_id));
}

void finish_store_datasets(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_FINISH_DATASETS, DB_TEXT(run_id));
}

void finish_store_model(
	struct db_unit *u, struct model_key m, struct str against, struct str promote)
{
	db_stmt(u, SQL_FINISH_MODEL, DB_TEXT(m.project_id), DB_TEXT(m.name), text(against),
		text(promote));
}

void finish_store_monitors(
	struct db_unit *u, struct model_key m, struct str alias, struct str decision_id)
{
	db_stmt(u, SQL_FINISH_MONITORS, DB_TEXT(m.project_id), text(m.name), text(alias),
		optional(decision_id));
}

void finish_store_advance(struct db_unit *u, struct str run_id, int64_t version)
{
	db_stmt(u, SQL_FINISH_ADVANCE, DB_TEXT(run_id), DB_INT(version));
}

void finish_store_state(struct db_unit *u, struct str run_id, const char *state, struct str reason,
	struct str message)
{
	db_stmt(u, SQL_FINISH_STATE, DB_TEXT(run_id), DB_TEXTZ(state), text(reason), text(message));
}

void finish_store_sweep(struct db_unit *u, int64_t count)
{
	db_stmt(u, SQL_FINISH_SWEEP, DB_INT(count));
}

void finish_store_retraining(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_FINISH_RETRAINING, DB_TEXT(run_id));
}

void finish_store_monitor_state(struct db_unit *u, struct str monitor_id, struct str policy_state)
{
	db_stmt(u, SQL_FINISH_MONITOR_STATE, DB_TEXT(monitor_id), DB_JSON(policy_state));
}

void retraining_store_close(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_RETRAINING_CLOSE, DB_TEXT(run_id));
}

void model_version_store_add(
	struct db_unit *u, struct model_key m, const struct model_version_new *v)
{
	db_stmt(u, SQL_MODEL_ENSURE, DB_TEXT(v->new_model_id), DB_TEXT(m.project_id),
		DB_TEXT(m.name));
	db_stmt(u, SQL_MODEL_VERSION_INSERT, DB_TEXT(v->id), DB_TEXT(m.project_id), DB_TEXT(m.name),
		optional(v->run_id), optional(v->step_id), optional(v->tracking_run),
		text(v->repository), text(v->commit), text(v->image_digest),
		DB_JSON(v->training_data), DB_JSON(v->datasets), DB_JSON(v->metrics),
		DB_JSON(v->gate), DB_TEXT(v->verdict), text(v->verdict_reason), text(v->metric),
		db_opt(v->has_level, DB_REAL(v->level)), optional(v->created_by));
	db_stmt(u, SQL_MODEL_FILES_COPY, DB_TEXT(v->id), DB_TEXT(v->step_id), DB_TEXT(v->output));
}
