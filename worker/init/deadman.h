/* The deadman: how long the worker has been silent, by the file that it touches. */
#ifndef WORKER_INIT_DEADMAN_H
#define WORKER_INIT_DEADMAN_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct deadman {
	int dirfd;
	int64_t limit_us; /* 0: never expires */
	int64_t touched; /* when the last touch was, on the elapsed clock */
	int64_t checked; /* when we looked last */
	struct timespec mtime;
};

void deadman_init(struct deadman *d, int dirfd, int64_t limit_us);
/* True when the worker has been silent for longer than the limit. */
bool deadman_expired(struct deadman *d);
/* When to look again, on the elapsed clock; 0: never. */
int64_t deadman_due(const struct deadman *d);

#endif
