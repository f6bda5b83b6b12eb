#include "server/rest/download.h"

#include "lib/base/log.h"

struct inspection {
	struct blob_check *check;
	struct str request; /* its id, for the log */
	struct call *call;
	call_fail_cb *fail;
};

static void inspection_free(void *arg)
{
	struct inspection *i = arg;

	blob_check_free(i->check);
}

/* In a thread. */
static int inspect(void *arg, struct str piece, bool last)
{
	struct inspection *i = arg;
	struct err e;

	blob_check_add(i->check, piece);
	if (!last || blob_check_end(i->check, &e) == 0)
		return 0;
	log_error("download cut", LOG_STR("request", i->request), LOG_E(&e));
	return -1;
}

static void refuse(void *arg, const struct err *e)
{
	const struct inspection *i = arg;

	i->fail(i->call, e);
}

void download_send(struct call *c, const struct download *d, call_fail_cb *fail)
{
	struct inspection *i = arena_new_of(c->arena, struct inspection);
	struct err e;
	int fd;

	if (blob_open(c->app->blobs, &d->id, &fd, &e) < 0) {
		if (fail != NULL)
			log_error("download failed", LOG_S("request", c->req->id), LOG_E(&e));
		(fail != NULL ? fail : call_fail)(c, &e);
		return;
	}
	i->check = blob_check_new(&d->id);
	i->request = str_c(c->req->id);
	i->call = c;
	i->fail = fail != NULL ? fail : call_fail;
	arena_defer(c->arena, inspection_free, i);
	http_reply_file(c->req, &(struct http_file){ .fd = fd,
					.size = d->id.size,
					.type = d->type,
					.etag = upload_hex(c, &d->id),
					.download_name = d->name,
					.inspect = inspect,
					.inspect_arg = i,
					.refuse = refuse,
					.refuse_arg = i });
}

struct blob_id download_id(const struct db_rows *rows, size_t row)
{
	struct blob_id id = { .size = db_int(rows, row, db_col(rows, "size")) };
	struct str digest = db_str(rows, row, db_col(rows, "digest"));

	BUG_ON(digest.n != HASH_SIZE);
	memcpy(id.digest, digest.p, HASH_SIZE);
	return id;
}

const char *download_type(struct str media_type)
{
	static const char *const allowed[] = { "text/plain", "text/csv", "application/json",
		"application/x-ndjson", "image/png", "image/jpeg", "application/gzip",
		"application/zip", NULL };

	for (const char *const *t = allowed; *t != NULL; t++)
		if (str_eq_nocase(media_type, str_c(*t)))
			return *t;
	return "application/octet-stream";
}
