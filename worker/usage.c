#include "worker/usage.h"

#include "api/worker.h"
#include "lib/base/num.h"

#define MEGABYTE 1e6

static const char *const names[USAGE_KIND_COUNT] = {
	[USAGE_CPU] = "cpu_utilization_percentage",
	[USAGE_CPU_THROTTLED] = "cpu_throttled_percentage",
	[USAGE_CPU_THROTTLED_TIME] = "cpu_throttled_seconds",
	[USAGE_MEMORY] = "system_memory_usage_megabytes",
	[USAGE_MEMORY_PART] = "system_memory_usage_percentage",
	[USAGE_MEMORY_PRESSURE] = "memory_pressure_percentage",
	[USAGE_OOM_KILLS] = "memory_oom_kills",
	[USAGE_READ] = "disk_read_megabytes",
	[USAGE_WRITTEN] = "disk_write_megabytes",
	[USAGE_RECEIVED] = "network_receive_megabytes",
	[USAGE_SENT] = "network_transmit_megabytes",
	[USAGE_DISK] = "disk_usage_megabytes",
	[USAGE_DISK_PART] = "disk_usage_percentage",
	[USAGE_DISK_FREE] = "disk_available_megabytes",
	[USAGE_GPU] = "utilization_percentage",
	[USAGE_GPU_MEMORY] = "memory_usage_megabytes",
	[USAGE_GPU_MEMORY_PART] = "memory_usage_percentage",
};

void usage_read(struct str text, struct usage *ret)
{
	struct usage u = { 0, false, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };
	const struct {
		const char *name;
		int64_t *to;
	} numbers[] = { { "at_us", &u.at_us }, { "cpu_us", &u.cpu_us }, { "memory", &u.memory },
		{ "read_bytes", &u.read_bytes }, { "written_bytes", &u.written_bytes },
		{ "periods", &u.periods }, { "throttled_periods", &u.throttled_periods },
		{ "throttled_us", &u.throttled_us }, { "oom_kills", &u.oom_kills },
		{ "stalled_us", &u.stalled_us }, { "received_bytes", &u.received_bytes },
		{ "sent_bytes", &u.sent_bytes } };
	struct str line;

	while (str_next(&text, '\n', &line)) {
		ptrdiff_t at = str_find_char(line, '=');
		if (at <= 0)
			continue;
		struct str key = str_slice(line, 0, (size_t)at);
		struct str value = str_slice(line, (size_t)at + 1, line.n);
		if (str_is(key, "scope"))
			u.whole = str_is(value, "cgroup");
		for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
			if (str_is(key, numbers[k].name))
				(void)num_parse_i64(value, 0, INT64_MAX, numbers[k].to);
	}
	*ret = u;
}

struct usage usage_none(int64_t started_us)
{
	return (struct usage){ .at_us = started_us };
}

struct points {
	struct usage_point *p;
	size_t n;
};

static void add(struct points *all, enum usage_kind kind, double value)
{
	all->p[all->n++] = (struct usage_point){ kind, 0, value };
}

static void add_bytes(struct points *all, enum usage_kind kind, int64_t bytes)
{
	if (bytes >= 0)
		add(all, kind, (double)bytes / MEGABYTE);
}

/* How much a count has grown; -1 when that is not known. */
static double grown(int64_t before, int64_t now)
{
	return before < 0 || now < before ? -1 : (double)(now - before);
}

static void add_rates(struct points *all, const struct usage *before, const struct usage *now,
	const struct usage_limits *l)
{
	double time = grown(before->at_us, now->at_us);
	double cpu = grown(before->cpu_us, now->cpu_us);
	double periods = grown(before->periods, now->periods);
	double throttled = grown(before->throttled_periods, now->throttled_periods);
	double stalled = grown(before->stalled_us, now->stalled_us);

	if (before->at_us == 0 || time <= 0)
		return;
	if (cpu >= 0 && l->cpus > 0)
		add(all, USAGE_CPU, 100 * cpu / (time * l->cpus));
	if (periods > 0 && throttled >= 0)
		add(all, USAGE_CPU_THROTTLED, 100 * throttled / periods);
	if (stalled >= 0)
		add(all, USAGE_MEMORY_PRESSURE, 100 * stalled / time);
}

size_t usage_points(const struct usage *before, const struct usage *now,
	const struct usage_limits *l, struct usage_point out[USAGE_POINTS])
{
	struct points all = { out, 0 };

	add_rates(&all, before, now, l);
	if (now->periods > 0 && now->throttled_us >= 0)
		add(&all, USAGE_CPU_THROTTLED_TIME, (double)now->throttled_us / 1e6);
	add_bytes(&all, USAGE_MEMORY, now->memory);
	if (now->memory >= 0 && l->memory > 0)
		add(&all, USAGE_MEMORY_PART, 100 * (double)now->memory / (double)l->memory);
	if (now->oom_kills > 0)
		add(&all, USAGE_OOM_KILLS, (double)now->oom_kills);
	add_bytes(&all, USAGE_READ, now->read_bytes);
	add_bytes(&all, USAGE_WRITTEN, now->written_bytes);
	if (l->own_network) {
		add_bytes(&all, USAGE_RECEIVED, now->received_bytes);
		add_bytes(&all, USAGE_SENT, now->sent_bytes);
	}
	if (l->disk_size > 0) {
		double used = (double)(l->disk_size - l->disk_free);
		add(&all, USAGE_DISK, used / MEGABYTE);
		add(&all, USAGE_DISK_PART, 100 * used / (double)l->disk_size);
		add_bytes(&all, USAGE_DISK_FREE, l->disk_free);
	}
	return all.n;
}

size_t usage_gpu_points(unsigned gpu, int percent, int64_t used, int64_t memory,
	struct usage_point out[USAGE_GPU_POINTS])
{
	struct points all = { out, 0 };

	if (percent >= 0)
		add(&all, USAGE_GPU, percent);
	add_bytes(&all, USAGE_GPU_MEMORY, used);
	if (used >= 0 && memory > 0)
		add(&all, USAGE_GPU_MEMORY_PART, 100 * (double)used / (double)memory);
	for (size_t i = 0; i < all.n; i++)
		out[i].gpu = gpu;
	return all.n;
}

const char *usage_key(char out[USAGE_KEY_MAX], const struct usage_point *p, int64_t rank)
{
	char node[32] = "", gpu[24] = "";

	if (rank >= 0)
		(void)str_print(node, sizeof node, "rank-%lld/", (long long)rank);
	if (p->kind >= USAGE_GPU)
		(void)str_print(gpu, sizeof gpu, "gpu_%u_", p->gpu);
	(void)str_print(out, USAGE_KEY_MAX, SYSTEM_METRIC "%s%s%s", node, gpu, names[p->kind]);
	return out;
}
