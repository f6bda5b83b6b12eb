/*
 * What the exchanges of several workers write and read at once: that workers were seen, before they
 * are answered, and the details of attempts that they should have and have not.
 */
#ifndef SERVER_REST_SYNC_GROUP_H
#define SERVER_REST_SYNC_GROUP_H
#include "lib/base/err.h"
#include "lib/base/str.h"

struct app;
struct db_rows;
struct sync_group;

/* rows: of details, one entry for each attempt that was asked for. */
typedef void sync_group_cb(void *arg, const struct db_rows *rows, const struct err *e);

/* The caller's until the callback. */
struct sync_asked {
	struct app *app;
	struct str worker_id;
	const struct str *attempts; /* for details */
	size_t n; /* ≤ SYNC_GROUP_MAX */
	sync_group_cb *cb;
	void *arg;
	/* inside */
	size_t first; /* statement */
	int64_t at; /* loop_now() */
};
enum { SYNC_GROUP_MAX = 256 }; /* attempts read at once: each may be large */

struct sync_group *sync_group_new(struct app *app);
void sync_group_free(struct sync_group *g); /* NULL is fine; before db_free */
/* The worker is heard of now; the fleet is told that the database knows. */
int sync_group_sight(struct sync_group *g, struct sync_asked *asked, struct err *e) MUST_CHECK;
/* Marks the attempts as delivered and reads what their worker needs. */
int sync_group_details(struct sync_group *g, struct sync_asked *asked, struct err *e) MUST_CHECK;

#endif
