/*
 * sched.pass_ms: one pass of placement over 10,000 waiting steps and 1,000 workers with 8 GPUs each
 * (DESIGN: below 50 ms), the median of several passes, each in a fresh arena, in CPU time, since
 * the machine is shared. Worlds: a cluster with room (many steps are placed) and a full one; and
 * the same with steps that all ask for amounts of their own, so that nothing is worked out once for
 * many. sched.why_ms: all answers about the last step that waits, without the pass.
 */
#include "lib/base/mem.h"
#include "server/core/place_why.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STEPS = 10000, WORKERS = 1000, GPUS = 8, PROJECTS = 40, ROUNDS = 9, GOAL_MS = 50 };

struct world {
	struct place_project projects[PROJECTS];
	struct place_step steps[STEPS];
	struct place_worker workers[WORKERS];
	struct place_gpu gpus[WORKERS][GPUS];
	struct place_label labels[WORKERS][3];
	struct place_running running[WORKERS];
	struct str held[WORKERS][GPUS];
	struct place_snapshot s;
};

static uint64_t state = 42;

static uint32_t draw(uint32_t n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % n;
}

static const struct place_label asked[] = { { { "site", 4 }, { "onprem", 6 } },
	{ { "site", 4 }, { "cloud", 5 } }, { { "disk", 4 }, { "nvme", 4 } } };
static const struct str models[] = { { "NVIDIA H100 80GB HBM3", 21 },
	{ "NVIDIA A100-SXM4-40GB", 21 }, { "NVIDIA L40S", 11 } };
static const struct str wanted[] = { { "H100", 4 }, { "A100", 4 }, { "L40S", 4 } };

static void make_workers(struct world *w, struct arena *a, uint32_t busy_percent)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		uint32_t model = draw(3);
		for (uint32_t g = 0; g < GPUS; g++)
			w->gpus[i][g] =
				(struct place_gpu){ .uuid = arena_printf(a, "GPU-%08x-%u", i, g),
					.model = models[model],
					.memory = UINT64_C(80000000000) / (model + 1),
					.free = draw(100) >= busy_percent };
		w->running[i] = (struct place_running){ .worker = i,
			.cpus = 64,
			.memory = UINT64_C(1) << 40,
			.gpus = w->held[i],
			.ends_by = 1 + draw(1000000) };
		for (uint32_t g = 0; g < GPUS; g++)
			if (!w->gpus[i][g].free)
				w->held[i][w->running[i].gpus_n++] = w->gpus[i][g].uuid;
		w->labels[i][0] = asked[draw(2)];
		w->labels[i][1] = asked[2];
		w->labels[i][2] =
			(struct place_label){ STR("rack"), arena_printf(a, "r%u", draw(40)) };
		w->workers[i] =
			(struct place_worker){ .id = arena_printf(a, "wk_%026u", draw(UINT32_MAX)),
				.name = arena_printf(a, "gpu-%04u", i),
				.pool = draw(4) == 0 ? STR("research") : STR("default"),
				.labels = w->labels[i],
				.labels_n = draw(4),
				.runtimes = 3,
				.cpus_free = 64,
				.cpus = 128,
				.memory_free = UINT64_C(1) << 40,
				.memory = UINT64_C(2) << 40,
				.disk_free = UINT64_C(4) << 40,
				.gpus = w->gpus[i],
				.gpus_n = GPUS };
	}
}

static void make_steps(struct world *w, struct arena *a, bool unlike)
{
	for (uint32_t i = 0; i < STEPS; i++) {
		struct place_step *s = &w->steps[i];
		*s = (struct place_step){ .id = arena_printf(a, "st_%026u", draw(UINT32_MAX)),
			.project = draw(PROJECTS),
			.priority = (int32_t)draw(3) * 100,
			.queued_at = draw(1000000),
			.cpus = 1 + draw(4),
			.memory = (uint64_t)(1 + draw(8)) << 33,
			.gpus = { .count = UINT32_C(1) << draw(4) },
			.pool = draw(4) == 0 ? STR("research") : STR("default"),
			.requires = &asked[draw(3)],
			.requires_n = draw(4) == 0,
			.runtimes = { 0, 1 },
			.runtimes_n = 2,
			.time_limit = 1 + draw(1000000) };
		if (draw(2) == 0) {
			s->gpus.models = &wanted[draw(3)];
			s->gpus.models_n = 1;
		}
		if (unlike)
			s->memory += i;
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double cpu_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void ask_why(const struct place_result *r)
{
	struct place_change c;
	uint32_t n;

	if (r->waiting_n == 0)
		return;
	(void)place_blockers(r, r->waiting_n - 1, &n);
	struct arena *scratch = arena_new(place_start_room(r));
	(void)place_change(r, r->waiting_n - 1, &c);
	(void)place_start(r, r->waiting_n - 1, 1, scratch);
	arena_drop(scratch);
}

/* Milliseconds of the median pass, and of the question after it. */
static double measure(const struct world *w, size_t *ret_placed, double *ret_why)
{
	double pass[ROUNDS], why[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		struct arena *a = arena_new(place_room(&w->s));
		double from = cpu_ms();
		struct place_result r;
		place_pass(&w->s, a, &r);
		pass[i] = cpu_ms() - from;
		from = cpu_ms();
		ask_why(&r);
		why[i] = cpu_ms() - from;
		*ret_placed = r.placed_n;
		arena_drop(a);
	}
	qsort(pass, ROUNDS, sizeof pass[0], by_value);
	qsort(why, ROUNDS, sizeof why[0], by_value);
	*ret_why = why[ROUNDS / 2];
	return pass[ROUNDS / 2];
}

static void print_line(const char *name, double ms, size_t placed)
{
	printf("{\"name\":\"%s\",\"value\":%.2f,\"unit\":\"ms\",\"floor\":null,\"ratio\":null,"
	       "\"goal\":%d,\"ok\":%s,\"placed\":%zu}\n",
		name, ms, GOAL_MS, ms < GOAL_MS ? "true" : "false", placed);
}

int main(void)
{
	static const struct {
		const char *name, *why;
		uint32_t busy_percent;
		bool unlike;
	} worlds[] = { { "sched.pass_ms", "sched.why_ms", 30, false },
		{ "sched.pass_full_ms", "sched.why_full_ms", 100, false },
		{ "sched.pass_unlike_ms", "sched.why_unlike_ms", 30, true },
		{ "sched.pass_unlike_full_ms", "sched.why_unlike_full_ms", 100, true } };
	struct world *w = mem_new_of(struct world);

	for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
		struct arena *a = arena_new(64 << 20);
		size_t placed = 0;
		for (uint32_t p = 0; p < PROJECTS; p++)
			w->projects[p] =
				(struct place_project){ .id = arena_printf(a, "prj_%02u", p),
					.weight = 1 + p % 3,
					.running = p };
		make_workers(w, a, worlds[i].busy_percent);
		make_steps(w, a, worlds[i].unlike);
		w->s = (struct place_snapshot){ .projects = w->projects,
			.steps = w->steps,
			.workers = w->workers,
			.running = w->running,
			.running_n = WORKERS,
			.projects_n = PROJECTS,
			.steps_n = STEPS,
			.workers_n = WORKERS,
			.seed = 7 };
		double why, ms = measure(w, &placed, &why);
		print_line(worlds[i].name, ms, placed);
		print_line(worlds[i].why, why, placed);
		arena_drop(a);
	}
	mem_free(w);
	return 0;
}
