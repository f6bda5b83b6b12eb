/* How much the init has read of the command's output, in memory that outlives the init (ctl.h): so
 * that it is known what an init that was killed has taken along. */
#ifndef WORKER_INIT_TAKEN_H
#define WORKER_INIT_TAKEN_H
#include <stdint.h>

struct taken {
	uint64_t out, err; /* bytes */
};

/* Never NULL: without room on the disk it is memory of our own. For writing whole values only: what
 * stood there may be gone at any store. */
struct taken *taken_open(int dirfd);

#endif
