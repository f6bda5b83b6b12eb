#include "server/sched/snapshot_inside.h"

#include "api/pipeline.h"
#include "api/pool.h"

const char *const line_names[] = { "snapshot", "project", "worker", "step", "running", "placed",
	"waiting", "pool", "preempted", "good", NULL };

#define AT(member)  offsetof(struct THIS, member)
#define HAS(member) FIELD_HAS(struct THIS, member)
#define Q           FIELD_REQUIRED
#define KIND                                                                                       \
	{                                                                                          \
		"kind", FIELD_ENUM, Q, AT(kind), .names = line_names                               \
	}
#define COUNT(name, most)                                                                          \
	{                                                                                          \
#name, FIELD_INT, Q, AT(name), .max = (most)                                       \
	}
#define POSITIONS(name, most)                                                                      \
	{                                                                                          \
#name, FIELD_LIST, FIELD_OMIT_EMPTY, AT(name), .item = FIELD_INT, .max = (most),   \
							       .item_max = LINES_MAX               \
	}
/* Of later formats: 0 where it is not told. */
#define LATER(name, most)                                                                          \
	{                                                                                          \
#name, FIELD_INT, FIELD_OMIT_EMPTY, AT(name), .max = (most)                        \
	}
#define AMOUNT(name)                                                                               \
	{                                                                                          \
#name, FIELD_INT, Q, AT(name), .max = INT64_MAX / 200                              \
	}
#define INSTANT(name)                                                                              \
	{                                                                                          \
#name, FIELD_INT, Q, AT(name), .max = TIME_MAX                                     \
	}
#define TEXT(name)                                                                                 \
	{                                                                                          \
#name, FIELD_STR, Q, AT(name)                                                      \
	}
#define REAL(name)                                                                                 \
	{                                                                                          \
#name, FIELD_REAL, Q, AT(name), .rmin = 0, .rmax = 1e9                             \
	}
#define TEXTS(name, most)                                                                          \
	{                                                                                          \
#name, FIELD_LIST, Q, AT(name), .item = FIELD_STR, .max = (most)                   \
	}
#define FLAG(name)                                                                                 \
	{                                                                                          \
#name, FIELD_BOOL, Q, AT(name)                                                     \
	}
#define LABELS(name)                                                                               \
	{                                                                                          \
#name, FIELD_MAP, Q, AT(name), .max = PLACE_LABELS_MAX                             \
	}
#define RUNTIMES(name)                                                                             \
	{                                                                                          \
#name, FIELD_LIST, Q, AT(name), .item = FIELD_INT, .max = RUNTIME_COUNT,           \
						.item_max = RUNTIME_COUNT - 1                      \
	}

const struct field head_fields[] = {
	{ "kind", FIELD_ENUM, Q, offsetof(struct line_head, kind), .names = line_names }, { 0 }
};
#define THIS line_snapshot
static const struct field snapshot_fields[] = { KIND, COUNT(format, SNAPSHOT_FORMAT), INSTANT(at),
	COUNT(projects, LINES_MAX), COUNT(workers, LINES_MAX), COUNT(steps, LINES_MAX),
	COUNT(running, LINES_MAX), COUNT(placed, LINES_MAX), COUNT(waiting, LINES_MAX),
	LATER(pools, LINES_MAX), LATER(preempted, LINES_MAX), LATER(goods, LINES_MAX), { 0 } };
#undef THIS
#define THIS line_quota
static const struct field quota_fields[] = { COUNT(nominal, UINT32_MAX), COUNT(borrow, UINT32_MAX),
	{ 0 } };
#undef THIS
#define THIS line_project
static const struct field project_fields[] = { KIND, TEXT(id), TEXT(name),
	{ "weight", FIELD_REAL, Q, AT(weight), .rmin = 1e-9, .rmax = 1e9 },
	COUNT(running, UINT32_MAX), COUNT(gpus, UINT32_MAX), REAL(cpus), AMOUNT(memory),
	{ "gpus_quota", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(gpus_quota), HAS(has_gpus_quota),
		.sub = quota_fields },
	{ "steps_quota", FIELD_OBJ, FIELD_OMIT_EMPTY, AT(steps_quota), HAS(has_steps_quota),
		.sub = quota_fields },
	{ 0 } };
#undef THIS
#define THIS line_pool
static const struct field pool_line_fields[] = { KIND, TEXT(name),
	{ "policy", FIELD_ENUM, Q, AT(policy), .names = pool_policy_names },
	{ "preemption", FIELD_ENUM, Q, AT(preemption), .names = pool_preemption_names },
	COUNT(sensitivities, (1 << PLACE_SENSITIVITIES) - 1), { 0 } };
#undef THIS
#define THIS line_gpu
static const struct field gpu_fields[] = { TEXT(uuid), TEXT(model), AMOUNT(memory), FLAG(free),
	{ "mig", FIELD_STR, FIELD_OMIT_EMPTY, AT(mig) }, LATER(numa, 1024),
	{ "links", FIELD_LIST, FIELD_OMIT_EMPTY, AT(links), .item = FIELD_INT, .max = 64,
		.item_max = 63 },
	{ 0 } };
#undef THIS
#define THIS line_worker
static const struct field worker_line_fields[] = { KIND, TEXT(id), TEXT(name), TEXT(pool),
	LABELS(labels), RUNTIMES(runtimes),
	{ "isolated", FIELD_LIST, FIELD_OMIT_EMPTY, AT(isolated), .item = FIELD_INT,
		.max = RUNTIME_COUNT, .item_max = RUNTIME_COUNT - 1 },
	REAL(cpus), REAL(cpus_free), AMOUNT(memory), AMOUNT(memory_free), AMOUNT(disk_free),
	COUNT(gpus_unwell, UINT32_MAX), COUNT(running, UINT32_MAX), FLAG(offline), FLAG(draining),
	FLAG(avoided),
	{ "gpus", FIELD_LIST, Q, AT(gpus), .sub = gpu_fields, .size = sizeof(struct line_gpu),
		.max = DEVICES_MAX },
	{ 0 } };
#undef THIS
#define THIS line_step
static const struct field step_line_fields[] = { KIND, TEXT(id), TEXT(pool),
	COUNT(project, LINES_MAX),
	{ "priority", FIELD_INT, Q, AT(priority), .min = INT32_MIN, .max = INT32_MAX },
	INSTANT(queued_at), REAL(cpus), AMOUNT(memory), AMOUNT(disk), COUNT(gpus, GPUS_MAX),
	TEXTS(gpu_models, GPUS_MODELS_MAX), AMOUNT(gpu_memory_min), AMOUNT(gpu_memory_max),
	{ "gpu_mig", FIELD_STR, FIELD_OMIT_EMPTY, AT(gpu_mig) }, LABELS(requires), LABELS(avoids),
	{ "runtimes", FIELD_LIST, Q, AT(runtimes), .item = FIELD_INT, .max = PLACE_RUNTIMES_MAX,
		.item_max = RUNTIME_COUNT - 1 },
	INSTANT(time_limit),
	{ "nodes", FIELD_INT, FIELD_OMIT_EMPTY, AT(nodes), .max = PLACE_NODES_MAX },
	COUNT(kept, LINES_MAX),
	{ "also_kept", FIELD_LIST, FIELD_OMIT_EMPTY, AT(also_kept), .item = FIELD_INT,
		.max = PLACE_NODES_MAX, .item_max = LINES_MAX },
	LATER(sensitivity, PLACE_SENSITIVITIES - 1), POSITIONS(cleared, PLACE_NODES_MAX),
	POSITIONS(goods, PLACE_GOODS_MAX), { 0 } };
#undef THIS
#define THIS line_running
static const struct field running_fields[] = { KIND, COUNT(worker, LINES_MAX), REAL(cpus),
	AMOUNT(memory), TEXTS(gpus, DEVICES_MAX), INSTANT(ends_by),
	{ "id", FIELD_STR, FIELD_OMIT_EMPTY, AT(id) },
	{ "step", FIELD_STR, FIELD_OMIT_EMPTY, AT(step) }, LATER(project, LINES_MAX),
	{ "priority", FIELD_INT, FIELD_OMIT_EMPTY, AT(priority), .min = INT32_MIN,
		.max = INT32_MAX },
	LATER(since, TIME_MAX), LATER(by, LINES_MAX),
	{ "fixed", FIELD_BOOL, FIELD_OMIT_EMPTY, AT(fixed) }, POSITIONS(spared, LINES_MAX), { 0 } };
#undef THIS
#define THIS line_placed
static const struct field placed_fields[] = { KIND, COUNT(step, LINES_MAX),
	COUNT(worker, LINES_MAX), COUNT(runtime, RUNTIME_COUNT - 1), TEXTS(gpus, GPUS_MAX),
	{ "rank", FIELD_INT, FIELD_OMIT_EMPTY, AT(rank), .max = PLACE_NODES_MAX - 1 },
	LATER(held, 1000), { 0 } };
#undef THIS
#define THIS line_good
static const struct field good_fields[] = { KIND, TEXT(name), AMOUNT(bytes),
	POSITIONS(workers, LINES_MAX), { 0 } };
#undef THIS
#define THIS line_waiting
static const struct field waiting_fields[] = { KIND, COUNT(step, LINES_MAX), { 0 } };
#undef THIS

#define THIS line_preempted
static const struct field preempted_fields[] = { KIND, COUNT(step, LINES_MAX),
	POSITIONS(workers, PLACE_NODES_MAX), POSITIONS(victims, LINES_MAX),
	POSITIONS(reclaimed, LINES_MAX), { 0 } };
#undef THIS

const struct field *const line_tables[LINE_KINDS] = { snapshot_fields, project_fields,
	worker_line_fields, step_line_fields, running_fields, placed_fields, waiting_fields,
	pool_line_fields, preempted_fields, good_fields };
