/* The native view of tracking runs: what the dashboard and the CLI show. */
#include "api/tracking.h"
#include "server/core/filepath.h"
#include "server/rest/download.h"
#include "server/rest/handlers.h"
#include "server/store/tracking_store.h"

#include <math.h>

/* ---- the run ---- */

static int decode_list(struct call *c, const struct db_rows *rows, const char *member,
	struct list *ret, struct err *e)
{
	const struct field *f = field_find(tracking_run_fields, str_c(member));

	return call_decode(c, rows, f->sub, f->size, ret, e);
}

static void tracking_get_on_rows(struct call *c, const struct db_rows *rows)
{
	struct tracking_run *t = arena_new_of(c->arena, struct tracking_run);
	struct err e;

	if (rows[0].n == 0) {
		call_not_found(c, "tracking run");
		return;
	}
	if (db_row_decode(&rows[0], 0, tracking_run_fields, c->arena, t, &e) < 0 ||
		decode_list(c, &rows[1], "params", &t->params, &e) < 0 ||
		decode_list(c, &rows[2], "tags", &t->tags, &e) < 0 ||
		decode_list(c, &rows[3], "metrics", &t->metrics, &e) < 0)
		call_fail(c, &e);
	else
		call_reply(c, 200, tracking_run_fields, t);
}

static void tracking_get(struct call *c)
{
	struct db_unit *u = call_unit(c);

	tracking_store_get(u, call_param(c, "tracking"));
	call_send(c, u, DB_READ, tracking_get_on_rows);
}

/* ---- charts ---- */

static struct series_point point_of(const struct db_rows *r, size_t i)
{
	size_t min = db_col(r, "min"), max = db_col(r, "max");

	return (struct series_point){ .step = db_int(r, i, db_col(r, "step")),
		.time = db_int(r, i, db_col(r, "time")),
		.count = db_int(r, i, db_col(r, "count")),
		.last = db_real(r, i, db_col(r, "last")),
		.min = db_is_null(r, i, min) ? (double)NAN : db_real(r, i, min), /* all are NaN */
		.max = db_is_null(r, i, max) ? (double)NAN : db_real(r, i, max) };
}

static void series_on_rows(struct call *c, const struct db_rows *rows)
{
	const struct db_rows *r = &rows[0];
	struct series *all = arena_array_of(c->arena, struct series, r->n + 1);
	struct series_point *points = arena_array_of(c->arena, struct series_point, r->n + 1);
	size_t n = 0, key = r->n != 0 ? db_col(r, "key") : 0;

	for (size_t i = 0; i < r->n; i++) {
		points[i] = point_of(r, i);
		if (n == 0 || !str_eq(all[n - 1].key, db_str(r, i, key)))
			all[n++] = (struct series){ .key = db_str(r, i, key),
				.points = { &points[i], 0 } };
		all[n - 1].points.n++;
		all[n - 1].total += points[i].count;
	}
	call_reply_items(c, all, n, sizeof *all, STR_NONE);
}

static void tracking_series(struct call *c)
{
	const struct series_query *query = c->query;
	struct db_unit *u = call_unit(c);

	metric_store_series(
		u, call_param(c, "tracking"), query->key.items, query->key.n, query->buckets);
	call_send(c, u, DB_READ, series_on_rows);
}

/* ---- artifacts ---- */

static void artifacts_on_rows(struct call *c, const struct db_rows *rows)
{
	struct list all;
	struct err e;

	if (call_decode(c, &rows[0], artifact_fields, sizeof(struct artifact), &all, &e) < 0)
		call_fail(c, &e);
	else
		call_reply_items(c, all.items, all.n, sizeof(struct artifact), STR_NONE);
}

static void tracking_artifacts(struct call *c)
{
	const struct artifact_query *query = c->query;
	struct str folder = STR("");
	struct err e;

	if (query->path.n != 0) {
		if (filepath_check(query->path, "/path", &e) < 0) {
			call_fail(c, &e);
			return;
		}
		folder = arena_printf(c->arena, "%.*s/", STR_ARG(query->path));
	}
	struct db_unit *u = call_unit(c);
	artifact_store_list(u, call_param(c, "tracking"), folder);
	call_send(c, u, DB_READ, artifacts_on_rows);
}

static void artifact_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0) {
		call_not_found(c, "artifact");
		return;
	}
	download_send(c,
		&(struct download){ .id = download_id(&rows[0], 0),
			.name = filepath_base(db_str(&rows[0], 0, db_col(&rows[0], "path"))),
			.type = download_type(
				db_str(&rows[0], 0, db_col(&rows[0], "media_type"))) },
		NULL);
}

static void tracking_artifact(struct call *c)
{
	struct db_unit *u = call_unit(c);

	artifact_store_get(u, call_param(c, "tracking"), call_param(c, "path"));
	call_send(c, u, DB_READ, artifact_on_row);
}

const struct binding tracking_bindings[] = {
	{ "tracking.get", tracking_get },
	{ "tracking.series", tracking_series },
	{ "tracking.artifacts", tracking_artifacts },
	{ "tracking.artifact", tracking_artifact },
	{ 0 },
};
