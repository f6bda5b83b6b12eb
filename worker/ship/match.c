#include "worker/ship/match.h"

#include "api/frame.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/regex/regex.h"

enum { STREAMS = FRAME_SYSTEM, BEFORE = 60 };

struct hit {
	int64_t count, told; /* lines; when last told of */
	int64_t line, time, last; /* the first one, the number of the last */
	char text[LOG_MATCH_TEXT + 1];
};

struct open_line {
	int64_t number; /* 0: none */
	int64_t time;
	uint64_t hits; /* bit: policy */
	struct buf piece; /* of a piece that began in an earlier frame */
};

struct match {
	struct list policies;
	struct regex_set *set;
	size_t place[ASSIGNED_POLICIES_MAX]; /* of a pattern of the set: number of its policy */
	size_t n;
	int64_t lines; /* that have started */
	struct open_line open[STREAMS];
	struct hit hits[ASSIGNED_POLICIES_MAX];
};

static struct regex_set *make_set(struct match *m)
{
	const char *patterns[ASSIGNED_POLICIES_MAX];
	char why[REGEX_WHY_MAX];
	size_t bad;

	for (size_t i = 0; i < m->policies.n && i < ASSIGNED_POLICIES_MAX; i++) {
		patterns[m->n] = list_at(&m->policies, struct log_policy, i)->match.p;
		m->place[m->n++] = i;
	}
	for (;;) {
		struct regex_set *s = regex_set_new(patterns, m->n, &bad, why);
		if (s != NULL || m->n == 0)
			return s;
		bad = bad < m->n ? bad : m->n - 1;
		log_warn("log policy left out", LOG_S("match", patterns[bad]), LOG_S("why", why));
		m->n--;
		for (size_t i = bad; i < m->n; i++) {
			patterns[i] = patterns[i + 1];
			m->place[i] = m->place[i + 1];
		}
	}
}

struct match *match_new(const struct list *policies)
{
	struct match *m;

	if (policies->n == 0)
		return NULL;
	m = mem_new_of(struct match);
	m->policies = *policies;
	m->set = make_set(m);
	for (size_t i = 0; i < STREAMS; i++)
		buf_init(&m->open[i].piece, MATCH_PIECE_MAX);
	return m;
}

void match_free(struct match *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < STREAMS; i++)
		buf_done(&m->open[i].piece);
	regex_set_free(m->set);
	mem_free(m);
}

void match_reset(struct match *m)
{
	if (m == NULL)
		return;
	m->lines = 0;
	for (size_t i = 0; i < STREAMS; i++) {
		m->open[i].number = 0;
		m->open[i].hits = 0;
		buf_clear(&m->open[i].piece);
	}
	memset(m->hits, 0, sizeof m->hits);
}

/* What people are shown: about where it matches, without what no text must hold. */
static void keep_text(struct hit *h, struct str piece, size_t at)
{
	size_t from = at > LOG_MATCH_TEXT - BEFORE ? at - BEFORE : 0, n = 0;

	while (from > 0 && from < piece.n && ((unsigned char)piece.p[from] & 0xc0) == 0x80)
		from--;
	struct str part = str_slice(piece, from, LOG_MATCH_TEXT);
	while (part.n > 0 && !str_utf8_valid(part) && n++ < 3)
		part.n--;
	bool valid = str_utf8_valid(part);
	if (!valid)
		part = str_slice(piece, from, LOG_MATCH_TEXT);
	for (size_t i = 0; i < part.n; i++) {
		unsigned char c = (unsigned char)part.p[i];
		h->text[i] = c < 0x20 || c == 0x7f || (!valid && c > 0x7f) ? ' ' : (char)c;
	}
	h->text[part.n] = '\0';
}

static void look(struct match *m, struct open_line *o, struct str piece)
{
	uint64_t bits;

	if (piece.n == 0 || m->set == NULL)
		return;
	piece.n = piece.n < MATCH_PIECE_MAX ? piece.n : MATCH_PIECE_MAX;
	bits = regex_set_matches(m->set, piece.p, piece.n) & ~o->hits;
	o->hits |= bits;
	for (size_t i = 0; bits != 0; i++, bits >>= 1) {
		struct hit *h = &m->hits[i];
		if ((bits & 1) == 0)
			continue;
		h->last = o->number;
		if (h->count++ != 0)
			continue;
		h->line = o->number;
		h->time = o->time;
		keep_text(h, piece, regex_set_find(m->set, i, piece.p, piece.n));
	}
}

/* Bytes of one piece; `ends`: it is over with them. */
static void take(struct match *m, struct open_line *o, struct str s, bool ends)
{
	struct buf *b = &o->piece;

	if (ends && b->n == 0) {
		look(m, o, s);
		return;
	}
	buf_add(b, str_slice(s, 0, MATCH_PIECE_MAX - b->n));
	if (!ends)
		return;
	look(m, o, buf_str(b));
	buf_clear(b);
}

static void line_end(struct open_line *o)
{
	o->number = 0;
	o->hits = 0;
}

static void payload(struct match *m, const struct frame *f, struct str rest)
{
	struct open_line *o = &m->open[f->stream - 1];

	while (rest.n != 0) {
		size_t n = 0;
		while (n < rest.n && rest.p[n] != '\n' && rest.p[n] != '\r')
			n++;
		if (o->number == 0) {
			o->number = ++m->lines;
			o->time = (int64_t)(f->time_us < (uint64_t)CLOCK_END ? f->time_us
									     : CLOCK_END - 1);
		}
		take(m, o, str_slice(rest, 0, n), n < rest.n);
		if (n < rest.n && rest.p[n] == '\n')
			line_end(o);
		rest = str_slice(rest, n + 1, rest.n);
	}
}

void match_frames(struct match *m, const unsigned char *p, size_t n)
{
	struct frame f;

	if (m == NULL)
		return;
	for (size_t at = 0; at + FRAME_HEADER <= n && frame_get(p + at, &f);
		at += FRAME_HEADER + f.length)
		payload(m, &f, (struct str){ (const char *)p + at + FRAME_HEADER, f.length });
}

void match_end(struct match *m)
{
	for (size_t i = 0; m != NULL && i < STREAMS; i++) {
		struct open_line *o = &m->open[i];
		if (o->piece.n != 0)
			take(m, o, STR(""), true);
		line_end(o);
	}
}

bool match_news(const struct match *m, bool counts)
{
	for (size_t i = 0; m != NULL && i < m->n; i++) {
		const struct hit *h = &m->hits[i];
		if (counts ? h->count != h->told : h->count != 0 && h->told == 0)
			return true;
	}
	return false;
}

void match_told(struct match *m)
{
	for (size_t i = 0; m != NULL && i < m->n; i++)
		m->hits[i].told = m->hits[i].count;
}

struct list match_list(const struct match *m, struct arena *a)
{
	struct log_match *all = arena_array_of(a, struct log_match, ASSIGNED_POLICIES_MAX);
	size_t n = 0;

	for (size_t i = 0; m != NULL && i < m->n; i++) {
		const struct hit *h = &m->hits[i];
		const struct log_policy *p = list_at(&m->policies, struct log_policy, m->place[i]);
		if (h->count == 0)
			continue;
		all[n++] = (struct log_match){ .policy = (int64_t)m->place[i],
			.match = p->match,
			.action = p->action,
			.label = p->label,
			.count = h->count,
			.line = h->line,
			.time = h->time,
			.text = arena_str(a, str_c(h->text)) };
	}
	return (struct list){ all, n };
}

int match_near(const struct match *m, const char *label)
{
	for (size_t i = 0; m != NULL && i < m->n; i++) {
		const struct hit *h = &m->hits[i];
		if (h->count != 0 && m->lines - h->last < MATCH_NEAR &&
			str_is(list_at(&m->policies, struct log_policy, m->place[i])->label, label))
			return (int)m->place[i];
	}
	return -1;
}
