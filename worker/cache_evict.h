/* Inside the cache: removes what nobody uses, least recently used first, until the rest is not
 * larger than the limit. Blocking. */
#ifndef WORKER_CACHE_EVICT_H
#define WORKER_CACHE_EVICT_H
#include <stddef.h>
#include <stdint.h>

struct cache_evict {
	const char *dir; /* of the cache */
	int64_t max;
	int64_t spare; /* bytes that go in any case, as far as nobody uses them */
	int64_t bytes; /* what is left */
	size_t removed;
};

void cache_evict_run(struct cache_evict *v);

#endif
