/* Small worlds of placement, made by hand. */
#ifndef TESTS_UNIT_PLACE_WORLD_H
#define TESTS_UNIT_PLACE_WORLD_H
#include "api/pipeline.h"
#include "server/core/place_why.h"
#include "tests/unit/unit.h"

#define GB  UINT64_C(1000000000)
#define GIB (UINT64_C(1) << 30)

struct world {
	struct arena *a;
	struct place_project projects[4];
	struct place_worker workers[8];
	struct place_step steps[16];
	struct place_snapshot s;
};

static inline void world_init(struct world *w)
{
	*w = (struct world){ .a = arena_new(16 << 20) };
	w->projects[0] = (struct place_project){ .id = STR("prj_a"), .weight = 1 };
	w->projects[1] = (struct place_project){ .id = STR("prj_b"), .weight = 1 };
	w->s = (struct place_snapshot){ .projects = w->projects,
		.projects_n = 2,
		.steps = w->steps,
		.workers = w->workers,
		.runtimes = runtime_names,
		.seed = 42 };
}

static inline struct place_worker *add_worker(struct world *w, const char *id, double cpus,
	uint32_t gpus, const char *model, uint64_t memory)
{
	struct place_worker *k = &w->workers[w->s.workers_n++];
	struct place_gpu *list = arena_array_of(w->a, struct place_gpu, gpus + 1);

	for (uint32_t i = 0; i < gpus; i++)
		list[i] = (struct place_gpu){ .uuid = arena_printf(w->a, "GPU-%s-%u", id, i),
			.model = str_c(model),
			.memory = memory,
			.free = true };
	*k = (struct place_worker){ .id = str_c(id),
		.name = str_c(id),
		.pool = STR("default"),
		.runtimes = 1 << RUNTIME_DOCKER | 1 << RUNTIME_PROCESS,
		.cpus_free = cpus,
		.cpus = cpus,
		.memory_free = 64 * GB,
		.memory = 64 * GB,
		.disk_free = 100 * GB,
		.gpus = list,
		.gpus_n = gpus };
	return k;
}

static inline struct place_step *add_step(
	struct world *w, const char *id, double cpus, uint32_t gpus)
{
	struct place_step *s = &w->steps[w->s.steps_n++];

	*s = (struct place_step){ .id = str_c(id),
		.queued_at = (int64_t)w->s.steps_n,
		.cpus = cpus,
		.memory = GB,
		.gpus = { .count = gpus },
		.pool = STR("default"),
		.runtimes = { RUNTIME_DOCKER, RUNTIME_PROCESS },
		.runtimes_n = 2 };
	return s;
}

#endif
