/* New runs, many at once: columns are collected, then each table is one statement. */
#ifndef SERVER_STORE_LAUNCH_STORE_H
#define SERVER_STORE_LAUNCH_STORE_H
#include "lib/base/arena.h"
#include "lib/db/db.h"

struct run_row {
	struct str id, project_id, pipeline_id, pipeline, spec, inputs, labels, repository, commit,
		trigger, trigger_key, decision_id, group, group_policy, actor,
		models; /* NULL views are empty */
	bool no_cache;
	bool look; /* somebody has to look at it: nothing of it is queued yet */
};
struct step_row {
	struct str id, name, needs, spec, state, tracking_run; /* needs, spec: JSON */
	struct str more; /* JSON: what most steps do not have, as step_insert takes it */
	int64_t position;
};

struct launch_batch;

/* Room for so many rows; lives in the arena. */
struct launch_batch *launch_batch_new(struct arena *a, size_t runs, size_t steps, size_t datasets);
void launch_batch_run(struct launch_batch *b, const struct run_row *r);
/* Of the run that was put last. */
void launch_batch_step(struct launch_batch *b, const struct step_row *s);
void launch_batch_dataset(struct launch_batch *b, struct str name, struct str version_id);
/* The index of the statement whose rows are, for each run by its place in the batch (ord), what the
 * database gave it: number, experiment_id, created_at, version. */
enum { LAUNCH_RUNS = 1 };
/* First of its unit. The statements: experiments, runs, data sets, steps, tracking runs. Fails on
 * run_trigger when a trigger has fired before. now: microseconds. */
void launch_batch_add(struct db_unit *u, const struct launch_batch *b, int64_t now);

/* After it: tracking runs of combinations, with their values, below the one that joins them. */
void launch_store_matrices(struct db_unit *u, const struct str *run_ids, size_t n);

/* policy refuse: fails the unit with SQLSTATE TM002 when a run of the group is open. */
void launch_store_group_alone(
	struct db_unit *u, struct str project_id, struct str group, struct str run_id);

#endif
