/*
 * Hides secrets in a spool, byte for byte: every occurrence in the output of one stream, also
 * across frames and pieces, becomes as many '*', after its first `keep` bytes. Of a token those
 * name its kind and are no secret; what keeps nothing holds output back that ends with its first
 * byte. What may be the head of a secret is held back until that is known; when MASK_WINDOW bytes
 * of the spool have followed, from other streams, it is hidden. The result is the same wherever the
 * pieces are cut, so that a spool that is read again gives the same bytes, and secrets that overlap
 * are all hidden. Pure.
 */
#ifndef WORKER_SHIP_MASK_H
#define WORKER_SHIP_MASK_H
#include "lib/base/str.h"

enum { MASK_KEEP = 4, MASK_MIN = 8, MASK_MAX = 256, MASK_PARTS_MAX = 512 };
enum { MASK_WINDOW = 512 << 10 };

struct mask;

struct mask *mask_new(void) __attribute__((returns_nonnull));
void mask_free(struct mask *m); /* wipes it; NULL is fine */
/* One of less than MASK_MIN bytes hides nothing. A longer one than MASK_MAX is hidden in parts of
 * that length; what exceeds MASK_PARTS_MAX parts in all is not, and false is returned. */
bool mask_add(struct mask *m, struct str secret, size_t keep);
size_t mask_parts(struct str secret); /* that it takes of them */
void mask_reset(struct mask *m); /* the spool is read from its start again */

/* Masks whole frames that stand at `offset` of the spool, in place. Returns how many of the bytes
 * (whole frames) may go out now: fewer than n when they end within what may be a secret. With
 * `last` nothing follows, and all may go. When fewer than n were returned, the rest must be given
 * again, in front of what follows; the mask remembers only what it let go. */
size_t mask_frames(struct mask *m, unsigned char *p, size_t n, uint64_t offset, bool last);

#endif
