/*
 * Artifacts of a run: list, upload, download. A proxied path is EXPERIMENT/RUN/artifacts/PATH.
 * Bytes go to the blob store under their digest; the path is a row, so no path ever reaches a file
 * system.
 */
#include "lib/base/num.h"
#include "server/core/filepath.h"
#include "server/mlflow/handlers.h"
#include "server/mlflow/limits.h"
#include "server/rest/download.h"
#include "server/store/blob_store.h"
#include "server/store/tracking_store.h"

enum { DECODE_ROUNDS = 10 };

struct place { /* of a proxied path */
	struct str run_id, path; /* path: "" is the run's root */
	int64_t experiment_id;
	struct blob_id blob;
};

static void put_on_run(struct call *c);
static void put_on_upload(struct call *c, const struct blob_id *id);
static void put_on_done(struct call *c, const struct db_rows *rows);
static void get_on_run(struct call *c);
static void get_on_row(struct call *c, const struct db_rows *rows);

static void invalid_path(struct call *c)
{
	flow_invalid(c, "Invalid path");
}

static int hex_value(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch = (char)(ch | 0x20);
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* As lenient clients do: what is no escape stays. */
static struct str decode_once(struct arena *a, struct str s)
{
	char *out = arena_alloc(a, s.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		int high = i + 2 < s.n && s.p[i] == '%' ? hex_value(s.p[i + 1]) : -1;
		int low = high >= 0 ? hex_value(s.p[i + 2]) : -1;

		if (low < 0) {
			out[n++] = s.p[i];
			continue;
		}
		out[n++] = (char)(high << 4 | low);
		i += 2;
	}
	return (struct str){ out, n };
}

/* Also what clients might decode once more on their side must not lead out of a folder. */
static bool path_ok(struct arena *a, struct str path)
{
	struct err e;

	for (int i = 0; i < DECODE_ROUNDS; i++) {
		if (filepath_check(path, "/path", &e) < 0 || str_find_char(path, '#') >= 0 ||
			(path.n > 1 && path.p[1] == ':'))
			return false;
		struct str next = decode_once(a, path);
		if (next.n == path.n)
			return true;
		path = next;
	}
	return false;
}

/* False when it has been answered. */
static bool place_parse(struct call *c, struct str whole, bool root_too, struct place *ret)
{
	struct str rest = whole, experiment, run, word;

	if (!str_next(&rest, '/', &experiment) || !str_next(&rest, '/', &run) ||
		!str_next(&rest, '/', &word) || !str_is(word, "artifacts") ||
		!num_parse_i64(experiment, 0, INT64_MAX, &ret->experiment_id)) {
		flow_not_found(
			c, "There is no artifact at '%.*s'", STR_ARG(str_slice(whole, 0, 300)));
		return false;
	}
	ret->run_id = run;
	ret->path = rest;
	if ((root_too && rest.n == 0) || path_ok(c->arena, rest))
		return true;
	invalid_path(c);
	return false;
}

/* The path's experiment must be the run's: one artifact has one address. */
static bool place_fits(struct call *c)
{
	const struct place *p = flow_of(c)->mine;

	if (flow_of(c)->run.experiment_id == p->experiment_id)
		return true;
	flow_not_found(c, "There is no such artifact");
	return false;
}

/* ---- upload ---- */

static void put(struct call *c)
{
	struct place *p = arena_new_of(c->arena, struct place);

	if (!place_parse(c, call_param(c, "path"), false, p))
		return;
	flow_of(c)->mine = p;
	flow_find_run(c, p->run_id, FLOW_WRITE, put_on_run);
}

static void put_on_run(struct call *c)
{
	if (place_fits(c))
		upload_take(c, STR_NONE, put_on_upload, NULL);
}

static void put_on_upload(struct call *c, const struct blob_id *id)
{
	struct flow *f = flow_of(c);
	struct place *p = f->mine;
	struct db_unit *u = call_unit(c);
	struct str type = http_header(c->req, "Content-Type");

	p->blob = *id;
	blob_store_put(u, f->run.project_id, upload_digest(&p->blob), id->size);
	artifact_store_put(u, f->run.id,
		&(struct artifact_row){ .path = p->path,
			.digest = upload_digest(&p->blob),
			.media_type = type.n != 0 && type.n < 128 && str_utf8_valid(type)
					      ? type
					      : STR("application/octet-stream"),
			.size = id->size },
		c->arena);
	flow_write(c, u, put_on_done, NULL);
}

static void put_on_done(struct call *c, const struct db_rows *rows)
{
	if (rows[2].n == 0)
		flow_invalid(c,
			"Invalid path: a part of it is a file already, or it is a folder already");
	else
		flow_reply_done(c);
}

/* ---- download ---- */

static const char *type_of(struct str path)
{
	static const struct {
		const char *ends, *type;
	} table[] = {
		{ ".png", "image/png" },
		{ ".jpg", "image/jpeg" },
		{ ".jpeg", "image/jpeg" },
		{ ".gif", "image/gif" },
		{ ".webp", "image/webp" },
		{ ".pdf", "application/pdf" },
		{ ".zip", "application/zip" },
		{ ".gz", "application/gzip" },
		{ NULL, NULL },
	};
	static const char *const texts[] = { ".txt", ".log", ".err", ".cfg", ".conf", ".cnf",
		".ini", ".properties", ".hocon", ".toml", ".yaml", ".yml", ".xml", ".json", ".js",
		".py", ".py3", ".csv", ".tsv", ".md", ".rst", "MLmodel", "MLproject", NULL };

	for (size_t i = 0; table[i].ends != NULL; i++)
		if (str_ends(path, str_c(table[i].ends)))
			return table[i].type;
	for (const char *const *t = texts; *t != NULL; t++)
		if (str_ends(path, str_c(*t)))
			return "text/plain";
	return "application/octet-stream";
}

static void get(struct call *c)
{
	struct place *p = arena_new_of(c->arena, struct place);

	if (!place_parse(c, call_param(c, "path"), false, p))
		return;
	flow_of(c)->mine = p;
	flow_find_run(c, p->run_id, FLOW_READ, get_on_run);
}

static void get_on_run(struct call *c)
{
	const struct place *p = flow_of(c)->mine;

	if (!place_fits(c))
		return;
	struct db_unit *u = call_unit(c);
	artifact_store_get(u, p->run_id, p->path);
	call_send(c, u, DB_READ, get_on_row);
}

static void get_on_row(struct call *c, const struct db_rows *rows)
{
	const struct place *p = flow_of(c)->mine;

	if (rows[0].n == 0) {
		flow_not_found(
			c, "There is no artifact at '%.*s'", STR_ARG(str_slice(p->path, 0, 300)));
		return;
	}
	download_send(c,
		&(struct download){ .id = download_id(&rows[0], 0),
			.name = filepath_base(p->path),
			.type = type_of(p->path) },
		NULL);
}

/* ---- lists ---- */

static struct str as_folder(struct call *c, struct str path)
{
	return path.n == 0 ? STR("") : arena_printf(c->arena, "%.*s/", STR_ARG(path));
}

static void put_files(struct jsn_out *w, const struct db_rows *r, const char *name_column)
{
	if (r->n == 0)
		return;
	jsn_key(w, "files");
	jsn_list_begin(w);
	for (size_t i = 0; i < r->n; i++) {
		bool is_dir = db_bool(r, i, db_col(r, "is_dir"));

		jsn_obj_begin(w);
		jsn_key(w, "path");
		jsn_str(w, db_str(r, i, db_col(r, name_column)));
		jsn_key(w, "is_dir");
		jsn_bool(w, is_dir);
		if (!is_dir) {
			jsn_key(w, "file_size");
			jsn_int(w, db_int(r, i, db_col(r, "size")));
		}
		jsn_obj_end(w);
	}
	jsn_list_end(w);
}

static void list_on_rows(struct call *c, const struct db_rows *rows)
{
	struct buf b;

	buf_init(&b, FLOW_REPLY_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "root_uri");
	jsn_str(&w, flow_of(c)->run.artifact_uri);
	put_files(&w, &rows[0], "path");
	jsn_obj_end(&w);
	flow_reply(c, &b);
}

static void list_on_run(struct call *c)
{
	struct db_unit *u = call_unit(c);

	artifact_store_list(u, flow_of(c)->run.run_id, as_folder(c, flow_arg(c, "path")));
	call_send(c, u, DB_READ, list_on_rows);
}

static void list(struct call *c)
{
	struct str id = flow_arg(c, "run_id"), path = flow_arg(c, "path");

	if (path.n != 0 && !path_ok(c->arena, path))
		invalid_path(c);
	else
		flow_find_run(c, id.n != 0 ? id : flow_arg(c, "run_uuid"), FLOW_READ, list_on_run);
}

static void proxy_on_rows(struct call *c, const struct db_rows *rows)
{
	struct buf b;

	buf_init(&b, FLOW_REPLY_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	put_files(&w, &rows[0], "name");
	jsn_obj_end(&w);
	flow_reply(c, &b);
}

static void proxy_on_run(struct call *c)
{
	const struct place *p = flow_of(c)->mine;

	if (!place_fits(c))
		return;
	struct db_unit *u = call_unit(c);
	artifact_store_list(u, p->run_id, as_folder(c, p->path));
	call_send(c, u, DB_READ, proxy_on_rows);
}

static void list_proxy(struct call *c)
{
	struct place *p = arena_new_of(c->arena, struct place);

	if (!place_parse(c, flow_arg(c, "path"), true, p))
		return;
	flow_of(c)->mine = p;
	flow_find_run(c, p->run_id, FLOW_READ, proxy_on_run);
}

const struct binding mlflow_artifact_bindings[] = {
	{ "mlflow.artifacts.list", list },
	{ "mlflow.artifacts.list_proxy", list_proxy },
	{ "mlflow.artifacts.put", put },
	{ "mlflow.artifacts.get", get },
	{ 0 },
};
