/*
 * attempts.log: room for the body is reserved before a byte of it is read; then its frames are
 * checked, cut into chunks, compressed (large ones in the work pool), and added to the group that
 * writes the chunks of many attempts in one statement.
 */
#include "lib/base/mem.h"
#include "lib/loop/work.h"
#include "server/rest/handlers.h"
#include "server/rest/log_inside.h"

enum { RESERVED_MAX = 96 << 20, PUT_MAX = 8 << 20, INLINE_MAX = LOG_CHUNK_RAW, LEVEL = 1 };

struct log_put {
	struct log_job job; /* first */
	TAILQ_ENTRY(log_put) link; /* while it waits for room */
	struct logs *logs;
	struct buf body;
	size_t reserved;
	bool waiting;
	int64_t offset;
	/* What is to be appended. */
	struct str frames;
	struct log_pieces pieces;
	struct log_append append;
	struct err err; /* of compressing */
};

static void put_start(struct call *c);
static void put_take_body(struct log_put *p);
static void put_on_end(void *arg);
static void put_run(struct log_job *j);
static void put_compress(void *arg);
static void put_on_compressed(void *arg);
static void put_on_stored(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e);

/* ---- pieces ---- */

void log_pieces_cut(struct log_pieces *p, struct str frames, struct log_place *at)
{
	while (frames.n != 0) {
		struct str one = str_slice(frames, 0, log_chunk_cut(frames));
		if (p->n == p->cap) {
			p->cap = p->cap != 0 ? 2 * p->cap : 4;
			p->rows = mem_resize(p->rows, p->cap, sizeof *p->rows);
		}
		p->rows[p->n++] = (struct log_chunk_row){
			.at = *at, .size = (int64_t)one.n, .time = log_frames_time(one)
		};
		log_place_pass(at, one);
		frames = str_slice(frames, one.n, frames.n);
	}
}

int log_pieces_pack(struct log_pieces *p, struct str frames, struct zip *z, struct err *e)
{
	buf_init(&p->packed, 2 * frames.n + 4096 * (p->n + 1));
	for (size_t i = 0, at = 0; i < p->n; i++) {
		size_t before = p->packed.n;
		struct str one = str_slice(frames, at, (size_t)p->rows[i].size);
		if (zip_compress(z, one, LEVEL, &p->packed, e) < 0)
			return -1;
		p->rows[i].data.n = p->packed.n - before;
		at += one.n;
	}
	for (size_t i = 0, at = 0; i < p->n; i++) {
		p->rows[i].data.p = p->packed.p + at;
		at += p->rows[i].data.n;
	}
	return 0;
}

void log_pieces_done(struct log_pieces *p)
{
	mem_free(p->rows);
	buf_done(&p->packed);
	*p = (struct log_pieces){ 0 };
}

/* ---- room for bodies ---- */

static void room_give(struct logs *l, size_t n)
{
	struct log_put *p;

	l->reserved -= n;
	while ((p = TAILQ_FIRST(&l->waiting)) != NULL &&
		l->reserved + p->reserved <= RESERVED_MAX) {
		TAILQ_REMOVE(&l->waiting, p, link);
		p->waiting = false;
		l->reserved += p->reserved;
		http_on_close(p->job.call->req, NULL, NULL);
		put_take_body(p);
	}
}

static void put_free(struct log_job *j)
{
	struct log_put *p = (struct log_put *)j;
	struct logs *l = p->logs;
	size_t reserved = p->reserved;

	log_pieces_done(&p->pieces);
	buf_done(&p->body);
	mem_free(p);
	room_give(l, reserved);
}

/* The client has left while it waited for room. */
static void put_on_close(void *arg)
{
	struct log_put *p = arg;

	TAILQ_REMOVE(&p->logs->waiting, p, link);
	http_drop(p->job.call->req);
	buf_done(&p->body);
	mem_free(p);
}

static void put_start(struct call *c)
{
	const struct log_put_query *q = c->query;
	struct logs *l = c->app->logs;
	struct log_put *p = mem_new_of(struct log_put);
	int64_t size = c->req->body_size;

	p->job = (struct log_job){
		.call = c, .epoch = q->epoch, .run = put_run, .release = put_free
	};
	p->logs = l;
	p->offset = q->offset;
	p->reserved = size >= 0 && size < PUT_MAX ? (size_t)size : PUT_MAX;
	buf_init(&p->body, PUT_MAX);
	if (TAILQ_EMPTY(&l->waiting) && l->reserved + p->reserved <= RESERVED_MAX) {
		l->reserved += p->reserved;
		put_take_body(p);
		return;
	}
	p->waiting = true;
	TAILQ_INSERT_TAIL(&l->waiting, p, link);
	http_on_close(c->req, put_on_close, p);
}

static void put_on_body(void *arg, struct str bytes)
{
	struct log_put *p = arg;

	buf_add(&p->body, bytes);
}

static void put_on_abort(void *arg, const struct err *why)
{
	struct log_put *p = arg;

	call_fail(p->job.call, why);
	put_free(&p->job);
}

static void put_take_body(struct log_put *p)
{
	static const struct http_sink sink = { put_on_body, put_on_end, put_on_abort };

	http_body_take(p->job.call->req, &sink, p);
}

static void put_on_end(void *arg)
{
	struct log_put *p = arg;
	struct call *c = p->job.call;
	struct err e;
	bool ok = true;
	size_t n =
		p->body.n == 0 ? 0 : frame_whole((const unsigned char *)p->body.p, p->body.n, &ok);

	if (buf_failed(&p->body) || !ok || n != p->body.n) {
		if (buf_failed(&p->body))
			(void)err_set(&e, ERR_TOO_LARGE, "a piece of a log has %d bytes at most",
				PUT_MAX);
		else
			(void)err_field(&e, "",
				"the body is not a sequence of whole frames: the one at byte %zu "
				"is %s",
				n, ok ? "cut" : "not valid");
		call_fail(c, &e);
		put_free(&p->job);
		return;
	}
	log_job_submit(p->logs, call_param(c, "attempt"), &p->job);
}

/* ---- appending ---- */

static void put_add(struct log_put *p)
{
	struct log_stream *s = p->job.stream;
	struct err e;

	p->append.attempt_id = str_c(s->id);
	p->append.worker_id = str_c(s->worker_id);
	p->append.epoch = p->job.epoch;
	p->append.chunks = p->pieces.rows;
	p->append.n = p->pieces.n;
	if (p->logs->stopping)
		(void)err_set(&e, ERR_UNAVAILABLE, "the server is going down");
	else if (db_group_add(p->logs->group, p, p->pieces.packed.n + 256, &e) == 0)
		return;
	log_job_fail(&p->job, &e);
}

static void put_run(struct log_job *j)
{
	struct log_put *p = (struct log_put *)j;
	struct log_stream *s = j->stream;
	int64_t at = p->offset, end = p->offset + (int64_t)p->body.n;
	struct err e;

	p->frames = buf_str(&p->body);
	log_pieces_done(&p->pieces);
	if (at > s->place.offset || end <= s->place.offset) {
		log_job_reply(j, s->place.offset);
		return;
	}
	if (s->final || s->removed) {
		(void)err_set(&e, ERR_CONFLICT, "the log is final and cannot grow");
		log_job_fail(j, &e);
		return;
	}
	if (!log_frames_from(&p->frames, &at, s->place.offset)) {
		(void)err_field(&e, "/offset",
			"byte %lld, up to which the log is stored, is "
			"within one of these frames",
			(long long)s->place.offset);
		log_job_fail(j, &e);
		return;
	}
	p->append.before = p->append.after = s->place;
	log_pieces_cut(&p->pieces, p->frames, &p->append.after);
	if (p->frames.n <= INLINE_MAX) {
		if (log_pieces_pack(&p->pieces, p->frames, p->logs->zip, &e) < 0)
			log_job_fail(j, &e);
		else
			put_add(p);
	} else if (work_submit(p->logs->app->loop, put_compress, put_on_compressed, p, &e) < 0) {
		log_job_fail(j, &e);
	}
}

static void put_compress(void *arg)
{
	struct log_put *p = arg;
	struct zip *z = zip_new();

	p->err.code = ERR_OK;
	if (log_pieces_pack(&p->pieces, p->frames, z, &p->err) < 0)
		BUG_ON(p->err.code == ERR_OK);
	zip_free(z);
}

static void put_on_compressed(void *arg)
{
	struct log_put *p = arg;

	if (p->err.code != ERR_OK)
		log_job_fail(&p->job, &p->err);
	else
		put_add(p);
}

static void group_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	const struct log_append **a = mem_new(n, sizeof *a);

	(void)arg;
	for (size_t i = 0; i < n; i++)
		a[i] = &((const struct log_put *)items[i])->append;
	log_store_append(u, a, n);
	mem_free(a);
}

static void put_on_stored(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	struct logs *l = arg;
	struct log_put *p = item;
	struct log_stream *s = p->job.stream;

	(void)rows;
	if (e->code != ERR_OK) {
		s->loaded = false; /* it may have been stored or not */
		log_job_fail(&p->job, e);
		return;
	}
	if (row == DB_NO_ROW) {
		log_job_again(&p->job);
		return;
	}
	s->place = p->append.after;
	l->bytes += p->frames.n;
	l->appends++;
	log_tail_fed(s, p->append.before.offset, p->frames);
	log_job_reply(&p->job, s->place.offset);
}

void log_ingest_open(struct logs *l)
{
	l->group = db_group_new(l->app->loop, l->app->db,
		&(struct db_group_conf){ .lane = DB_RELAXED,
			.build = group_build,
			.done = put_on_stored,
			.arg = l,
			.result = 0,
			.bytes_max = 4 << 20,
			.queue_bytes_max = 2 * RESERVED_MAX });
}

void log_ingest_stop(struct logs *l)
{
	struct log_put *p;

	while ((p = TAILQ_FIRST(&l->waiting)) != NULL) {
		http_on_close(p->job.call->req, NULL, NULL);
		put_on_close(p);
	}
	db_group_free(l->group);
	db_group_free(l->loads);
	db_group_free(l->ends);
}

const struct binding log_ingest_bindings[] = {
	{ "attempts.log", put_start },
	{ 0 },
};
