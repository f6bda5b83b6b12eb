/*
 * Group commit of metric points: what arrives from all callers while a write is in flight becomes
 * the next statement, so that a run that logs point by point does not pay a commit for each.
 * Thread: the loop's.
 */
#ifndef SERVER_STORE_METRIC_GROUP_H
#define SERVER_STORE_METRIC_GROUP_H
#include "server/store/tracking_store.h"

struct loop;
struct metric_group;

/* e->code is ERR_OK when the points are durable; ERR_SUPERSEDED when the attempt is not current any
 * more, or the run was deleted, and nothing was written. */
typedef void metric_group_cb(void *arg, const struct err *e);
struct metric_item { /* the caller's, until the callback */
	int64_t tracking_id, made_day;
	struct point_columns points;
	struct str attempt_id; /* empty: of a person */
	int64_t epoch;
	metric_group_cb *done;
	void *arg;
};

struct metric_group *metric_group_new(struct loop *loop, struct db *db);
void metric_group_free(struct metric_group *g); /* before the db; NULL is fine */
/* done runs once, later. ERR_UNAVAILABLE when too much is waiting; then it does not run. */
int metric_group_add(struct metric_group *g, struct metric_item *item, struct err *e) MUST_CHECK;

#endif
