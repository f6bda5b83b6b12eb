#include "worker/ship/mask.h"

#include "api/frame.h"

void mask_init(struct mask *m, struct str secret)
{
	*m = (struct mask){ .n = 0 };
	if (secret.n < MASK_MIN)
		return;
	m->n = secret.n < MASK_MAX ? secret.n : MASK_MAX;
	memcpy(m->secret, secret.p, m->n);
	for (size_t i = 1, k = 0; i < m->n; i++) {
		while (k > 0 && m->secret[i] != m->secret[k])
			k = m->fall[k - 1];
		if (m->secret[i] == m->secret[k])
			k++;
		m->fall[i] = (uint16_t)k;
	}
}

struct piece {
	unsigned char *p;
	uint64_t offset; /* of p[0] in the spool */
};

static void hide(const struct mask *m, const struct mask_stream *s, struct piece piece)
{
	for (size_t i = MASK_KEEP; i < m->n; i++) {
		uint64_t at = s->where[(s->count - m->n + i) % MASK_MAX];
		if (at >= piece.offset)
			piece.p[at - piece.offset] = '*';
	}
}

/* The payload p[from..to) of a frame. */
static void mask_payload(
	const struct mask *m, struct mask_stream *s, struct piece piece, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (s->matched == 0) {
			const unsigned char *hit = memchr(piece.p + i, m->secret[0], to - i);
			if (hit == NULL)
				return;
			i = (size_t)(hit - piece.p);
		}
		while (s->matched > 0 && piece.p[i] != m->secret[s->matched])
			s->matched = m->fall[s->matched - 1];
		if (piece.p[i] == m->secret[s->matched])
			s->matched++;
		s->where[s->count++ % MASK_MAX] = piece.offset + i;
		if (s->matched == m->n) {
			hide(m, s, piece);
			s->matched = 0;
		}
	}
}

static void mask_range(struct mask *m, struct piece piece, size_t n)
{
	struct frame f;

	for (size_t at = 0; at + FRAME_HEADER <= n && frame_get(piece.p + at, &f);
		at += FRAME_HEADER + f.length)
		mask_payload(m, &m->streams[f.stream], piece, at + FRAME_HEADER,
			at + FRAME_HEADER + f.length);
}

/* The offset of the first byte that must not go out yet. */
static uint64_t held_from(const struct mask *m)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < MASK_STREAMS; i++) {
		const struct mask_stream *s = &m->streams[i];
		if (s->matched <= MASK_KEEP)
			continue;
		uint64_t at = s->where[(s->count - s->matched + MASK_KEEP) % MASK_MAX];
		if (at < first)
			first = at;
	}
	return first;
}

size_t mask_frames(struct mask *m, unsigned char *p, size_t n, uint64_t offset, bool last)
{
	struct piece piece = { p, offset };
	size_t cut = 0;
	uint64_t held;
	struct frame f;

	if (m->n == 0)
		return n;
	const struct mask before = *m;
	mask_range(m, piece, n);
	held = held_from(m);
	if (last || held >= offset + n)
		return n;
	while (cut + FRAME_HEADER <= n && frame_get(p + cut, &f) &&
		offset + cut + FRAME_HEADER + f.length <= held)
		cut += FRAME_HEADER + f.length;
	*m = before;
	mask_range(m, piece, cut);
	return cut;
}
