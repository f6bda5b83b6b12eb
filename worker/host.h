/* Facts about this host. Reads a few small files of the kernel; may be called from the loop. */
#ifndef WORKER_HOST_H
#define WORKER_HOST_H
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { HOST_BOOT_ID_MAX = 40 };

struct host {
	char boot_id[HOST_BOOT_ID_MAX]; /* changes when the host restarts */
	double cpus; /* that this process may use: affinity and cgroup */
	int64_t memory; /* bytes: the host's, or the cgroup's limit */
};

int host_read(struct host *ret, struct err *e) MUST_CHECK;
/* Of the file system that holds the path; false when it cannot be looked at. */
bool host_disk(const char *path, int64_t *ret_size, int64_t *ret_free);
int64_t host_disk_free(const char *path); /* bytes that we may still write; 0 when unknown */

#endif
