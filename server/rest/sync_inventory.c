#include "server/rest/sync.h"

#include "api/worker.h"

static uint64_t hash_number(int64_t n, uint64_t h)
{
	return str_hash((struct str){ (const char *)&n, sizeof n }, h);
}

uint64_t sync_inventory_hash(const struct sync_request *in)
{
	uint64_t h = str_hash(in->release, str_hash(in->boot_id, 0));

	h = hash_number(in->disk_free >> 30, hash_number(in->memory, h));
	h = str_hash((struct str){ (const char *)&in->cpus, sizeof in->cpus }, h);
	h = hash_number((int64_t)in->runtimes.n, h);
	for (size_t i = 0; i < in->runtimes.n; i++)
		h = str_hash(*list_at(&in->runtimes, struct str, i), h);
	h = hash_number((int64_t)in->isolated.n, h);
	for (size_t i = 0; i < in->isolated.n; i++)
		h = str_hash(*list_at(&in->isolated, struct str, i), h);
	h = hash_number((int64_t)in->warnings.n, h);
	for (size_t i = 0; i < in->warnings.n; i++)
		h = str_hash(*list_at(&in->warnings, struct str, i), h);
	for (size_t i = 0; i < in->devices.n; i++) {
		const struct device *d = list_at(&in->devices, struct device, i);
		const struct str texts[] = { d->uuid, d->model, d->driver, d->bus_id, d->health,
			d->mig };

		for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
			h = str_hash(texts[k], h);
		h = hash_number(d->has_numa ? d->numa : -1, hash_number(d->memory, h));
		for (size_t k = 0; k < d->links.n; k++)
			h = str_hash(*list_at(&d->links, struct str, k), h);
	}
	return h | 1;
}
