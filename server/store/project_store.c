#include "server/store/project_store.h"

#include "gen/sql.h"

enum { RETENTION_TEXT = 1024 };

/* The ages as they were written: {"runs": "1y"}. */
static struct db_arg retention_json(const struct retention *r, struct buf *b)
{
	struct project_new holder = { .retention = *r };
	const struct field *f = field_find(project_new_fields, STR("retention"));

	buf_init(b, RETENTION_TEXT);
	field_encode(f->sub, &holder.retention, b);
	return DB_JSON_OF(b);
}

void project_store_add(
	struct db_unit *u, struct str id, const struct project_new *p, struct str created_by)
{
	struct buf b;
	struct str description = p->description.p != NULL ? p->description : STR("");

	db_stmt(u, SQL_PROJECT_INSERT, DB_TEXT(id), DB_TEXT(p->name), DB_TEXT(description),
		retention_json(&p->retention, &b), db_opt(created_by.n != 0, DB_TEXT(created_by)));
	buf_done(&b);
	db_stmt(u, SQL_PROJECT_EXPERIMENT_INSERT, DB_TEXT(id));
	db_stmt(u, SQL_PROJECT_EXPERIMENT_LOCATION, DB_TEXT(id));
}

void project_store_get(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_PROJECT_GET, DB_TEXT(id));
}

void project_store_list(struct db_unit *u, struct str principal_id, bool admin, struct str only,
	struct str after, int64_t count)
{
	db_stmt(u, SQL_PROJECT_LIST, DB_TEXT(principal_id), DB_BOOL(admin),
		db_opt(only.n != 0, DB_TEXT(only)), DB_TEXT(after), DB_INT(count));
}

void project_store_update(struct db_unit *u, struct str id, int64_t version,
	const struct project_patch *p, struct str actor)
{
	struct buf b = { 0 };

	db_stmt(u, SQL_PROJECT_UPDATE, DB_TEXT(id), DB_INT(version),
		db_opt(p->has_description, DB_TEXT(p->description)),
		db_opt(p->has_retention, retention_json(&p->retention, &b)), DB_TEXT(actor));
	buf_done(&b);
}

void project_store_delete(struct db_unit *u, struct str id, int64_t version, struct str actor)
{
	db_stmt(u, SQL_PROJECT_ACTIVE_RUNS, DB_TEXT(id));
	db_stmt(u, SQL_PROJECT_DELETE, DB_TEXT(id), DB_INT(version), DB_TEXT(actor));
}

void project_store_content(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_PROJECT_CONTENT, DB_TEXT(id));
}

void quota_store_get(struct db_unit *u, struct str project_id)
{
	db_stmt(u, SQL_QUOTA_GET, DB_TEXT(project_id));
}

void quota_store_list(struct db_unit *u, struct str after, int64_t count)
{
	db_stmt(u, SQL_QUOTA_LIST, DB_TEXT(after), DB_INT(count));
}

void quota_store_put(
	struct db_unit *u, struct str project_id, const struct quota_put *q, struct str actor)
{
	db_stmt(u, SQL_QUOTA_PUT, DB_TEXT(project_id), DB_REAL(q->weight),
		db_opt(q->has_gpus, DB_INT(q->gpus.nominal)), DB_INT(q->gpus.borrow),
		db_opt(q->has_steps, DB_INT(q->steps.nominal)), DB_INT(q->steps.borrow),
		DB_TEXT(actor));
}

void member_store_list(struct db_unit *u, struct str project_id, struct str after, int64_t count)
{
	db_stmt(u, SQL_MEMBER_LIST, DB_TEXT(project_id), DB_TEXT(after), DB_INT(count));
}

void member_store_put(
	struct db_unit *u, struct str project_id, struct str principal, int role, struct str actor)
{
	db_stmt(u, SQL_MEMBER_PUT, DB_TEXT(project_id), DB_TEXT(principal),
		DB_TEXTZ(role_names[role]), DB_TEXT(actor));
}

void member_store_delete(
	struct db_unit *u, struct str project_id, struct str principal, struct str actor)
{
	db_stmt(u, SQL_MEMBER_DELETE, DB_TEXT(project_id), DB_TEXT(principal), DB_TEXT(actor));
}
