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
	struct place_running running[16];
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

/* Workers of 8 GPUs each; `held` of them are held until ends_by. */
static inline void busy_worker(struct world *w, const char *id, uint32_t held, int64_t ends_by)
{
	uint32_t at = (uint32_t)w->s.workers_n;
	struct place_worker *k = add_worker(w, id, 64, 8, "NVIDIA H100", 80 * GB);
	struct place_gpu *gpus = (struct place_gpu *)(uintptr_t)k->gpus;
	struct str *uuids = arena_array_of(w->a, struct str, 8);

	for (uint32_t i = 0; i < held; i++) {
		gpus[i].free = false;
		uuids[i] = gpus[i].uuid;
	}
	if (held != 0)
		w->running[w->s.running_n++] = (struct place_running){
			.worker = at, .gpus = uuids, .gpus_n = held, .ends_by = ends_by
		};
	w->s.running = w->running;
}

/* A world at this time with one such worker, a. */
static inline void world_busy(struct world *w, int64_t now, uint32_t held, int64_t ends_by)
{
	world_init(w);
	w->s.now = now;
	busy_worker(w, "a", held, ends_by);
}

/* A world with one idle worker of 8 GPUs, a. */
static inline void world_idle(struct world *w)
{
	world_init(w);
	add_worker(w, "a", 64, 8, "NVIDIA H100", 80 * GB);
}

/* "s1>w1 s2>w1; s3 | s3@w1:90": placements in order, then those that wait, then what is kept for
 * whom, where and until when. */
static inline void places(struct world *w, const char *want, struct place_result *r)
{
	char got[1000] = "";

	place_pass(&w->s, w->a, r);
	for (size_t i = 0; i < r->placed_n; i++)
		(void)str_print(got + strlen(got), sizeof got - strlen(got), "%s%.*s>%.*s",
			i != 0 ? " " : "", STR_ARG(w->steps[r->placed[i].step].id),
			STR_ARG(w->workers[r->placed[i].worker].id));
	for (size_t i = 0; i < r->waiting_n; i++)
		(void)str_print(got + strlen(got), sizeof got - strlen(got), "%s%.*s",
			i != 0 ? " " : "; ", STR_ARG(w->steps[r->waiting[i]].id));
	for (size_t i = 0; i < r->kept_n; i++)
		(void)str_print(got + strlen(got), sizeof got - strlen(got), "%s%.*s@%.*s:%lld",
			i != 0 ? " " : " | ", STR_ARG(w->steps[r->kept[i].step].id),
			STR_ARG(w->workers[r->kept[i].worker].id), (long long)r->kept[i].until);
	assert_string_equal(got, want);
}

#endif
