/* Inside worker/runtime: how GPUs are asked of the daemon. */
#ifndef WORKER_RUNTIME_DOCKER_GPUS_H
#define WORKER_RUNTIME_DOCKER_GPUS_H
#include "lib/json/json_read.h"
#include "lib/json/json_write.h"

#define DOCKER_CDI_KIND "nvidia.com/gpu"

enum docker_gpus {
	DOCKER_GPUS_NONE, /* not at all, as far as is known */
	DOCKER_GPUS_HOOK, /* NVIDIA's runtime or hook, by the daemon's own driver */
	DOCKER_GPUS_CDI /* a specification of the Container Device Interface */
};

/* From the daemon's answer to /info and the host's files below `root` ("" but in tests). Reads a
 * few small files. */
enum docker_gpus docker_gpus_how(const struct jsn *info, const char *root);
/* The member DeviceRequests of a HostConfig; nothing without UUIDs. */
void docker_gpus_put(struct jsn_out *w, enum docker_gpus how, const char *const *uuids);

#endif
