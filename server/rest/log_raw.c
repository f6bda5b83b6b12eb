/*
 * The bytes of a log as they were written, as a download: read in batches of chunks, each when the
 * client has taken most of the last one. What is appended meanwhile is not in it.
 */
#include "lib/base/mem.h"
#include "server/rest/log_inside.h"

struct raw {
	struct call *c;
	struct logs *logs;
	struct str attempt_id;
	int64_t made, at, end;
	int stream;
	bool reading;
};

static void raw_next(void *arg);
static void raw_on_chunks(void *arg, const struct db_rows *rows, const struct err *e);

static void raw_on_close(void *arg)
{
	struct raw *r = arg;

	if (!r->reading)
		http_drop(r->c->req);
}

void log_raw_reply(struct call *c, const struct log_state *st)
{
	const struct log_query *q = c->query;
	struct raw *r = arena_new_of(c->arena, struct raw);
	struct str id = arena_str(c->arena, st->attempt_id);

	if (http_gone(c->req)) {
		http_drop(c->req);
		return;
	}
	*r = (struct raw){ .c = c,
		.logs = c->app->logs,
		.attempt_id = id,
		.made = st->made,
		.end = st->place.offset,
		.stream = q->stream };
	(void)http_reply_header(c->req, "Content-Disposition",
		arena_printf(c->arena, "attachment; filename=\"%.*s.log\"", STR_ARG(id)));
	(void)http_reply_header(
		c->req, "Content-Security-Policy", STR("sandbox; default-src 'none'"));
	http_stream_begin(c->req, 200, "application/octet-stream", -1);
	http_on_close(c->req, raw_on_close, r);
	raw_next(r);
}

static void raw_next(void *arg)
{
	struct raw *r = arg;

	if (http_gone(r->c->req)) {
		http_drop(r->c->req);
		return;
	}
	if (r->at >= r->end) {
		http_stream_end(r->c->req);
		return;
	}
	struct db_unit *u = call_unit(r->c);
	r->reading = true;
	log_store_chunks(u, r->made, r->attempt_id, r->at, LOG_READ_CHUNKS);
	db_send(u, DB_READ, raw_on_chunks, r);
}

static int raw_add(struct raw *r, const struct db_rows *rows, struct err *e)
{
	struct logs *l = r->logs;
	struct buf text;
	int rc = 0;

	buf_init(&text, LOG_CHUNK_RAW);
	for (size_t i = 0; rc == 0 && i < rows->n && r->at < r->end; i++) {
		struct log_chunk_row row;
		buf_clear(&l->raw);
		buf_clear(&text);
		rc = log_store_chunk(rows, i, l->zip, &l->raw, &row, e);
		if (rc < 0)
			break;
		/* Chunks of a final log may have been put together: parts of one may be out. */
		struct str frames = buf_str(&l->raw);
		int64_t at = row.at.offset;
		if (at + (int64_t)frames.n > r->end)
			frames.n = (size_t)(r->end - at);
		if (!log_frames_from(&frames, &at, r->at))
			rc = err_set(e, ERR_CORRUPT, "a piece of the log is missing");
		log_frames_text(frames, r->stream, &text);
		r->at = at + (int64_t)frames.n;
		(void)http_stream_write(r->c->req, buf_str(&text));
	}
	buf_done(&text);
	return rc;
}

static void raw_on_chunks(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct raw *r = arg;
	struct err why = *e;

	r->reading = false;
	if (e->code == ERR_OK && rows[0].n == 0)
		(void)err_set(&why, ERR_CORRUPT, "a piece of the log is missing");
	if (why.code != ERR_OK || raw_add(r, &rows[0], &why) < 0 || http_gone(r->c->req))
		http_stream_abort(r->c->req);
	else
		http_stream_on_drain(r->c->req, raw_next, r);
}
