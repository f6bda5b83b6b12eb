/* What the kernel counts for the container that the init is PID 1 of: cgroup v2 or v1, whichever is
 * mounted. */
#ifndef WORKER_INIT_CGROUP_H
#define WORKER_INIT_CGROUP_H
#include <stdint.h>

struct cgroup { /* -1: not known; of limits, too: there is none */
	int64_t oom_kills; /* processes that were killed for memory */
	int64_t memory_peak, memory_limit; /* bytes; the peak with caches */
	int64_t read_bytes, written_bytes; /* of block devices */
	int64_t throttled_us; /* time that its processes were held back for the limit of CPUs */
};

void cgroup_read(struct cgroup *ret);

/* What it uses now, and has used since it began. */
struct cgroup_usage { /* -1: not known */
	int64_t cpu_us; /* -1 as well when there is no cgroup of our own to be seen */
	int64_t memory; /* bytes, without files that are only cached */
	int64_t read_bytes, written_bytes, oom_kills;
	int64_t periods, throttled_periods, throttled_us; /* of the limit of processor time */
	int64_t stalled_us; /* in which one of its processes at least waited for memory */
};

void cgroup_usage(struct cgroup_usage *ret);

#endif
