#include "server/store/run_store.h"

#include "gen/sql.h"

static struct db_arg optional(struct str s)
{
	return db_opt(s.n != 0, DB_TEXT(s));
}

void run_store_pipeline(struct db_unit *u, struct str project_id, struct str name)
{
	db_stmt(u, SQL_PIPELINE_FOR_LAUNCH, DB_TEXT(project_id), DB_TEXT(name));
}

void run_store_dataset(struct db_unit *u, struct str project_id, struct str name, int64_t number)
{
	db_stmt(u, SQL_LAUNCH_DATASET, DB_TEXT(project_id), DB_TEXT(name),
		db_opt(number != 0, DB_INT(number)));
}

void run_store_model(struct db_unit *u, struct str project_id, struct str name, struct str alias)
{
	db_stmt(u, SQL_LAUNCH_MODEL, DB_TEXT(project_id), DB_TEXT(name), DB_TEXT(alias));
}

void run_store_group_cancel(
	struct db_unit *u, struct str project_id, struct str group, struct str except_id)
{
	db_stmt(u, SQL_RUN_GROUP_CANCEL, DB_TEXT(project_id), DB_TEXT(group), DB_TEXT(except_id));
}

void run_store_get(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_RUN_GET, DB_TEXT(id));
}

void run_store_list(struct db_unit *u, struct str project_id, const struct run_query *q,
	struct str before, int64_t count)
{
	db_stmt(u, SQL_RUN_LIST, DB_TEXT(project_id), optional(q->pipeline),
		DB_TEXTZ(q->has_state ? run_state_names[q->state] : NULL), DB_TEXT(before),
		DB_INT(count));
}

void run_store_cancel(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_RUN_CANCEL, DB_TEXT(id));
}

void run_store_delete(struct db_unit *u, struct str id, struct str actor)
{
	db_stmt(u, SQL_RUN_DELETE, DB_TEXT(id), DB_TEXT(actor));
}

void step_store_list(struct db_unit *u, struct str run_id, struct str after, int64_t count)
{
	db_stmt(u, SQL_STEP_LIST, DB_TEXT(run_id), DB_TEXT(after), DB_INT(count));
}

void step_store_get(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_STEP_GET, DB_TEXT(id));
}

void attempt_store_list(struct db_unit *u, struct str step_id, struct str after, int64_t count)
{
	db_stmt(u, SQL_ATTEMPT_LIST, DB_TEXT(step_id), DB_TEXT(after), DB_INT(count));
}
