/* Projects and their members. */
#ifndef SERVER_STORE_PROJECT_STORE_H
#define SERVER_STORE_PROJECT_STORE_H
#include "api/auth.h"
#include "api/queue.h"
#include "lib/db/row.h"

/* Also makes the project's Default experiment. */
void project_store_add(
	struct db_unit *u, struct str id, const struct project_new *p, struct str created_by);
void project_store_get(struct db_unit *u, struct str id);
/* only: the one project that a limited token opens, or "". */
void project_store_list(struct db_unit *u, struct str principal_id, bool admin, struct str only,
	struct str after, int64_t count);
void project_store_update(struct db_unit *u, struct str id, int64_t version,
	const struct project_patch *p, struct str actor);
/* Two rows: the number of its runs that have not ended; its id, when it has gone. */
void project_store_delete(struct db_unit *u, struct str id, int64_t version, struct str actor);
void project_store_content(struct db_unit *u, struct str id); /* one row: what goes with it */

void quota_store_get(struct db_unit *u, struct str project_id);
void quota_store_list(struct db_unit *u, struct str after, int64_t count);
void quota_store_put(
	struct db_unit *u, struct str project_id, const struct quota_put *q, struct str actor);

void member_store_list(struct db_unit *u, struct str project_id, struct str after, int64_t count);
/* Both add their event when something has changed: one row, else none. */
void member_store_put(
	struct db_unit *u, struct str project_id, struct str principal, int role, struct str actor);
void member_store_delete(
	struct db_unit *u, struct str project_id, struct str principal, struct str actor);

#endif
