/* Uploads under a digest, and whether one is needed. */
#include "api/dataset.h"
#include "server/rest/handlers.h"
#include "server/rest/upload.h"
#include "server/store/blob_store.h"

static void blob_put_on_stored(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	call_reply(c, c->route->ok, blob_fields, c->state);
}

static void blob_put_on_upload(struct call *c, const struct blob_id *id)
{
	struct blob *b = arena_new_of(c->arena, struct blob);
	struct db_unit *u = call_unit(c);

	*b = (struct blob){ .digest = upload_hex(c, id), .size = id->size };
	c->state = b;
	blob_store_put(u, c->project_id, upload_digest(id), id->size);
	call_send(c, u, DB_WRITE, blob_put_on_stored);
}

static void blob_put(struct call *c)
{
	upload_take(c, call_param(c, "digest"), blob_put_on_upload, NULL);
}

static void blob_head_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "blob");
}

/* Who asks is about to refer to the bytes: their time of grace starts anew. */
static void blob_head(struct call *c)
{
	struct str hex = call_param(c, "digest"), digest;
	unsigned char bytes[HASH_SIZE];

	if (!hash_parse_hex(hex, bytes)) {
		call_invalid(c, "/digest", "a digest is a SHA-256 in 64 lower-case hex digits");
		return;
	}
	struct db_unit *u = call_unit(c);
	digest = blob_digest_bytes(c->arena, hex);
	blob_store_head(u, c->project_id, digest);
	blob_store_touch(u, &digest, 1);
	call_send(c, u, DB_RELAXED, blob_head_on_row);
}

const struct binding blob_bindings[] = {
	{ "blobs.put", blob_put },
	{ "blobs.head", blob_head },
	{ 0 },
};
