/* The training data of a version that is about to be registered: training_on_files → work:
 * training_run → training_on_read. */
#include "lib/loop/defer.h"
#include "lib/loop/work.h"
#include "server/app.h"
#include "server/sched/finish_inside.h"
#include "server/sched/reference_make.h"
#include "server/store/monitor_store.h"

static void training_on_files(void *arg, const struct db_rows *rows, const struct err *e);
static void training_run(void *arg);
static void training_on_read(void *arg);

static void training_on_end(void *arg)
{
	struct finishing *f = arg;

	f->training_done(f);
}

void finish_training(struct finishing *f, finish_training_cb *done)
{
	const struct training_data *t = &f->spec.model.training_data;
	const struct finish_dataset *d = NULL;

	f->training_done = done;
	f->err.code = ERR_OK;
	for (size_t i = 0; i < f->n_datasets; i++)
		if (str_eq(f->datasets[i].name, t->dataset))
			d = &f->datasets[i];
	if (d == NULL || f->training_good) {
		loop_defer(f->app->loop, training_on_end, f);
		return;
	}
	f->training = (struct reference_source){
		.blobs = f->app->blobs, .column = t->column, .from = t->from, .to = t->to
	};
	struct db_unit *u = db_unit(f->app->db, f->arena);
	reference_store_files(u, d->version_id);
	db_send(u, DB_READ, training_on_files, f);
}

static void training_on_files(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct finishing *f = arg;

	f->err = *e;
	if (e->code == ERR_OK)
		f->training.files = reference_files(&rows[0], f->arena, &f->training.n_files);
	if (e->code != ERR_OK ||
		work_submit(f->app->loop, training_run, training_on_read, f, &f->err) < 0)
		loop_defer(f->app->loop, training_on_end, f);
}

static void training_run(void *arg)
{
	struct finishing *f = arg;
	struct err why;

	f->err.code = ERR_OK;
	if (reference_check(&f->training, f->arena, &why) == 0)
		return;
	f->err = why;
	if (why.code == ERR_INVALID)
		(void)err_set(&f->err, ERR_INVALID, "/spec/model/training_data%s: %.240s",
			why.field, why.msg);
}

static void training_on_read(void *arg)
{
	struct finishing *f = arg;

	if (f->app->db == NULL && f->err.code == ERR_OK)
		(void)err_set(&f->err, ERR_CANCELLED, "the server is going down");
	f->training_good = f->err.code == ERR_OK;
	f->training_done(f);
}
