#include "server/store/log_text.h"

#include "lib/base/clock.h"
#include "lib/base/err.h"

static int64_t time_of(const struct frame *f)
{
	return f->time_us >= (uint64_t)CLOCK_END ? CLOCK_END - 1 : (int64_t)f->time_us;
}

/* The next frame of checked frames; false at their end. */
static bool next_frame(struct str *frames, struct frame *f, struct str *payload)
{
	if (frames->n == 0)
		return false;
	BUG_ON(frames->n < FRAME_HEADER);
	BUG_ON(!frame_get((const unsigned char *)frames->p, f));
	BUG_ON(frames->n - FRAME_HEADER < f->length);
	*payload = str_slice(*frames, FRAME_HEADER, f->length);
	*frames = str_slice(*frames, FRAME_HEADER + f->length, frames->n);
	return true;
}

void log_place_pass(struct log_place *p, struct str frames)
{
	struct frame f;
	struct str rest;

	p->offset += (int64_t)frames.n;
	while (next_frame(&frames, &f, &rest)) {
		int64_t *open = &p->open[f.stream - 1];
		while (rest.n != 0) {
			if (*open == 0)
				*open = ++p->lines;
			ptrdiff_t end = str_find_char(rest, '\n');
			if (end < 0)
				break;
			*open = 0;
			rest = str_slice(rest, (size_t)end + 1, rest.n);
		}
	}
}

int64_t log_frames_time(struct str frames)
{
	struct frame f;
	struct str payload;

	return next_frame(&frames, &f, &payload) ? time_of(&f) : 0;
}

size_t log_chunk_cut(struct str frames)
{
	size_t n = 0;
	struct frame f;
	struct str payload;

	while (next_frame(&frames, &f, &payload)) {
		size_t with = n + FRAME_HEADER + payload.n;
		if (n != 0 && with > LOG_CHUNK_RAW)
			break;
		n = with;
	}
	return n;
}

bool log_frames_from(struct str *frames, int64_t *at, int64_t offset)
{
	struct frame f;
	struct str payload, rest = *frames;

	while (*at < offset && next_frame(&rest, &f, &payload)) {
		*at += (int64_t)(FRAME_HEADER + payload.n);
		*frames = rest;
	}
	return *at == offset;
}

void log_frames_text(struct str frames, int stream, struct buf *out)
{
	struct frame f;
	struct str payload;

	while (next_frame(&frames, &f, &payload))
		if (stream == 0 || f.stream == stream)
			buf_add(out, payload);
}

void log_scan_init(struct log_scan *s, const struct log_place *from, size_t text_max)
{
	*s = (struct log_scan){ .at = *from, .frame_at = from->offset, .text_max = text_max };
	for (int i = 0; i < LOG_STREAMS; i++) {
		struct log_piece *p = &s->piece[i];
		p->number = from->open[i];
		p->headless = p->number != 0;
		buf_init(&p->text, text_max + 64);
	}
}

void log_scan_done(struct log_scan *s)
{
	for (int i = 0; i < LOG_STREAMS; i++)
		buf_done(&s->piece[i].text);
}

static void piece_reset(struct log_piece *p)
{
	buf_clear(&p->text);
	p->more = 0;
	p->headless = false;
}

/* Bytes without '\n' and '\r'. */
static void piece_text(struct log_piece *p, struct str s, size_t text_max)
{
	if (s.n == 0)
		return;
	if (p->cr)
		piece_reset(p);
	p->cr = false;
	size_t room = text_max > p->text.n ? text_max - p->text.n : 0;
	if (s.n > room) {
		p->more += (int64_t)(s.n - room);
		s.n = room;
	}
	buf_add(&p->text, s);
}

static void piece_add(struct log_piece *p, struct str s, size_t text_max)
{
	p->changed = p->changed || s.n != 0;
	for (;;) {
		ptrdiff_t cr = str_find_char(s, '\r');
		piece_text(p, cr < 0 ? s : str_slice(s, 0, (size_t)cr), text_max);
		if (cr < 0)
			return;
		p->cr = true;
		s = str_slice(s, (size_t)cr + 1, s.n);
	}
}

/* What is shown of a piece. The notes are added to its buffer and taken back by the caller. */
static struct log_line piece_line(struct log_piece *p, int stream)
{
	if (p->more != 0)
		buf_addf(&p->text, "… and %lld bytes more", (long long)p->more);
	return (struct log_line){ .line = p->number,
		.time = p->time,
		.stream = stream + 1,
		.text = p->text.n != 0 ? buf_str(&p->text) : STR("") };
}

static void piece_end(struct log_scan *s, int stream)
{
	struct log_piece *p = &s->piece[stream];
	struct log_line line = piece_line(p, stream);

	if (s->on_line != NULL)
		s->on_line(s->arg, &line);
	piece_reset(p);
	p->number = 0;
	p->cr = p->changed = false;
}

static void scan_frame(struct log_scan *s, const struct frame *f, struct str rest)
{
	int stream = f->stream - 1;
	struct log_piece *p = &s->piece[stream];

	while (rest.n != 0) {
		ptrdiff_t end = str_find_char(rest, '\n');
		if (p->number == 0) {
			p->number = ++s->at.lines;
			p->time = time_of(f);
		} else if (p->headless && p->text.n == 0) {
			p->time = time_of(f);
			buf_adds(&p->text, "…");
		}
		s->at.open[stream] = p->number;
		if (end < 0) {
			piece_add(p, rest, s->text_max);
			return;
		}
		piece_add(p, str_slice(rest, 0, (size_t)end), s->text_max);
		s->at.open[stream] = 0;
		piece_end(s, stream);
		rest = str_slice(rest, (size_t)end + 1, rest.n);
	}
}

void log_scan_add(struct log_scan *s, struct str frames)
{
	struct frame f;
	struct str payload;

	while (next_frame(&frames, &f, &payload)) {
		s->frame_at = s->at.offset;
		s->at.offset += (int64_t)(FRAME_HEADER + payload.n);
		scan_frame(s, &f, payload);
	}
}

bool log_scan_open(struct log_scan *s, int stream, struct log_line *ret)
{
	struct log_piece *p = &s->piece[stream];
	size_t n = p->text.n;

	if (p->number == 0)
		return false;
	*ret = piece_line(p, stream);
	ret->open = true;
	p->changed = false;
	p->text.n = n; /* the note may be overwritten by what follows */
	return true;
}
