/*
 * The GPUs of this host. A source is one vendor's library, found at run time: a host without it
 * has no GPUs, and that is not an error.
 *
 * Calls may block for seconds (a driver that wakes a device, a device that fell off the bus): use
 * them from a work thread. A source belongs to one thread at a time. Results live in the arena that
 * the caller gives.
 */
#ifndef WORKER_GPU_GPU_H
#define WORKER_GPU_GPU_H
#include "lib/base/arena.h"
#include "lib/base/err.h"

enum { GPU_DEVICES_MAX = 64, GPU_SLICES_MAX = 16 };
enum { GPU_UUID_MAX = 96, GPU_NAME_MAX = 96, GPU_WHY_MAX = 96 };

/* GPU_FAILED: not to be given to new work; what runs on it has failed or will. GPU_LOST: it was
 * there before and cannot be reached any more. */
enum gpu_health { GPU_OK, GPU_FAILED, GPU_LOST, GPU_HEALTH_COUNT };

/* A MIG device: addressed by its own UUID, like a GPU. */
struct gpu_slice {
	char uuid[GPU_UUID_MAX];
	char name[GPU_NAME_MAX]; /* "NVIDIA H200 MIG 1g.18gb" */
	uint64_t memory; /* bytes */
};

struct gpu_device {
	char uuid[GPU_UUID_MAX]; /* "GPU-…": how runtimes and the server name it */
	char model[GPU_NAME_MAX]; /* "NVIDIA H200" */
	char driver[80];
	char pci[32]; /* "00000000:4e:00.0" */
	char why[GPU_WHY_MAX]; /* why it is not healthy, in words; "" when it is */
	enum gpu_health health;
	unsigned xid; /* the last fault that the driver reported since we watch; 0: none */
	int compute_major, compute_minor; /* CUDA compute capability; 0.0: unknown */
	uint64_t memory, memory_used; /* bytes; 0: unknown */
	int utilization; /* percent; -1: unknown */
	int numa; /* the nearest node of the host's memory; -1: unknown */
	uint64_t links; /* bit i: it has NVLink to the inventory's device i */
	bool mig; /* partitioned: only its slices can be used */
	size_t n_slices;
	struct gpu_slice slices[GPU_SLICES_MAX];
};

struct gpu_inventory {
	const struct gpu_device *devices;
	size_t n;
};

struct gpu_source;

struct gpu_ops {
	const char *name; /* "nvml" */
	int (*list)(struct gpu_source *s, struct arena *a, struct gpu_inventory *ret,
		struct err *e) MUST_CHECK;
	void (*close)(struct gpu_source *s);
};

/* The head of every source. */
struct gpu_source {
	const struct gpu_ops *ops;
};

/* NVIDIA's, from `library` or, when that is NULL or "", "libnvidia-ml.so.1". Gives NULL in *ret
 * when there is no such library or no driver behind it; fails when a library that is there cannot
 * be used. */
int gpu_nvml_open(const char *library, struct gpu_source **ret, struct err *e) MUST_CHECK;

/* What is there now, in the library's order, with the faults reported since the last call; devices
 * seen before and gone now are listed as GPU_LOST. NULL lists nothing. */
int gpu_list(
	struct gpu_source *s, struct arena *a, struct gpu_inventory *ret, struct err *e) MUST_CHECK;
void gpu_close(struct gpu_source *s); /* NULL is fine */

const char *gpu_health_name(enum gpu_health h); /* "ok", "failed", "lost" */

#endif
