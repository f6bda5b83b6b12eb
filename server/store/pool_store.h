/* What was set of pools. */
#ifndef SERVER_STORE_POOL_STORE_H
#define SERVER_STORE_POOL_STORE_H
#include "api/pool.h"
#include "lib/db/row.h"

void pool_store_list(struct db_unit *u, struct str after, int64_t count);
void pool_store_get(struct db_unit *u, struct str name);
/* A row: it was put. expected: the version that it must be at; 0: that nothing was set; -1: any. */
void pool_store_put(struct db_unit *u, struct str name, const struct worker_pool_put *p,
	int64_t expected, struct str actor);
void pool_store_delete(
	struct db_unit *u, struct str name, struct str actor); /* row: there was one */

#endif
