#include "server/store/launch_store.h"

#include "gen/sql.h"

enum { RUN_COLUMNS = 16, STEP_COLUMNS = 10 };
enum { RUN_ID, RUN_PROJECT, RUN_PIPELINE_ID, RUN_PIPELINE }; /* columns that are needed again */
enum {
	STEP_ID,
	STEP_RUN,
	STEP_PROJECT,
	STEP_NAME,
	STEP_NEEDS,
	STEP_SPEC,
	STEP_STATE,
	STEP_TRACKING,
	STEP_PIPELINE,
	STEP_MORE
};

struct launch_batch {
	struct str *run[RUN_COLUMNS], *step[STEP_COLUMNS], *dataset[3];
	int64_t *positions;
	bool *looks, *no_caches;
	size_t runs, steps, datasets;
};

struct launch_batch *launch_batch_new(struct arena *a, size_t runs, size_t steps, size_t datasets)
{
	struct launch_batch *b = arena_new_of(a, struct launch_batch);

	for (size_t i = 0; i < RUN_COLUMNS; i++)
		b->run[i] = arena_array_of(a, struct str, runs);
	for (size_t i = 0; i < STEP_COLUMNS; i++)
		b->step[i] = arena_array_of(a, struct str, steps);
	for (size_t i = 0; i < 3; i++)
		b->dataset[i] = arena_array_of(a, struct str, datasets + 1);
	b->positions = arena_array_of(a, int64_t, steps);
	b->looks = arena_array_of(a, bool, runs);
	b->no_caches = arena_array_of(a, bool, runs);
	return b;
}

static struct str text(struct str s)
{
	return s.p != NULL ? s : STR("");
}

void launch_batch_run(struct launch_batch *b, const struct run_row *r)
{
	const struct str columns[RUN_COLUMNS] = { r->id, r->project_id, r->pipeline_id, r->pipeline,
		r->spec, r->inputs, r->labels, r->repository, r->commit, r->trigger, r->trigger_key,
		r->decision_id, r->group, r->group_policy, r->actor, r->models };

	for (size_t i = 0; i < RUN_COLUMNS; i++)
		b->run[i][b->runs] = text(columns[i]);
	b->no_caches[b->runs] = r->no_cache;
	b->looks[b->runs++] = r->look;
}

void launch_batch_step(struct launch_batch *b, const struct step_row *s)
{
	size_t run = b->runs - 1;
	const struct str columns[STEP_COLUMNS] = { s->id, b->run[RUN_ID][run],
		b->run[RUN_PROJECT][run], s->name, s->needs, s->spec, s->state, s->tracking_run,
		b->run[RUN_PIPELINE][run], s->more.n != 0 ? s->more : STR("{}") };

	for (size_t i = 0; i < STEP_COLUMNS; i++)
		b->step[i][b->steps] = columns[i];
	b->positions[b->steps++] = s->position;
}

void launch_batch_dataset(struct launch_batch *b, struct str name, struct str version_id)
{
	b->dataset[0][b->datasets] = b->run[RUN_ID][b->runs - 1];
	b->dataset[1][b->datasets] = name;
	b->dataset[2][b->datasets++] = version_id;
}

static void add_runs(struct db_unit *u, const struct launch_batch *b)
{
	struct db_arg args[RUN_COLUMNS + 2];

	for (size_t i = 0; i < RUN_COLUMNS; i++)
		args[i] = i == 4 || i == 5 || i == 6 || i == 15 ? DB_JSONS(b->run[i], b->runs)
								: DB_TEXTS(b->run[i], b->runs);
	args[RUN_COLUMNS] = DB_BOOLS(b->looks, b->runs);
	args[RUN_COLUMNS + 1] = DB_BOOLS(b->no_caches, b->runs);
	db_add(u, SQL_RUN_INSERT, args, RUN_COLUMNS + 2);
}

void launch_batch_add(struct db_unit *u, const struct launch_batch *b, int64_t now)
{
	size_t n = b->steps;

	db_stmt(u, SQL_RUN_EXPERIMENTS, DB_TEXTS(b->run[RUN_PROJECT], b->runs),
		DB_TEXTS(b->run[RUN_PIPELINE], b->runs));
	BUG_ON(db_unit_count(u) != LAUNCH_RUNS);
	add_runs(u, b);
	if (b->datasets != 0)
		db_stmt(u, SQL_RUN_DATASET_INSERT, DB_TEXTS(b->dataset[0], b->datasets),
			DB_TEXTS(b->dataset[1], b->datasets), DB_TEXTS(b->dataset[2], b->datasets));
	db_stmt(u, SQL_STEP_INSERT, DB_TEXTS(b->step[STEP_ID], n), DB_TEXTS(b->step[STEP_RUN], n),
		DB_TEXTS(b->step[STEP_PROJECT], n), DB_TEXTS(b->step[STEP_NAME], n),
		DB_INTS(b->positions, n), DB_JSONS(b->step[STEP_NEEDS], n),
		DB_JSONS(b->step[STEP_SPEC], n), DB_TEXTS(b->step[STEP_STATE], n),
		DB_TEXTS(b->step[STEP_TRACKING], n), DB_JSONS(b->step[STEP_MORE], n));
	db_stmt(u, SQL_STEP_TRACKING_INSERT, DB_TEXTS(b->step[STEP_TRACKING], n),
		DB_TEXTS(b->step[STEP_ID], n), DB_TEXTS(b->step[STEP_NAME], n),
		DB_TEXTS(b->step[STEP_PROJECT], n), DB_TEXTS(b->step[STEP_PIPELINE], n),
		DB_INT(now / 1000));
}

void launch_store_matrices(struct db_unit *u, const struct str *run_ids, size_t n)
{
	if (n != 0)
		db_stmt(u, SQL_STEP_MATRIX_TRACKING, DB_TEXTS(run_ids, n));
}

void launch_store_group_alone(
	struct db_unit *u, struct str project_id, struct str group, struct str run_id)
{
	db_stmt(u, SQL_RUN_GROUP_ALONE, DB_TEXT(project_id), DB_TEXT(group), DB_TEXT(run_id));
}
