#include "worker/ship/mask.h"

#include "api/frame.h"
#include "lib/base/mem.h"

enum { STREAMS = 4 };

struct stream {
	size_t matched; /* bytes of the secret that the stream ends with */
	uint64_t count; /* bytes looked at */
	uint64_t decided; /* so many of them are not held back any more */
	uint64_t where[MASK_MAX]; /* offsets of the last ones, by count */
};

struct one {
	size_t n, keep;
	unsigned char text[MASK_MAX];
	uint16_t fall[MASK_MAX]; /* Knuth, Morris, Pratt: where to go on after a mismatch */
	struct stream streams[STREAMS];
};

struct mask {
	struct one *all[MASK_PARTS_MAX];
	struct stream *before[MASK_PARTS_MAX]; /* their streams, to go back to */
	size_t n;
	unsigned char *hide; /* a bit for each byte of the piece; NULL: none is to be hidden */
};

struct piece {
	unsigned char *p;
	size_t n;
	uint64_t offset; /* of p[0] in the spool */
};

struct mask *mask_new(void)
{
	return mem_new_of(struct mask);
}

void mask_free(struct mask *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->n; i++) {
		mem_wipe(m->all[i], sizeof *m->all[i]);
		mem_free(m->all[i]);
		mem_free(m->before[i]);
	}
	mem_free(m);
}

static void add_part(struct mask *m, struct str part, size_t keep)
{
	struct one *o = mem_new_of(struct one);

	o->n = part.n;
	o->keep = keep;
	memcpy(o->text, part.p, part.n);
	for (size_t i = 1, k = 0; i < o->n; i++) {
		while (k > 0 && o->text[i] != o->text[k])
			k = o->fall[k - 1];
		if (o->text[i] == o->text[k])
			k++;
		o->fall[i] = (uint16_t)k;
	}
	m->before[m->n] = mem_new(STREAMS, sizeof(struct stream));
	m->all[m->n++] = o;
}

/* Takes the next part off; false when none is left. */
static bool next_part(struct str *rest, struct str *ret)
{
	if (rest->n < MASK_MIN)
		return false;
	*ret = str_slice(*rest, 0, MASK_MAX);
	/* No part is so short that it would be left out. */
	if (rest->n > ret->n && rest->n - ret->n < MASK_MIN)
		ret->n -= MASK_MIN;
	*rest = str_slice(*rest, ret->n, rest->n);
	return true;
}

size_t mask_parts(struct str secret)
{
	struct str part;
	size_t n = 0;

	while (next_part(&secret, &part))
		n++;
	return n;
}

bool mask_add(struct mask *m, struct str secret, size_t keep)
{
	struct str part;

	while (next_part(&secret, &part)) {
		if (m->n == MASK_PARTS_MAX)
			return false;
		add_part(m, part, keep);
		keep = 0;
	}
	return true;
}

void mask_reset(struct mask *m)
{
	for (size_t i = 0; i < m->n; i++)
		memset(m->all[i]->streams, 0, sizeof m->all[i]->streams);
}

/* The bytes of a stream from the one with this number on, up to the last that was looked at. */
static void hide(struct mask *m, const struct stream *s, uint64_t from, struct piece piece)
{
	if (m->hide == NULL)
		m->hide = mem_new(piece.n / 8 + 1, 1);
	for (; from < s->count; from++) {
		uint64_t at = s->where[from % MASK_MAX];
		if (at >= piece.offset)
			m->hide[(at - piece.offset) / 8] |=
				(unsigned char)(1u << ((at - piece.offset) % 8));
	}
}

/* The payload p[from..to) of a frame. */
static void look_payload(
	struct mask *m, struct one *o, struct stream *s, struct piece piece, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (s->matched == 0) {
			const unsigned char *hit = memchr(piece.p + i, o->text[0], to - i);
			if (hit == NULL)
				return;
			i = (size_t)(hit - piece.p);
		}
		while (s->matched > 0 && piece.p[i] != o->text[s->matched])
			s->matched = o->fall[s->matched - 1];
		if (piece.p[i] == o->text[s->matched])
			s->matched++;
		s->where[s->count++ % MASK_MAX] = piece.offset + i;
		if (s->matched == o->n) {
			hide(m, s, s->count - o->n + o->keep, piece);
			s->matched = o->fall[o->n - 1]; /* the next one may begin within */
		}
	}
}

/* The number of the first byte that the stream ends with and that may be one of a secret; its count
 * when there is none. */
static uint64_t open_from(const struct one *o, const struct stream *s)
{
	uint64_t from = s->count - s->matched + o->keep;

	if (s->matched <= o->keep)
		return s->count;
	return from > s->decided ? from : s->decided;
}

/* A frame begins at `offset`: what has been open for MASK_WINDOW is taken for a secret. */
static void expire(struct mask *m, const struct one *o, struct stream streams[STREAMS],
	struct piece piece, uint64_t offset)
{
	for (size_t k = 0; k < STREAMS; k++) {
		struct stream *s = &streams[k];
		uint64_t from = open_from(o, s);
		if (from == s->count || s->where[from % MASK_MAX] + MASK_WINDOW >= offset)
			continue;
		hide(m, s, from, piece);
		s->decided = s->count;
	}
}

/* Looks for all of them in what is there; nothing is hidden yet, since they may overlap. */
static void look(struct mask *m, struct piece piece)
{
	struct frame f;

	for (size_t i = 0; i < m->n; i++)
		for (size_t at = 0; at + FRAME_HEADER <= piece.n && frame_get(piece.p + at, &f);
			at += FRAME_HEADER + f.length) {
			struct one *o = m->all[i];
			expire(m, o, o->streams, piece, piece.offset + at);
			look_payload(m, o, &o->streams[f.stream], piece, at + FRAME_HEADER,
				at + FRAME_HEADER + f.length);
		}
}

static void apply(struct mask *m, struct piece piece)
{
	for (size_t i = 0; m->hide != NULL && i < piece.n; i++)
		if ((m->hide[i / 8] >> (i % 8) & 1) != 0)
			piece.p[i] = '*';
	mem_free(m->hide);
	m->hide = NULL;
}

/* The offset of the first byte that must not go out yet. */
static uint64_t held_from(const struct mask *m)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < m->n; i++)
		for (size_t k = 0; k < STREAMS; k++) {
			const struct stream *s = &m->all[i]->streams[k];
			uint64_t from = open_from(m->all[i], s);
			if (from != s->count && s->where[from % MASK_MAX] < first)
				first = s->where[from % MASK_MAX];
		}
	return first;
}

static size_t cut_before(struct piece piece, uint64_t held)
{
	size_t cut = 0;
	struct frame f;

	while (cut + FRAME_HEADER <= piece.n && frame_get(piece.p + cut, &f) &&
		piece.offset + cut + FRAME_HEADER + f.length <= held)
		cut += FRAME_HEADER + f.length;
	return cut;
}

size_t mask_frames(struct mask *m, unsigned char *p, size_t n, uint64_t offset, bool last)
{
	struct piece piece = { p, n, offset };
	const size_t size = sizeof m->all[0]->streams;
	uint64_t held;

	if (m->n == 0)
		return n;
	for (size_t i = 0; i < m->n; i++)
		memcpy(m->before[i], m->all[i]->streams, size);
	look(m, piece);
	held = held_from(m);
	if (!last && held < offset + n) {
		/* What was found counts, though its end is held back; where it stands after what
		 * goes out is looked up anew. */
		piece.n = cut_before(piece, held);
		for (size_t i = 0; i < m->n; i++)
			memcpy(m->all[i]->streams, m->before[i], size);
		look(m, piece);
	}
	apply(m, piece);
	return piece.n;
}
