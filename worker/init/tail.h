/*
 * The end of an output that is longer than its log may be: the last bytes, as frames, in memory.
 * What is older gives way.
 */
#ifndef WORKER_INIT_TAIL_H
#define WORKER_INIT_TAIL_H
#include "api/frame.h"

#include <sys/types.h>

enum { TAIL_MAX = 256 * 1024, TAIL_FRAME = 4096 };

struct tail {
	uint64_t max; /* bytes of output to be kept, up to TAIL_MAX */
	uint64_t kept; /* bytes of output that are there */
	uint64_t dropped; /* that have given way */
	size_t n, last; /* bytes in buf; where the newest frame begins */
	unsigned char buf[3 * TAIL_MAX];
};

/* One read(2) of fd, at most TAIL_FRAME bytes; what read returned. */
ssize_t tail_read(struct tail *t, int fd, struct frame head);
/* Cuts it to `max` bytes of output. The frames are buf[0..n). */
void tail_trim(struct tail *t);

#endif
