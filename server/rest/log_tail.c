/*
 * The tail of an attempt's log: there while at least one follower is told by it. What is appended
 * here comes straight from the appending request; what other servers append is noticed by looking
 * twice a second, one statement for all logs that are followed, and read from the database.
 */
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "server/rest/log_inside.h"

enum { PARTIAL_MS = 1000, POLL_MAX = 5000 };

static void tail_read(struct log_stream *s);
static void tail_on_chunks(void *arg, const struct db_rows *rows, const struct err *e);
static void poll_on_rows(void *arg, const struct db_rows *rows, const struct err *e);

static void tail_flush(struct log_stream *s, int filter, int64_t id)
{
	struct log_batch *b = &s->out[filter];
	struct log_follower *f;
	struct sse_event *ev;
	size_t n;

	if (b->n == 0)
		return;
	ev = log_batch_event(b, id, &n);
	TAILQ_FOREACH (f, &s->followers, link) {
		if (!f->live || f->filter != filter)
			continue;
		if (!f->keeps_up || sse_waiting(f->sse) + n > LOG_BURST_MAX) {
			log_follower_restart(f, f->sent);
			continue;
		}
		sse_send(f->sse, ev);
		f->sent = id;
	}
	sse_event_drop(ev);
}

static bool is_wanted(const struct log_stream *s, int filter)
{
	const struct log_follower *f;

	TAILQ_FOREACH (f, &s->followers, link)
		if (f->live && f->filter == filter)
			return true;
	return false;
}

static void tail_put(struct log_stream *s, const struct log_line *line, int64_t id)
{
	for (int filter = 0; filter < LOG_FILTERS; filter++) {
		if ((filter != 0 && filter != line->stream) || !is_wanted(s, filter))
			continue;
		log_batch_add(&s->out[filter], line);
		if (log_batch_is_large(&s->out[filter]))
			tail_flush(s, filter, id);
	}
}

static void tail_flush_all(struct log_stream *s)
{
	for (int filter = 0; filter < LOG_FILTERS; filter++)
		tail_flush(s, filter, s->tail.at.offset);
}

static void tail_on_line(void *arg, const struct log_line *line)
{
	struct log_stream *s = arg;

	tail_put(s, line, s->tail.frame_at);
}

/* One append may hold more than a client is to have waiting: who has taken the last one gets it. */
static void tail_weigh(struct log_stream *s)
{
	struct log_follower *f;

	TAILQ_FOREACH (f, &s->followers, link)
		f->keeps_up = sse_waiting(f->sse) <= LOG_BACKLOG_MAX;
}

static void tail_open_lines(struct log_stream *s, bool ended)
{
	struct log_line line;

	tail_weigh(s);
	for (int i = 0; i < LOG_STREAMS; i++) {
		if ((!ended && !s->tail.piece[i].changed) || !log_scan_open(&s->tail, i, &line))
			continue;
		line.open = !ended;
		tail_put(s, &line, s->tail.at.offset);
	}
	tail_flush_all(s);
}

static void tail_on_partial(void *arg)
{
	struct log_stream *s = arg;

	if (s->has_tail)
		tail_open_lines(s, false);
	log_tail_left(s);
}

static void tail_drop(struct log_stream *s)
{
	if (!s->has_tail)
		return;
	loop_timer_cancel(&s->partial);
	log_scan_done(&s->tail);
	for (int i = 0; i < LOG_FILTERS; i++)
		log_batch_done(&s->out[i]);
	s->has_tail = false;
}

void log_tail_left(struct log_stream *s)
{
	const struct log_follower *f;

	if (s->tail_feeding)
		return;
	TAILQ_FOREACH (f, &s->followers, link)
		if (f->live)
			return;
	tail_drop(s);
}

static void tail_finish(struct log_stream *s)
{
	struct log_follower *f = TAILQ_FIRST(&s->followers), *next;

	tail_open_lines(s, true);
	for (; f != NULL; f = next) {
		next = TAILQ_NEXT(f, link);
		if (f->live)
			log_follower_end(f, true);
	}
	tail_drop(s);
}

static void tail_add(struct log_stream *s, struct str frames)
{
	tail_weigh(s);
	s->tail_feeding = true;
	log_scan_add(&s->tail, frames);
	tail_flush_all(s);
	s->tail_feeding = false;
	for (int i = 0; i < LOG_STREAMS; i++)
		if (s->tail.piece[i].number != 0 && s->tail.piece[i].changed &&
			!loop_timer_armed(&s->partial))
			loop_timer_set(&s->partial, PARTIAL_MS);
	log_tail_left(s);
}

void log_tail_changed(struct log_stream *s)
{
	if (!s->has_tail || s->tail_reading)
		return;
	if (s->tail.at.offset < s->end)
		tail_read(s);
	else if (s->complete)
		tail_finish(s);
}

void log_tail_fed(struct log_stream *s, int64_t start, struct str frames)
{
	if (start + (int64_t)frames.n > s->end)
		s->end = start + (int64_t)frames.n;
	if (s->has_tail && !s->tail_reading && s->tail.at.offset == start)
		tail_add(s, frames);
	log_tail_changed(s);
}

bool log_tail_join(struct log_stream *s, struct log_follower *f)
{
	int64_t at = f->scan.at.offset;

	if (at < s->end)
		return false;
	s->end = at;
	if (s->has_tail && s->tail.at.offset != at) {
		log_tail_changed(s);
		return false;
	}
	if (!s->has_tail) {
		s->tail = f->scan;
		s->tail.on_line = tail_on_line;
		s->tail.arg = s;
		s->has_tail = true;
		loop_timer_init(&s->partial, s->logs->app->loop, tail_on_partial, s);
	} else {
		log_scan_done(&f->scan);
	}
	f->scanning = false;
	f->live = true;
	f->sent = at;
	return true;
}

static void tail_read(struct log_stream *s)
{
	struct db_unit *u = db_unit(s->logs->app->db, NULL);

	s->tail_reading = true;
	log_store_chunks(u, s->made, str_c(s->id), s->tail.at.offset, LOG_READ_CHUNKS);
	db_send(u, DB_READ, tail_on_chunks, s);
}

static int tail_take(struct log_stream *s, const struct db_rows *rows, struct err *e)
{
	struct logs *l = s->logs;

	for (size_t i = 0; i < rows->n && s->has_tail; i++) {
		struct log_chunk_row row;
		buf_clear(&l->raw);
		if (log_store_chunk(rows, i, l->zip, &l->raw, &row, e) < 0)
			return -1;
		struct str frames = buf_str(&l->raw);
		int64_t at = row.at.offset;
		if (!log_frames_from(&frames, &at, s->tail.at.offset))
			return err_set(e, ERR_CORRUPT, "a piece of the log is missing");
		tail_add(s, frames);
	}
	return 0;
}

static void tail_on_chunks(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct log_stream *s = arg;
	int64_t before = s->tail.at.offset;
	struct err why;

	s->tail_reading = false;
	if (e->code != ERR_OK || s->logs->stopping || !s->has_tail)
		return; /* the next look tries again */
	if (tail_take(s, &rows[0], &why) < 0) {
		log_tail_stop(s); /* they come back and read by themselves */
		return;
	}
	if (s->has_tail && s->tail.at.offset > before)
		log_tail_changed(s);
}

void log_tail_stop(struct log_stream *s)
{
	struct log_follower *f;

	while ((f = TAILQ_FIRST(&s->followers)) != NULL)
		log_follower_cut(f);
	tail_drop(s);
}

/* ---- what other servers write ---- */

struct poll {
	struct logs *logs;
	size_t n;
	char (*ids)[ID_MAX];
};

void log_tail_poll(void *arg)
{
	struct logs *l = arg;
	struct str key, *ids;
	struct poll *p;
	size_t at = 0;
	void *value;

	if (l->polling || l->stopping || l->followers == 0)
		return;
	p = mem_new_of(struct poll);
	p->logs = l;
	p->ids = mem_new(POLL_MAX, sizeof *p->ids);
	ids = mem_new(POLL_MAX, sizeof *ids);
	while (p->n < POLL_MAX && map_next(l->streams, &at, &key, &value)) {
		const struct log_stream *s = value;
		if (TAILQ_EMPTY(&s->followers))
			continue;
		memcpy(p->ids[p->n], s->id, sizeof s->id);
		ids[p->n] = str_c(p->ids[p->n]);
		p->n++;
	}
	struct db_unit *u = db_unit(l->app->db, NULL);
	log_store_lengths(u, ids, p->n);
	mem_free(ids);
	l->polling = true;
	db_send(u, DB_READ, poll_on_rows, p);
}

static void poll_take(struct log_stream *s, const struct db_rows *r, size_t i)
{
	int64_t length = db_int(r, i, db_col(r, "length"));

	if (length > s->end)
		s->end = length;
	if (!db_is_null(r, i, db_col(r, "made")))
		s->made = db_date(r, i, db_col(r, "made"));
	s->complete = s->complete || db_bool(r, i, db_col(r, "complete"));
	s->dropped = db_int(r, i, db_col(r, "dropped"));
	log_tail_changed(s);
}

static void poll_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct poll *p = arg;
	struct logs *l = p->logs;

	l->polling = false;
	for (size_t i = 0; e->code == ERR_OK && !l->stopping && i < rows[0].n; i++) {
		size_t ord = (size_t)db_int(&rows[0], i, 0) - 1;
		struct log_stream *s = map_get(l->streams, str_c(p->ids[ord]));
		if (s != NULL)
			poll_take(s, &rows[0], i);
	}
	mem_free(p->ids);
	mem_free(p);
}
