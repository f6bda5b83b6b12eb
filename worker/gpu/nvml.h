/*
 * The part of NVIDIA's management library (NVML API reference) that the inventory needs, as
 * function pointers found by dlsym: no header and no library of the vendor is needed to build.
 * Newer names of a call (_v2, _v3) are taken first; what differs between them is only longer
 * structures, for which callers give room.
 */
#ifndef WORKER_GPU_NVML_H
#define WORKER_GPU_NVML_H
#include "lib/base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum nvml_result {
	NVML_OK = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_NOT_FOUND = 6,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
};

#define NVML_EVENT_XID UINT64_C(8)

struct nvml_device; /* handles that the library gives */
struct nvml_events;

struct nvml_memory {
	uint64_t total, free, used;
};

/* The fields that all versions of the structure share, and room for the longest. */
struct nvml_pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device;
	unsigned char rest[128];
};

struct nvml_event {
	struct nvml_device *device;
	uint64_t type, data;
	unsigned char rest[64];
};

#define NVML_P2P_NVLINK 2 /* what is asked of two devices */
#define NVML_P2P_OK     0 /* the answer: they have it */
#define NVML_SCOPE_NODE 0

struct nvml_use {
	unsigned gpu, memory; /* percent */
};

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error)(int);
	int (*driver)(char *, unsigned);
	int (*count)(unsigned *);
	int (*by_index)(unsigned, struct nvml_device **);
	int (*uuid)(struct nvml_device *, char *, unsigned);
	int (*name)(struct nvml_device *, char *, unsigned);
	int (*memory)(struct nvml_device *, struct nvml_memory *);
	/* These may be missing in old libraries. */
	int (*pci)(struct nvml_device *, struct nvml_pci *);
	int (*compute)(struct nvml_device *, int *, int *);
	int (*use)(struct nvml_device *, struct nvml_use *);
	int (*mig_mode)(struct nvml_device *, unsigned *, unsigned *);
	int (*mig_max)(struct nvml_device *, unsigned *);
	int (*mig_by_index)(struct nvml_device *, unsigned, struct nvml_device **);
	int (*remapped)(struct nvml_device *, unsigned *, unsigned *, unsigned *, unsigned *);
	int (*p2p)(struct nvml_device *, struct nvml_device *, int, int *);
	int (*affinity)(struct nvml_device *, unsigned, unsigned long *, unsigned);
	int (*events_new)(struct nvml_events **);
	int (*events_watch)(struct nvml_device *, unsigned long long, struct nvml_events *);
	int (*events_wait)(struct nvml_events *, struct nvml_event *, unsigned);
	int (*events_free)(struct nvml_events *);
};

/* Opens the library and finds its calls. *ret_found is false when there is no such library. */
int nvml_load(struct nvml *n, const char *library, bool *ret_found, struct err *e) MUST_CHECK;
void nvml_unload(struct nvml *n);

#endif
