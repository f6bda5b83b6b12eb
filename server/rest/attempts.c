/*
 * An attempt's bytes: what its worker reads and what it puts out. Every effect carries the epoch; a
 * stale one, or one of another worker, is superseded and changes nothing. Paths of outputs are
 * relative to $TIDEMILL_OUTPUT, so an output's files begin with the path that was declared for it.
 */
#include "api/pipeline.h"
#include "api/worker.h"
#include "lib/base/num.h"
#include "lib/json/json_write.h"
#include "server/core/spec_check.h"
#include "server/rest/download.h"
#include "server/rest/handlers.h"
#include "server/rest/upload.h"
#include "server/store/blob_store.h"
#include "server/store/worker_store.h"

enum { SUMMARY_MAX = 1 << 21 };

static void superseded(struct call *c)
{
	struct err e;

	(void)err_set(
		&e, ERR_SUPERSEDED, "the attempt is not held by this worker under this epoch");
	call_fail(c, &e);
}

/* ---- reading ---- */

static void blob_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0) {
		superseded(c);
		return;
	}
	if (rows[1].n == 0) {
		call_not_found(c, "blob among what the attempt reads");
		return;
	}
	download_send(c,
		&(struct download){ .id = download_id(&rows[1], 0),
			.name = call_param(c, "digest"),
			.type = "application/octet-stream" },
		NULL);
}

static bool digest_ok(struct call *c, struct str hex, struct str *ret)
{
	unsigned char *bytes = arena_alloc(c->arena, HASH_SIZE);

	*ret = (struct str){ (const char *)bytes, HASH_SIZE };
	if (hash_parse_hex(hex, bytes))
		return true;
	call_invalid(c, "/digest", "a digest is a SHA-256 in 64 lower-case hex digits");
	return false;
}

static void attempt_blob(struct call *c)
{
	const struct epoch_query *q = c->query;
	struct str digest;

	if (!digest_ok(c, call_param(c, "digest"), &digest))
		return;
	struct db_unit *u = call_unit(c);
	attempt_store_held(u, call_param(c, "attempt"), c->who.worker_id, q->epoch);
	attempt_store_reads_blob(u, call_param(c, "attempt"), digest);
	call_send(c, u, DB_READ, blob_on_row);
}

static void output_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		call_not_found(c, "file of this output");
	else
		download_send(c,
			&(struct download){ .id = download_id(&rows[0], 0),
				.name = call_param(c, "path"),
				.type = "application/octet-stream" },
			NULL);
}

static void step_output(struct call *c)
{
	struct db_unit *u = call_unit(c);

	step_store_output(u, call_param(c, "step"), call_param(c, "output"), call_param(c, "path"));
	call_send(c, u, DB_READ, output_on_row);
}

/* ---- writing ---- */

static void upload_on_stored(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	call_reply(c, c->route->ok, blob_fields, c->state);
}

static void upload_on_bytes(struct call *c, const struct blob_id *id)
{
	struct blob *b = arena_new_of(c->arena, struct blob);
	struct db_unit *u = call_unit(c);

	*b = (struct blob){ .digest = upload_hex(c, id), .size = id->size };
	c->state = b;
	blob_store_put(u, c->project_id, upload_digest(id), id->size);
	call_send(c, u, DB_WRITE, upload_on_stored);
}

static void upload_on_held(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0) {
		superseded(c);
		return;
	}
	c->project_id = arena_str(c->arena, db_str(&rows[0], 0, db_col(&rows[0], "project_id")));
	upload_take(c, call_param(c, "digest"), upload_on_bytes, NULL);
}

static void attempt_upload(struct call *c)
{
	const struct epoch_query *q = c->query;
	struct db_unit *u = call_unit(c);

	attempt_store_held(u, call_param(c, "attempt"), c->who.worker_id, q->epoch);
	call_send(c, u, DB_READ, upload_on_held);
}

/* ---- committing outputs ---- */

struct commit {
	size_t values_left, run_values_left; /* bytes */
	struct output_rows rows;
	struct str summary;
};

static const struct output_spec *find_output(const struct step_spec *spec, struct str name)
{
	for (size_t i = 0; i < spec->outputs.n; i++)
		if (str_eq(list_at(&spec->outputs, struct output_spec, i)->name, name))
			return list_at(&spec->outputs, struct output_spec, i);
	return NULL;
}

/* The declared path itself (a file), or something below it. */
static bool belongs(struct str path, struct str declared)
{
	return str_eq(path, declared) ||
	       (str_starts(path, declared) && path.n > declared.n && path.p[declared.n] == '/');
}

static int add_file(struct call *c, struct commit *k, const struct output_spec *o,
	const struct file *f, struct err *e)
{
	size_t i = k->rows.n;
	unsigned char *digest = arena_alloc(c->arena, HASH_SIZE);

	if (spec_check_path(f->path, e) < 0 || !belongs(f->path, o->path))
		return err_field(e, "/outputs", "%.100s is not below the output's path %.100s",
			f->path.p, o->path.p);
	if (!hash_parse_hex(f->digest, digest))
		return err_field(e, "/outputs",
			"%.100s: a digest is a SHA-256 in 64 lower-case hex digits", f->path.p);
	k->rows.names[i] = o->name;
	k->rows.paths[i] = f->path;
	k->rows.sizes[i] = f->size;
	k->rows.digests[i] = (struct str){ (const char *)digest, HASH_SIZE };
	k->rows.n++;
	return 0;
}

/* The value is what its file holds: the digest tells. */
static int check_value(const struct output_spec *o, const struct output_files *files, struct err *e)
{
	unsigned char digest[HASH_SIZE];
	char hex[HASH_HEX + 1];

	if (!files->has_value || files->files.n != 1)
		return err_field(e, "/outputs",
			"%.63s: an output of kind value is one file, sent with its value",
			o->name.p);
	if (files->value.n > VALUE_MAX)
		return err_field(
			e, "/outputs", "%.63s: a value has at most %d bytes", o->name.p, VALUE_MAX);
	hash_sha256(files->value, digest);
	if (!str_is(list_at(&files->files, struct file, 0)->digest, hash_hex(hex, digest)))
		return err_field(
			e, "/outputs", "%.63s: the value is not what its file holds", o->name.p);
	return 0;
}

static int add_output(struct call *c, struct commit *k, struct jsn_out *w,
	const struct output_spec *o, const struct output_files *files, struct err *e)
{
	int64_t bytes = 0;

	if (o->kind == OUTPUT_VALUE) {
		if (check_value(o, files, e) < 0)
			return -1;
		if (files->value.n > k->values_left)
			return err_field(e, "/outputs",
				"a step's values have at most %d bytes together", VALUES_MAX);
		if (files->value.n > k->run_values_left)
			return err_field(e, "/outputs",
				"%.63s: the values of a run's steps have at most %d bytes "
				"together; hand on what is larger as files",
				o->name.p, RUN_VALUES_MAX);
		k->values_left -= files->value.n;
		k->run_values_left -= files->value.n;
	}
	for (size_t i = 0; i < files->files.n; i++) {
		const struct file *f = list_at(&files->files, struct file, i);
		bytes += f->size;
		if (add_file(c, k, o, f, e) < 0)
			return -1;
	}
	jsn_key_str(w, o->name);
	jsn_obj_begin(w);
	jsn_key(w, "kind");
	jsn_text(w, output_kind_names[o->kind]);
	jsn_key(w, "path");
	jsn_str(w, o->path);
	jsn_key(w, "files");
	jsn_int(w, (int64_t)files->files.n);
	jsn_key(w, "bytes");
	jsn_int(w, bytes);
	if (o->kind == OUTPUT_VALUE) {
		jsn_key(w, "value");
		jsn_str(w, files->value);
	}
	jsn_obj_end(w);
	return 0;
}

static int add_outputs(struct call *c, const struct step_spec *spec, struct commit *k,
	struct jsn_out *w, struct err *e)
{
	const struct outputs_put *in = c->in;
	size_t n = 1;

	for (size_t i = 0; i < in->outputs.n; i++)
		n += list_at(&in->outputs, struct output_files, i)->files.n;
	k->rows = (struct output_rows){ .names = arena_array_of(c->arena, struct str, n),
		.paths = arena_array_of(c->arena, struct str, n),
		.digests = arena_array_of(c->arena, struct str, n),
		.sizes = arena_array_of(c->arena, int64_t, n) };
	for (size_t i = 0; i < in->outputs.n; i++) {
		const struct output_files *files = list_at(&in->outputs, struct output_files, i);
		const struct output_spec *o = find_output(spec, files->name);
		if (o == NULL)
			return err_field(
				e, "/outputs", "the step declares no output %.63s", files->name.p);
		if (add_output(c, k, w, o, files, e) < 0)
			return -1;
	}
	return 0;
}

static int make_commit(struct call *c, struct str spec_json, struct commit *k, struct err *e)
{
	struct step_spec spec;
	struct buf b;

	if (field_decode_reply(step_spec_fields, spec_json, c->arena, &spec, e) < 0)
		return -1;
	k->values_left = VALUES_MAX;
	buf_init(&b, SUMMARY_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	int rc = add_outputs(c, &spec, k, &w, e);
	jsn_obj_end(&w);
	k->summary = buf_keep(&b, c->arena);
	return rc;
}

static void outputs_on_done(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		superseded(c);
	else
		http_reply_empty(c->req, 204);
}

/* The bytes must have been sent for this project: a digest alone opens nothing. */
static bool outputs_missing(struct call *c, const char *field, const struct db_rows *r)
{
	const struct commit *k = c->state;

	if (r->n == 0)
		return false;
	size_t i = (size_t)db_int(r, 0, 0) - 1;
	if (db_is_null(r, 0, 1))
		call_invalid(
			c, field, "the bytes of %.200s have not been uploaded", k->rows.paths[i].p);
	else
		call_invalid(c, field, "%.200s has %lld byte%s, not %lld", k->rows.paths[i].p,
			(long long)db_int(r, 0, 1), num_plural((uint64_t)db_int(r, 0, 1)),
			(long long)k->rows.sizes[i]);
	return true;
}

static void outputs_on_looked(struct call *c, const struct db_rows *rows)
{
	const struct outputs_put *in = c->in;
	const struct commit *k = c->state;

	if (outputs_missing(c, "/outputs", &rows[0]))
		return;
	struct db_unit *u = call_unit(c);
	attempt_store_outputs(
		u, call_param(c, "attempt"), c->who.worker_id, in->epoch, &k->rows, k->summary);
	blob_store_touch(u, k->rows.digests, k->rows.n);
	call_send(c, u, DB_WRITE, outputs_on_done);
}

static bool has_values(const struct outputs_put *in)
{
	for (size_t i = 0; i < in->outputs.n; i++)
		if (list_at(&in->outputs, struct output_files, i)->has_value)
			return true;
	return false;
}

static void outputs_on_held(struct call *c, const struct db_rows *rows)
{
	struct commit *k = arena_new_of(c->arena, struct commit);
	struct err e;

	if (rows[0].n == 0) {
		superseded(c);
		return;
	}
	/* Steps that report at once do not see each other: a run may come to hold a little more. */
	int64_t others = has_values(c->in) ? db_int(&rows[1], 0, 0) : 0;
	k->run_values_left = others < RUN_VALUES_MAX ? (size_t)(RUN_VALUES_MAX - others) : 0;
	if (make_commit(c, db_str(&rows[0], 0, db_col(&rows[0], "spec")), k, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = k;
	struct db_unit *u = call_unit(c);
	blob_store_missing(u, db_str(&rows[0], 0, db_col(&rows[0], "project_id")), k->rows.digests,
		k->rows.sizes, k->rows.n);
	call_send(c, u, DB_READ, outputs_on_looked);
}

static void attempt_outputs(struct call *c)
{
	const struct outputs_put *in = c->in;
	struct db_unit *u = call_unit(c);

	attempt_store_held(u, call_param(c, "attempt"), c->who.worker_id, in->epoch);
	if (has_values(in))
		attempt_store_other_values(u, call_param(c, "attempt"));
	call_send(c, u, DB_READ, outputs_on_held);
}

/* ---- committing a checkpoint ---- */

static int checkpoint_rows(struct call *c, struct output_rows *rows, struct err *e)
{
	const struct checkpoint_put *in = c->in;
	size_t n = in->files.n;
	int64_t most = c->app->conf.checkpoint_max, left = most;

	for (size_t i = 0; i < n; i++) {
		const struct file *f = list_at(&in->files, struct file, i);
		if (f->size > left)
			return err_field(e, "/files",
				"the checkpoint has more than %lld bytes (checkpoint-max of the "
				"server)",
				(long long)most);
		left -= f->size;
	}
	*rows = (struct output_rows){ .paths = arena_array_of(c->arena, struct str, n + 1),
		.digests = arena_array_of(c->arena, struct str, n + 1),
		.sizes = arena_array_of(c->arena, int64_t, n + 1),
		.n = n };
	for (size_t i = 0; i < n; i++) {
		const struct file *f = list_at(&in->files, struct file, i);
		unsigned char *digest = arena_alloc(c->arena, HASH_SIZE);
		struct err why;
		if (spec_check_path(f->path, &why) < 0)
			return err_field(e, "/files", "%.100s: %s", f->path.p, why.msg);
		if (!hash_parse_hex(f->digest, digest))
			return err_field(e, "/files",
				"%.100s: a digest is a SHA-256 in 64 lower-case hex digits",
				f->path.p);
		rows->paths[i] = f->path;
		rows->sizes[i] = f->size;
		rows->digests[i] = (struct str){ (const char *)digest, HASH_SIZE };
	}
	return 0;
}

static void checkpoint_on_looked(struct call *c, const struct db_rows *rows)
{
	const struct checkpoint_put *in = c->in;
	const struct commit *k = c->state;

	if (outputs_missing(c, "/files", &rows[0]))
		return;
	struct db_unit *u = call_unit(c);
	attempt_store_checkpoint(
		u, call_param(c, "attempt"), c->who.worker_id, in->epoch, &k->rows);
	blob_store_touch(u, k->rows.digests, k->rows.n);
	call_send(c, u, DB_WRITE, outputs_on_done);
}

static void checkpoint_on_held(struct call *c, const struct db_rows *rows)
{
	const struct commit *k = c->state;

	if (rows[0].n == 0) {
		superseded(c);
		return;
	}
	struct db_unit *u = call_unit(c);
	blob_store_missing(u, db_str(&rows[0], 0, db_col(&rows[0], "project_id")), k->rows.digests,
		k->rows.sizes, k->rows.n);
	call_send(c, u, DB_READ, checkpoint_on_looked);
}

static void attempt_checkpoint(struct call *c)
{
	const struct checkpoint_put *in = c->in;
	struct commit *k = arena_new_of(c->arena, struct commit);
	struct err e;

	if (checkpoint_rows(c, &k->rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = k;
	struct db_unit *u = call_unit(c);
	attempt_store_held(u, call_param(c, "attempt"), c->who.worker_id, in->epoch);
	call_send(c, u, DB_READ, checkpoint_on_held);
}

/* ---- what lines of the log have matched ---- */

static void attempt_log_matches(struct call *c)
{
	const struct log_matches *in = c->in;
	struct buf b;

	buf_init(&b, SUMMARY_MAX);
	buf_addc(&b, '[');
	for (size_t i = 0; i < in->matches.n; i++) {
		buf_adds(&b, i > 0 ? "," : "");
		field_encode(log_match_fields, list_at(&in->matches, struct log_match, i), &b);
	}
	buf_addc(&b, ']');
	struct str matches = buf_keep(&b, c->arena);
	struct db_unit *u = call_unit(c);
	attempt_store_matches(u, call_param(c, "attempt"), c->who.worker_id, in->epoch, matches);
	call_send(c, u, DB_WRITE, outputs_on_done);
}

static void attempt_warn(struct call *c)
{
	struct db_unit *u = call_unit(c);

	attempt_store_warning(u, call_param(c, "attempt"), c->who.worker_id, c->in);
	call_send(c, u, DB_WRITE, outputs_on_done);
}

const struct binding attempt_bindings[] = {
	{ "attempts.blob", attempt_blob },
	{ "attempts.upload", attempt_upload },
	{ "attempts.outputs", attempt_outputs },
	{ "attempts.checkpoint", attempt_checkpoint },
	{ "attempts.log_matches", attempt_log_matches },
	{ "attempts.warn", attempt_warn },
	{ "steps.outputs", step_output },
	{ 0 },
};
