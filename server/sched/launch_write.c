/* The group commit that launches share: rows of all tables, one statement each. */
#include "lib/base/mem.h"
#include "lib/db/group.h"
#include "lib/db/row.h"
#include "server/sched/launch_inside.h"
#include "server/sched/progress.h"
#include "server/sched/sched.h"
#include "server/store/constraint.h"
#include "server/store/run_store.h"

#include <stdlib.h>

enum { LAUNCH_BYTES = 8192, BATCH_ARENA = 64 << 20 };

struct launcher {
	struct app *app;
	struct db_group *group;
	struct pass *claim; /* of steps of the batch that is on its way; NULL: none */
	size_t alone; /* units that are built next without a claim: their batch has failed */
	bool in_flight, closed;
};

static void launcher_build(void *arg, struct db_unit *u, void *const *items, size_t n);
static void launcher_done(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e);
static bool launcher_beside(void *arg, const struct db_rows *rows);
static void launcher_over(void *arg, const struct db_rows *rows, size_t alone, const struct err *e);

int launcher_add(struct flow *f, struct err *e)
{
	if (arena_check(f->arena, e) < 0)
		return -1;
	return db_group_add(f->app->launcher->group, f, LAUNCH_BYTES + 2 * f->spec_json.n, e);
}

static struct run_row run_row_of(const struct flow *f)
{
	const struct pipeline_spec *spec = &f->file.spec;
	const struct launch *in = f->in;

	return (struct run_row){
		.id = f->run_id,
		.project_id = in->project_id,
		.pipeline_id = f->pipeline_id,
		.pipeline = f->file.metadata.name,
		.spec = f->spec_json,
		.inputs = f->inputs_json,
		.labels = in->labels.n != 0 ? in->labels : STR("{}"),
		.repository = f->repository,
		.commit = f->commit,
		.trigger = str_c(in->trigger),
		.trigger_key = in->trigger_key,
		.decision_id = in->decision_id,
		.group = spec->has_concurrency ? spec->concurrency.group : STR_NONE,
		.group_policy = spec->has_concurrency
					? str_c(concurrency_policy_names[spec->concurrency.policy])
					: STR_NONE,
		.actor = in->actor,
		.models = f->models_json,
		.look = f->look,
		.no_cache = in->no_cache,
	};
}

/* Columns of a batch. */
struct batch {
	struct arena *arena;
	struct launch_batch *rows;
	struct queue_rows queue;
	struct events events;
	struct str *matrices; /* runs that have some */
	size_t matrices_n;
};

static void batch_init(struct batch *b, void *const *items, size_t n)
{
	size_t steps = 0, datasets = 0;

	for (size_t i = 0; i < n; i++) {
		const struct flow *f = items[i];
		steps += f->rows.n;
		datasets += f->datasets_n;
	}
	b->arena = arena_new(BATCH_ARENA);
	b->rows = launch_batch_new(b->arena, n, steps, datasets);
	b->matrices = arena_array_of(b->arena, struct str, n);
	b->matrices_n = 0;
	queue_rows_init(&b->queue, steps, b->arena);
	events_init(&b->events, n + 4 * steps + 8 * n, b->arena);
}

static void batch_put(struct batch *b, const struct flow *f)
{
	const struct run_row row = run_row_of(f);

	launch_batch_run(b->rows, &row);
	if (f->has_matrix)
		b->matrices[b->matrices_n++] = f->run_id;
	for (size_t i = 0; i < f->rows.n; i++) {
		struct step_row step = f->steps[i];
		if (f->plan != NULL)
			step.state = str_c(step_state_names[plan_step_state(f->plan, i)]);
		launch_batch_step(b->rows, &step);
	}
	for (size_t i = 0; i < f->datasets_n; i++)
		launch_batch_dataset(b->rows, f->dataset_names[i], f->dataset_ids[i]);
	events_add(&b->events, row.project_id, "run.created", row.id);
	b->events.actors[b->events.n - 1] = row.actor.p != NULL ? row.actor : STR("");
	if (f->plan != NULL) {
		queue_rows_append(&b->queue, plan_queue(f->plan));
		events_append(&b->events, plan_events(f->plan));
	}
}

static bool has_policy(const struct flow *f, int policy)
{
	return f->file.spec.has_concurrency && f->file.spec.concurrency.policy == policy;
}

/* Of several in one batch that cancel what runs in their group, the last one stays. */
static bool is_last_of_group(void *const *items, size_t n, size_t i)
{
	const struct flow *f = items[i];

	for (size_t k = i + 1; k < n; k++) {
		const struct flow *other = items[k];
		if (has_policy(other, CONCURRENCY_CANCEL_RUNNING) &&
			str_eq(other->in->project_id, f->in->project_id) &&
			str_eq(other->file.spec.concurrency.group, f->file.spec.concurrency.group))
			return false;
	}
	return true;
}

/* After the runs are written: each sees those that share its commit. */
static void add_group_rules(struct db_unit *u, void *const *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct flow *f = items[i];
		struct str group = f->file.spec.concurrency.group;
		if (has_policy(f, CONCURRENCY_REFUSE))
			launch_store_group_alone(u, f->in->project_id, group, f->run_id);
		else if (has_policy(f, CONCURRENCY_CANCEL_RUNNING) && is_last_of_group(items, n, i))
			run_store_group_cancel(u, f->in->project_id, group, f->run_id);
	}
}

/* What is sent again after a failure goes without anything of the scheduler's, so that what fails
 * then fails by its own fault. */
static void claim_with(struct launcher *l, struct db_unit *u, const struct queue_rows *queue)
{
	if (l->alone != 0) {
		l->alone--;
		return;
	}
	l->in_flight = true;
	l->claim = sched_claim(l->app->sched, u, queue);
}

static void launcher_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	struct launcher *l = arg;
	struct batch b;

	batch_init(&b, items, n);
	for (size_t i = 0; i < n; i++)
		batch_put(&b, items[i]);
	launch_batch_add(u, b.rows, clock_now(l->app->clock));
	launch_store_matrices(u, b.matrices, b.matrices_n);
	engine_store_queue(u, &b.queue);
	add_group_rules(u, items, n);
	for (size_t i = 0; i < n; i++) {
		struct flow *f = items[i];
		if (f->in->add != NULL)
			f->in->add(f->in->add_arg, u, f->run_id);
	}
	engine_store_events(u, &b.events);
	claim_with(l, u, &b.queue);
	arena_drop(b.arena);
}

static int by_name(const void *a, const void *b)
{
	return str_cmp(
		((const struct run_dataset *)a)->name, ((const struct run_dataset *)b)->name);
}

static struct list pinned_datasets(const struct flow *f)
{
	const struct list *refs = &f->file.spec.datasets;
	struct run_dataset *out = arena_array_of(f->arena, struct run_dataset, f->datasets_n + 1);

	for (size_t i = 0; i < f->datasets_n; i++)
		out[i] = (struct run_dataset){ .name = f->dataset_names[i],
			.dataset = list_at(refs, struct dataset_ref, i)->name,
			.version_id = f->dataset_ids[i],
			.number = f->dataset_numbers[i] };
	if (f->datasets_n > 1)
		qsort(out, f->datasets_n, sizeof *out, by_name);
	return (struct list){ out, f->datasets_n };
}

static const struct launched *made_run(const struct flow *f, const struct db_rows *r, size_t row)
{
	const struct run_row in = run_row_of(f);
	struct launched *made = arena_new_of(f->arena, struct launched);

	made->held = f->plan == NULL;
	made->run = (struct run){ .id = in.id,
		.pipeline = in.pipeline,
		.number = db_int(r, row, db_col(r, "number")),
		.state = f->plan != NULL ? plan_run_state(f->plan) : RUN_QUEUED,
		.inputs = in.inputs,
		.labels = in.labels,
		.no_cache = in.no_cache,
		.repository = in.repository,
		.commit = in.commit,
		.trigger = in.trigger,
		.trigger_key = in.trigger_key,
		.decision_id = in.decision_id,
		.experiment_id = db_int(r, row, db_col(r, "experiment_id")),
		.created_at = db_time(r, row, db_col(r, "created_at")),
		.version = db_int(r, row, db_col(r, "version")),
		.datasets = pinned_datasets(f) };
	return made;
}

static void launcher_done(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	struct flow *f = item;
	struct err said = *e;

	(void)arg;
	if (e->code == ERR_OK) {
		app_changed(f->app);
		if (f->plan != NULL)
			sched_queued(f->app->sched, plan_queue(f->plan));
		else
			progress_run(f->app, f->run_id);
	} else if (rows->fault != NULL && strcmp(rows->fault->sqlstate, "TM002") == 0) {
		(void)err_set(&said, ERR_CONFLICT, "a run of the concurrency group is open");
	} else {
		constraint_explain(rows, &said);
	}
	f->cb(f->arg, e->code == ERR_OK ? made_run(f, rows, row) : NULL, rows, &said);
	arena_drop(f->arena);
}

static bool launcher_beside(void *arg, const struct db_rows *rows)
{
	const struct launcher *l = arg;

	return sched_claim_failed(l->claim, rows);
}

static void launcher_over(void *arg, const struct db_rows *rows, size_t alone, const struct err *e)
{
	struct launcher *l = arg;
	struct pass *claim = l->claim;

	l->claim = NULL;
	l->alone = alone;
	l->in_flight = false;
	if (l->closed)
		mem_free(l);
	if (claim != NULL)
		sched_claimed(claim, rows, e);
}

struct launcher *launcher_new(struct app *app)
{
	struct launcher *l = mem_new_of(struct launcher);

	l->app = app;
	l->group = db_group_new(app->loop, app->db,
		&(struct db_group_conf){ .lane = DB_WRITE,
			.build = launcher_build,
			.done = launcher_done,
			.beside = launcher_beside,
			.over = launcher_over,
			.arg = l,
			.result = LAUNCH_RUNS,
			.batch_max = 100 });
	return l;
}

void launcher_free(struct launcher *l)
{
	if (l == NULL)
		return;
	db_group_free(l->group);
	l->closed = true;
	if (!l->in_flight)
		mem_free(l);
}
