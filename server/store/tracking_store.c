#include "server/store/tracking_store.h"

#include "gen/sql.h"

static struct db_arg opt_text(struct str s)
{
	return db_opt(s.n != 0, DB_TEXT(s));
}

void experiment_store_access(
	struct db_unit *u, struct str principal_id, int64_t id, struct str project_id)
{
	db_stmt(u, SQL_EXPERIMENT_ACCESS, opt_text(principal_id), DB_INT(id), opt_text(project_id));
}

void experiment_store_by_name(struct db_unit *u, struct str project_id, struct str name)
{
	db_stmt(u, SQL_EXPERIMENT_BY_NAME, DB_TEXT(project_id), DB_TEXT(name));
}

void experiment_store_tags(struct db_unit *u, int64_t id)
{
	db_stmt(u, SQL_EXPERIMENT_TAGS, DB_INT(id));
}

void experiment_store_add(struct db_unit *u, struct str project_id, struct str name,
	struct str artifact_location, const struct pair_columns *tags)
{
	db_stmt(u, SQL_EXPERIMENT_INSERT, DB_TEXT(project_id), DB_TEXT(name),
		DB_TEXT(artifact_location.n != 0 ? artifact_location : STR("")),
		DB_TEXTS(tags->keys, tags->n), DB_TEXTS(tags->values, tags->n));
	db_stmt(u, SQL_EXPERIMENT_LOCATE, DB_TEXT(project_id), DB_TEXT(name));
}

void attempt_store_fence(struct db_unit *u, struct str attempt_id, int64_t epoch)
{
	db_stmt(u, SQL_ATTEMPT_FENCE, DB_TEXT(attempt_id), DB_INT(epoch));
}

void tracking_store_access(struct db_unit *u, const struct str *principal_ids,
	const struct str *run_ids, const struct str *attempt_ids, size_t n)
{
	db_stmt(u, SQL_TRACKING_ACCESS, DB_TEXTS(principal_ids, n), DB_TEXTS(run_ids, n),
		DB_TEXTS(attempt_ids, n));
}

void tracking_store_of_attempt(struct db_unit *u, struct str attempt_id)
{
	db_stmt(u, SQL_TRACKING_OF_ATTEMPT, DB_TEXT(attempt_id));
}

void tracking_store_add(struct db_unit *u, const struct tracking_new *t)
{
	db_stmt(u, SQL_TRACKING_INSERT, DB_TEXT(t->run_id), DB_INT(t->experiment_id),
		opt_text(t->parent_run), DB_TEXT(t->name),
		DB_TEXT(t->user_name.n != 0 ? t->user_name : STR("")),
		db_opt(t->has_start_time, DB_INT(t->start_time)));
	db_stmt(u, SQL_TRACKING_TAGS_BY_RUN, DB_TEXT(t->run_id), DB_TEXTS(t->tags.keys, t->tags.n),
		DB_TEXTS(t->tags.values, t->tags.n));
}

void tracking_store_info(struct db_unit *u, struct str run_id)
{
	db_stmt(u, SQL_TRACKING_GET, DB_TEXT(run_id));
}

void tracking_store_get(struct db_unit *u, struct str run_id)
{
	tracking_store_info(u, run_id);
	db_stmt(u, SQL_TRACKING_PARAMS, DB_TEXT(run_id));
	db_stmt(u, SQL_TRACKING_TAGS, DB_TEXT(run_id));
	db_stmt(u, SQL_TRACKING_METRICS, DB_TEXT(run_id));
}

void tracking_store_update(struct db_unit *u, int64_t id, const struct tracking_change *t)
{
	db_stmt(u, SQL_TRACKING_UPDATE, DB_INT(id), DB_TEXTZ(t->status),
		db_opt(t->has_end_time, DB_INT(t->end_time)), opt_text(t->name));
}

void param_store_clash(struct db_unit *u, struct str run_id, const struct pair_columns *p)
{
	db_stmt(u, SQL_PARAM_CLASH, DB_TEXT(run_id), DB_TEXTS(p->keys, p->n),
		DB_TEXTS(p->values, p->n));
}

void param_store_put(struct db_unit *u, int64_t tracking_id, const struct pair_columns *p)
{
	db_stmt(u, SQL_PARAM_PUT, DB_INT(tracking_id), DB_TEXTS(p->keys, p->n),
		DB_TEXTS(p->values, p->n));
}

bool param_is_clash(const struct db_rows *rows)
{
	return rows->fault != NULL && strcmp(rows->fault->sqlstate, "23502") == 0;
}

void tag_store_put(struct db_unit *u, int64_t tracking_id, const struct pair_columns *t)
{
	db_stmt(u, SQL_TAG_PUT, DB_INT(tracking_id), DB_TEXTS(t->keys, t->n),
		DB_TEXTS(t->values, t->n));
}

void metric_store_put(
	struct db_unit *u, int64_t tracking_id, int64_t made_day, const struct point_columns *p)
{
	db_stmt(u, SQL_METRIC_KEY_PUT, DB_TEXTS(p->keys, p->n));
	db_stmt(u, SQL_METRIC_PUT, DB_DATE(made_day), DB_INT(tracking_id), DB_TEXTS(p->keys, p->n),
		DB_INTS(p->steps, p->n), DB_INTS(p->times, p->n), DB_REALS(p->values, p->n),
		DB_BOOLS(p->nans, p->n));
	db_stmt(u, SQL_METRIC_LATEST_PUT, DB_INT(tracking_id), DB_TEXTS(p->keys, p->n),
		DB_INTS(p->steps, p->n), DB_INTS(p->times, p->n), DB_REALS(p->values, p->n),
		DB_BOOLS(p->nans, p->n));
}

void metric_store_history(struct db_unit *u, struct str run_id, struct str key,
	const struct metric_after *after, int64_t count)
{
	db_stmt(u, SQL_METRIC_HISTORY, DB_TEXT(run_id), DB_TEXT(key), DB_BOOL(after->has),
		DB_INT(after->time), DB_INT(after->step), DB_REAL(after->value),
		DB_BOOL(after->is_nan), DB_INT(count));
}

void metric_store_series(
	struct db_unit *u, struct str run_id, const struct str *keys, size_t n, int64_t buckets)
{
	db_stmt(u, SQL_METRIC_SERIES, DB_TEXT(run_id), db_opt(n != 0, DB_TEXTS(keys, n)),
		DB_INT(buckets));
}

void artifact_store_put(
	struct db_unit *u, int64_t tracking_id, const struct artifact_row *row, struct arena *a)
{
	struct str *parents = arena_array_of(a, struct str, row->path.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < row->path.n; i++)
		if (row->path.p[i] == '/')
			parents[n++] = str_slice(row->path, 0, i);
	db_stmt(u, SQL_ARTIFACT_PUT, DB_INT(tracking_id), DB_TEXT(row->path), DB_TEXTS(parents, n),
		DB_INT(row->size), DB_BYTES(row->digest), DB_TEXT(row->media_type));
}

void artifact_store_get(struct db_unit *u, struct str run_id, struct str path)
{
	db_stmt(u, SQL_ARTIFACT_GET, DB_TEXT(run_id), DB_TEXT(path));
}

void artifact_store_list(struct db_unit *u, struct str run_id, struct str folder)
{
	db_stmt(u, SQL_ARTIFACT_LIST, DB_TEXT(run_id), DB_TEXT(folder));
}
