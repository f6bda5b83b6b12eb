#include "server/store/monitor_store.h"

#include "gen/sql.h"
#include "lib/base/mem.h"

#include <math.h>

static struct db_arg optional(struct str s)
{
	return db_opt(s.n != 0, DB_TEXT(s));
}

static struct db_arg real_or_null(double v)
{
	return db_opt(!isnan(v), DB_REAL(v));
}

void monitor_store_list(struct db_unit *u, struct str project_id, struct str after, int64_t count)
{
	db_stmt(u, SQL_MONITOR_LIST, DB_TEXT(project_id), DB_TEXT(after), DB_INT(count));
}

void monitor_store_get(struct db_unit *u, struct monitor_key m)
{
	db_stmt(u, SQL_MONITOR_GET, DB_TEXT(m.project_id), DB_TEXT(m.name));
}

void monitor_store_look(
	struct db_unit *u, const struct monitor_row *m, struct str model, struct str pipeline)
{
	db_stmt(u, SQL_MONITOR_PUT_LOOK, DB_TEXT(m->project_id), DB_TEXT(model), optional(pipeline),
		DB_TEXT(m->name), DB_JSON(m->spec), DB_TEXT(m->source), DB_TEXT(m->alias));
}

void monitor_store_add(struct db_unit *u, const struct monitor_row *m)
{
	db_stmt(u, SQL_MONITOR_INSERT, DB_TEXT(m->id), DB_TEXT(m->project_id), DB_TEXT(m->name),
		DB_JSON(m->spec), DB_TEXT(m->source), DB_TEXT(m->model_id), DB_TEXT(m->alias),
		optional(m->created_by));
}

void monitor_store_update(struct db_unit *u, const struct monitor_row *m, int64_t version)
{
	monitor_store_advance(u, m->id, version);
	db_stmt(u, SQL_MONITOR_UPDATE, DB_TEXT(m->id), DB_JSON(m->spec), DB_TEXT(m->source),
		DB_TEXT(m->model_id), DB_TEXT(m->alias));
}

void monitor_store_advance(struct db_unit *u, struct str id, int64_t version)
{
	db_stmt(u, SQL_MONITOR_ADVANCE, DB_TEXT(id), DB_INT(version));
}

void monitor_store_delete(struct db_unit *u, struct monitor_key m, struct str actor)
{
	db_stmt(u, SQL_MONITOR_DELETE, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(actor));
}

void monitor_store_mute(struct db_unit *u, struct monitor_key m, const struct monitor_mutes *x)
{
	db_stmt(u, SQL_MONITOR_MUTE, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_JSON(x->mutes),
		DB_JSON(x->policy_state), DB_INT(x->version));
}

/* ---- observations ---- */

void monitor_store_champion(struct db_unit *u, struct monitor_key m)
{
	db_stmt(u, SQL_MONITOR_CHAMPION, DB_TEXT(m.project_id), DB_TEXT(m.name));
}

void reference_store_files(struct db_unit *u, struct str dataset_version_id)
{
	db_stmt(u, SQL_REFERENCE_FILES, DB_TEXT(dataset_version_id));
}

void reference_store_add(struct db_unit *u, const struct reference_row *r)
{
	db_stmt(u, SQL_REFERENCE_INSERT, DB_TEXT(r->id), DB_TEXT(r->monitor_id),
		DB_TEXT(r->model_version_id), DB_INT(r->spec_version), DB_INT(r->rows),
		DB_BYTES(r->profile));
}

void reference_store_get(struct db_unit *u, const struct reference_row *r)
{
	db_stmt(u, SQL_REFERENCE_GET, DB_TEXT(r->monitor_id), DB_TEXT(r->model_version_id),
		DB_INT(r->spec_version));
}

void stage_store_add(
	struct db_unit *u, struct str stage_id, int64_t first, const struct stage_rows *r)
{
	db_stmt(u, SQL_OBSERVATION_STAGE_INSERT, DB_TEXT(stage_id), DB_INT(first),
		DB_TEXTS(r->row_ids, r->n), db_with_nulls(DB_TIMES(r->times, r->n), r->no_time),
		db_with_nulls(DB_TIMES(r->starts, r->n), r->no_window),
		db_with_nulls(DB_TIMES(r->ends, r->n), r->no_window),
		db_with_nulls(DB_REALS(r->predictions, r->n), r->no_prediction),
		db_with_nulls(DB_REALS(r->labels, r->n), r->no_label), DB_BLOBS(r->cells, r->n));
}

void stage_store_commit(struct db_unit *u, const struct stage_commit *c)
{
	db_stmt(u, SQL_OBSERVATION_COMMIT, DB_TEXT(c->monitor_id), DB_INT(c->spec_version),
		DB_TEXT(c->stage_id), DB_INT(c->layout), optional(c->batch_id), DB_BYTES(c->hash),
		DB_INT(c->late.months), DB_INT(c->late.us), DB_INT(c->per_window));
}

void stage_store_commit_labels(struct db_unit *u, const struct stage_commit *c)
{
	db_stmt(u, SQL_LABEL_COMMIT, DB_TEXT(c->monitor_id), DB_INT(c->spec_version),
		DB_TEXT(c->stage_id), optional(c->batch_id), DB_BYTES(c->hash),
		DB_INT(c->late.months), DB_INT(c->late.us));
}

void stage_store_drop(struct db_unit *u, struct str stage_id)
{
	db_stmt(u, SQL_OBSERVATION_UNSTAGE, DB_TEXT(stage_id));
}

void stage_store_sweep(struct db_unit *u)
{
	db_stmt0(u, SQL_OBSERVATION_STAGE_SWEEP);
}

/* ---- windows ---- */

void window_store_list(struct db_unit *u, struct monitor_key m, struct str before, int64_t count)
{
	db_stmt(u, SQL_WINDOW_LIST, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(before),
		DB_INT(count));
}

void window_store_exists(struct db_unit *u, struct monitor_key m, struct str window_id)
{
	db_stmt(u, SQL_WINDOW_EXISTS, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(window_id));
}

void window_store_metrics(struct db_unit *u, struct monitor_key m, struct str window_id)
{
	db_stmt(u, SQL_WINDOW_METRICS, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(window_id));
}

void heat_store_windows(struct db_unit *u, struct monitor_key m, int64_t count)
{
	db_stmt(u, SQL_HEAT_WINDOWS, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_INT(count));
}

void heat_store_values(struct db_unit *u, struct monitor_key m, int64_t count, const char *metric)
{
	db_stmt(u, SQL_HEAT_VALUES, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_INT(count),
		DB_TEXTZ(metric));
}

void window_store_next(struct db_unit *u, struct str monitor_id, const struct window_wanted *w)
{
	db_stmt(u, SQL_WINDOW_NEXT, DB_TEXT(monitor_id), db_opt(w->has_start, DB_TIME(w->start)),
		db_opt(w->has_before, DB_TIME(w->before)), DB_BOOL(w->complete),
		DB_TEXTS(w->skip, w->n_skip));
}

void window_store_delete(struct db_unit *u, struct str monitor_id, const struct window_delete *w,
	struct str actor, bool dry_run)
{
	db_stmt(u, SQL_WINDOWS_DELETE, DB_TEXT(monitor_id),
		db_opt(w->start != 0, DB_TIME(w->start)), db_opt(w->from != 0, DB_TIME(w->from)),
		db_opt(w->to != 0, DB_TIME(w->to)), DB_TEXT(actor), DB_BOOL(dry_run));
}

void window_store_sweep(struct db_unit *u, int64_t count)
{
	db_stmt(u, SQL_WINDOW_SWEEP, DB_INT(count));
}

void close_store_read(struct db_unit *u, struct str monitor_id, struct str window_id)
{
	db_stmt(u, SQL_CLOSE_MONITOR, DB_TEXT(monitor_id));
	db_stmt(u, SQL_CLOSE_WINDOW, DB_TEXT(window_id));
	db_stmt(u, SQL_CLOSE_VERSION, DB_TEXT(window_id));
	db_stmt(u, SQL_CLOSE_REFERENCE, DB_TEXT(window_id));
	db_stmt(u, SQL_CLOSE_LAYOUTS, DB_TEXT(window_id));
	db_stmt(u, SQL_CLOSE_EARLIER, DB_TEXT(window_id));
	db_stmt(u, SQL_CLOSE_OPEN, DB_TEXT(window_id));
}

void close_store_rows(
	struct db_unit *u, int64_t made, struct str window_id, struct str after, int64_t count)
{
	db_stmt(u, SQL_CLOSE_ROWS, DB_DATE(made), DB_TEXT(window_id), DB_TEXT(after),
		DB_INT(count));
}

void window_store_advance(struct db_unit *u, struct str window_id, int64_t version)
{
	db_stmt(u, SQL_WINDOW_ADVANCE, DB_TEXT(window_id), DB_INT(version));
}

void window_store_closed(struct db_unit *u, const struct window_closed *w)
{
	db_stmt(u, SQL_WINDOW_CLOSED, DB_TEXT(w->id), DB_INT(w->revision),
		optional(w->reference_id), optional(w->model_version_id),
		real_or_null(w->performance), real_or_null(w->level), real_or_null(w->drift_share),
		DB_TEXTZ(w->severity), db_opt(w->policy_before.n != 0, DB_JSON(w->policy_before)),
		DB_INT(w->left_out));
}

/* The NULLs of a column of numbers, to be freed with mem_free. */
static bool *nulls_of(const double *values, size_t n)
{
	bool *nulls = mem_new(n + 1, sizeof *nulls);

	for (size_t i = 0; i < n; i++)
		nulls[i] = isnan(values[i]);
	return nulls;
}

void drift_store_add(struct db_unit *u, int64_t made, struct str window_id, int64_t revision,
	const struct drift_rows *r)
{
	bool *nulls[4] = { nulls_of(r->values, r->n), nulls_of(r->criticals, r->n),
		nulls_of(r->ps, r->n), nulls_of(r->thresholds, r->n) };
	struct str *baselines = mem_new(r->n + 1, sizeof *baselines);

	for (size_t i = 0; i < r->n; i++)
		baselines[i] = STR("training");
	db_stmt(u, SQL_DRIFT_METRIC_INSERT, DB_DATE(made), DB_TEXT(window_id), DB_INT(revision),
		DB_TEXTS(r->features, r->n), DB_TEXTS(baselines, r->n), DB_TEXTS(r->metrics, r->n),
		db_with_nulls(DB_REALS(r->values, r->n), nulls[0]),
		db_with_nulls(DB_REALS(r->criticals, r->n), nulls[1]),
		db_with_nulls(DB_REALS(r->ps, r->n), nulls[2]),
		db_with_nulls(DB_REALS(r->thresholds, r->n), nulls[3]), DB_TEXTS(r->statuses, r->n),
		DB_BOOLS(r->drifted, r->n));
	for (size_t i = 0; i < 4; i++)
		mem_free(nulls[i]);
	mem_free(baselines);
}

void decision_store_add(struct db_unit *u, const struct decision_row *d)
{
	db_stmt(u, SQL_DECISION_INSERT, DB_TEXT(d->id), DB_TEXT(d->monitor_id),
		DB_TEXT(d->window_id), DB_INT(d->revision), DB_INT(d->spec_version),
		DB_TEXTZ(d->cause), DB_TEXTZ(d->action), DB_BOOL(d->fired),
		DB_TEXT(d->suppressed_by.p != NULL ? d->suppressed_by : STR("")),
		DB_TEXT(d->reason), DB_JSON(d->inputs), optional(d->run_id),
		optional(d->supersedes));
}

void decision_store_outcome(struct db_unit *u, struct str window_id)
{
	db_stmt(u, SQL_DECISION_OUTCOME, DB_TEXT(window_id));
}

void retraining_store_add(
	struct db_unit *u, struct str model_id, struct str decision_id, struct str run_id)
{
	db_stmt(u, SQL_RETRAINING_INSERT, DB_TEXT(model_id), DB_TEXT(decision_id), DB_TEXT(run_id));
}

void monitor_store_set_policy(struct db_unit *u, struct str id, struct str policy_state)
{
	db_stmt(u, SQL_MONITOR_POLICY_SET, DB_TEXT(id), DB_JSON(policy_state));
}

void decision_store_list(struct db_unit *u, struct monitor_key m, struct str before, int64_t count)
{
	db_stmt(u, SQL_DECISION_LIST, DB_TEXT(m.project_id), DB_TEXT(m.name), DB_TEXT(before),
		DB_INT(count));
}

void decision_store_get(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_DECISION_GET, DB_TEXT(id));
}
