/*
 * A page of lines. Reads chunks from the one in which the first line starts, until all lines of the
 * page have ended, the log ends, or enough has been read: then the page is shorter, and `last` says
 * up to where it goes.
 */
#include "lib/base/mem.h"
#include "server/rest/log_inside.h"

enum { TEXT_MAX = 4 << 20, READ_MAX = 16 << 20, AHEAD_MAX = 4 << 20 };

struct page {
	struct call *c;
	struct logs *logs;
	struct str attempt_id;
	int64_t made;
	struct log_page out;
	int64_t from, limit, until; /* lines from … until - 1 */
	int stream; /* 0: all */
	struct log_scan scan;
	bool scanning;
	int64_t end; /* bytes of the log when it was asked for */
	int64_t started_at; /* offset where reading began */
	int64_t full_at; /* offset where all lines had started, 0: not yet */
	struct log_lines lines;
};

static void page_on_start(struct call *c, const struct db_rows *rows);
static void page_read(struct page *p, int64_t offset);
static void page_on_chunks(struct call *c, const struct db_rows *rows);
static void page_reply(struct page *p);

static void page_free(void *arg)
{
	struct page *p = arg;

	if (p->scanning)
		log_scan_done(&p->scan);
	log_lines_done(&p->lines);
	mem_free(p);
}

static void page_take(struct page *p, const struct log_line *line)
{
	if (line->line < p->from || line->line >= p->until ||
		(p->stream != 0 && line->stream != p->stream))
		return;
	/* The first line is always taken, so that each page goes on. */
	if (p->lines.text.n + line->text.n > TEXT_MAX && line->line != p->from) {
		p->until = line->line;
		return;
	}
	log_lines_add(&p->lines, line);
	if (p->stream != 0 && p->lines.n == (size_t)p->limit)
		p->until = line->line + 1;
}

static void page_on_line(void *arg, const struct log_line *line)
{
	page_take(arg, line);
}

void log_page_reply(struct call *c, const struct log_state *st)
{
	const struct log_query *q = c->query;
	struct page *p = mem_new_of(struct page);
	int64_t total = st->place.lines;

	*p = (struct page){ .c = c,
		.logs = c->app->logs,
		.attempt_id = arena_str(c->arena, st->attempt_id),
		.made = st->made,
		.out = { .total = total,
			.complete = st->final || st->ended,
			.dropped = st->dropped },
		.limit = q->limit,
		.stream = q->stream,
		.end = st->place.offset };
	log_lines_init(&p->lines, TEXT_MAX + 2 * LOG_LINE_TEXT);
	arena_defer(c->arena, page_free, p);
	p->from = q->from;
	if (p->from == 0) {
		int64_t tail = q->tail != 0 ? q->tail : q->limit;
		p->from = total > tail ? total - tail + 1 : 1;
	}
	p->until =
		p->stream == 0 && p->from <= INT64_MAX - p->limit ? p->from + p->limit : INT64_MAX;
	c->state = p;
	if (p->from > total) {
		page_reply(p);
		return;
	}
	struct db_unit *u = call_unit(c);
	log_store_of_line(u, p->made, p->attempt_id, p->from);
	call_send(c, u, DB_READ, page_on_start);
}

static void page_on_start(struct call *c, const struct db_rows *rows)
{
	page_read(c->state, rows[0].n != 0 ? db_int(&rows[0], 0, 0) : 0);
}

static void page_read(struct page *p, int64_t offset)
{
	struct db_unit *u = call_unit(p->c);

	log_store_chunks(u, p->made, p->attempt_id, offset, LOG_READ_CHUNKS);
	call_send(p->c, u, DB_READ, page_on_chunks);
}

/* No line of the page is open or has still to start. */
static bool page_is_whole(const struct page *p)
{
	if (p->scan.at.lines < p->until - 1)
		return false;
	for (int i = 0; i < LOG_STREAMS; i++)
		if (p->scan.piece[i].number >= p->from && p->scan.piece[i].number < p->until)
			return false;
	return true;
}

static bool page_is_enough(struct page *p)
{
	const struct log_place *at = &p->scan.at;

	if (at->offset >= p->end || page_is_whole(p))
		return true;
	if (p->full_at == 0 && at->lines >= p->until - 1)
		p->full_at = at->offset;
	return at->offset - p->started_at > READ_MAX ||
	       (p->full_at != 0 && at->offset - p->full_at > AHEAD_MAX);
}

static int page_add(struct page *p, const struct db_rows *rows, struct err *e)
{
	struct logs *l = p->logs;

	for (size_t i = 0; i < rows->n; i++) {
		struct log_chunk_row row;
		buf_clear(&l->raw);
		if (log_store_chunk(rows, i, l->zip, &l->raw, &row, e) < 0)
			return -1;
		struct str frames = buf_str(&l->raw);
		int64_t at = row.at.offset;
		if (!p->scanning) {
			log_scan_init(&p->scan, &row.at, LOG_LINE_TEXT);
			p->scan.on_line = page_on_line;
			p->scan.arg = p;
			p->started_at = row.at.offset;
			p->scanning = true;
		}
		if (!log_frames_from(&frames, &at, p->scan.at.offset))
			return err_set(e, ERR_CORRUPT, "a piece of the log is missing");
		log_scan_add(&p->scan, frames);
		if (page_is_enough(p))
			break;
	}
	return 0;
}

static void page_on_chunks(struct call *c, const struct db_rows *rows)
{
	struct page *p = c->state;
	struct err e;

	if (page_add(p, &rows[0], &e) < 0)
		call_fail(c, &e);
	else if (rows[0].n == 0 || page_is_enough(p))
		page_reply(p);
	else
		page_read(p, p->scan.at.offset);
}

static void page_reply(struct page *p)
{
	struct log_page *out = &p->out;
	int64_t read = p->scanning ? p->scan.at.lines : out->total;

	if (p->scanning)
		log_lines_take_open(&p->scan, out->complete && p->scan.at.offset >= p->end);
	log_lines_page(&p->lines, p->from, p->until, read, out);
	call_reply(p->c, 200, log_page_fields, out);
}
