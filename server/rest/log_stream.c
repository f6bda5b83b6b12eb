/*
 * What is remembered of each attempt's log, and the order in which things are done to it. A stream
 * is made when it is first needed and goes after a minute without use.
 */
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "server/rest/log_inside.h"

enum { SWEEP_MS = 15000, POLL_MS = 500, TRIES = 3, STREAM_ARENA = 64 << 10 };
#define UNUSED_US (60 * INT64_C(1000000))

static void stream_run(struct log_stream *s);
static void stream_load(struct log_stream *s);
static void stream_on_loaded(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e);

static void on_sweep(void *arg);

struct logs *logs_new(struct app *app)
{
	struct logs *l = mem_new_of(struct logs);

	l->app = app;
	l->streams = map_new();
	l->zip = zip_new();
	buf_init(&l->raw, LOG_READ_RAW);
	TAILQ_INIT(&l->waiting);
	log_ingest_open(l);
	log_stream_open(l);
	log_final_open(l);
	loop_timer_init(&l->sweep, app->loop, on_sweep, l);
	loop_timer_every(&l->sweep, SWEEP_MS);
	loop_timer_init(&l->poll, app->loop, log_tail_poll, l);
	loop_timer_every(&l->poll, POLL_MS);
	return l;
}

struct log_stream *log_stream_get(struct logs *l, struct str attempt_id)
{
	struct log_stream *s = map_get(l->streams, attempt_id);

	if (s == NULL && id_is(attempt_id, "at")) {
		s = mem_new_of(struct log_stream);
		s->logs = l;
		(void)str_print(s->id, sizeof s->id, "%.*s", STR_ARG(attempt_id));
		TAILQ_INIT(&s->jobs);
		TAILQ_INIT(&s->followers);
		map_put(l->streams, attempt_id, s);
	}
	if (s != NULL)
		s->used_at = loop_now(l->app->loop);
	return s;
}

static void stream_free(struct log_stream *s)
{
	if (s->has_tail)
		log_scan_done(&s->tail);
	loop_timer_cancel(&s->partial);
	mem_free(s);
}

static bool is_unused(const struct log_stream *s)
{
	return TAILQ_EMPTY(&s->jobs) && TAILQ_EMPTY(&s->followers) && !s->busy && !s->tail_reading;
}

static void on_sweep(void *arg)
{
	struct logs *l = arg;
	size_t at = 0;
	struct str key;
	void *value;

	while (map_next(l->streams, &at, &key, &value)) {
		struct log_stream *s = value;
		if (!is_unused(s) || loop_now(l->app->loop) - s->used_at < UNUSED_US)
			continue;
		map_remove(l->streams, key);
		stream_free(s);
	}
}

void logs_stop(struct logs *l)
{
	size_t at = 0;
	struct str key;
	void *value;

	if (l == NULL)
		return;
	l->stopping = true;
	loop_timer_cancel(&l->sweep);
	loop_timer_cancel(&l->poll);
	log_ingest_stop(l);
	while (map_next(l->streams, &at, &key, &value)) {
		struct log_stream *s = value;
		loop_timer_cancel(&s->partial);
		log_tail_stop(s);
	}
}

void logs_free(struct logs *l)
{
	size_t at = 0;
	struct str key;
	void *value;

	if (l == NULL)
		return;
	while (map_next(l->streams, &at, &key, &value))
		stream_free(value);
	map_free(l->streams);
	zip_free(l->zip);
	buf_done(&l->raw);
	mem_free(l);
}

struct logs_stats logs_stats(const struct logs *l)
{
	return (struct logs_stats){ .bytes = l->bytes,
		.appends = l->appends,
		.followers = l->followers,
		.attempts = map_count(l->streams) };
}

/* ---- jobs ---- */

/* An attempt of another worker, an older epoch and no attempt at all are answered alike. */
static int not_held(struct err *e)
{
	return err_set(e, ERR_SUPERSEDED, "the attempt is not held by this worker any more");
}

void log_job_submit(struct logs *l, struct str attempt_id, struct log_job *j)
{
	struct log_stream *s = log_stream_get(l, attempt_id);

	if (s == NULL) {
		struct err e;
		(void)not_held(&e);
		call_fail(j->call, &e);
		j->release(j);
		return;
	}
	j->stream = s;
	TAILQ_INSERT_TAIL(&s->jobs, j, link);
	stream_run(s);
}

static void stream_run(struct log_stream *s)
{
	struct log_job *j = TAILQ_FIRST(&s->jobs);
	struct err e;

	if (s->busy || j == NULL)
		return;
	s->busy = true;
	if (s->logs->stopping) {
		(void)err_set(&e, ERR_UNAVAILABLE, "the server is going down");
		log_job_fail(j, &e);
		return;
	}
	if (!s->loaded) {
		stream_load(s);
		return;
	}
	if (s->lost || s->epoch != j->epoch || !str_is(j->call->who.worker_id, s->worker_id)) {
		(void)not_held(&e);
		log_job_fail(j, &e);
		return;
	}
	j->run(j);
}

static void stream_load(struct log_stream *s)
{
	struct err e;

	if (db_group_add(s->logs->loads, s, sizeof s->id, &e) < 0)
		log_job_fail(TAILQ_FIRST(&s->jobs), &e);
}

static void loads_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	struct str *ids = mem_new(n, sizeof *ids);

	(void)arg;
	for (size_t i = 0; i < n; i++)
		ids[i] = str_c(((const struct log_stream *)items[i])->id);
	log_store_open(u, ids, n);
	mem_free(ids);
}

void log_stream_open(struct logs *l)
{
	l->loads = db_group_new(l->app->loop, l->app->db,
		&(struct db_group_conf){ .lane = DB_RELAXED,
			.build = loads_build,
			.done = stream_on_loaded,
			.result = 1,
			.batch_max = 200 });
}

void log_stream_read(struct log_stream *s, const struct log_state *st)
{
	s->made = st->made;
	s->complete = s->complete || st->final || st->ended || st->removed;
	s->dropped = st->dropped;
	if (st->place.offset > s->end)
		s->end = st->place.offset;
}

static void stream_take(struct log_stream *s, const struct log_state *st)
{
	(void)str_print(s->worker_id, sizeof s->worker_id, "%.*s", STR_ARG(st->worker_id));
	s->epoch = st->epoch;
	s->lost = st->lost;
	s->final = st->final;
	s->removed = st->removed;
	s->place = st->place;
	if (st->digest.n == sizeof s->digest)
		memcpy(s->digest, st->digest.p, sizeof s->digest);
	log_stream_read(s, st);
	s->loaded = true;
}

static void stream_on_loaded(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	struct log_stream *s = item;
	struct arena *a = arena_new(STREAM_ARENA);
	struct log_state st;
	struct err why = *e;

	(void)arg;
	s->busy = false;
	if (e->code == ERR_OK && row != DB_NO_ROW && log_store_state(rows, row, a, &st)) {
		stream_take(s, &st);
		stream_run(s);
	} else {
		if (e->code == ERR_OK)
			(void)not_held(&why);
		s->busy = true;
		log_job_fail(TAILQ_FIRST(&s->jobs), &why);
	}
	arena_drop(a);
}

/* Tail of every job. */
static void job_end(struct log_job *j)
{
	struct log_stream *s = j->stream;

	TAILQ_REMOVE(&s->jobs, j, link);
	j->release(j);
	s->busy = false;
	s->used_at = loop_now(s->logs->app->loop);
	stream_run(s);
}

void log_job_reply(struct log_job *j, int64_t length)
{
	const struct log_position pos = { length };

	call_reply(j->call, 200, log_position_fields, &pos);
	job_end(j);
}

void log_job_fail(struct log_job *j, const struct err *e)
{
	call_fail(j->call, e);
	job_end(j);
}

void log_job_again(struct log_job *j)
{
	struct log_stream *s = j->stream;
	struct err e;

	s->loaded = false;
	if (++j->tries >= TRIES) {
		(void)err_set(&e, ERR_UNAVAILABLE, "the log is being written by others; try again");
		log_job_fail(j, &e);
		return;
	}
	s->busy = false;
	stream_run(s);
}
