#include "server/store/retention_store.h"

#include "gen/sql.h"

void retention_store_projects(struct db_unit *u)
{
	db_stmt0(u, SQL_RETENTION_PROJECTS);
}

void retention_store_count(struct db_unit *u, enum retention_kind k, struct str project_id)
{
	static const unsigned statements[RETENTION_KINDS] = { SQL_RETENTION_RUNS_OLD,
		SQL_RETENTION_LOGS_OLD, SQL_RETENTION_ARTIFACTS_OLD, SQL_RETENTION_WINDOWS_OLD };

	db_stmt(u, statements[k], DB_TEXT(project_id));
}

void retention_store_remove(
	struct db_unit *u, enum retention_kind k, struct str project_id, int64_t count)
{
	static const unsigned statements[RETENTION_KINDS] = { SQL_RETENTION_RUNS_REMOVE,
		SQL_RETENTION_LOGS_REMOVE, SQL_RETENTION_ARTIFACTS_REMOVE,
		SQL_RETENTION_WINDOWS_REMOVE };

	db_stmt(u, statements[k], DB_TEXT(project_id), DB_INT(count));
}

void retention_store_events(struct db_unit *u, int64_t count)
{
	db_stmt(u, SQL_RETENTION_EVENTS_REMOVE, DB_INT(count));
}

void retention_store_partitions(struct db_unit *u)
{
	db_stmt0(u, SQL_PARTITION_MAKE);
}

void retention_store_log_partitions(struct db_unit *u)
{
	db_stmt0(u, SQL_PARTITION_DROP_LOGS);
}
