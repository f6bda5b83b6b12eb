/*
 * The lines of a log that match, from a line on: chunks are read a batch at a time and searched in
 * a thread, until enough lines were found, the log ends, or enough has been read. `last` says up to
 * which line the log was searched; the next request begins behind it.
 */
#include "lib/base/mem.h"
#include "lib/loop/work.h"
#include "lib/regex/regex.h"
#include "server/rest/log_inside.h"

enum { TEXT_MAX = 4 << 20, SCAN_MAX = 64 << 20, AHEAD_MAX = 4 << 20 };
enum { PACKED_MAX = 2 * LOG_READ_RAW };

struct search {
	struct call *c;
	struct str attempt_id;
	int64_t made;
	struct log_page out;
	struct regex *re; /* NULL: every line */
	int64_t since; /* INT64_MIN: of any time */
	int64_t from, until, limit; /* lines from … until - 1 */
	int stream;
	struct log_scan scan;
	bool scanning;
	int64_t end; /* bytes of the log when it was asked for */
	int64_t began_at, stop_at; /* offsets: where reading began; where `until` was set, or 0 */
	struct log_lines lines;
	/* A batch on its way through a thread. */
	struct log_chunk_row rows[LOG_READ_CHUNKS]; /* data: in packed */
	size_t rows_n;
	struct buf packed, raw;
	struct zip *zip;
	struct err err;
};

static void search_on_start(struct call *c, const struct db_rows *rows);
static void search_read(struct search *s, int64_t offset);
static void search_on_chunks(struct call *c, const struct db_rows *rows);
static void search_batch(void *arg);
static void search_on_batch(void *arg);
static void search_reply(struct search *s);

static void search_free(void *arg)
{
	struct search *s = arg;

	if (s->scanning)
		log_scan_done(&s->scan);
	log_lines_done(&s->lines);
	buf_done(&s->packed);
	buf_done(&s->raw);
	zip_free(s->zip);
	regex_free(s->re);
	mem_free(s);
}

/* Lines behind this one are for the next request; those that began before it may still end. */
static void stop_behind(struct search *s, int64_t line)
{
	if (s->stop_at != 0)
		return;
	s->until = line + 1;
	s->stop_at = s->scan.at.offset;
}

static bool matches(const struct search *s, const struct log_line *line)
{
	return line->line >= s->from && line->line < s->until && line->time >= s->since &&
	       (s->stream == 0 || line->stream == s->stream) &&
	       (s->re == NULL || regex_matches(s->re, line->text.p != NULL ? line->text.p : "",
					 line->text.n));
}

static void search_take(struct search *s, const struct log_line *line)
{
	if (!matches(s, line))
		return;
	log_lines_add(&s->lines, line);
	if ((int64_t)s->lines.n >= s->limit || s->lines.text.n > TEXT_MAX)
		stop_behind(s, line->line);
}

static void search_on_line(void *arg, const struct log_line *line)
{
	search_take(arg, line);
}

static bool pattern_ok(struct call *c, struct search *s)
{
	const struct log_query *q = c->query;
	unsigned flags = (q->regex ? 0 : REGEX_LITERAL) | (q->ignore_case ? REGEX_IGNORE_CASE : 0);
	char why[REGEX_WHY_MAX];

	if (q->grep.n == 0)
		return true;
	s->re = regex_new(q->grep.p, q->grep.n, flags, why);
	if (s->re == NULL)
		call_invalid(c, "/grep", "%s", why);
	return s->re != NULL;
}

void log_search_reply(struct call *c, const struct log_state *st)
{
	const struct log_query *q = c->query;
	struct search *s = mem_new_of(struct search);

	*s = (struct search){ .c = c,
		.attempt_id = arena_str(c->arena, st->attempt_id),
		.made = st->made,
		.out = { .total = st->place.lines,
			.complete = st->final || st->ended,
			.dropped = st->dropped },
		.since = q->has_since ? q->since : INT64_MIN,
		.from = q->from != 0 ? q->from : 1,
		.until = INT64_MAX,
		.limit = q->limit,
		.stream = q->stream,
		.end = st->place.offset };
	log_lines_init(&s->lines, 2 * TEXT_MAX);
	buf_init(&s->packed, PACKED_MAX);
	buf_init(&s->raw, LOG_READ_RAW);
	arena_defer(c->arena, search_free, s);
	c->state = s;
	if (!pattern_ok(c, s))
		return;
	s->zip = zip_new();
	if (s->from > s->out.total) {
		search_reply(s);
		return;
	}
	struct db_unit *u = call_unit(c);
	log_store_of_line(u, s->made, s->attempt_id, s->from);
	log_store_of_time(u, s->made, s->attempt_id, s->since);
	call_send(c, u, DB_READ, search_on_start);
}

/* From the later of the two chunks: the one with the first line, and the last one that begins
 * before the time. */
static void search_on_start(struct call *c, const struct db_rows *rows)
{
	int64_t line = rows[0].n != 0 ? db_int(&rows[0], 0, 0) : 0;
	int64_t time = rows[1].n != 0 ? db_int(&rows[1], 0, 0) : 0;

	search_read(c->state, line > time ? line : time);
}

static void search_read(struct search *s, int64_t offset)
{
	struct db_unit *u = call_unit(s->c);

	log_store_chunks(u, s->made, s->attempt_id, offset, LOG_READ_CHUNKS);
	call_send(s->c, u, DB_READ, search_on_chunks);
}

/* No line up to where it stops is open or has still to begin; or too much lies behind that. */
static bool is_over(const struct search *s)
{
	const struct log_place *at = &s->scan.at;

	if (at->offset >= s->end)
		return true;
	if (s->stop_at == 0)
		return false;
	for (int i = 0; i < LOG_STREAMS; i++)
		if (s->scan.piece[i].number >= s->from && s->scan.piece[i].number < s->until)
			return at->offset - s->stop_at > AHEAD_MAX;
	return true;
}

static void search_on_chunks(struct call *c, const struct db_rows *rows)
{
	struct search *s = c->state;

	if (rows[0].n == 0) {
		search_reply(s);
		return;
	}
	buf_clear(&s->packed);
	s->rows_n = 0;
	for (size_t i = 0; i < rows[0].n && i < LOG_READ_CHUNKS; i++) {
		struct log_chunk_row *row = &s->rows[s->rows_n++];
		log_store_chunk_packed(&rows[0], i, row);
		buf_add(&s->packed, row->data);
	}
	if (buf_failed(&s->packed))
		(void)err_set(&s->err, ERR_CORRUPT, "stored pieces of the log are too large");
	else if (work_submit(c->app->loop, search_batch, search_on_batch, s, &s->err) == 0)
		return;
	call_fail(c, &s->err);
}

/* In a thread. */
static void search_batch(void *arg)
{
	struct search *s = arg;
	size_t at_byte = 0;

	for (size_t i = 0; i < s->rows_n && !(s->scanning && is_over(s)); i++) {
		struct log_chunk_row *row = &s->rows[i];
		row->data.p = s->packed.p + at_byte;
		at_byte += row->data.n;
		buf_clear(&s->raw);
		if (log_store_unpack(row, s->zip, &s->raw, &s->err) < 0)
			return;
		if (!s->scanning) {
			log_scan_init(&s->scan, &row->at, LOG_LINE_TEXT);
			s->scan.on_line = search_on_line;
			s->scan.arg = s;
			s->began_at = row->at.offset;
			s->scanning = true;
			if (s->from <= row->at.lines) /* found by time: those have begun before */
				s->from = row->at.lines + 1;
		}
		struct str frames = buf_str(&s->raw);
		int64_t at = row->at.offset;
		if (!log_frames_from(&frames, &at, s->scan.at.offset)) {
			(void)err_set(&s->err, ERR_CORRUPT, "a piece of the log is missing");
			return;
		}
		log_scan_add(&s->scan, frames);
		if (s->scan.at.offset - s->began_at > SCAN_MAX)
			stop_behind(s, s->scan.at.lines);
	}
}

static void search_on_batch(void *arg)
{
	struct search *s = arg;

	if (s->err.code != ERR_OK)
		call_fail(s->c, &s->err);
	else if (is_over(s))
		search_reply(s);
	else
		search_read(s, s->scan.at.offset);
}

static void search_reply(struct search *s)
{
	struct log_page *out = &s->out;
	int64_t read = s->scanning ? s->scan.at.lines : out->total;

	if (s->scanning)
		log_lines_take_open(&s->scan, out->complete && s->scan.at.offset >= s->end);
	log_lines_page(&s->lines, s->from, s->until, read, out);
	call_reply(s->c, 200, log_page_fields, out);
}
