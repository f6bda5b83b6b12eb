/* reference_make: make_on_files (what the data set version holds) → work: make_run → make_on_built
 * → make_on_stored. Whoever stores first wins; everybody reads what is stored. */
#include "server/sched/reference_make.h"

#include "lib/db/row.h"
#include "lib/json/json_read.h"
#include "lib/loop/defer.h"
#include "lib/loop/work.h"
#include "server/app.h"
#include "server/sched/reference_build.h"
#include "server/store/monitor_store.h"

struct make {
	struct app *app;
	struct arena *arena;
	struct reference_want want;
	reference_made_cb *cb;
	void *arg;
	struct str dataset_version_id;
	struct reference_source source;
	struct reference built;
	struct str profile;
	struct reference_row row;
	struct err err;
};

static void make_on_files(void *arg, const struct db_rows *rows, const struct err *e);
static void make_run(void *arg);
static void make_on_built(void *arg);
static void make_on_stored(void *arg, const struct db_rows *rows, const struct err *e);

static void make_on_failed(void *arg)
{
	struct make *m = arg;

	m->cb(m->arg, NULL, &m->err);
	arena_drop(m->arena);
}

static void make_fail(struct make *m)
{
	loop_defer(m->app->loop, make_on_failed, m);
}

static struct str copy_of(struct make *m, const struct jsn *v, const char *name)
{
	return arena_str(m->arena, jsn_get_str(jsn_get(v, name)));
}

static int read_training_data(struct make *m, struct err *e)
{
	struct jsn_doc *doc;

	if (jsn_parse(m->want.training_data, &doc, e) < 0)
		return -1;
	const struct jsn *v = jsn_root(doc);
	m->dataset_version_id = copy_of(m, v, "dataset_version_id");
	m->source = (struct reference_source){ .blobs = m->app->blobs,
		.column = copy_of(m, v, "column"),
		.from = copy_of(m, v, "from"),
		.to = copy_of(m, v, "to"),
		.spec = m->want.spec };
	jsn_doc_free(doc);
	if (m->dataset_version_id.n == 0)
		return err_set(e, ERR_CONFLICT,
			"the version of the model does not say what it was trained on "
			"(spec.model.training_data of its pipeline): nothing to compare with");
	return 0;
}

void reference_make(struct app *app, struct arena *a, const struct reference_want *w,
	reference_made_cb *cb, void *arg)
{
	struct make *m = arena_new_of(a, struct make);

	arena_hold(a);
	*m = (struct make){ .app = app, .arena = a, .want = *w, .cb = cb, .arg = arg };
	if (read_training_data(m, &m->err) < 0) {
		make_fail(m);
		return;
	}
	struct db_unit *u = db_unit(app->db, a);
	reference_store_files(u, m->dataset_version_id);
	db_send(u, DB_READ, make_on_files, m);
}

const struct training_file *reference_files(
	const struct db_rows *rows, struct arena *a, size_t *ret_n)
{
	struct training_file *files = arena_array_of(a, struct training_file, rows->n + 1);

	for (size_t i = 0; i < rows->n; i++) {
		struct str digest = db_str(rows, i, 2);
		files[i].path = arena_str(a, db_str(rows, i, 0));
		files[i].blob.size = db_int(rows, i, 1);
		BUG_ON(digest.n != HASH_SIZE);
		memcpy(files[i].blob.digest, digest.p, HASH_SIZE);
	}
	*ret_n = rows->n;
	return files;
}

static void make_on_files(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct make *m = arg;

	if (e->code == ERR_OK)
		m->source.files = reference_files(&rows[0], m->arena, &m->source.n_files);
	m->err = *e;
	if (e->code != ERR_OK || work_submit(m->app->loop, make_run, make_on_built, m, &m->err) < 0)
		make_fail(m);
}

static void make_run(void *arg)
{
	struct make *m = arg;
	struct buf b;

	m->err.code = ERR_OK;
	if (reference_build(&m->source, m->arena, &m->built, &m->err) < 0) {
		if (m->err.code == ERR_INVALID) /* the rows that are sent are not to blame */
			m->err.code = ERR_CONFLICT;
		return;
	}
	buf_init(&b, REFERENCE_BYTES_MAX);
	reference_encode(&m->built, &b);
	if (buf_failed(&b))
		(void)err_set(&m->err, ERR_TOO_LARGE, "the reference is larger than %d bytes",
			REFERENCE_BYTES_MAX);
	else
		m->profile = arena_str(m->arena, buf_str(&b));
	buf_done(&b);
}

static void make_on_built(void *arg)
{
	struct make *m = arg;
	char id[ID_MAX];

	if (m->app->db == NULL && m->err.code == ERR_OK)
		(void)err_set(&m->err, ERR_CANCELLED, "the server is going down");
	if (m->err.code != ERR_OK) {
		make_fail(m);
		return;
	}
	m->row = (struct reference_row){
		.id = arena_str(m->arena, str_c(id_new(id, "ref", m->app->clock))),
		.monitor_id = m->want.monitor_id,
		.model_version_id = m->want.model_version_id,
		.spec_version = m->want.spec_version,
		.rows = (int64_t)m->built.rows,
		.profile = m->profile,
	};
	struct db_unit *u = db_unit(m->app->db, m->arena);
	reference_store_add(u, &m->row);
	reference_store_get(u, &m->row);
	db_send(u, DB_WRITE, make_on_stored, m);
}

static void make_on_stored(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct make *m = arg;
	struct reference_made made = { 0 };

	m->err = *e;
	if (e->code == ERR_OK) {
		const struct db_rows *r = &rows[1];
		BUG_ON(r->n == 0);
		made.id = arena_str(m->arena, db_str(r, 0, db_col(r, "id")));
		made.layout = db_int(r, 0, db_col(r, "layout"));
		if (reference_decode(db_str(r, 0, db_col(r, "profile")), m->arena, &made.reference,
			    &m->err) < 0) {
			make_fail(m);
			return;
		}
	}
	m->cb(m->arg, e->code == ERR_OK ? &made : NULL, &m->err);
	arena_drop(m->arena);
}
