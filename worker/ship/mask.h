/*
 * Hides a secret in a spool, byte for byte: every occurrence in the output of one stream, also
 * across frames and pieces, becomes its first MASK_KEEP bytes and then '*'. Those first bytes name
 * the kind of token and are no secret; leaving them makes the result the same wherever the pieces
 * are cut, so that a spool that is read again gives the same bytes. Pure.
 */
#ifndef WORKER_SHIP_MASK_H
#define WORKER_SHIP_MASK_H
#include "lib/base/str.h"

enum { MASK_KEEP = 4, MASK_MIN = 8, MASK_MAX = 256, MASK_STREAMS = 4 };

struct mask {
	size_t n; /* bytes of the secret; 0: nothing to hide */
	unsigned char secret[MASK_MAX];
	uint16_t fall[MASK_MAX]; /* Knuth, Morris, Pratt: where to go on after a mismatch */
	struct mask_stream {
		size_t matched; /* bytes of the secret that the stream ends with */
		uint64_t count; /* bytes looked at */
		uint64_t where[MASK_MAX]; /* offsets of the last ones, by count */
	} streams[MASK_STREAMS];
};

/* A secret shorter than MASK_MIN hides nothing; of a longer one than MASK_MAX the start is hidden.
 */
void mask_init(struct mask *m, struct str secret);

/* Masks whole frames that stand at `offset` of the spool, in place. Returns how many of the bytes
 * (whole frames) may go out now: fewer than n when they end within what may be the secret. With
 * `last` nothing follows, and all may go. When fewer than n were returned, the rest must be given
 * again, in front of what follows; the mask remembers only what it let go. */
size_t mask_frames(struct mask *m, unsigned char *p, size_t n, uint64_t offset, bool last);

#endif
