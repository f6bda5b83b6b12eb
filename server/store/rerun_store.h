/* A run that runs another one again. */
#ifndef SERVER_STORE_RERUN_STORE_H
#define SERVER_STORE_RERUN_STORE_H
#include "lib/db/row.h"

/* Columns as in schema/queries/rerun.sql: a row for each step. */
void rerun_store_source(struct db_unit *u, struct str run_id);

/* The steps of the new run by those of the other one, in their order. */
struct rerun_steps {
	struct str *ids, *sources, *tracking_runs;
	bool *taken; /* it stands for the other one */
	size_t n;
};
struct rerun_row {
	struct str id, source_id, project_id, pipeline, actor;
	const char *from;
	struct rerun_steps steps;
};
/* Run, steps and tracking runs, with their events, all but the run's number. Fails the unit with
 * SQLSTATE TM001 when the source is gone. now: microseconds. */
void rerun_store_add(struct db_unit *u, const struct rerun_row *r, int64_t now, struct arena *a);
/* The last statement of the unit: it keeps others from launching runs of the pipeline. */
void rerun_store_number(struct db_unit *u, struct str id);

#endif
