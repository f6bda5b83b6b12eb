/*
 * One who follows a log. It first reads by itself: from the chunk that holds its first line, or,
 * coming back with Last-Event-ID, from a little before that, so that lines which were open then are
 * whole. Events wait here until the client has taken enough. When it has read all, it joins the
 * tail; when it cannot keep up with that, it reads by itself again, once its client has taken what
 * waits: one that takes nothing costs neither reads nor memory.
 */
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "server/rest/log_inside.h"

enum { PACE_MS = 10, PACE_MOST_MS = 320, JOIN_MS = 20, STEP_MS = 500, READ_CHUNKS = 4 };
enum { BEFORE_RESUME = 256 << 10, ARENA = 64 << 10 };

static void follow_attempt_on_state(struct call *c, const struct db_rows *rows);
static void follow_step_on_row(struct call *c, const struct db_rows *rows);
static void step_look(struct log_follower *f);
static void step_on_row(void *arg, const struct db_rows *rows, const struct err *e);
static void step_on_state(void *arg, const struct db_rows *rows, const struct err *e);
static void follower_begin(struct log_follower *f, const struct log_state *st);
static void follower_on_start(void *arg, const struct db_rows *rows, const struct err *e);
static void follower_resume(struct log_follower *f);
static void follower_read(struct log_follower *f, int64_t offset);
static void follower_on_chunks(void *arg, const struct db_rows *rows, const struct err *e);
static void follower_pump(struct log_follower *f);

/* ---- its life ---- */

static void pending_clear(struct log_follower *f)
{
	struct log_pending *p;

	while ((p = TAILQ_FIRST(&f->pending)) != NULL) {
		TAILQ_REMOVE(&f->pending, p, link);
		sse_event_drop(p->ev);
		mem_free(p);
	}
}

static void pending_send(struct log_follower *f)
{
	struct log_pending *p = TAILQ_FIRST(&f->pending);

	TAILQ_REMOVE(&f->pending, p, link);
	sse_send(f->sse, p->ev);
	sse_event_drop(p->ev);
	mem_free(p);
}

static void follower_clear(struct log_follower *f)
{
	pending_clear(f);
	log_batch_done(&f->batch);
	if (f->scanning)
		log_scan_done(&f->scan);
	f->scanning = false;
	loop_timer_cancel(&f->timer);
}

/* Lets go of everything; the memory stays as long as a statement is under way. */
static void follower_close(struct log_follower *f)
{
	struct log_stream *s = f->stream;

	f->closed = true;
	f->live = false;
	follower_clear(f);
	access_unwatch(f->watch);
	f->logs->followers--;
	if (s != NULL) {
		TAILQ_REMOVE(&s->followers, f, link);
		s->used_at = loop_now(f->logs->app->loop);
		log_tail_left(s);
	}
	if (!f->reading)
		mem_free(f);
}

static void follower_on_close(void *arg)
{
	follower_close(arg);
}

void log_follower_cut(struct log_follower *f)
{
	sse_end(f->sse);
	follower_close(f);
}

static void follower_on_lost(void *arg)
{
	log_follower_cut(arg);
}

void log_follower_end(struct log_follower *f, bool complete)
{
	char data[80];
	struct sse_event *ev;

	(void)str_print(data, sizeof data, "{\"complete\":%s,\"dropped\":%lld}",
		complete ? "true" : "false",
		(long long)(f->stream != NULL ? f->stream->dropped : 0));
	ev = sse_event_new(STR_NONE, STR("end"), str_c(data));
	sse_send(f->sse, ev);
	sse_event_drop(ev);
	log_follower_cut(f);
}

/* A statement has come back. False: nobody waits for it any more. */
static bool follower_back(struct log_follower *f, const struct err *e)
{
	f->reading = false;
	if (f->closed) {
		mem_free(f);
		return false;
	}
	if (e->code == ERR_OK && !f->logs->stopping)
		return true;
	log_follower_cut(f); /* it comes back by itself */
	return false;
}

static void follower_send_unit(struct log_follower *f, struct db_unit *u, db_cb *cb)
{
	f->reading = true;
	db_send(u, DB_READ, cb, f);
}

static void follower_on_timer(void *arg)
{
	struct log_follower *f = arg;

	if (f->stream == NULL)
		step_look(f);
	else
		follower_pump(f);
}

static struct log_follower *follower_new(struct call *c)
{
	const struct log_query *q = c->query;
	struct log_follower *f = mem_new_of(struct log_follower);
	struct str last = http_header(c->req, "Last-Event-ID");

	f->logs = c->app->logs;
	f->filter = q->stream;
	f->from = q->from;
	f->tail = q->tail;
	if (last.p != NULL && !num_parse_i64(last, 0, INT64_MAX, &f->resume))
		f->resume = 0;
	TAILQ_INIT(&f->pending);
	loop_timer_init(&f->timer, c->app->loop, follower_on_timer, f);
	f->watch = access_watch(c, follower_on_lost, f);
	f->logs->followers++;
	f->sse = sse_begin(c->req, follower_on_close, f);
	sse_allow(f->sse, LOG_BURST_MAX + SSE_EVENT_MAX); /* we look ourselves */
	return f;
}

/* ---- where it begins ---- */

void log_follow_attempt(struct call *c)
{
	struct db_unit *u = call_unit(c);

	log_store_get(u, call_param(c, "attempt"));
	call_send(c, u, DB_READ, follow_attempt_on_state);
}

static void follow_attempt_on_state(struct call *c, const struct db_rows *rows)
{
	struct log_state st;
	struct err e;

	if (!log_store_state(&rows[0], 0, c->arena, &st)) {
		call_not_found(c, "attempt");
	} else if (st.removed) {
		(void)err_set(&e, ERR_GONE, "the log was removed when its time was over");
		call_fail(c, &e);
	} else {
		follower_begin(follower_new(c), &st);
	}
}

void log_follow_step(struct call *c)
{
	struct db_unit *u = call_unit(c);

	log_store_of_step(u, call_param(c, "step"), ((const struct log_query *)c->query)->rank);
	call_send(c, u, DB_READ, follow_step_on_row);
}

static void follow_step_on_row(struct call *c, const struct db_rows *rows)
{
	struct log_follower *f;

	if (rows[0].n == 0) {
		call_not_found(c, "step");
		return;
	}
	if (!log_has_rank(c, &rows[0]))
		return;
	struct str step = arena_str(c->arena, call_param(c, "step"));
	int64_t rank = ((const struct log_query *)c->query)->rank;
	f = follower_new(c);
	f->rank = rank;
	(void)str_print(f->step_id, sizeof f->step_id, "%.*s", STR_ARG(step));
	step_look(f);
}

/* The step's newest attempt; comes again until there is one. */
static void step_look(struct log_follower *f)
{
	struct db_unit *u = db_unit(f->logs->app->db, NULL);

	log_store_of_step(u, str_c(f->step_id), f->rank);
	follower_send_unit(f, u, step_on_row);
}

static void step_on_row(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct log_follower *f = arg;

	if (!follower_back(f, e))
		return;
	if (rows[0].n == 0 || (db_is_null(&rows[0], 0, 1) && db_bool(&rows[0], 0, 0))) {
		log_follower_end(f, true);
	} else if (db_is_null(&rows[0], 0, 1)) {
		loop_timer_set(&f->timer, STEP_MS);
	} else {
		struct db_unit *u = db_unit(f->logs->app->db, NULL);
		log_store_get(u, db_str(&rows[0], 0, 1));
		follower_send_unit(f, u, step_on_state);
	}
}

static void step_on_state(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct log_follower *f = arg;
	struct arena *a = arena_new(ARENA);
	struct log_state st;

	if (follower_back(f, e)) {
		if (log_store_state(&rows[0], 0, a, &st) && !st.removed)
			follower_begin(f, &st);
		else
			log_follower_end(f, false);
	}
	arena_drop(a);
}

static void follower_begin(struct log_follower *f, const struct log_state *st)
{
	struct log_stream *s = log_stream_get(f->logs, st->attempt_id);

	if (s == NULL) {
		log_follower_end(f, false);
		return;
	}
	f->stream = s;
	TAILQ_INSERT_TAIL(&s->followers, f, link);
	log_stream_read(s, st);
	f->begin_end = s->end;
	if (f->resume != 0 || s->end == 0) {
		f->from = 0;
		log_follower_restart(f, f->resume);
		return;
	}
	if (f->from == 0 && f->tail != 0 && st->place.lines > f->tail)
		f->from = st->place.lines - f->tail + 1;
	if (f->from <= 1) {
		follower_read(f, 0);
		return;
	}
	struct db_unit *u = db_unit(f->logs->app->db, NULL);
	log_store_of_line(u, s->made, str_c(s->id), f->from);
	follower_send_unit(f, u, follower_on_start);
}

static void follower_on_start(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct log_follower *f = arg;

	if (follower_back(f, e))
		follower_read(f, rows[0].n != 0 ? db_int(&rows[0], 0, 0) : 0);
}

/* ---- reading by itself ---- */

void log_follower_restart(struct log_follower *f, int64_t resume)
{
	f->live = false;
	f->resume = resume;
	follower_clear(f);
	if (!f->reading) /* else its own read leads on */
		follower_resume(f);
}

/* True when the client has enough to take as it is: it is asked again soon, then less often. */
static bool follower_waits(struct log_follower *f, size_t more)
{
	size_t waiting = sse_waiting(f->sse);

	if (waiting == 0 || waiting + more <= LOG_BACKLOG_MAX) {
		f->pace = 0;
		return false;
	}
	if (waiting != f->waited || f->pace == 0)
		f->pace = PACE_MS;
	else if (f->pace < PACE_MOST_MS)
		f->pace *= 2;
	f->waited = waiting;
	loop_timer_set(&f->timer, f->pace);
	return true;
}

static void follower_resume(struct log_follower *f)
{
	if (!follower_waits(f, 0))
		follower_read(f, f->resume > BEFORE_RESUME ? f->resume - BEFORE_RESUME : 0);
}

static void follower_read(struct log_follower *f, int64_t offset)
{
	struct log_stream *s = f->stream;
	struct db_unit *u = db_unit(f->logs->app->db, NULL);

	log_store_chunks(u, s->made, str_c(s->id), offset, READ_CHUNKS);
	follower_send_unit(f, u, follower_on_chunks);
}

static void follower_flush(struct log_follower *f, int64_t id)
{
	struct log_pending *p;

	if (f->batch.n == 0)
		return;
	p = mem_new_of(struct log_pending);
	p->ev = log_batch_event(&f->batch, id, &p->n);
	TAILQ_INSERT_TAIL(&f->pending, p, link);
}

static void follower_on_line(void *arg, const struct log_line *line)
{
	struct log_follower *f = arg;
	int64_t at = f->scan.at.offset;

	if ((f->filter != 0 && line->stream != f->filter) || at <= f->resume)
		return;
	/* A line from before counts when it ends among those that are wanted. */
	if (line->line < f->from && f->scan.at.lines < f->from && at <= f->begin_end)
		return;
	log_batch_add(&f->batch, line);
	if (log_batch_is_large(&f->batch))
		follower_flush(f, f->scan.frame_at);
}

static void follower_scan_from(struct log_follower *f, const struct log_place *from)
{
	log_scan_init(&f->scan, from, LOG_FOLLOW_TEXT);
	f->scan.on_line = follower_on_line;
	f->scan.arg = f;
	f->scanning = true;
}

static int follower_take(struct log_follower *f, const struct db_rows *rows, struct err *e)
{
	struct logs *l = f->logs;

	for (size_t i = 0; i < rows->n; i++) {
		struct log_chunk_row row;
		buf_clear(&l->raw);
		if (log_store_chunk(rows, i, l->zip, &l->raw, &row, e) < 0)
			return -1;
		struct str frames = buf_str(&l->raw);
		int64_t at = row.at.offset;
		if (!f->scanning)
			follower_scan_from(f, &row.at);
		if (!log_frames_from(&frames, &at, f->scan.at.offset)) {
			if (at < f->scan.at.offset)
				continue; /* nothing new in it */
			return err_set(e, ERR_CORRUPT, "a piece of the log is missing");
		}
		log_scan_add(&f->scan, frames);
	}
	if (!f->scanning)
		follower_scan_from(f, &(struct log_place){ 0 });
	follower_flush(f, f->scan.at.offset);
	return 0;
}

static void follower_on_chunks(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct log_follower *f = arg;
	int64_t before = f->scanning ? f->scan.at.offset : -1;
	struct err why;

	if (!follower_back(f, e))
		return;
	if (follower_take(f, &rows[0], &why) < 0)
		log_follower_cut(f);
	else if (f->scan.at.offset == before)
		loop_timer_set(&f->timer, STEP_MS); /* what is expected is not there */
	else
		follower_pump(f);
}

/* Lines that have not ended yet, before the tail tells of their growth. */
static void follower_open_lines(struct log_follower *f)
{
	struct log_line line;

	for (int i = 0; i < LOG_STREAMS; i++)
		if ((f->filter == 0 || f->filter == i + 1) && log_scan_open(&f->scan, i, &line))
			log_batch_add(&f->batch, &line);
	follower_flush(f, f->scan.at.offset);
}

static void follower_join(struct log_follower *f)
{
	struct log_stream *s = f->stream;

	follower_open_lines(f);
	if (!log_tail_join(s, f)) {
		pending_clear(f);
		loop_timer_set(&f->timer, JOIN_MS);
		return;
	}
	while (!TAILQ_EMPTY(&f->pending))
		pending_send(f);
	log_tail_changed(s);
}

/* Gives the client what it can take; then reads on, or joins the tail. */
static void follower_pump(struct log_follower *f)
{
	struct log_pending *p;

	while ((p = TAILQ_FIRST(&f->pending)) != NULL) {
		if (follower_waits(f, p->n))
			return;
		pending_send(f);
	}
	if (!f->scanning)
		follower_resume(f);
	else if (f->scan.at.offset < f->stream->end)
		follower_read(f, f->scan.at.offset);
	else
		follower_join(f);
}
