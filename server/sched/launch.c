/*
 * The flow of a launch, in the order in which it runs:
 *   launch_start → (registry) launch_on_pipeline → (git) launch_on_source → launch_read: decode,
 * check, fill inputs → launch_on_refs: pin data sets and models → launch_write: render, write with
 * others in one commit (launch_write.c) Every step ends in exactly one of: the next step,
 * launch_fail, or the callback.
 */
#include "server/sched/launch.h"

#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/db/row.h"
#include "lib/json/json_read.h"
#include "lib/json/json_write.h"
#include "lib/json/yaml.h"
#include "lib/loop/defer.h"
#include "server/sched/launch_inside.h"
#include "server/sched/source.h"
#include "server/store/run_store.h"

/* A file's text and what spec_render() lets it become, as JSON with every default. */
enum { SPEC_BYTES_MAX = 16 << 20 };

static void launch_on_pipeline(void *arg, const struct db_rows *rows, const struct err *e);
static void launch_on_source(void *arg, struct str commit, struct str text, const struct err *e);
static void launch_read(struct flow *f);
static void launch_on_refs(void *arg, const struct db_rows *rows, const struct err *e);
static void launch_write(struct flow *f);

static void launch_on_failed(void *arg)
{
	struct flow *f = arg;

	f->cb(f->arg, NULL, NULL, &f->err);
	arena_drop(f->arena);
}

/* Of what is in the file the place in its text is told, if it has not been. */
static void locate(struct flow *f)
{
	struct str field = str_c(f->err.field);
	bool in_file = str_starts(field, STR("/spec")) || str_starts(field, STR("/metadata"));

	if (in_file && !str_starts(str_c(f->err.msg), STR("line ")))
		yaml_locate(f->source, &f->err);
}

/* A file that was read from the repository is named, and what led there is pointed at: whoever
 * asks for the run has not sent it. */
static void name_file(struct flow *f)
{
	struct err why = f->err;

	if (f->commit.n == 0 || !str_starts(str_c(why.msg), STR("line ")))
		return;
	(void)err_field(&f->err, f->in->ref.n != 0 ? "/ref" : "/pipeline",
		"%.100s at commit %.12s: %s", f->path.p, f->commit.p, why.msg);
}

/* The error is in f->err; told in a later turn, since a launch may fail at once. */
static void launch_fail(struct flow *f)
{
	locate(f);
	name_file(f);
	loop_defer(f->app->loop, launch_on_failed, f);
}

void launch_start(
	struct app *app, struct arena *a, const struct launch *l, launch_cb *cb, void *arg)
{
	struct flow *f = arena_new_of(a, struct flow);
	char id[ID_MAX];

	arena_hold(a);
	*f = (struct flow){
		.app = app, .arena = a, .in = l, .cb = cb, .arg = arg, .source = l->source
	};
	f->run_id = arena_str(a, str_c(id_new(id, "run", app->clock)));
	if ((l->pipeline.n != 0) == (l->source.n != 0)) {
		(void)err_field(&f->err, "/pipeline", "give either pipeline or source");
		launch_fail(f);
		return;
	}
	if (l->pipeline.n == 0) {
		launch_read(f);
		return;
	}
	struct db_unit *u = db_unit(app->db, a);
	run_store_pipeline(u, l->project_id, l->pipeline);
	db_send(u, DB_READ, launch_on_pipeline, f);
}

static struct str column(struct flow *f, const struct db_rows *r, const char *name)
{
	return arena_str(f->arena, db_str(r, 0, db_col(r, name)));
}

static void launch_on_pipeline(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct flow *f = arg;

	if (e->code != ERR_OK || rows[0].n == 0) {
		f->err = *e;
		if (e->code == ERR_OK)
			(void)err_field(&f->err, "/pipeline", "there is no pipeline of this name");
		launch_fail(f);
		return;
	}
	f->pipeline_id = column(f, &rows[0], "id");
	f->repository = column(f, &rows[0], "repository");
	f->path = column(f, &rows[0], "path");
	f->ref = f->in->ref.n != 0 ? f->in->ref : column(f, &rows[0], "ref");
	f->source = column(f, &rows[0], "source");
	if (f->repository.n == 0 && f->in->ref.n != 0) {
		(void)err_field(&f->err, "/ref",
			"the pipeline has no repository of which this could be a commit");
		launch_fail(f);
		return;
	}
	if (f->repository.n != 0)
		source_read(f->app, f->arena, f->repository, f->ref, f->path, launch_on_source, f);
	else
		launch_read(f);
}

static void launch_on_source(void *arg, struct str commit, struct str text, const struct err *e)
{
	struct flow *f = arg;

	if (e->code != ERR_OK) {
		f->err = *e;
		launch_fail(f);
		return;
	}
	f->commit = commit;
	f->source = text;
	launch_read(f);
}

/* ---- the file, the inputs, what they refer to ---- */

static int check_name(struct flow *f)
{
	if (f->in->pipeline.n != 0 && !str_eq(f->file.metadata.name, f->in->pipeline))
		return err_field(&f->err, "/metadata/name",
			"the file is of the pipeline %.*s, not %.*s",
			STR_ARG(f->file.metadata.name), STR_ARG(f->in->pipeline));
	return 0;
}

static int fail_ref(struct flow *f, const char *list, struct str key, const char *what)
{
	(void)err_field(&f->err, "", "%s", what);
	err_field_prefix(&f->err, arena_dup(f->arena, key));
	err_field_prefix(&f->err, list);
	err_field_prefix(&f->err, "spec");
	return -1;
}

static int64_t version_wanted(struct str version_json)
{
	int64_t number = 0;

	if (!num_parse_i64(version_json, 1, INT64_MAX, &number))
		return str_is(version_json, "\"latest\"") ? 0 : -1;
	return number;
}

/* One statement for each data set, then one for each model, in the order of the spec. */
static int ask_refs(struct flow *f, struct db_unit *u)
{
	const struct pipeline_spec *spec = &f->file.spec;

	for (size_t i = 0; i < spec->datasets.n; i++) {
		const struct dataset_ref *d = list_at(&spec->datasets, struct dataset_ref, i);
		int64_t number = version_wanted(d->version);
		if (number < 0)
			return fail_ref(
				f, "datasets", d->key, "version must be latest or a number");
		run_store_dataset(u, f->in->project_id, d->name, number);
	}
	for (size_t i = 0; i < spec->models.n; i++) {
		const struct model_ref *m = list_at(&spec->models, struct model_ref, i);
		run_store_model(u, f->in->project_id, m->name, m->alias);
	}
	return 0;
}

static void launch_read(struct flow *f)
{
	struct str inputs = f->in->inputs.n != 0 ? f->in->inputs : STR("{}");

	f->scope = (struct spec_scope){ .run_id = f->run_id,
		.window_start = f->in->window_start,
		.window_end = f->in->window_end,
		.later = true };
	if (spec_read(f->source, f->arena, &f->file, &f->err) < 0 || check_name(f) < 0 ||
		spec_fill_inputs(&f->file.spec, inputs, f->in->loose_inputs, f->arena, &f->scope,
			&f->err) < 0) {
		launch_fail(f);
		return;
	}
	struct db_unit *u = db_unit(f->app->db, f->arena);
	if (ask_refs(f, u) < 0) {
		db_unit_free(u);
		launch_fail(f);
		return;
	}
	if (db_unit_count(u) == 0) {
		db_unit_free(u);
		f->models_json = STR("{}");
		launch_write(f);
		return;
	}
	db_send(u, DB_READ, launch_on_refs, f);
}

static int pin_datasets(struct flow *f, const struct db_rows *rows)
{
	const struct list *refs = &f->file.spec.datasets;

	f->dataset_names = arena_array_of(f->arena, struct str, refs->n + 1);
	f->dataset_ids = arena_array_of(f->arena, struct str, refs->n + 1);
	f->dataset_numbers = arena_array_of(f->arena, int64_t, refs->n + 1);
	for (size_t i = 0; i < refs->n; i++) {
		const struct dataset_ref *d = list_at(refs, struct dataset_ref, i);
		if (rows[i].n == 0)
			return fail_ref(f, "datasets", d->key,
				arena_printf(f->arena,
					"there is no such version of the data set %.*s",
					STR_ARG(d->name))
					.p);
		f->dataset_names[i] = d->key;
		f->dataset_ids[i] = arena_str(f->arena, db_str(&rows[i], 0, 0));
		f->dataset_numbers[i] = db_int(&rows[i], 0, 1);
	}
	f->datasets_n = refs->n;
	return 0;
}

/* {"champion": "mv_…"}; an optional model that is not there is left out. */
static int pin_models(struct flow *f, const struct db_rows *rows)
{
	const struct list *refs = &f->file.spec.models;
	struct buf b;
	int rc = 0;

	buf_init(&b, 65536);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	for (size_t i = 0; i < refs->n && rc == 0; i++) {
		const struct model_ref *m = list_at(refs, struct model_ref, i);
		if (rows[i].n != 0) {
			jsn_key_str(&w, m->key);
			jsn_str(&w, db_str(&rows[i], 0, 0));
		} else if (!m->optional) {
			rc = fail_ref(f, "models", m->key,
				arena_printf(f->arena,
					"the model %.*s has no version with the alias %.*s",
					STR_ARG(m->name), STR_ARG(m->alias))
					.p);
		}
	}
	jsn_obj_end(&w);
	f->models_json = buf_keep(&b, f->arena);
	return rc;
}

static void launch_on_refs(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct flow *f = arg;

	if (e->code != ERR_OK) {
		f->err = *e;
		launch_fail(f);
	} else if (pin_datasets(f, rows) < 0 || pin_models(f, rows + f->file.spec.datasets.n) < 0) {
		launch_fail(f);
	} else {
		launch_write(f);
	}
}

/* ---- writing ---- */

static int encode(struct flow *f, const struct field *t, const void *in, struct str *ret)
{
	struct buf b;
	int rc = 0;

	buf_init(&b, SPEC_BYTES_MAX);
	field_encode(t, in, &b);
	if (buf_failed(&b))
		rc = err_set(&f->err, ERR_TOO_LARGE,
			"the pipeline has more than %d bytes, filled in", SPEC_BYTES_MAX);
	else
		*ret = arena_str(f->arena, buf_str(&b));
	buf_done(&b);
	return rc;
}

static struct str names_json(struct flow *f, const struct list *names)
{
	struct buf b;

	buf_init(&b, 65536);
	struct jsn_out w = jsn_out(&b);
	jsn_list_begin(&w);
	for (size_t i = 0; i < names->n; i++)
		jsn_str(&w, *list_at(names, struct str, i));
	jsn_list_end(&w);
	return buf_keep(&b, f->arena);
}

/* What most steps do not have. */
static struct str more_json(struct flow *f, const struct spec_row *r)
{
	struct buf b;

	if (!r->late && !r->joins && r->matrix_of.n == 0)
		return STR_NONE;
	buf_init(&b, 65536);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	if (r->late) {
		jsn_key(&w, "late");
		jsn_bool(&w, true);
	}
	if (r->joins) {
		jsn_key(&w, "joins");
		jsn_bool(&w, true);
	}
	if (r->matrix_of.n != 0) {
		jsn_key(&w, "matrix_of");
		jsn_str(&w, r->matrix_of);
		jsn_key(&w, "slots");
		jsn_int(&w, r->slots);
		jsn_key(&w, "matrix");
		jsn_obj_begin(&w);
		for (size_t i = 0; i < r->matrix.n; i++) {
			jsn_key_str(&w, list_at(&r->matrix, struct field_pair, i)->key);
			jsn_str(&w, list_at(&r->matrix, struct field_pair, i)->value);
		}
		jsn_obj_end(&w);
	}
	if (r->metric.n != 0) {
		jsn_key(&w, "metric");
		jsn_str(&w, r->metric);
	}
	jsn_obj_end(&w);
	return buf_keep(&b, f->arena);
}

static int make_steps(struct flow *f)
{
	char id[ID_MAX], hex[ID_HEX + 1];

	f->steps = arena_array_of(f->arena, struct step_row, f->rows.n);
	for (size_t i = 0; i < f->rows.n; i++) {
		const struct spec_row *r = list_at(&f->rows, struct spec_row, i);
		f->steps[i] = (struct step_row){
			.id = arena_str(f->arena, str_c(id_new(id, "st", f->app->clock))),
			.name = r->spec.name,
			.needs = names_json(f, &r->needs),
			.tracking_run = arena_str(f->arena, str_c(id_hex(hex))),
			.state = STR("waiting"),
			.position = (int64_t)i,
			.more = more_json(f, r),
		};
		f->has_matrix |= r->joins;
		if (encode(f, step_spec_fields, &r->spec, &f->steps[i].spec) < 0)
			return -1;
	}
	return 0;
}

/* Nothing has to be looked up or worked out for its steps when they become ready. */
static bool is_plain(const struct flow *f)
{
	for (size_t i = 0; i < f->rows.n; i++) {
		const struct spec_row *r = list_at(&f->rows, struct spec_row, i);
		if (r->late || r->joins || r->spec.condition.n != 0 || r->spec.has_cache)
			return false;
	}
	return true;
}

/* What can be queued at once is queued in the same commit; a run that its group may hold back, or
 * that is not plain, is looked at afterwards. */
static int make_plan(struct flow *f)
{
	const struct list *rows = &f->rows;
	struct plan_run *run = &f->plan_run;
	uint64_t random;

	f->look = !is_plain(f);
	if (f->file.spec.has_concurrency || f->look)
		return 0;
	*run = (struct plan_run){ .id = f->run_id,
		.project_id = f->in->project_id,
		.n = rows->n,
		.version = 1,
		.admitted = true,
		.pipeline = f->file.metadata.name,
		.data = { f->dataset_ids, f->datasets_n },
		.state = RUN_QUEUED };
	run->steps = arena_array_of(f->arena, struct plan_step, rows->n);
	for (size_t i = 0; i < rows->n; i++)
		run->steps[i] = (struct plan_step){ .id = f->steps[i].id,
			.name = f->steps[i].name,
			.spec = f->steps[i].spec,
			.parsed = &list_at(rows, struct spec_row, i)->spec,
			.tracking_run = f->steps[i].tracking_run,
			.needs = list_at(rows, struct spec_row, i)->needs,
			.state = STEP_WAITING };
	id_random(&random, sizeof random);
	return plan_make(run, clock_now(f->app->clock), random, f->arena, &f->plan, &f->err);
}

/* What is stored is read again at the run's end, by a reader that takes so many values; each of
 * them has two bytes at least. */
static int check_readable(struct flow *f)
{
	struct jsn_doc *doc;

	if (f->spec_json.n / 2 <= FIELD_NODES_MAX)
		return 0;
	if (jsn_parse(f->spec_json, &doc, &f->err) < 0)
		return err_set(&f->err, ERR_INVALID,
			"the pipeline has more than %d values, with every default filled in",
			FIELD_NODES_MAX);
	jsn_doc_free(doc);
	return 0;
}

static void launch_write(struct flow *f)
{
	struct err e;

	if (spec_render(&f->file.spec, &f->scope, f->arena, &f->rows, &f->err) < 0) {
		launch_fail(f);
		return;
	}
	f->inputs_json = spec_inputs_json(&f->file.spec, &f->scope, f->arena);
	if (encode(f, pipeline_spec_fields, &f->file.spec, &f->spec_json) < 0 ||
		check_readable(f) < 0 || make_steps(f) < 0 || make_plan(f) < 0) {
		launch_fail(f);
		return;
	}
	if (launcher_add(f, &e) < 0) {
		f->err = e;
		launch_fail(f);
	}
}
