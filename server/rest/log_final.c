/*
 * attempts.log_final: reads back what is stored, in pieces, hashes it in the work pool, and makes
 * the log final when the digest is the worker's. A worker whose spool is shorter than what is
 * stored (its host lost the last moments) agrees on the part that it has.
 */
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/crypto/hash.h"
#include "lib/loop/work.h"
#include "server/rest/handlers.h"
#include "server/rest/log_inside.h"

enum { END_BYTES = 256, ENDS_ARENA = 1 << 20 };

struct log_fin {
	struct log_job job; /* first */
	struct logs *logs;
	int64_t length, dropped; /* as the worker says */
	unsigned char digest[HASH_SIZE];
	/* Reading back. */
	struct hash *hash;
	int64_t at; /* bytes hashed so far */
	size_t chunks;
	unsigned char part[HASH_SIZE], whole[HASH_SIZE]; /* of `length` bytes, of all */
	/* A batch for the work pool: compressed bytes of its chunks. */
	struct buf packed;
	struct {
		int64_t start, size;
		size_t packed;
	} batch[LOG_READ_CHUNKS];
	size_t n;
	struct err err;
};

static void fin_start(struct call *c);
static void fin_run(struct log_job *j);
static void fin_read(struct log_fin *f);
static void fin_on_chunks(void *arg, const struct db_rows *rows, const struct err *e);
static void fin_hash(void *arg);
static void fin_on_hashed(void *arg);
static void fin_judge(struct log_fin *f);
static void fin_on_finished(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e);
static void fin_on_restarted(void *arg, const struct db_rows *rows, const struct err *e);

static void fin_free(struct log_job *j)
{
	struct log_fin *f = (struct log_fin *)j;

	hash_free(f->hash);
	buf_done(&f->packed);
	mem_free(f);
}

static void fin_start(struct call *c)
{
	const struct log_final *in = c->in;
	struct log_fin *f;
	unsigned char digest[HASH_SIZE];

	if (!hash_parse_hex(in->digest, digest)) {
		call_invalid(c, "/digest", "must be 64 lower-case hex digits");
		return;
	}
	f = mem_new_of(struct log_fin);
	f->job = (struct log_job){
		.call = c, .epoch = in->epoch, .run = fin_run, .release = fin_free
	};
	f->logs = c->app->logs;
	f->length = in->length;
	f->dropped = in->dropped;
	memcpy(f->digest, digest, sizeof digest);
	f->hash = hash_new();
	buf_init(&f->packed, 2 * LOG_READ_RAW);
	log_job_submit(f->logs, call_param(c, "attempt"), &f->job);
}

static void fin_run(struct log_job *j)
{
	struct log_fin *f = (struct log_fin *)j;
	struct log_stream *s = j->stream;
	struct err e;

	if (f->length > s->place.offset) {
		log_job_reply(j, s->place.offset);
		return;
	}
	if (s->removed) { /* by retention: there is nothing to compare with */
		log_job_reply(j, f->length);
		return;
	}
	if (s->final && f->length == s->place.offset) {
		if (memcmp(s->digest, f->digest, HASH_SIZE) == 0) {
			log_job_reply(j, f->length);
			return;
		}
		(void)err_set(&e, ERR_CONFLICT, "the log is final with another digest");
		log_job_fail(j, &e);
		return;
	}
	hash_end(f->hash, f->whole); /* starts anew */
	f->at = 0;
	f->chunks = 0;
	if (f->length == 0)
		hash_peek(f->hash, f->part);
	if (s->place.offset == 0)
		fin_judge(f);
	else
		fin_read(f);
}

static void fin_read(struct log_fin *f)
{
	struct log_stream *s = f->job.stream;
	struct db_unit *u = db_unit(f->logs->app->db, NULL);

	log_store_chunks(u, s->made, str_c(s->id), f->at, LOG_READ_CHUNKS);
	db_send(u, DB_READ, fin_on_chunks, f);
}

static void fin_on_chunks(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct log_fin *f = arg;
	struct err why;

	if (e->code != ERR_OK || f->logs->stopping) {
		why = *e;
		if (e->code == ERR_OK)
			(void)err_set(&why, ERR_UNAVAILABLE, "the server is going down");
		log_job_fail(&f->job, &why);
		return;
	}
	buf_clear(&f->packed);
	f->n = rows[0].n;
	for (size_t i = 0; i < f->n; i++) {
		struct str data = db_str(&rows[0], i, db_col(&rows[0], "data"));
		f->batch[i].start = db_int(&rows[0], i, db_col(&rows[0], "start"));
		f->batch[i].size = db_int(&rows[0], i, db_col(&rows[0], "length"));
		f->batch[i].packed = data.n;
		buf_add(&f->packed, data);
	}
	f->chunks += f->n;
	if (f->n == 0)
		fin_judge(f);
	else if (work_submit(f->logs->app->loop, fin_hash, fin_on_hashed, f, &why) < 0)
		log_job_fail(&f->job, &why);
}

static void hash_chunk(struct log_fin *f, struct str raw)
{
	size_t until = f->length - f->at > 0 ? (size_t)(f->length - f->at) : 0;

	if (until != 0 && until <= raw.n) {
		hash_add(f->hash, str_slice(raw, 0, until));
		hash_peek(f->hash, f->part);
		hash_add(f->hash, str_slice(raw, until, raw.n));
	} else {
		hash_add(f->hash, raw);
	}
	f->at += (int64_t)raw.n;
}

static int hash_batch(struct log_fin *f, struct zip *z, struct buf *raw, struct err *e)
{
	struct str packed = buf_str(&f->packed);

	for (size_t i = 0; i < f->n; i++) {
		buf_clear(raw);
		if (zip_decompress(z, str_slice(packed, 0, f->batch[i].packed), raw, e) < 0)
			return -1;
		if (f->batch[i].start != f->at || f->batch[i].size != (int64_t)raw->n)
			return err_set(e, ERR_CORRUPT, "a piece of the log is missing at byte %lld",
				(long long)f->at);
		hash_chunk(f, buf_str(raw));
		packed = str_slice(packed, f->batch[i].packed, packed.n);
	}
	return 0;
}

static void fin_hash(void *arg)
{
	struct log_fin *f = arg;
	struct zip *z = zip_new();
	struct buf raw;

	buf_init(&raw, LOG_CHUNK_RAW);
	f->err.code = ERR_OK;
	if (hash_batch(f, z, &raw, &f->err) < 0)
		f->at = -1; /* no digest will fit */
	buf_done(&raw);
	zip_free(z);
}

static void fin_on_hashed(void *arg)
{
	struct log_fin *f = arg;

	if (f->err.code != ERR_OK)
		log_error("a stored log cannot be read", LOG_S("attempt", f->job.stream->id),
			LOG_E(&f->err));
	if (f->logs->stopping)
		log_job_again(&f->job);
	else if (f->err.code == ERR_OK && f->at < f->job.stream->place.offset)
		fin_read(f);
	else
		fin_judge(f);
}

static void fin_judge(struct log_fin *f)
{
	struct log_stream *s = f->job.stream;
	struct err e;
	bool same = f->at == s->place.offset && memcmp(f->part, f->digest, HASH_SIZE) == 0;

	if (s->final) {
		(void)err_set(&e, ERR_CONFLICT, "the log is final with another digest");
		if (same)
			log_job_reply(&f->job, f->length);
		else
			log_job_fail(&f->job, &e);
		return;
	}
	if (!same) {
		struct db_unit *u = db_unit(f->logs->app->db, NULL);
		log_warn("a log is sent anew: its digest differs", LOG_S("attempt", s->id),
			LOG_I("stored", s->place.offset), LOG_I("read", f->at));
		log_store_restart(
			u, str_c(s->id), str_c(s->worker_id), f->job.epoch, s->place.offset);
		db_send(u, DB_WRITE, fin_on_restarted, f);
		return;
	}
	hash_end(f->hash, f->whole);
	if (f->logs->stopping)
		(void)err_set(&e, ERR_UNAVAILABLE, "the server is going down");
	else if (db_group_add(f->logs->ends, f, END_BYTES, &e) == 0)
		return;
	log_job_fail(&f->job, &e);
}

static void ends_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	struct arena *a = arena_new(ENDS_ARENA);
	struct log_ends ends = { .attempt_ids = arena_array_of(a, struct str, n),
		.worker_ids = arena_array_of(a, struct str, n),
		.digests = arena_array_of(a, struct str, n),
		.epochs = arena_array_of(a, int64_t, n),
		.lengths = arena_array_of(a, int64_t, n),
		.dropped = arena_array_of(a, int64_t, n),
		.n = n };

	(void)arg;
	for (size_t i = 0; i < n; i++) {
		const struct log_fin *f = items[i];
		const struct log_stream *s = f->job.stream;
		ends.attempt_ids[i] = str_c(s->id);
		ends.worker_ids[i] = str_c(s->worker_id);
		ends.digests[i] = (struct str){ (const char *)f->whole, HASH_SIZE };
		ends.epochs[i] = f->job.epoch;
		ends.lengths[i] = s->place.offset;
		ends.dropped[i] = f->dropped;
	}
	log_store_finish(u, &ends);
	arena_drop(a);
}

void log_final_open(struct logs *l)
{
	l->ends = db_group_new(l->app->loop, l->app->db,
		&(struct db_group_conf){ .lane = DB_WRITE,
			.build = ends_build,
			.done = fin_on_finished,
			.result = 0,
			.batch_max = 200 });
}

static void fin_on_finished(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	struct log_fin *f = item;
	struct log_stream *s = f->job.stream;
	bool scattered = f->chunks > 1 + 2 * (size_t)(s->place.offset / LOG_CHUNK_RAW);

	(void)arg, (void)rows;
	if (e->code != ERR_OK) {
		s->loaded = false;
		log_job_fail(&f->job, e);
		return;
	}
	if (row == DB_NO_ROW) {
		log_job_again(&f->job);
		return;
	}
	s->final = s->complete = true;
	s->dropped = f->dropped;
	memcpy(s->digest, f->whole, sizeof s->digest);
	app_changed(f->logs->app);
	log_tail_changed(s);
	if (scattered)
		log_merge_start(f->logs, str_c(s->id), s->made, s->place.offset);
	log_job_reply(&f->job, f->length);
}

static void fin_on_restarted(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct log_fin *f = arg;

	f->job.stream->loaded = false;
	if (e->code != ERR_OK) {
		log_job_fail(&f->job, e);
	} else if (rows[0].n == 0) {
		log_job_again(&f->job);
	} else { /* those who follow have read the same bytes already */
		log_job_reply(&f->job, 0);
	}
}

const struct binding log_final_bindings[] = {
	{ "attempts.log_final", fin_start },
	{ 0 },
};
