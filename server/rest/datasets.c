/* Data sets and their versions. */
#include "api/dataset.h"
#include "lib/base/num.h"
#include "server/core/filepath.h"
#include "server/rest/download.h"
#include "server/rest/handlers.h"
#include "server/store/dataset_store.h"
#include "server/store/event_store.h"

static void dataset_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, c->route->ok, &rows[0], "data set");
}

static void dataset_created(struct call *c)
{
	struct db_unit *u = call_unit(c);

	dataset_store_get_id(u, c->object_id);
	call_send(c, u, DB_READ, dataset_on_row);
}

static void dataset_create_on_done(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	dataset_created(c);
}

static void dataset_create(struct call *c)
{
	struct str id = call_id(c, "ds");
	struct db_unit *u = call_unit(c);

	dataset_store_add(u, id, c->project_id, c->in, call_actor(c));
	event_store_add(u, &(struct event_new){ .project_id = c->project_id,
				   .type = "dataset.created",
				   .subject = id,
				   .actor = call_actor(c) });
	call_create(c, u, id, dataset_create_on_done, dataset_created);
}

static void dataset_get(struct call *c)
{
	struct db_unit *u = call_unit(c);

	dataset_store_get(u, c->project_id, call_param(c, "dataset"));
	call_send(c, u, DB_READ, dataset_on_row);
}

static void dataset_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	dataset_store_list(u, c->project_id, call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

/* ---- removing ---- */

static void dataset_delete_on_gone(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	call_reply_empty(c);
}

static void dataset_delete_on_needed(struct call *c, const struct db_rows *rows)
{
	const struct dry_run_query *query = c->query;
	struct err e;

	if (rows[0].n == 0) {
		call_not_found(c, "data set");
		return;
	}
	int64_t runs = db_int(&rows[0], 0, 1), models = db_int(&rows[0], 0, 2);
	if (runs != 0 || models != 0) {
		(void)err_set(&e, ERR_CONFLICT,
			"%lld run%s and %lld model version%s need the data set; remove them first",
			(long long)runs, num_plural((uint64_t)runs), (long long)models,
			num_plural((uint64_t)models));
		call_fail(c, &e);
		return;
	}
	if (query->dry_run) {
		call_reply_empty(c);
		return;
	}
	struct str id = arena_str(c->arena, db_str(&rows[0], 0, 0));
	struct db_unit *u = call_unit(c);
	dataset_store_delete(u, id);
	event_store_add(u, &(struct event_new){ .project_id = c->project_id,
				   .type = "dataset.deleted",
				   .subject = id,
				   .actor = call_actor(c) });
	call_send(c, u, DB_BULK, dataset_delete_on_gone);
}

static void dataset_delete(struct call *c)
{
	struct db_unit *u = call_unit(c);

	dataset_store_needed(u, c->project_id, call_param(c, "dataset"));
	call_send(c, u, DB_READ, dataset_delete_on_needed);
}

/* ---- reading versions ---- */

static void version_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, c->route->ok, &rows[0], "version");
}

static void version_get(struct call *c)
{
	int64_t number;

	if (!call_version(c, "version", &number))
		return;
	struct db_unit *u = call_unit(c);
	dataset_version_store_get(u, c->project_id, call_param(c, "dataset"), number);
	call_send(c, u, DB_READ, version_on_row);
}

static void version_list_on_rows(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		call_not_found(c, "data set");
	else
		call_reply_list(c, &rows[1]);
}

static void version_list(struct call *c)
{
	int64_t before;
	struct db_unit *u = call_unit(c);

	if (!num_parse_i64(call_page_after(c, ""), 1, INT64_MAX, &before))
		before = INT64_MAX;
	dataset_store_get(u, c->project_id, call_param(c, "dataset"));
	dataset_version_store_list(
		u, c->project_id, call_param(c, "dataset"), before, call_page_count(c));
	call_send(c, u, DB_READ, version_list_on_rows);
}

static void version_files_on_rows(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		call_not_found(c, "version");
	else
		call_reply_list(c, &rows[1]);
}

static void version_files(struct call *c)
{
	int64_t number;

	if (!call_version(c, "version", &number))
		return;
	struct db_unit *u = call_unit(c);
	dataset_version_store_get(u, c->project_id, call_param(c, "dataset"), number);
	dataset_file_store_list(u, c->project_id, call_param(c, "dataset"), number,
		call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, version_files_on_rows);
}

static void version_file_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0) {
		call_not_found(c, "file");
		return;
	}
	struct str path = db_str(&rows[0], 0, db_col(&rows[0], "path"));
	struct str type = db_str(&rows[0], 0, db_col(&rows[0], "media_type"));
	download_send(c,
		&(struct download){ .id = download_id(&rows[0], 0),
			.name = filepath_base(path),
			.type = download_type(type) },
		NULL);
}

static void version_file(struct call *c)
{
	int64_t number;

	if (!call_version(c, "version", &number))
		return;
	struct db_unit *u = call_unit(c);
	dataset_file_store_get(
		u, c->project_id, call_param(c, "dataset"), number, call_param(c, "path"));
	call_send(c, u, DB_READ, version_file_on_row);
}

const struct binding dataset_bindings[] = {
	{ "datasets.create", dataset_create },
	{ "datasets.get", dataset_get },
	{ "datasets.list", dataset_list },
	{ "datasets.delete", dataset_delete },
	{ "dataset_versions.get", version_get },
	{ "dataset_versions.list", version_list },
	{ "dataset_versions.files", version_files },
	{ "dataset_versions.file", version_file },
	{ 0 },
};
