#include "server/store/event_store.h"

#include "gen/sql.h"

void event_store_add(struct db_unit *u, const struct event_new *ev)
{
	struct str data = ev->data.n != 0 ? ev->data : STR("{}");

	db_stmt(u, SQL_EVENT_INSERT, db_opt(ev->project_id.n != 0, DB_TEXT(ev->project_id)),
		DB_TEXTZ(ev->type), DB_TEXT(ev->subject),
		db_opt(ev->parent.n != 0, DB_TEXT(ev->parent)),
		db_opt(ev->actor.n != 0, DB_TEXT(ev->actor)), DB_JSON(data));
}

void event_store_after(struct db_unit *u, int64_t from, int64_t limit)
{
	db_stmt(u, SQL_EVENT_AFTER, DB_INT(from), DB_INT(limit));
}

void event_store_last(struct db_unit *u)
{
	db_add(u, SQL_EVENT_LAST, NULL, 0);
}

void event_store_horizon(struct db_unit *u)
{
	db_add(u, SQL_EVENT_HORIZON, NULL, 0);
}

void event_store_known(struct db_unit *u, int64_t id, int64_t until)
{
	db_stmt(u, SQL_EVENT_KNOWN, DB_INT(id), DB_INT(until));
}

void event_store_of_project(
	struct db_unit *u, struct str project_id, int64_t from, int64_t until, int64_t limit)
{
	db_stmt(u, SQL_EVENT_OF_PROJECT, DB_TEXT(project_id), DB_INT(from), DB_INT(until),
		DB_INT(limit));
}
