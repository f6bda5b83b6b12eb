/*
 * What a command uses of this host, from what its init tells (CTL_USAGE) to the metrics of its
 * tracking run. Names and units are MLflow's where it has one (megabytes are 10^6 bytes); of a gang
 * each rank is a node of its own: system/rank-1/cpu_utilization_percentage. Pure.
 */
#ifndef WORKER_USAGE_H
#define WORKER_USAGE_H
#include "lib/base/str.h"

#include <stdint.h>

struct usage { /* -1: not known */
	int64_t at_us; /* 0: nothing at all is known */
	bool whole; /* of a container as a whole, which its limits hold for */
	int64_t cpu_us, memory, read_bytes, written_bytes;
	int64_t periods, throttled_periods, throttled_us, oom_kills, stalled_us;
	int64_t received_bytes, sent_bytes;
};

/* What the figures are parts of. */
struct usage_limits {
	double cpus; /* that it may use */
	int64_t memory; /* bytes that it may use */
	int64_t disk_size, disk_free; /* bytes of the file system of its folders; 0: not known */
	bool own_network; /* what goes through the network devices is its own */
};

enum usage_kind {
	USAGE_CPU,
	USAGE_CPU_THROTTLED,
	USAGE_CPU_THROTTLED_TIME,
	USAGE_MEMORY,
	USAGE_MEMORY_PART,
	USAGE_MEMORY_PRESSURE,
	USAGE_OOM_KILLS,
	USAGE_READ,
	USAGE_WRITTEN,
	USAGE_RECEIVED,
	USAGE_SENT,
	USAGE_DISK,
	USAGE_DISK_PART,
	USAGE_DISK_FREE,
	USAGE_GPU, /* this one and those below: of one GPU */
	USAGE_GPU_MEMORY,
	USAGE_GPU_MEMORY_PART,
	USAGE_KIND_COUNT
};

struct usage_point {
	enum usage_kind kind;
	unsigned gpu; /* by its place among those of the attempt */
	double value;
};

enum { USAGE_KEY_MAX = 96, USAGE_POINTS = USAGE_GPU, USAGE_GPU_POINTS = 3 };

void usage_read(struct str text, struct usage *ret);
/* Before the command began. */
struct usage usage_none(int64_t started_us);
/* What the new one says; rates since the earlier one, none when that is not known (at_us 0).
 * Returns how many. */
size_t usage_points(const struct usage *before, const struct usage *now,
	const struct usage_limits *l, struct usage_point out[USAGE_POINTS]);
/* percent and used: -1 when not known. */
size_t usage_gpu_points(unsigned gpu, int percent, int64_t used, int64_t memory,
	struct usage_point out[USAGE_GPU_POINTS]);
/* rank -1: of no gang. */
const char *usage_key(char out[USAGE_KEY_MAX], const struct usage_point *p, int64_t rank);

#endif
