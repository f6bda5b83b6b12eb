/*
 * Growing byte buffer with a ceiling. An append past the ceiling fails and stays failed: append
 * freely, check buf_failed() once. The bytes are always followed by a NUL that is not counted.
 */
#ifndef LIB_BASE_BUF_H
#define LIB_BASE_BUF_H
#include "lib/base/str.h"

struct arena;

struct buf {
	char *p;
	size_t n, cap, max;
	bool failed;
};

/* An embedded buffer that may hold up to max bytes. Nothing is allocated before the first append.
 */
void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory, clears the failure */
void buf_add(struct buf *b, struct str s);
void buf_addc(struct buf *b, char c);
void buf_adds(struct buf *b, const char *z);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for n bytes at the end, to be filled by the caller and counted by buf_grew(); NULL (and the
 * buffer has failed) when that would pass the ceiling. */
char *buf_room(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n);
void buf_drop_front(struct buf *b, size_t n);
bool buf_failed(const struct buf *b);
struct str buf_str(const struct buf *b);
/* Moves the bytes into the arena, with the NUL. What a ceiling has cut short must not be stored: it
 * makes arena_check() fail. */
struct str buf_keep(struct buf *b, struct arena *a);
/* Hands the bytes over (to be freed with mem_free) and leaves the buffer empty. */
char *buf_take(struct buf *b);

#endif
