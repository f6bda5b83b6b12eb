/*
 * The content-addressed cache: WORK/cache/sha256/ab/DIGEST, files of mode 0444 whose bytes were
 * checked against their name before they got it. One download serves all who wait for it. Files
 * that no attempt has linked are removed, least recently used first, when all together are larger
 * than the limit; never while somebody stages (cache_hold). Loop thread only, but for cache_path
 * and cache_place.
 */
#ifndef WORKER_CACHE_H
#define WORKER_CACHE_H
#include "lib/base/err.h"
#include "lib/base/str.h"

struct loop;
struct fetch_client;
struct cache;
struct cache_wait;

struct cache_args {
	struct loop *loop;
	struct fetch_client *http;
	const char *dir; /* of the cache; made when it is not there */
	int64_t max; /* bytes */
	int64_t (*excess)(void *arg, bool begun); /* of the disk: cache_evict.h */
	void *arg;
};

struct cache *cache_new(const struct cache_args *a, struct err *e) MUST_CHECK;
bool cache_busy(const struct cache *c); /* something is on its way */
void cache_free(struct cache *c); /* not busy, after all waits have ended; NULL is fine */

struct cache_want {
	const char *attempt; /* who asks the server for it */
	int64_t epoch;
	struct str digest;
	int64_t size;
};

/* The bytes are there now, or why not: ERR_SUPERSEDED, ERR_NO_SPACE, ERR_CORRUPT, ERR_CANCELLED, or
 * the server's refusal. Trouble on the way is tried again without end: cancel when it takes too
 * long. Once, never inside a call. */
typedef void cache_cb(void *arg, const struct err *e);
struct cache_wait *cache_get(struct cache *c, const struct cache_want *w, cache_cb *done, void *arg)
	__attribute__((returns_nonnull));
void cache_cancel(struct cache_wait *w); /* done comes soon, with ERR_CANCELLED */

/* The disk is full: what no attempt uses is to go, soon, as long as there is an excess. */
void cache_relieve(struct cache *c);

/* Nothing is removed between these. */
void cache_hold(struct cache *c);
void cache_release(struct cache *c);

enum { CACHE_PATH_MAX = 512 };
const char *cache_path(const struct cache *c, struct str digest, char out[CACHE_PATH_MAX]);
/* (blocks) Puts the file at `path`, which must not exist, for reading only: by a hard link when
 * `link` (whoever reads it must not own it), else as a copy. ERR_NOT_FOUND when it is not here. */
int cache_place(const struct cache *c, struct str digest, const char *path, bool link,
	struct err *e) MUST_CHECK;

#endif
