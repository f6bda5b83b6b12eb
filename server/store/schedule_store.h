/* Schedules of pipelines, and the runs that triggers owe. Instants are microseconds since 1970. */
#ifndef SERVER_STORE_SCHEDULE_STORE_H
#define SERVER_STORE_SCHEDULE_STORE_H
#include "api/pipeline.h"
#include "lib/db/row.h"
#include "server/core/schedule.h"

/* The schedules among a pipeline's triggers, in place of those that it had; nexts[i] is the first
 * instant of the i-th of all triggers after `now`, INT64_MAX for none. */
void schedule_store_put(struct db_unit *u, struct str project_id, struct str name,
	const struct list *triggers, const int64_t *nexts, int64_t now);
/* A row: a pipeline of these would start it and be started by it, however indirectly. */
void schedule_store_circle(struct db_unit *u, struct str project_id, struct str name,
	const struct str *upstream, size_t n);

/* Rows: pipeline_id, cron, timezone, dst, missed, max, settled_at, passed, paused; whose next
 * instant has come. */
void schedule_store_reached(struct db_unit *u, int64_t now);
/* A row when nobody else has decided since `was`. */
void schedule_store_settle(struct db_unit *u, struct str pipeline_id, struct str cron,
	struct str timezone, int64_t was, const struct schedule_due *due, int64_t now);

/* Looks at one again at `next` and not before. */
void schedule_store_later(struct db_unit *u, struct str pipeline_id, struct str cron,
	struct str timezone, int64_t next);

/* What the end of a run starts; of those that ended lately. */
void trigger_store_upstream(struct db_unit *u, struct str run_id, int64_t now);
void trigger_store_upstream_missed(struct db_unit *u, int64_t now);

/* What a new version of a data set starts; of those that were made lately. */
void trigger_store_dataset(struct db_unit *u, struct str version_id, int64_t now);
void trigger_store_dataset_missed(struct db_unit *u, int64_t now);

/* A run that is owed. */
struct trigger_key {
	struct str pipeline_id, trigger, key;
};
/* A row: owed (how many now, up to 20), upstream and datasets (whether ends of runs or new
 * versions start any). */
void trigger_store_look(struct db_unit *u, int64_t now);
/* Rows: the key's columns, due_at, tries, project_id, name. */
void trigger_store_take(struct db_unit *u, int64_t now, int64_t until, int64_t count);
void trigger_store_made(struct db_unit *u, const struct trigger_key *k);
void trigger_store_failed(
	struct db_unit *u, const struct trigger_key *k, int64_t try_at, struct str error);
void trigger_store_refused(struct db_unit *u, const struct trigger_key *k, struct str error);
void trigger_store_forget(struct db_unit *u, int64_t before); /* what was over before that */

#endif
