/*
 * Bump allocator for one request, one flow or one job. Everything is freed at once by the last
 * drop, which first runs the deferred cleanups, newest first. Sizes that users control are checked
 * against arena_room() first. What passes the limit all the same is still given, so that nobody
 * has to check every piece: arena_check() says so once, and a unit of the database whose arena is
 * past its limit fails and writes nothing (db_send). To be a whole GiB beyond it is a bug and
 * aborts. Not thread-safe: an arena belongs to one thread at a time.
 */
#ifndef LIB_BASE_ARENA_H
#define LIB_BASE_ARENA_H
#include "lib/base/str.h"

struct arena;
struct err;

struct arena *arena_new(size_t limit) __attribute__((returns_nonnull));
void arena_hold(struct arena *a); /* before an asynchronous operation that uses the arena */
void arena_drop(struct arena *a); /* in its completion; NULL is fine */
/* Zeroed, aligned to 16 bytes. */
void *arena_alloc(struct arena *a, size_t n) __attribute__((returns_nonnull));
void *arena_array(struct arena *a, size_t n, size_t size) __attribute__((returns_nonnull));
char *arena_dup(struct arena *a, struct str s)
	__attribute__((returns_nonnull)); /* NUL-terminated */
struct str arena_str(struct arena *a, struct str s); /* a copy as a view */
struct str arena_printf(struct arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void arena_defer(struct arena *a, void (*fn)(void *), void *arg);
size_t arena_used(const struct arena *a);
size_t arena_room(const struct arena *a); /* what is left below the limit, overhead included */
int arena_check(const struct arena *a, struct err *e)
	__attribute__((warn_unused_result)); /* ERR_TOO_LARGE beyond the limit, or when refused */
void arena_refuse(struct arena *a, size_t max); /* a part of it is larger than max, and not whole */
#define arena_new_of(a, type)      ((type *)arena_alloc((a), sizeof(type)))
#define arena_array_of(a, type, n) ((type *)arena_array((a), (n), sizeof(type)))

#endif
