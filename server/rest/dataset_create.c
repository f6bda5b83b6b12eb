/*
 * A new version of a data set. What it will be is read and computed first (the files' bytes are
 * there, the parent's files, digest and number), then written in one unit; when another version has
 * taken the number meanwhile, all of it is done again, so that concurrent appends all succeed, one
 * after the other.
 *
 *     create → (key known? answer) → read → on_read → write → on_done
 *                                     ↑________ taken ___|
 */
#include "api/dataset.h"
#include "lib/base/num.h"
#include "lib/json/json_write.h"
#include "server/rest/handlers.h"
#include "server/store/blob_store.h"
#include "server/store/dataset_store.h"
#include "server/store/event_store.h"
#include "server/store/manifest.h"

enum { TRIES_MAX = 200, EVENT_DATA_MAX = 512, FILES_ARENA = 256 << 20 };

struct creation {
	struct str *digests;
	int64_t *sizes;
	struct str dataset_id, parent_id;
	int64_t latest;
	unsigned tries;
};

static void version_start(struct call *c);
static void version_read(struct call *c);
static void version_on_read(struct call *c, const struct db_rows *rows);
static void version_on_files(struct call *c, const struct db_rows *rows);
static void version_write(struct call *c, const struct list *before);
static bool version_on_conflict(struct call *c, const struct db_rows *rows);
static void version_on_done(struct call *c, const struct db_rows *rows);

static void version_reply_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, c->route->ok, &rows[0], "version");
}

static void version_reply(struct call *c)
{
	struct db_unit *u = call_unit(c);

	dataset_version_store_get_id(u, c->object_id);
	call_send(c, u, DB_READ, version_reply_on_row);
}

static void version_create(struct call *c)
{
	struct dataset_version_new *in = c->in;
	struct creation *s = arena_new_of(c->arena, struct creation);
	struct err e;

	if (in->append_to != 0 && in->latest) {
		call_invalid(c, "/latest", "give append_to or latest, not both");
		return;
	}
	if (manifest_check(&in->files, c->arena, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = s;
	s->digests = arena_array_of(c->arena, struct str, in->files.n);
	s->sizes = arena_array_of(c->arena, int64_t, in->files.n);
	for (size_t i = 0; i < in->files.n; i++) {
		const struct file *f = list_at(&in->files, struct file, i);
		s->digests[i] = blob_digest_bytes(c->arena, f->digest);
		s->sizes[i] = f->size;
	}
	call_replay_first(c, version_start, version_reply);
}

static void version_start(struct call *c)
{
	version_read(c);
}

static void version_read(struct call *c)
{
	const struct dataset_version_new *in = c->in;
	const struct creation *s = c->state;
	struct db_unit *u = call_unit(c);

	dataset_store_get(u, c->project_id, call_param(c, "dataset"));
	blob_store_missing(u, c->project_id, s->digests, s->sizes, in->files.n);
	dataset_version_store_get(u, c->project_id, call_param(c, "dataset"), in->append_to);
	call_send(c, u, DB_READ, version_on_read);
}

/* Answers when the bytes of a file are not there. */
static bool missing(struct call *c, const struct db_rows *rows)
{
	const struct dataset_version_new *in = c->in;

	if (rows->n == 0)
		return false;
	const struct file *f = list_at(&in->files, struct file, (size_t)(db_int(rows, 0, 0) - 1));
	if (db_is_null(rows, 0, 1))
		call_invalid(c, "/files", "the bytes of %.200s have not been uploaded", f->path.p);
	else
		call_invalid(c, "/files", "%.200s has %lld byte%s, not %lld", f->path.p,
			(long long)db_int(rows, 0, 1), num_plural((uint64_t)db_int(rows, 0, 1)),
			(long long)f->size);
	return true;
}

static void version_on_read(struct call *c, const struct db_rows *rows)
{
	const struct dataset_version_new *in = c->in;
	struct creation *s = c->state;
	struct list none = { NULL, 0 };

	if (rows[0].n == 0) {
		call_not_found(c, "data set");
		return;
	}
	if (missing(c, &rows[1]))
		return;
	if (in->append_to != 0 && rows[2].n == 0) {
		call_invalid(c, "/append_to", "the data set has no version %lld",
			(long long)in->append_to);
		return;
	}
	s->dataset_id = arena_str(c->arena, db_str(&rows[0], 0, db_col(&rows[0], "id")));
	s->latest = db_int(&rows[0], 0, db_col(&rows[0], "latest"));
	s->parent_id = STR_NONE;
	if ((in->append_to == 0 && !in->latest) || rows[2].n == 0) {
		version_write(c, &none);
		return;
	}
	s->parent_id = arena_str(c->arena, db_str(&rows[2], 0, db_col(&rows[2], "id")));
	struct db_unit *u = call_unit(c);
	dataset_file_store_of_version(u, s->parent_id);
	call_send(c, u, DB_READ, version_on_files);
}

static void version_on_files(struct call *c, const struct db_rows *rows)
{
	/* Of its own, here and below, so that each try gives back what it took. */
	struct arena *a = arena_new(FILES_ARENA);
	struct list before = { arena_array_of(a, struct file, rows[0].n + 1), rows[0].n };
	struct err e;

	for (size_t i = 0; i < before.n; i++)
		if (db_row_decode(&rows[0], i, file_fields, a, list_at(&before, struct file, i),
			    &e) < 0) {
			arena_drop(a);
			call_fail(c, &e);
			return;
		}
	version_write(c, &before);
	arena_drop(a);
}

static void add_event(struct call *c, struct db_unit *u, const struct dataset_version_row *v)
{
	struct buf b;
	struct jsn_out w;

	buf_init(&b, EVENT_DATA_MAX);
	w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "dataset");
	jsn_str(&w, call_param(c, "dataset"));
	jsn_key(&w, "number");
	jsn_int(&w, v->number);
	jsn_obj_end(&w);
	event_store_add(u, &(struct event_new){ .project_id = c->project_id,
				   .type = "dataset.version_created",
				   .subject = v->id,
				   .parent = v->dataset_id,
				   .actor = call_actor(c),
				   .data = buf_keep(&b, c->arena) });
}

static void version_write(struct call *c, const struct list *before)
{
	const struct dataset_version_new *in = c->in;
	const struct creation *s = c->state;
	struct manifest_sum sum;
	struct err e;

	if (manifest_sum(before, &in->files, &sum, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	struct dataset_version_row v = { .id = call_id(c, "dsv"),
		.dataset_id = s->dataset_id,
		.number = s->latest + 1,
		.digest = { (const char *)sum.digest, HASH_SIZE },
		.parent_id = s->parent_id,
		.description = in->description,
		.created_by = call_actor(c),
		.files = sum.files,
		.bytes = sum.bytes,
		.labels = &in->labels,
		.added = &in->files };
	struct db_unit *u = call_unit(c);
	struct arena *a = arena_new(FILES_ARENA);
	dataset_version_store_add(u, &v, a);
	arena_drop(a);
	add_event(c, u, &v);
	c->on_conflict = version_on_conflict;
	call_create(c, u, v.id, version_on_done, version_reply);
}

static bool version_on_conflict(struct call *c, const struct db_rows *rows)
{
	struct creation *s = c->state;

	if (!dataset_version_taken(rows) || ++s->tries > TRIES_MAX)
		return false;
	version_read(c);
	return true;
}

static void version_on_done(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	version_reply(c);
}

const struct binding dataset_create_bindings[] = {
	{ "dataset_versions.create", version_create },
	{ 0 },
};
