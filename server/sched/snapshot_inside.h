/* The lines of a snapshot file, for snapshot.c, which writes them, and snapshot_read.c. */
#ifndef SERVER_SCHED_SNAPSHOT_INSIDE_H
#define SERVER_SCHED_SNAPSHOT_INSIDE_H
#include "lib/json/field.h"
#include "server/sched/snapshot.h"

enum { SNAPSHOT_FORMAT = 4, SNAPSHOT_LINE_MAX = 1 << 20, LINES_MAX = 200000, DEVICES_MAX = 1000 };
#define TIME_MAX (INT64_MAX / 4)

enum line_kind {
	LINE_SNAPSHOT,
	LINE_PROJECT,
	LINE_WORKER,
	LINE_STEP,
	LINE_RUNNING,
	LINE_PLACED,
	LINE_WAITING,
	LINE_POOL,
	LINE_PREEMPTED,
	LINE_GOOD,
	LINE_KINDS
};
extern const char *const line_names[];
struct line_head {
	int kind;
};
struct line_snapshot {
	int kind;
	int64_t format, at, projects, workers, steps, running, placed, waiting, pools, preempted,
		goods;
};
struct line_quota {
	int64_t nominal, borrow;
};
struct line_project {
	int kind;
	struct str id, name;
	double weight, cpus;
	int64_t running, gpus, memory;
	struct line_quota gpus_quota, steps_quota;
	bool has_gpus_quota, has_steps_quota;
};
struct line_pool {
	int kind;
	struct str name;
	int policy, preemption;
	int64_t sensitivities;
};
struct line_gpu {
	struct str uuid, model, mig;
	int64_t memory, numa; /* numa: the node + 1 */
	bool free;
	struct list links; /* positions among the worker's */
};
struct line_worker {
	int kind;
	struct str id, name, pool;
	struct list labels, runtimes, isolated, gpus;
	double cpus, cpus_free;
	int64_t memory, memory_free, disk_free, gpus_unwell, running;
	bool offline, draining, avoided;
};
struct line_step {
	int kind;
	struct str id, pool, gpu_mig;
	int64_t project, priority, queued_at, memory, disk, gpus, gpu_memory_min, gpu_memory_max,
		time_limit, nodes, kept, sensitivity;
	double cpus;
	struct list gpu_models, requires, avoids, runtimes, also_kept, cleared, goods;
};
struct line_running {
	int kind;
	int64_t worker, memory, ends_by;
	double cpus;
	struct list gpus;
	struct str id, step;
	int64_t project, priority, since, by;
	bool fixed;
	struct list spared;
};
struct line_preempted {
	int kind;
	int64_t step;
	struct list workers, victims, reclaimed; /* reclaimed: those of the victims that are */
};
struct line_good {
	int kind;
	struct str name;
	int64_t bytes;
	struct list workers;
};
struct line_placed {
	int kind;
	int64_t step, worker, runtime, rank, held;
	struct list gpus;
};
struct line_waiting {
	int kind;
	int64_t step;
};

extern const struct field head_fields[]; /* the kind only */
extern const struct field *const line_tables[LINE_KINDS];

#endif
