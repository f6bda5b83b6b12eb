/*
 * What this host holds that steps need, so that the server may send steps where they need fetch the
 * least: images that were run here, and versions of data sets that were staged, those used last
 * first, kept in WORK/holds.json. Only a hint: an image that was removed is fetched again. Of a
 * data set the largest files are looked for in the cache before it is told. Loop thread only.
 */
#ifndef WORKER_HOLDS_H
#define WORKER_HOLDS_H
#include "api/worker.h"
#include "lib/base/arena.h"

struct cache;
struct hold_list;

enum { HOLD_FILES = 4, HOLD_DIGEST = 65 };

/* A version of a data set that was staged. */
struct hold_data {
	char version[48];
	int64_t bytes;
	struct {
		char digest[HOLD_DIGEST];
		int64_t size;
	} largest[HOLD_FILES]; /* size 0: none */
};
void hold_data_add(struct hold_data *d, const struct file *f);

/* dir: the work folder; borrowed, as the cache. */
struct hold_list *holds_new(const char *dir, const struct cache *cache)
	__attribute__((returns_nonnull));
void holds_free(struct hold_list *h); /* NULL is fine */
void holds_image(struct hold_list *h, struct str image, int64_t bytes); /* it runs here */
void holds_data(struct hold_list *h, const struct hold_data *d);

/* Moves when there is something new to tell, and every now and then. */
uint64_t holds_turn(struct hold_list *h, int64_t now);
/* Looks at the cache. */
void holds_report(struct hold_list *h, struct arena *a, struct holds *ret);

#endif
