/*
 * What callers may do with tracking runs, read for all requests that come while a read is under
 * way in one statement.
 */
#ifndef SERVER_MLFLOW_RUN_ACCESS_H
#define SERVER_MLFLOW_RUN_ACCESS_H
#include "lib/base/err.h"
#include "lib/base/str.h"

struct app;
struct db_rows;
struct run_access;

/* row: of tracking_access in schema/queries/tracking.sql; DB_NO_ROW (lib/db/group.h): there is no
 * such run, or e says what went wrong. */
typedef void run_access_cb(void *arg, const struct db_rows *rows, size_t row, const struct err *e);

/* Who asks, for what; the caller's until the callback. */
struct run_asked {
	struct str principal_id, attempt_id, run_id; /* of the first two one is empty */
	run_access_cb *cb;
	void *arg;
};

struct run_access *run_access_new(struct app *app);
void run_access_free(struct run_access *r); /* NULL is fine; before db_free */
int run_access_ask(struct run_access *r, struct run_asked *asked, struct err *e) MUST_CHECK;

#endif
