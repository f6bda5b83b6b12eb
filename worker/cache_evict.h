/* Inside the cache: removes what nobody uses, least recently used first, until the rest is not
 * larger than the limit, and the disk has room. Blocking. */
#ifndef WORKER_CACHE_EVICT_H
#define WORKER_CACHE_EVICT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* (any thread) How many bytes have to go from the disk, whoever they belong to; not above 0: none.
 * `begun`: some have been removed already, so down to where that ends. */
typedef int64_t cache_excess_fn(void *arg, bool begun);

struct cache_evict {
	const char *dir; /* of the cache */
	int64_t max;
	cache_excess_fn *excess; /* NULL: the disk is no concern */
	void *arg;
	int64_t bytes; /* what is left */
	size_t removed;
};

void cache_evict_run(struct cache_evict *v);

#endif
