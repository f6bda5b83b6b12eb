/*
 * A library that plays NVIDIA's NVML for hosts without a GPU. The variables are read at each call:
 *
 *     FAKE_NVML_GPUS=N          number of devices (0)
 *     FAKE_NVML_MODEL=NAME      of all of them ("NVIDIA H100 80GB HBM3")
 *     FAKE_NVML_MEMORY=BYTES    of each (85899345920)
 *     FAKE_NVML_MIG=N           the first device is cut into N slices
 *     FAKE_NVML_LOST=I          device I cannot be reached
 *     FAKE_NVML_ROWS=I          device I has memory rows that cannot be replaced
 *     FAKE_NVML_NUMA=N          devices by turns in blocks of N: N on node 0, N on node 1, …
 *     FAKE_NVML_LINKS=N         NVLink among devices in blocks of N
 *     FAKE_NVML_XID=I:XID       device I reports a fault, once after each change of the variable
 *     FAKE_NVML_USE=FILE        the file holds the use of all devices in percent (10 and a device's
 * number) FAKE_NVML_INIT=CODE       what nvmlInit answers (0)
 *
 * Built with FAKE_NVML_OLD it has the names of early drivers only.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 64, SLICES = 7, NOT_SUPPORTED = 3, NOT_FOUND = 6, TIMEOUT = 10, LOST = 15 };

struct fake {
	unsigned index;
	int slice; /* -1: a whole device */
};

struct memory {
	uint64_t total, free, used;
};

struct pci {
	char legacy[16];
	unsigned domain, bus, device, ids[2];
	char bus_id[32];
};

static struct fake devices[DEVICES];
static char reported[64];

/* The digits at *p, which is moved behind them. */
static uint64_t digits(const char **p)
{
	uint64_t v = 0;

	for (; **p >= '0' && **p <= '9'; ++*p)
		v = v * 10 + (uint64_t)(**p - '0');
	return v;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' ? digits(&value) : otherwise;
}

static int answer(char *out, unsigned size, const char *text)
{
	if (strlen(text) >= size)
		return 7;
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

#ifdef FAKE_NVML_OLD
#define VERSIONED(old, new) old
#else
#define VERSIONED(old, new) new
#endif

int VERSIONED(nvmlInit, nvmlInit_v2)(void)
{
	return (int)number("FAKE_NVML_INIT", 0);
}

int nvmlShutdown(void)
{
	reported[0] = '\0';
	return 0;
}

const char *nvmlErrorString(int code)
{
	return code == LOST ? "GPU is lost" : "a fake error";
}

int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
	return answer(out, size, "535.104.05");
}

int VERSIONED(nvmlDeviceGetCount, nvmlDeviceGetCount_v2)(unsigned *ret)
{
	*ret = (unsigned)number("FAKE_NVML_GPUS", 0);
	return 0;
}

int VERSIONED(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2)(
	unsigned i, struct fake **ret)
{
	if (i >= DEVICES || i >= number("FAKE_NVML_GPUS", 0))
		return NOT_FOUND;
	if (i == number("FAKE_NVML_LOST", DEVICES))
		return LOST;
	devices[i] = (struct fake){ i, -1 };
	*ret = &devices[i];
	return 0;
}

int nvmlDeviceGetUUID(struct fake *d, char *out, unsigned size)
{
	char text[64];

	(void)snprintf(text, sizeof text, "%s-%08x-0000-4000-8000-%012x",
		d->slice < 0 ? "GPU" : "MIG", d->index, (unsigned)(d->slice + 1));
	return answer(out, size, text);
}

int nvmlDeviceGetName(struct fake *d, char *out, unsigned size)
{
	const char *model = getenv("FAKE_NVML_MODEL");
	char text[96];

	(void)snprintf(text, sizeof text, "%.60s%s",
		model != NULL ? model : "NVIDIA H100 80GB HBM3",
		d->slice < 0 ? "" : " MIG 1g.10gb");
	return answer(out, size, text);
}

int nvmlDeviceGetMemoryInfo(struct fake *d, struct memory *ret)
{
	uint64_t total = number("FAKE_NVML_MEMORY", UINT64_C(80) << 30);

	total = d->slice < 0 ? total : total / 8;
	*ret = (struct memory){ total, total - (1 << 20), 1 << 20 };
	return 0;
}

int VERSIONED(nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v3)(struct fake *d, struct pci *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->bus = 0x10 + d->index;
	return 0;
}

#ifndef FAKE_NVML_OLD
static struct fake slices[SLICES];

struct event {
	struct fake *device;
	unsigned long long type, data;
	unsigned instances[2];
};

struct use {
	unsigned gpu, memory;
};

int nvmlDeviceGetCudaComputeCapability(struct fake *d, int *major, int *minor)
{
	(void)d;
	*major = 9;
	*minor = 0;
	return 0;
}

int nvmlDeviceGetUtilizationRates(struct fake *d, struct use *ret)
{
	const char *path = getenv("FAKE_NVML_USE");
	FILE *f = path != NULL ? fopen(path, "re") : NULL;

	*ret = (struct use){ 10 + d->index, 5 };
	if (f != NULL) {
		char text[16] = "";
		const char *p = fgets(text, sizeof text, f);
		if (p != NULL)
			ret->gpu = (unsigned)digits(&p);
		(void)fclose(f);
	}
	return 0;
}

int nvmlDeviceGetMigMode(struct fake *d, unsigned *current, unsigned *pending)
{
	*current = *pending = d->index == 0 && number("FAKE_NVML_MIG", 0) != 0;
	return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(struct fake *d, unsigned *ret)
{
	(void)d;
	*ret = SLICES;
	return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct fake *d, unsigned i, struct fake **ret)
{
	if (i >= SLICES || i >= number("FAKE_NVML_MIG", 0))
		return NOT_FOUND;
	slices[i] = (struct fake){ d->index, (int)i };
	*ret = &slices[i];
	return 0;
}

int nvmlDeviceGetRemappedRows(struct fake *d, unsigned *corrected, unsigned *uncorrected,
	unsigned *pending, unsigned *failed)
{
	*corrected = *uncorrected = *pending = 0;
	*failed = d->index == number("FAKE_NVML_ROWS", DEVICES);
	return 0;
}

/* 2: whether the two have NVLink; 0: they have, 1: not supported. */
int nvmlDeviceGetP2PStatus(struct fake *a, struct fake *b, int what, int *ret)
{
	uint64_t block = number("FAKE_NVML_LINKS", 0);

	if (what != 2)
		return NOT_SUPPORTED;
	*ret = block == 0 || a->index / block != b->index / block;
	return 0;
}

int nvmlDeviceGetMemoryAffinity(struct fake *d, unsigned size, unsigned long *set, unsigned scope)
{
	uint64_t block = number("FAKE_NVML_NUMA", 0), node;

	if (block == 0 || scope != 0)
		return NOT_SUPPORTED;
	node = d->index / block;
	memset(set, 0, size * sizeof *set);
	set[node / 64] |= 1UL << node % 64;
	return 0;
}

int nvmlEventSetCreate(void **ret)
{
	*ret = &reported;
	return 0;
}

int nvmlEventSetFree(void *set)
{
	(void)set;
	return 0;
}

int nvmlDeviceRegisterEvents(struct fake *d, unsigned long long types, void *set)
{
	(void)d, (void)set;
	return types == 8 ? 0 : NOT_SUPPORTED;
}

int nvmlEventSetWait_v2(void *set, struct event *ret, unsigned timeout)
{
	const char *xid = getenv("FAKE_NVML_XID");

	(void)set, (void)timeout;
	if (xid == NULL || strcmp(xid, reported) == 0)
		return TIMEOUT;
	(void)snprintf(reported, sizeof reported, "%s", xid);
	uint64_t index = digits(&xid);
	if (index >= DEVICES || *xid != ':')
		return TIMEOUT;
	memset(ret, 0, sizeof *ret);
	devices[index] = (struct fake){ (unsigned)index, -1 };
	ret->device = &devices[index];
	ret->type = 8;
	xid++;
	ret->data = digits(&xid);
	return 0;
}
#endif
