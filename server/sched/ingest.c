/*
 * ingest_new → ingest_on_monitor (→ ingest_on_reference, when the champion's training data has no
 * profile yet) → ready. ingest_add parses into the batch; a full one is sent to the stage while the
 * next is filled: ingest_on_staged. ingest_end sends the rest, and when the last has been staged:
 * ingest_commit → ingest_on_committed.
 */
#include "server/sched/ingest.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/crypto/hash.h"
#include "lib/db/row.h"
#include "lib/loop/defer.h"
#include "server/app.h"
#include "server/core/window.h"
#include "server/sched/monitor_rules.h"
#include "server/sched/reference_make.h"
#include "server/sched/windows.h"
#include "server/store/event_store.h"
#include "server/store/model_store.h"
#include "server/store/monitor_store.h"

#include <math.h>

enum { BATCH_ROWS = 4000, BATCH_BYTES = 2 << 20, BATCH_BYTES_MAX = 64 << 20, ID_BYTES_MAX = 255 };
enum { COLUMN_ID, COLUMN_TIME, COLUMN_PREDICTION, COLUMN_LABEL, COLUMNS };

struct staged_row {
	size_t id, id_n, cells, cells_n; /* into bytes */
	int64_t time, start, end;
	double prediction, label;
	bool has_time, has_label;
};

struct ingest {
	struct app *app;
	struct arena *arena;
	struct ingest_spec spec;
	struct str monitor_id, stage_id, batch, name, project_id;
	struct monitor_spec monitor;
	int64_t spec_version, layout;
	int64_t latest; /* that a row may lie */
	struct reference_want want;
	struct reference reference;
	struct records *records;
	struct records_column *columns;
	struct hash *hash;
	unsigned char digest[HASH_SIZE];
	struct staged_row *rows; /* the batch that is being filled */
	size_t n, room;
	struct buf bytes; /* its ids and cells */
	int64_t sent; /* rows that have been sent to the stage */
	bool has_champion, sending, waiting, ending, committing, failed, freed, told;
	unsigned pending; /* operations that will call back */
	struct observation_result result;
	struct err err;
};

static void ingest_on_monitor(void *arg, const struct db_rows *rows, const struct err *e);
static void ingest_on_reference(void *arg, const struct reference_made *made, const struct err *e);
static void ingest_ready(struct ingest *g);
static void ingest_send(struct ingest *g);
static void ingest_on_staged(void *arg, const struct db_rows *rows, const struct err *e);
static void ingest_commit(struct ingest *g);
static void ingest_on_committed(void *arg, const struct db_rows *rows, const struct err *e);

/* ---- ends ---- */

static void ingest_release(struct ingest *g)
{
	if (!g->freed || g->pending > 0)
		return;
	records_free(g->records);
	hash_free(g->hash);
	mem_free(g->rows);
	buf_done(&g->bytes);
	arena_drop(g->arena);
	mem_free(g);
}

static void drop_stage(struct ingest *g)
{
	struct db_unit *u;

	if (g->sent == 0 || g->committing || g->err.code == ERR_CANCELLED || g->app->db == NULL)
		return;
	u = db_unit(g->app->db, NULL);
	stage_store_drop(u, g->stage_id);
	db_send(u, DB_RELAXED, NULL, NULL);
}

static void ingest_on_end(void *arg)
{
	struct ingest *g = arg;

	if (!g->freed)
		g->spec.on_done(g->spec.arg, g->failed ? NULL : &g->result, &g->err);
	g->pending--;
	ingest_release(g);
}

static void tell(struct ingest *g)
{
	if (g->told)
		return;
	g->told = true;
	g->pending++;
	loop_defer(g->app->loop, ingest_on_end, g);
}

/* The error is in g->err. What is on its way comes back first, so that the stage can be emptied. */
static void ingest_fail(struct ingest *g)
{
	g->failed = true;
	if (g->sending)
		return;
	drop_stage(g);
	tell(g);
}

void ingest_free(struct ingest *g)
{
	if (g == NULL)
		return;
	g->freed = true;
	if (!g->told && !g->sending)
		drop_stage(g);
	ingest_release(g);
}

/* An operation has come back: true when there is nobody left to go on for. */
static bool came_back(struct ingest *g, const struct err *e)
{
	g->pending--;
	if (!g->freed && e->code == ERR_OK && !g->failed)
		return false;
	if (g->freed) {
		g->sending = false;
		drop_stage(g);
		ingest_release(g);
		return true;
	}
	if (!g->failed)
		g->err = *e;
	g->sending = false;
	ingest_fail(g);
	return true;
}

/* ---- the monitor ---- */

struct ingest *ingest_new(struct app *app, const struct ingest_spec *spec)
{
	struct ingest *g = mem_new_of(struct ingest);
	char id[ID_MAX];

	*g = (struct ingest){ .app = app, .arena = arena_new(REFERENCE_ARENA), .spec = *spec };
	g->project_id = arena_str(g->arena, spec->project_id);
	g->name = arena_str(g->arena, spec->monitor);
	g->batch = arena_str(g->arena, spec->batch);
	g->stage_id = arena_str(g->arena, str_c(id_new(id, "stg", app->clock)));
	g->hash = hash_new();
	buf_init(&g->bytes, BATCH_BYTES_MAX);
	g->pending++;
	struct db_unit *u = db_unit(app->db, g->arena);
	monitor_store_champion(u, (struct monitor_key){ g->project_id, g->name });
	db_send(u, DB_READ, ingest_on_monitor, g);
	return g;
}

static struct str column(struct ingest *g, const struct db_rows *r, const char *name)
{
	return arena_str(g->arena, db_str(r, 0, db_col(r, name)));
}

/* What lies further ahead is a mistake, and would keep its window open for ever. */
static int64_t latest_time(const struct ingest *g)
{
	int64_t at = clock_add(clock_now(g->app->clock), g->monitor.ahead.span, 1);

	return g->monitor.window.rows != 0 ? at : clock_add(at, g->monitor.window.size.span, 1);
}

static int read_monitor(struct ingest *g, const struct db_rows *r, struct err *e)
{
	if (r->n == 0)
		return err_set(e, ERR_NOT_FOUND, "there is no such monitor");
	g->monitor_id = column(g, r, "id");
	g->spec_version = db_int(r, 0, db_col(r, "spec_version"));
	if (monitor_spec_read(column(g, r, "spec"), g->arena, &g->monitor, e) < 0)
		return -1;
	if (g->spec.labels && g->monitor.columns.label.n == 0)
		return err_set(e, ERR_CONFLICT, "the monitor names no column of labels");
	g->latest = latest_time(g);
	g->has_champion = !db_is_null(r, 0, db_col(r, "model_version_id"));
	g->want = (struct reference_want){ .monitor_id = g->monitor_id,
		.model_version_id = column(g, r, "model_version_id"),
		.spec_version = g->spec_version,
		.training_data = column(g, r, "training_data"),
		.spec = &g->monitor };
	return 0;
}

static void ingest_on_monitor(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct ingest *g = arg;
	const struct db_rows *r = &rows[0];

	if (came_back(g, e))
		return;
	if (read_monitor(g, r, &g->err) < 0) {
		ingest_fail(g);
		return;
	}
	if (g->spec.labels || !g->has_champion) {
		ingest_ready(g);
		return;
	}
	if (!db_is_null(r, 0, db_col(r, "layout"))) {
		g->layout = db_int(r, 0, db_col(r, "layout"));
		if (reference_decode_shape(db_str(r, 0, db_col(r, "profile")), g->arena,
			    &g->reference, &g->err) < 0)
			ingest_fail(g);
		else
			ingest_ready(g);
		return;
	}
	g->pending++;
	reference_make(g->app, g->arena, &g->want, ingest_on_reference, g);
}

static void ingest_on_reference(void *arg, const struct reference_made *made, const struct err *e)
{
	struct ingest *g = arg;

	if (came_back(g, e))
		return;
	g->layout = made->layout;
	g->reference = made->reference;
	ingest_ready(g);
}

/* ---- rows ---- */

static int bad_id(struct ingest *g, uint64_t line, struct err *e)
{
	return csv_fault_in(e, line, g->monitor.columns.id,
		"line %llu, column %.*s: must be 1 to %d bytes", (unsigned long long)line,
		STR_ARG(g->monitor.columns.id), ID_BYTES_MAX);
}

static struct staged_row *next_row(struct ingest *g)
{
	if (g->n == g->room) {
		g->room = g->room == 0 ? 1024 : 2 * g->room;
		g->rows = mem_resize(g->rows, g->room, sizeof *g->rows);
	}
	g->rows[g->n] = (struct staged_row){ 0 };
	return &g->rows[g->n];
}

static int take_number(struct ingest *g, int column, const struct str *cells, uint64_t line,
	double *ret, struct err *e)
{
	if (records_number(cells[column], ret) && (cells[column].n == 0 || isfinite(*ret)))
		return 0;
	return records_bad(e, line, g->columns[column].name, "a finite number", cells[column]);
}

static int too_far(struct ingest *g, struct str cell, uint64_t line, struct err *e)
{
	char must[160], latest[CLOCK_TEXT_MAX];

	(void)str_print(must, sizeof must, "at most %s (the server's clock%s and ahead: %.*s)",
		clock_format(latest, g->latest), g->monitor.window.rows != 0 ? "" : ", one window",
		STR_ARG(g->monitor.ahead.text));
	return records_bad(e, line, g->monitor.columns.time, must, cell);
}

static int take_time(struct ingest *g, const struct str *cells, uint64_t line,
	struct staged_row *row, struct err *e)
{
	struct str cell = cells[COLUMN_TIME];

	if (cell.n == 0 && g->spec.labels)
		return 0;
	if (!clock_parse(cell, &row->time))
		return records_bad(e, line, g->monitor.columns.time,
			"a date or a time like 2001-01-31 or 2001-01-31T08:00:00Z", cell);
	if (row->time > g->latest)
		return too_far(g, cell, line, e);
	row->has_time = true;
	if (g->monitor.window.rows != 0)
		return 0;
	window_of(g->monitor.window.size.span, row->time, &row->start, &row->end);
	if (row->start >= CLOCK_MIN && row->end <= CLOCK_END)
		return 0;
	return records_bad(
		e, line, g->monitor.columns.time, "in a window within the years 1 to 9999", cell);
}

static int take_cells(struct ingest *g, const struct str *cells, uint64_t line,
	struct staged_row *row, struct err *e)
{
	row->cells = g->bytes.n;
	for (size_t i = 0; i < g->reference.n; i++) {
		const struct feature *f = &g->reference.features[i];
		if (!cell_put(&g->bytes, f->type, cells[COLUMNS + i]))
			return records_bad(e, line, f->name,
				f->type == FEATURE_NUMERIC ? "a number"
							   : "a category of at most 4096 bytes",
				cells[COLUMNS + i]);
	}
	row->cells_n = g->bytes.n - row->cells;
	return 0;
}

static int ingest_on_row(void *arg, const struct str *cells, uint64_t line, struct err *e)
{
	struct ingest *g = arg;
	struct staged_row *row = next_row(g);
	struct str id = cells[COLUMN_ID];

	if (!g->spec.labels && !g->has_champion)
		return err_set(e, ERR_CONFLICT,
			"the model %.*s has no version with the alias %.*s: nothing to compare "
			"rows with",
			STR_ARG(g->monitor.subject.model), STR_ARG(g->monitor.subject.alias));
	if (id.n == 0 || id.n > ID_BYTES_MAX)
		return bad_id(g, line, e);
	row->id = g->bytes.n;
	row->id_n = id.n;
	buf_add(&g->bytes, id);
	if (take_time(g, cells, line, row, e) < 0 ||
		take_number(g, COLUMN_LABEL, cells, line, &row->label, e) < 0)
		return -1;
	row->has_label = isfinite(row->label);
	if (g->spec.labels && !row->has_label)
		return records_bad(e, line, g->monitor.columns.label, "a number", STR(""));
	if (!g->spec.labels &&
		take_number(g, COLUMN_PREDICTION, cells, line, &row->prediction, e) < 0)
		return -1;
	if (!g->spec.labels && !isfinite(row->prediction))
		return records_bad(e, line, g->monitor.columns.prediction, "a number",
			cells[COLUMN_PREDICTION]);
	if (take_cells(g, cells, line, row, e) < 0)
		return -1;
	if (buf_failed(&g->bytes))
		return csv_fault(
			e, line, "line %llu: the rows are too large", (unsigned long long)line);
	g->n++;
	return 0;
}

/* The monitor's own columns first, then the features in the order of the reference. */
static void ingest_ready(struct ingest *g)
{
	const struct columns_spec *c = &g->monitor.columns;
	size_t n = COLUMNS + g->reference.n;
	/* A column that the monitor does not name is found in no table. */
	struct str none = STR("");

	g->columns = arena_array_of(g->arena, struct records_column, n);
	g->columns[COLUMN_ID] = (struct records_column){ c->id, true };
	g->columns[COLUMN_TIME] = (struct records_column){ c->time, !g->spec.labels };
	g->columns[COLUMN_PREDICTION] =
		(struct records_column){ g->spec.labels ? none : c->prediction, !g->spec.labels };
	g->columns[COLUMN_LABEL] =
		(struct records_column){ c->label.n != 0 ? c->label : none, g->spec.labels };
	for (size_t i = 0; i < g->reference.n; i++)
		g->columns[COLUMNS + i] =
			(struct records_column){ g->reference.features[i].name, false };
	g->records = records_new(g->spec.format, g->columns, n, ingest_on_row, g);
	g->spec.on_ready(g->spec.arg);
}

static bool is_full(const struct ingest *g)
{
	return g->n >= BATCH_ROWS || g->bytes.n >= BATCH_BYTES;
}

bool ingest_add(struct ingest *g, struct str bytes)
{
	if (g->failed)
		return true;
	hash_add(g->hash, bytes);
	if (records_add(g->records, bytes, &g->err) < 0) {
		ingest_fail(g);
		return true;
	}
	if (!is_full(g))
		return true;
	if (!g->sending) {
		ingest_send(g);
		return true;
	}
	g->waiting = true;
	return false;
}

void ingest_end(struct ingest *g)
{
	if (g->failed)
		return;
	if (records_end(g->records, &g->err) < 0) {
		ingest_fail(g);
		return;
	}
	hash_end(g->hash, g->digest);
	g->ending = true;
	if (g->sending)
		return;
	if (g->n > 0)
		ingest_send(g);
	else
		ingest_commit(g);
}

/* ---- the stage ---- */

static void *column_of(size_t n, size_t size)
{
	return mem_new(n + 1, size);
}

static void fill_stage(const struct ingest *g, struct stage_rows *s)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct staged_row *row = &g->rows[i];
		s->row_ids[i] = (struct str){ g->bytes.p + row->id, row->id_n };
		s->cells[i] = (struct str){ g->bytes.p + row->cells, row->cells_n };
		s->times[i] = row->time;
		s->starts[i] = row->start;
		s->ends[i] = row->end;
		s->no_time[i] = !row->has_time;
		s->no_window[i] = row->end == row->start;
		s->predictions[i] = row->prediction;
		s->no_prediction[i] = g->spec.labels;
		s->labels[i] = row->has_label ? row->label : 0;
		s->no_label[i] = !row->has_label;
	}
}

static void ingest_send(struct ingest *g)
{
	struct stage_rows s = { .n = g->n,
		.row_ids = column_of(g->n, sizeof(struct str)),
		.cells = column_of(g->n, sizeof(struct str)),
		.times = column_of(g->n, sizeof(int64_t)),
		.starts = column_of(g->n, sizeof(int64_t)),
		.ends = column_of(g->n, sizeof(int64_t)),
		.no_time = column_of(g->n, sizeof(bool)),
		.no_window = column_of(g->n, sizeof(bool)),
		.no_prediction = column_of(g->n, sizeof(bool)),
		.no_label = column_of(g->n, sizeof(bool)),
		.predictions = column_of(g->n, sizeof(double)),
		.labels = column_of(g->n, sizeof(double)) };
	struct db_unit *u = db_unit(g->app->db, NULL);

	fill_stage(g, &s);
	stage_store_add(u, g->stage_id, g->sent, &s);
	void *all[] = { s.row_ids, s.cells, s.times, s.starts, s.ends, s.no_time, s.no_window,
		s.no_prediction, s.no_label, s.predictions, s.labels };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		mem_free(all[i]);
	g->sent += (int64_t)g->n;
	g->n = 0;
	buf_clear(&g->bytes);
	g->sending = true;
	g->pending++;
	db_send(u, DB_RELAXED, ingest_on_staged, g);
}

static void ingest_on_staged(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct ingest *g = arg;

	(void)rows;
	if (came_back(g, e))
		return;
	g->sending = false;
	if (g->n > 0 && (g->ending || is_full(g)))
		ingest_send(g);
	else if (g->ending)
		ingest_commit(g);
	if (g->waiting) {
		g->waiting = false;
		g->spec.on_room(g->spec.arg);
	}
}

/* ---- the end ---- */

static void ingest_commit(struct ingest *g)
{
	struct db_unit *u = db_unit(g->app->db, g->arena);
	struct stage_commit c = { .monitor_id = g->monitor_id,
		.stage_id = g->stage_id,
		.batch_id = g->batch,
		.hash = { (const char *)g->digest, HASH_SIZE },
		.spec_version = g->spec_version,
		.layout = g->layout,
		.per_window = g->monitor.window.rows,
		.late = g->monitor.late.span };

	if (g->spec.labels)
		stage_store_commit_labels(u, &c);
	else
		stage_store_commit(u, &c);
	event_store_add(
		u, &(struct event_new){ .project_id = g->project_id,
			   .type = g->spec.labels ? "monitor.labels" : "monitor.observations",
			   .subject = g->monitor_id });
	g->committing = true;
	g->pending++;
	db_send(u, DB_BULK, ingest_on_committed, g);
}

static void explain(const struct db_rows *rows, struct err *e)
{
	if (store_changed(rows))
		(void)err_set(e, ERR_CONFLICT,
			"the monitor has been changed meanwhile; send the rows again");
	else if (rows->fault != NULL && strcmp(rows->fault->sqlstate, "TM003") == 0)
		(void)err_field(e, "/batch", "the batch was used before for other rows");
}

static void ingest_on_committed(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct ingest *g = arg;
	struct err said = *e;

	g->committing = false;
	if (e->code != ERR_OK)
		explain(rows, &said);
	else if (field_decode_reply(observation_result_fields, db_str(&rows[0], 0, 0), g->arena,
			 &g->result, &said) == 0)
		said.code = ERR_OK;
	if (e->code == ERR_OK) {
		app_changed(g->app);
		windows_look(g->app, g->monitor_id);
	}
	if (came_back(g, &said))
		return;
	tell(g);
}
