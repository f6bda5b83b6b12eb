/* What the engine reads and writes of runs: set-based, so that a run of a thousand steps is a
 * handful of statements. */
#ifndef SERVER_STORE_ENGINE_STORE_H
#define SERVER_STORE_ENGINE_STORE_H
#include "lib/base/arena.h"
#include "lib/db/row.h"

/* Columns as in schema/queries/engine.sql. */
void engine_store_looks(struct db_unit *u, const struct str *run_ids, size_t n);

/* Runs that move from their versions to the next. */
struct run_moves {
	struct str *ids, *states, *reasons, *messages;
	bool *no_state; /* it stays as it is, with reason and message */
	int64_t *versions, *started_at; /* taken when the run has none yet */
	bool *no_start;
	size_t n;
};
void run_moves_init(struct run_moves *m, size_t room, struct arena *a);
/* Fails the unit with SQLSTATE TM001 when one of them is not at its version any more. */
void engine_store_advance(struct db_unit *u, const struct run_moves *m);

struct step_updates {
	struct str *ids, *states, *reasons, *messages;
	int64_t *user_failures, *infra_failures, *started_at;
	bool *no_start;
	size_t n;
};
void step_updates_init(struct step_updates *s, size_t room, struct arena *a);
void step_updates_append(struct step_updates *s, const struct step_updates *more);
void engine_store_update_steps(struct db_unit *u, const struct step_updates *s);

/* Of steps that were late: filled in. */
void engine_store_step_specs(
	struct db_unit *u, const struct str *ids, const struct str *specs, size_t n);
/* Each stands for its source: outputs, metrics, params and artifacts are shared. */
void engine_store_take(
	struct db_unit *u, const struct str *ids, const struct str *sources, size_t n);
/* Each has the outputs of all its combinations. */
void engine_store_gather(struct db_unit *u, const struct str *ids, size_t n);
/* Marks runs as to be looked at, or not any more. */
void engine_store_look(struct db_unit *u, const struct str *run_ids, const bool *looks, size_t n);
/* Columns as in schema/queries/engine.sql. */
void engine_store_context(struct db_unit *u, struct str run_id);
/* One row for each name, "steps.NAME.outputs.KEY", in their order: size, value. room: bytes. */
void engine_store_values(
	struct db_unit *u, struct str run_id, const struct str *names, size_t n, size_t room);

/* Fails the unit with TM001 when its group has let another one in meanwhile. */
void engine_store_run_admitted(struct db_unit *u, struct str run_id);

/* Of the cache: columns as in schema/queries/cache.sql. files: of how many it reads the digests at
 * most; ages: microseconds. */
void engine_store_cache_facts(struct db_unit *u, struct str run_id, const struct str *ids,
	const struct str *images, size_t n, int64_t files);
void engine_store_cache_find(struct db_unit *u, struct str project_id, const struct str *keys,
	const struct str *images, const int64_t *ages, size_t n);
void engine_store_cache_keys(
	struct db_unit *u, const struct str *ids, const struct str *keys, size_t n);
/* As engine_store_take, and each says so; fails the unit with TM004 when a source is gone,
 * or somebody is about to remove it. */
void engine_store_cache_take(
	struct db_unit *u, const struct str *ids, const struct str *sources, size_t n);

struct queue_rows {
	struct str *run_ids, *project_ids, *step_ids, *pools, *requests;
	int64_t *priorities, *memory, *disk, *gpus, *not_before, *deadlines; /* INT64_MIN: none */
	double *cpus;
	size_t n;
};
void queue_rows_init(struct queue_rows *q, size_t room, struct arena *a);
void queue_rows_append(struct queue_rows *q, const struct queue_rows *more);
void engine_store_queue(struct db_unit *u, const struct queue_rows *q);
/* Fails the unit with TM001 when one of them has been handed out meanwhile. */
void engine_store_unqueue(struct db_unit *u, const struct str *step_ids, size_t n);
void engine_store_cancel_attempts(
	struct db_unit *u, const struct str *ids, const struct str *reasons, size_t n);
void engine_store_release_attempts(struct db_unit *u, const struct str *ids, size_t n);
void engine_store_tracking(struct db_unit *u, const struct str *tracking_runs,
	const struct str *statuses, size_t n, int64_t now_ms);

struct events {
	struct str *project_ids, *types, *subjects, *parents, *actors, *data;
	size_t n;
};
void events_init(struct events *e, size_t room, struct arena *a);
void events_add(struct events *e, struct str project_id, const char *type, struct str subject);
void events_append(struct events *e, const struct events *more);
void engine_store_events(struct db_unit *u, const struct events *e);

void engine_store_group_next(
	struct db_unit *u, struct str project_id, struct str group); /* rows: id */
/* Rows: id, in order, of runs after this one. */
void engine_store_sweep(struct db_unit *u, struct str after, int64_t count);

#endif
