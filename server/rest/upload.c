#include "server/rest/upload.h"

struct upload {
	struct call *call;
	struct blob_writer *writer;
	upload_done_cb *done;
	call_fail_cb *fail;
};

static void upload_on_body(void *arg, struct str bytes);
static void upload_on_end(void *arg);
static void upload_on_abort(void *arg, const struct err *why);
static void upload_on_room(void *arg);
static void upload_on_done(void *arg, const struct blob_id *id, const struct err *e);

static const struct http_sink sink = { upload_on_body, upload_on_end, upload_on_abort };

static void upload_free(void *arg)
{
	struct upload *u = arg;

	blob_writer_free(u->writer);
}

void upload_take(struct call *c, struct str digest, upload_done_cb *done, call_fail_cb *fail)
{
	struct upload *u = arena_new_of(c->arena, struct upload);
	struct blob_write spec = { .size = c->req->body_size,
		.max = c->app->conf.blob_max,
		.on_room = upload_on_room,
		.on_done = upload_on_done,
		.arg = u };
	struct err e;

	*u = (struct upload){ .call = c, .done = done, .fail = fail != NULL ? fail : call_fail };
	if (digest.n != 0 && !hash_parse_hex(digest, spec.digest)) {
		(void)err_field(&e, "/digest", "a digest is a SHA-256 in 64 lower-case hex digits");
		u->fail(c, &e);
		return;
	}
	if (spec.size > spec.max) {
		(void)err_set(
			&e, ERR_TOO_LARGE, "an upload has at most %lld bytes", (long long)spec.max);
		u->fail(c, &e);
		return;
	}
	spec.has_digest = digest.n != 0;
	u->writer = blob_writer_new(c->app->blobs, &spec);
	arena_defer(c->arena, upload_free, u);
	http_body_take(c->req, &sink, u);
}

static void upload_on_body(void *arg, struct str bytes)
{
	struct upload *u = arg;

	if (!blob_writer_add(u->writer, bytes))
		http_body_pause(u->call->req);
}

static void upload_on_room(void *arg)
{
	struct upload *u = arg;

	http_body_resume(u->call->req);
}

static void upload_on_end(void *arg)
{
	struct upload *u = arg;

	blob_writer_end(u->writer);
}

static void upload_on_abort(void *arg, const struct err *why)
{
	struct upload *u = arg;

	blob_writer_free(u->writer);
	u->writer = NULL;
	u->fail(u->call, why);
}

static void upload_on_done(void *arg, const struct blob_id *id, const struct err *e)
{
	struct upload *u = arg;

	if (e->code != ERR_OK)
		u->fail(u->call, e);
	else
		u->done(u->call, id);
}

struct str upload_digest(const struct blob_id *id)
{
	return (struct str){ (const char *)id->digest, HASH_SIZE };
}

struct str upload_hex(struct call *c, const struct blob_id *id)
{
	char hex[HASH_HEX + 1];

	return arena_str(c->arena, str_c(hash_hex(hex, id->digest)));
}
