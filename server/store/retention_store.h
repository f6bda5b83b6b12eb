/* What is kept no longer. Statements about a project answer with one row: how many. */
#ifndef SERVER_STORE_RETENTION_STORE_H
#define SERVER_STORE_RETENTION_STORE_H
#include "lib/db/row.h"

enum retention_kind {
	RETENTION_RUNS,
	RETENTION_LOGS,
	RETENTION_ARTIFACTS,
	RETENTION_WINDOWS,
	RETENTION_KINDS
};
void retention_store_projects(struct db_unit *u); /* ids of those that have ages */
void retention_store_count(struct db_unit *u, enum retention_kind k, struct str project_id);
void retention_store_remove(
	struct db_unit *u, enum retention_kind k, struct str project_id, int64_t count);
void retention_store_events(struct db_unit *u, int64_t count); /* one row: how many */
/* Partitions of the time to come, and those of logs that are all removed. */
void retention_store_partitions(struct db_unit *u);
void retention_store_log_partitions(struct db_unit *u);

#endif
