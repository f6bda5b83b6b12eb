#include "worker/gpu/nvml.h"

#include "lib/base/str.h"

#include <dlfcn.h>
#include <unistd.h>

/* Newest name first. The first nine are needed. */
enum { NVML_NEEDED = 9 };

#define CALL(member, ...)                                                                          \
	{                                                                                          \
		offsetof(struct nvml, member),                                                     \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static const struct {
	size_t offset;
	const char *names[4];
} calls[] = {
	CALL(init, "nvmlInit_v2", "nvmlInit"),
	CALL(shutdown, "nvmlShutdown"),
	CALL(error, "nvmlErrorString"),
	CALL(driver, "nvmlSystemGetDriverVersion"),
	CALL(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
	CALL(by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
	CALL(uuid, "nvmlDeviceGetUUID"),
	CALL(name, "nvmlDeviceGetName"),
	CALL(memory, "nvmlDeviceGetMemoryInfo"),
	CALL(pci, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"),
	CALL(compute, "nvmlDeviceGetCudaComputeCapability"),
	CALL(use, "nvmlDeviceGetUtilizationRates"),
	CALL(mig_mode, "nvmlDeviceGetMigMode"),
	CALL(mig_max, "nvmlDeviceGetMaxMigDeviceCount"),
	CALL(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex"),
	CALL(remapped, "nvmlDeviceGetRemappedRows"),
	CALL(p2p, "nvmlDeviceGetP2PStatus"),
	CALL(affinity, "nvmlDeviceGetMemoryAffinity"),
	CALL(events_new, "nvmlEventSetCreate"),
	CALL(events_watch, "nvmlDeviceRegisterEvents"),
	CALL(events_wait, "nvmlEventSetWait_v2", "nvmlEventSetWait"),
	CALL(events_free, "nvmlEventSetFree"),
};

static void *find(void *library, const char *const names[4])
{
	void *symbol = NULL;

	for (size_t i = 0; i < 4 && names[i] != NULL && symbol == NULL; i++)
		symbol = dlsym(library, names[i]);
	return symbol;
}

int nvml_load(struct nvml *n, const char *library, bool *ret_found, struct err *e)
{
	bool given = library != NULL && library[0] != '\0';
	struct nvml found = { .library = NULL };

	*ret_found = false;
	found.library = dlopen(given ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (found.library == NULL) {
		const char *why = dlerror();
		/* Not there is an answer; there but broken is a fault. */
		if (given && access(library, F_OK) == 0)
			return err_set(e, ERR_IO, "the GPU library cannot be loaded: %s",
				why != NULL ? why : "unknown error");
		return 0;
	}
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		void *symbol = find(found.library, calls[i].names);
		if (symbol == NULL && i < NVML_NEEDED) {
			(void)dlclose(found.library);
			return err_set(e, ERR_IO, "the GPU library has no %s", calls[i].names[0]);
		}
		memcpy((char *)&found + calls[i].offset, &symbol, sizeof symbol);
	}
	*n = found;
	*ret_found = true;
	return 0;
}

void nvml_unload(struct nvml *n)
{
	if (n->library != NULL)
		(void)dlclose(n->library);
	n->library = NULL;
}
