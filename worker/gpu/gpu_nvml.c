/*
 * The inventory of NVIDIA's devices. Faults come by the driver's event set, which each listing
 * empties: a fault that is the device's own (not the program's) stays with it until the worker
 * starts anew, because only a reset ends it, and a reset needs the device to be free.
 */
#include "lib/base/buf.h"
#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "worker/gpu/gpu.h"
#include "worker/gpu/nvml.h"

enum { EVENTS_PER_LIST = 256, SMALL_FILE = 64, NUMA_MAX = 1023 };
#define PCI_DEVICES "/sys/bus/pci/devices"

struct source {
	struct gpu_source head;
	struct nvml nvml;
	struct nvml_events *events; /* NULL: the driver has none */
	char driver[80];
	struct gpu_device *known; /* what the last listing found */
	size_t n_known;
};

static int nvml_list(
	struct gpu_source *head, struct arena *a, struct gpu_inventory *ret, struct err *e);
static void nvml_close(struct gpu_source *head);

static const struct gpu_ops ops = { "nvml", nvml_list, nvml_close };

/* What a program does to itself: NVIDIA's XID catalogue ("application errors") as its Kubernetes
 * device plugin applies it. All others are faults of the device, its links or its driver. */
static bool xid_is_of_program(uint64_t xid)
{
	return xid == 13 || xid == 31 || xid == 43 || xid == 45 || xid == 68 || xid == 109;
}

static struct gpu_device *find_known(struct source *s, const char *uuid)
{
	for (size_t i = 0; i < s->n_known; i++)
		if (strcmp(s->known[i].uuid, uuid) == 0)
			return &s->known[i];
	return NULL;
}

static void watch(struct source *s, struct nvml_device *handle, const char *uuid)
{
	if (s->events != NULL && find_known(s, uuid) == NULL)
		(void)s->nvml.events_watch(handle, NVML_EVENT_XID, s->events);
}

/* Notes the faults since the last listing with the devices that were known then. */
static void take_events(struct source *s)
{
	char uuid[GPU_UUID_MAX];

	for (int i = 0; s->events != NULL && i < EVENTS_PER_LIST; i++) {
		struct nvml_event event = { .device = NULL };
		if (s->nvml.events_wait(s->events, &event, 0) != NVML_OK)
			return;
		if (event.type != NVML_EVENT_XID || event.device == NULL ||
			s->nvml.uuid(event.device, uuid, sizeof uuid) != NVML_OK)
			continue;
		uuid[sizeof uuid - 1] = '\0';
		struct gpu_device *d = find_known(s, uuid);
		if (d == NULL || (d->xid != 0 && xid_is_of_program(event.data)))
			continue;
		d->xid = (unsigned)event.data;
	}
}

static void set_failed(struct gpu_device *d, enum gpu_health health, const char *why)
{
	d->health = health;
	(void)str_print(d->why, sizeof d->why, "%s", why);
}

static void read_health(struct source *s, struct nvml_device *handle, struct gpu_device *d)
{
	const struct gpu_device *before = find_known(s, d->uuid);
	unsigned corrected, uncorrected, pending = 0, failed = 0;

	d->xid = before != NULL ? before->xid : 0;
	if (s->nvml.remapped != NULL &&
		s->nvml.remapped(handle, &corrected, &uncorrected, &pending, &failed) == NVML_OK) {
		if (failed != 0)
			set_failed(
				d, GPU_FAILED, "its memory has no rows left to replace bad ones");
		else if (pending != 0 && uncorrected != 0)
			set_failed(
				d, GPU_FAILED, "its memory waits for a reset to replace bad rows");
	}
	if (d->xid != 0 && !xid_is_of_program(d->xid)) {
		d->health = GPU_FAILED;
		(void)str_print(d->why, sizeof d->why, "the driver reported fault XID %u", d->xid);
	}
}

static void read_slices(struct source *s, struct nvml_device *handle, struct gpu_device *d)
{
	unsigned current = 0, pending = 0, max = 0;

	if (s->nvml.mig_mode == NULL || s->nvml.mig_max == NULL || s->nvml.mig_by_index == NULL ||
		s->nvml.mig_mode(handle, &current, &pending) != NVML_OK || current == 0)
		return;
	d->mig = true;
	if (s->nvml.mig_max(handle, &max) != NVML_OK)
		return;
	for (unsigned i = 0; i < max && d->n_slices < GPU_SLICES_MAX; i++) {
		struct gpu_slice *slice = &d->slices[d->n_slices];
		struct nvml_device *part;
		struct nvml_memory memory;

		if (s->nvml.mig_by_index(handle, i, &part) != NVML_OK ||
			s->nvml.uuid(part, slice->uuid, sizeof slice->uuid) != NVML_OK)
			continue;
		if (s->nvml.name(part, slice->name, sizeof slice->name) != NVML_OK)
			slice->name[0] = '\0';
		slice->memory = s->nvml.memory(part, &memory) == NVML_OK ? memory.total : 0;
		d->n_slices++;
	}
}

static void read_details(struct source *s, struct nvml_device *handle, struct gpu_device *d)
{
	struct nvml_memory memory;
	struct nvml_pci pci = { .domain = 0 };
	struct nvml_use use;

	if (s->nvml.name(handle, d->model, sizeof d->model) != NVML_OK)
		(void)str_print(d->model, sizeof d->model, "unknown");
	if (s->nvml.memory(handle, &memory) == NVML_OK) {
		d->memory = memory.total;
		d->memory_used = memory.used;
	}
	if (s->nvml.pci != NULL && s->nvml.pci(handle, &pci) == NVML_OK)
		(void)str_print(
			d->pci, sizeof d->pci, "%08x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
	if (s->nvml.compute != NULL)
		(void)s->nvml.compute(handle, &d->compute_major, &d->compute_minor);
	d->utilization =
		s->nvml.use != NULL && s->nvml.use(handle, &use) == NVML_OK ? (int)use.gpu : -1;
	(void)str_print(d->driver, sizeof d->driver, "%s", s->driver);
}

/* As the driver says, or the kernel; a host of one node has no numbers. */
static int read_numa(struct source *s, struct nvml_device *handle, const char *pci)
{
	unsigned long set[16] = { 0 };
	char path[80];
	struct buf text;
	uint64_t node;
	struct err e;
	int numa = -1;

	if (s->nvml.affinity != NULL && s->nvml.affinity(handle, sizeof set / sizeof set[0], set,
						NVML_SCOPE_NODE) == NVML_OK)
		for (unsigned i = 0; i < sizeof set / sizeof set[0]; i++)
			if (set[i] != 0)
				return (int)(i * 64) + __builtin_ctzl(set[i]);
	if (strlen(pci) < 5 ||
		!str_print(path, sizeof path, "%s/%s/numa_node", PCI_DEVICES, pci + 4))
		return -1;
	buf_init(&text, SMALL_FILE);
	if (fs_read(path, &text, &e) == 0) { /* "-1\n" where there is one node only */
		struct str rest = buf_str(&text), line;
		if (str_next(&rest, '\n', &line) && num_parse_u64(line, 0, NUMA_MAX, &node))
			numa = (int)node;
	}
	buf_done(&text);
	return numa;
}

/* False when the device cannot be told apart from others, which is how a lost one answers. */
static bool read_device(
	struct source *s, unsigned index, struct gpu_device *d, struct nvml_device **ret)
{
	struct nvml_device *handle;

	if (s->nvml.by_index(index, &handle) != NVML_OK ||
		s->nvml.uuid(handle, d->uuid, sizeof d->uuid) != NVML_OK)
		return false;
	d->uuid[sizeof d->uuid - 1] = '\0';
	watch(s, handle, d->uuid);
	read_details(s, handle, d);
	d->numa = read_numa(s, handle, d->pci);
	read_health(s, handle, d);
	read_slices(s, handle, d);
	*ret = handle;
	return true;
}

/* Direct ones, and those by way of a switch; partitioned devices have none. */
static void read_links(
	struct source *s, struct gpu_device *devices, struct nvml_device *const *handles, size_t n)
{
	for (size_t i = 0; s->nvml.p2p != NULL && i < n; i++)
		for (size_t k = i + 1; k < n; k++) {
			int status = -1;
			if (devices[i].mig || devices[k].mig ||
				s->nvml.p2p(handles[i], handles[k], NVML_P2P_NVLINK, &status) !=
					NVML_OK ||
				status != NVML_P2P_OK)
				continue;
			devices[i].links |= UINT64_C(1) << k;
			devices[k].links |= UINT64_C(1) << i;
		}
}

static bool is_listed(const struct gpu_device *devices, size_t n, const char *uuid)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(devices[i].uuid, uuid) == 0)
			return true;
	return false;
}

static int nvml_list(
	struct gpu_source *head, struct arena *a, struct gpu_inventory *ret, struct err *e)
{
	struct source *s = (struct source *)(void *)head;
	struct nvml_device *handles[GPU_DEVICES_MAX];
	struct gpu_device *devices;
	unsigned count = 0;
	size_t n = 0;
	int rc = s->nvml.count(&count);

	if (rc != NVML_OK)
		return err_set(e, ERR_IO, "the GPUs cannot be counted: %s", s->nvml.error(rc));
	if (count > GPU_DEVICES_MAX)
		count = GPU_DEVICES_MAX;
	take_events(s);
	devices = arena_array_of(a, struct gpu_device, count + s->n_known);
	for (unsigned i = 0; i < count; i++)
		n += read_device(s, i, &devices[n], &handles[n]);
	read_links(s, devices, handles, n);
	for (size_t i = 0; i < s->n_known; i++) {
		if (is_listed(devices, n, s->known[i].uuid))
			continue;
		devices[n] = s->known[i];
		devices[n].utilization = -1;
		devices[n].links = 0;
		set_failed(&devices[n++], GPU_LOST, "the driver does not reach it any more");
	}
	s->known = mem_resize(s->known, n != 0 ? n : 1, sizeof *s->known);
	memcpy(s->known, devices, n * sizeof *devices);
	s->n_known = n;
	*ret = (struct gpu_inventory){ devices, n };
	return 0;
}

static void nvml_close(struct gpu_source *head)
{
	struct source *s = (struct source *)(void *)head;

	if (s->events != NULL)
		(void)s->nvml.events_free(s->events);
	(void)s->nvml.shutdown();
	nvml_unload(&s->nvml);
	mem_free(s->known);
	mem_free(s);
}

int gpu_nvml_open(const char *library, struct gpu_source **ret, struct err *e)
{
	struct nvml nvml;
	bool found;
	int rc;

	if (nvml_load(&nvml, library, &found, e) < 0)
		return -1;
	rc = found ? nvml.init() : NVML_DRIVER_NOT_LOADED;
	if (rc != NVML_OK) {
		if (found && rc != NVML_DRIVER_NOT_LOADED)
			(void)err_set(
				e, ERR_IO, "the GPU library cannot be started: %s", nvml.error(rc));
		if (found)
			nvml_unload(&nvml);
		if (rc != NVML_DRIVER_NOT_LOADED)
			return -1;
		*ret = NULL;
		return 0;
	}
	struct source *s = mem_new_of(struct source);
	s->head.ops = &ops;
	s->nvml = nvml;
	if (nvml.driver(s->driver, sizeof s->driver) != NVML_OK)
		s->driver[0] = '\0';
	if (nvml.events_new == NULL || nvml.events_watch == NULL || nvml.events_wait == NULL ||
		nvml.events_free == NULL || nvml.events_new(&s->events) != NVML_OK)
		s->events = NULL;
	*ret = &s->head;
	return 0;
}
