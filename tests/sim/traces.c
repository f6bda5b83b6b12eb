#include "lib/base/mem.h"
#include "tests/sim/sim.h"

#include <stdlib.h>

/* Worlds of several shapes. The same name, size and seed give the same world. */

enum { STEPS_MAX = 10000, WORKERS_MAX = 1000, CHANGES_MAX = 4000 };
#define GIB (UINT64_C(1) << 30)

uint32_t sim_draw(struct sim_trace *t, uint32_t n)
{
	uint64_t x = t->random += UINT64_C(0x9E3779B97F4A7C15);

	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return (uint32_t)((x ^ x >> 31) >> 32) % n;
}

/* ---- parts ----------------------------------------------------------------------- */

static struct sim_trace *trace_new(const char *name, uint64_t seed)
{
	struct sim_trace *t = mem_new_of(struct sim_trace);

	*t = (struct sim_trace){ .name = name,
		.seed = seed,
		.random = seed,
		.replay_every = 20,
		.why_every = 4,
		.arena = arena_new(UINT32_MAX) };
	t->projects = arena_array_of(t->arena, struct place_project, 64);
	t->workers = arena_array_of(t->arena, struct sim_worker, WORKERS_MAX);
	t->steps = arena_array_of(t->arena, struct sim_step, STEPS_MAX);
	t->changes = arena_array_of(t->arena, struct sim_change, CHANGES_MAX);
	return t;
}

void sim_trace_free(struct sim_trace *t)
{
	if (t == NULL)
		return;
	arena_drop(t->arena);
	mem_free(t);
}

static struct place_project *add_project(struct sim_trace *t, double weight)
{
	struct place_project *p = &t->projects[t->projects_n];

	*p = (struct place_project){ .id = arena_printf(t->arena, "prj_%02u", t->projects_n),
		.weight = weight };
	t->projects_n++;
	return p;
}

/* Eight GPUs of each of the models; none with NULL. */
static struct sim_worker *add_worker(
	struct sim_trace *t, const char *const *models, uint64_t gpu_memory)
{
	struct sim_worker *w = &t->workers[t->workers_n];
	uint32_t n = 0;

	w->gpus = arena_array_of(t->arena, struct place_gpu, 17);
	w->holder = arena_array_of(t->arena, uint32_t, 17);
	for (size_t m = 0; models != NULL && models[m] != NULL; m++)
		for (uint32_t g = 0; g < 8; g++, n++)
			w->gpus[n] = (struct place_gpu){ .uuid = arena_printf(t->arena,
								 "GPU-%04u-%02u", t->workers_n, n),
				.model = str_c(models[m]),
				.memory = gpu_memory };
	w->is = (struct place_worker){ .id = arena_printf(t->arena, "wk_%04u", t->workers_n),
		.name = arena_printf(t->arena, "gpu-%04u", t->workers_n),
		.pool = STR("default"),
		.runtimes = 3,
		.cpus = n != 0 ? 8 * n : 64,
		.memory = (n != 0 ? n : 4) * 64 * GIB,
		.disk_free = 1000 * GIB,
		.gpus = w->gpus,
		.gpus_n = n };
	t->workers_n++;
	return w;
}

/* With the part of a worker's cores and memory that belongs to its GPUs. */
static struct sim_step *add_step(struct sim_trace *t, uint32_t gpus, int64_t lasts)
{
	struct sim_step *s = &t->steps[t->steps_n];

	BUG_ON(t->steps_n == STEPS_MAX);
	*s = (struct sim_step){ .lasts = lasts,
		.want = { .id = arena_printf(t->arena, "st_%05u", t->steps_n),
			.cpus = gpus != 0 ? 8 * gpus : 4,
			.memory = (gpus != 0 ? gpus : 1) * 32 * GIB,
			.disk = GIB,
			.gpus.count = gpus,
			.pool = STR("default"),
			.runtimes = { 0, 1 },
			.runtimes_n = 2,
			.time_limit = lasts } };
	t->steps_n++;
	return s;
}

void sim_step_room(struct sim_trace *t, struct sim_step *s)
{
	uint32_t nodes = place_nodes(&s->want);

	s->workers = arena_array_of(t->arena, uint32_t, nodes);
	s->kept_on = arena_array_of(t->arena, uint32_t, nodes);
	s->gpus = arena_array_of(t->arena, struct str, (size_t)nodes * s->want.gpus.count + 1);
}

static int64_t minutes(struct sim_trace *t, uint32_t from, uint32_t to)
{
	return (from + sim_draw(t, to - from)) * SIM_MINUTE;
}

/* Steps come one after the other, so that the GPUs are asked for `load` times. */
static void arrive(struct sim_trace *t, double load)
{
	double work = 0, gpus = 0;
	int64_t span;

	for (uint32_t i = 0; i < t->steps_n; i++)
		work += (double)t->steps[i].want.gpus.count * (double)t->steps[i].lasts;
	for (uint32_t i = 0; i < t->workers_n; i++)
		gpus += t->workers[i].is.gpus_n;
	span = (int64_t)(work / gpus / load / (double)SIM_SECOND);
	for (uint32_t i = 0; i < t->steps_n; i++)
		t->steps[i].arrives = sim_draw(t, (uint32_t)span + 1) * SIM_SECOND;
}

/* ---- packable: cut from a schedule without a gap ---------------------------------- */

static void cut(struct sim_trace *t, uint32_t gpus, uint32_t length)
{
	if (length > 240 || (length > 40 && sim_draw(t, 3) == 0)) {
		uint32_t at = length / 4 + sim_draw(t, length / 2);
		cut(t, gpus, at);
		cut(t, gpus, length - at);
	} else if (gpus > 1 && sim_draw(t, 3) != 0) {
		cut(t, gpus / 2, length);
		cut(t, gpus / 2, length);
	} else {
		(void)add_step(t, gpus, length * SIM_MINUTE);
	}
}

static const char *const h100[] = { "NVIDIA H100 80GB HBM3", NULL };

static void make_packable(struct sim_trace *t, uint32_t size)
{
	t->least_used = 0.95;
	t->steady = true;
	t->in_line = true;
	(void)add_project(t, 1);
	for (uint32_t i = 0; i < 4 * size; i++) {
		(void)add_worker(t, h100, 80 * GIB);
		cut(t, 8, 40 * 60);
	}
	for (uint32_t i = t->steps_n; i > 1; i--) {
		uint32_t k = sim_draw(t, i);
		struct sim_step keep = t->steps[i - 1];
		t->steps[i - 1] = t->steps[k];
		t->steps[k] = keep;
	}
	/* All come at once: their ids are their order. */
	for (uint32_t i = 0; i < t->steps_n; i++)
		t->steps[i].want.id = arena_printf(t->arena, "st_%05u", i);
}

/* ---- kinds of GPU, labels, pools, and wishes that nobody can fulfil ---------------- */

static const struct place_label sites[] = { { { "site", 4 }, { "onprem", 6 } },
	{ { "site", 4 }, { "cloud", 5 } } };
static const struct str models[] = { { "H100", 4 }, { "A100", 4 }, { "L40S", 4 } };

static void make_mixed(struct sim_trace *t, uint32_t size)
{
	static const char *const kinds[][3] = { { "NVIDIA H100 80GB HBM3" },
		{ "NVIDIA A100-SXM4-80GB" }, { "NVIDIA A100-SXM4-80GB", "NVIDIA L40S" } };

	for (uint32_t i = 0; i < 3; i++)
		(void)add_project(t, 1);
	for (uint32_t i = 0; i < 12 * size; i++) {
		struct sim_worker *w = add_worker(
			t, i % 4 < 3 ? kinds[i % 4] : NULL, (i % 4 == 0 ? 80 : 48) * GIB);
		w->is.labels = &sites[sim_draw(t, 2)];
		w->is.labels_n = 1;
		w->is.avoided = sim_draw(t, 10) == 0;
	}
	for (uint32_t i = 0; i < 300 * size; i++) {
		struct sim_step *s = add_step(
			t, sim_draw(t, 3) != 0 ? 1 + sim_draw(t, 8) : 0, minutes(t, 5, 240));
		s->want.project = sim_draw(t, 3);
		s->want.cpus = 1 + sim_draw(t, 32);
		s->want.gpus.models = &models[sim_draw(t, 3)];
		s->want.gpus.models_n = s->want.gpus.count != 0 && sim_draw(t, 3) == 0;
		s->want.requires = &sites[sim_draw(t, 2)];
		s->want.requires_n = sim_draw(t, 5) == 0;
		if (sim_draw(t, 3) == 0)
			s->want.time_limit = 0;
		if (s->want.gpus.models_n == 0 && sim_draw(t, 12) == 0)
			s->want.gpus.count = 9 + sim_draw(t, 8); /* of both kinds of a worker */
		/* Each in vain in a way of its own, and before all others. */
		if (i < 40) {
			s->want.gpus.count = 17;
			s->want.gpus.models_n = 0;
			s->want.memory = GIB + i;
			s->want.priority = 10;
		}
	}
	arrive(t, 1.5);
}

/* ---- priorities -------------------------------------------------------------------- */

static void make_priorities(struct sim_trace *t, uint32_t size)
{
	(void)add_project(t, 1);
	(void)add_project(t, 2);
	for (uint32_t i = 0; i < 10 * size; i++)
		(void)add_worker(t, h100, 80 * GIB);
	for (uint32_t i = 0; i < 300 * size; i++) {
		struct sim_step *s =
			add_step(t, 1 + sim_draw(t, 4) * sim_draw(t, 3), minutes(t, 10, 300));
		s->want.priority = (int32_t)sim_draw(t, 3) * 100 - 100;
		s->want.project = sim_draw(t, 2);
		s->want.time_limit = sim_draw(t, 2) * 2 * s->lasts;
	}
	arrive(t, 1.3);
}

/* ---- projects that compete ---------------------------------------------------------- */

static void make_projects(struct sim_trace *t, uint32_t size)
{
	for (uint32_t i = 0; i < 8; i++) {
		struct place_project *p = add_project(t, 1 + i % 3);
		if (i % 4 != 0)
			p->gpus_quota = (struct place_quota){ true, 4 * i * size, 8 * (i % 2) };
		if (i % 3 == 1)
			p->steps_quota = (struct place_quota){ true, 2 * size, i };
	}
	for (uint32_t i = 0; i < 8 * size; i++)
		(void)add_worker(t, h100, 80 * GIB);
	for (uint32_t i = 0; i < 400 * size; i++) {
		struct sim_step *s = add_step(
			t, sim_draw(t, 6) != 0 ? 1 + sim_draw(t, 8) : 0, minutes(t, 5, 200));
		s->want.project = sim_draw(t, 8);
		s->want.priority = sim_draw(t, 10) == 0 ? 1000 : 0;
	}
	arrive(t, 1.5);
}

/* ---- wide steps among narrow ones ---------------------------------------------------- */

static void make_wide(struct sim_trace *t, uint32_t size)
{
	t->steady = true;
	t->in_line = true;
	(void)add_project(t, 1);
	for (uint32_t i = 0; i < 6 * size; i++)
		(void)add_worker(t, h100, 80 * GIB);
	for (uint32_t i = 0; i < 400 * size; i++) {
		struct sim_step *s = add_step(
			t, sim_draw(t, 10) == 0 ? 8 : 1 + sim_draw(t, 2), minutes(t, 5, 120));
		s->want.time_limit = sim_draw(t, 3) * s->lasts;
	}
	arrive(t, 1.1);
}

/* Gangs among narrow steps that keep every worker a little busy, in several projects, some with
 * quotas: no gang fits before others have made way on all of its workers at once. */
static void make_gangs(struct sim_trace *t, uint32_t size)
{
	t->steady = true;
	t->in_line = sim_draw(t, 2) == 0;
	(void)add_project(t, 1);
	if (!t->in_line) {
		(void)add_project(t, 2);
		t->steady = false;
		t->projects[1].gpus_quota = (struct place_quota){ true, 24 * size, 16 * size };
		t->projects[1].steps_quota = (struct place_quota){ true, 8 * size, 4 * size };
	}
	for (uint32_t i = 0; i < 8 * size; i++)
		(void)add_worker(t, h100, 80 * GIB);
	for (uint32_t i = 0; i < 300 * size; i++) {
		bool gang = sim_draw(t, 8) == 0;
		struct sim_step *s =
			add_step(t, gang ? UINT32_C(1) << sim_draw(t, 4) : 1 + sim_draw(t, 2),
				minutes(t, 5, 120));
		if (gang)
			s->want.nodes = 2 + sim_draw(t, 4 * size - 1);
		s->want.project = sim_draw(t, t->projects_n);
		s->want.time_limit = sim_draw(t, 3) * s->lasts;
	}
	t->steps[0].want.nodes = 8 * size + 1; /* in vain */
	arrive(t, 1.1);
}

/* Two projects that hold about as much: whatever ends lets its project go first, and its next
 * narrow step would take the place on which a wide step of the other waits. */
static void make_shares(struct sim_trace *t, uint32_t size)
{
	t->steady = true;
	(void)add_project(t, 1);
	(void)add_project(t, 1);
	for (uint32_t i = 0; i < 4 * size; i++)
		(void)add_worker(t, h100, 80 * GIB);
	for (uint32_t i = 0; i < 1000 * size; i++) {
		bool wide = sim_draw(t, 100) == 0;
		struct sim_step *s = add_step(t, wide ? 8 : 1, minutes(t, 5, 30));
		s->want.project = !wide && sim_draw(t, 2) != 0;
		s->want.time_limit = 0;
	}
	arrive(t, 1.5);
}

/* Wide steps that are more than what is granted, in projects that use up their quota. */
static void make_quota(struct sim_trace *t, uint32_t size)
{
	for (uint32_t i = 0; i < 2 * size; i++) {
		add_project(t, 1)->gpus_quota = (struct place_quota){ true, 6, 4 };
		(void)add_worker(t, h100, 80 * GIB);
		(void)add_worker(t, h100, 80 * GIB);
	}
	for (uint32_t i = 0; i < 600 * size; i++) {
		bool wide = sim_draw(t, 20) == 0;
		struct sim_step *s = add_step(t, wide ? 8 : 1, minutes(t, 5, 90));
		s->want.project = sim_draw(t, t->projects_n);
		s->want.time_limit = sim_draw(t, 2) * s->lasts;
	}
	arrive(t, 0.8);
}

/* ---- who takes whose place ------------------------------------------------------------ */

static void preempts(struct sim_trace *t, enum place_preemption how)
{
	t->preempts = true;
	t->pool = place_pool_default;
	t->pool.name = STR("default");
	t->pool.preemption = how;
}

static void make_preempt(struct sim_trace *t, uint32_t size)
{
	make_priorities(t, size);
	preempts(t, PLACE_PREEMPT_PRIORITY);
	for (uint32_t i = 0; i < t->steps_n; i++) {
		t->steps[i].firm = sim_draw(t, 10) == 0;
		if (sim_draw(t, 25) == 0)
			t->steps[i].want.nodes = 2;
	}
}

/* What is granted is all that there is; each project borrows while others want less. */
static void make_reclaim(struct sim_trace *t, uint32_t size)
{
	for (uint32_t i = 0; i < 4 * size; i++)
		add_project(t, 1)->gpus_quota = (struct place_quota){ true, 6, 18 };
	for (uint32_t i = 0; i < 3 * size; i++)
		(void)add_worker(t, h100, 80 * GIB);
	for (uint32_t i = 0; i < 500 * size; i++) {
		struct sim_step *s = add_step(t, 1 + sim_draw(t, 3), minutes(t, 5, 180));
		s->want.project = sim_draw(t, t->projects_n);
		s->want.time_limit = sim_draw(t, 2) * 2 * s->lasts;
		s->want.priority = (int32_t)sim_draw(t, 2);
	}
	arrive(t, 0.9);
	preempts(t, sim_draw(t, 2) == 0 ? PLACE_PREEMPT_QUOTA : PLACE_PREEMPT_PRIORITY);
}

/* ---- workers that come and go --------------------------------------------------------- */

static int by_time(const void *pa, const void *pb)
{
	const struct sim_change *a = pa, *b = pb;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->kind != b->kind ? (int)a->kind - (int)b->kind
				  : (a->worker > b->worker) - (a->worker < b->worker);
}

static void add_churn(struct sim_trace *t, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t kind = sim_draw(t, 2) * 2;
		struct sim_change *c = &t->changes[t->changes_n];
		c[0] = (struct sim_change){ minutes(t, 0, 1500), sim_draw(t, t->workers_n),
			kind != 0 ? SIM_DRAIN : SIM_OFFLINE };
		c[1] = (struct sim_change){ c[0].at + minutes(t, 1, 120), c[0].worker,
			kind != 0 ? SIM_RESUME : SIM_ONLINE };
		t->changes_n += 2;
	}
	qsort(t->changes, t->changes_n, sizeof *t->changes, by_time);
}

static void make_churn(struct sim_trace *t, uint32_t size)
{
	(void)add_project(t, 1);
	(void)add_project(t, 1);
	for (uint32_t i = 0; i < 10 * size; i++)
		(void)add_worker(t, h100, 80 * GIB);
	for (uint32_t i = 0; i < 300 * size; i++) {
		struct sim_step *s = add_step(t, 1 + sim_draw(t, 8), minutes(t, 5, 120));
		s->want.project = sim_draw(t, 2);
		s->want.time_limit = sim_draw(t, 2) * s->lasts;
	}
	arrive(t, 1);
	add_churn(t, 100 * size);
}

/* A gang that loses one of its workers is queued again. */
static void make_gang_churn(struct sim_trace *t, uint32_t size)
{
	make_gangs(t, size);
	t->steady = t->in_line = false;
	add_churn(t, 60 * size);
}

/* ---- 10,000 steps at once, 1,000 workers ---------------------------------------------- */

static void make_large(struct sim_trace *t, uint32_t size)
{
	t->replay_every = 100;
	for (uint32_t i = 0; i < 20; i++)
		(void)add_project(t, 1 + i % 3);
	t->projects[0].gpus_quota = (struct place_quota){ true, 100, 100 };
	for (uint32_t i = 0; i < WORKERS_MAX; i++)
		(void)add_worker(t, h100, 80 * GIB);
	for (uint32_t i = 0; i < STEPS_MAX; i++) {
		struct sim_step *s =
			add_step(t, UINT32_C(1) << sim_draw(t, 4), minutes(t, 1, 25) * 10);
		s->want.project = sim_draw(t, 20);
		s->want.priority = (int32_t)sim_draw(t, 2);
		s->want.time_limit = sim_draw(t, 2) * s->lasts;
	}
	(void)size;
}

static void make_empty(struct sim_trace *t, uint32_t size)
{
	(void)t;
	(void)size;
}

/* ---- held: images, of which some are wanted often ---------------------------------- */

static void make_held(struct sim_trace *t, uint32_t size)
{
	(void)add_project(t, 1);
	t->goods_n = 40;
	t->good_bytes = arena_array_of(t->arena, uint64_t, t->goods_n);
	for (uint32_t g = 0; g < t->goods_n; g++)
		t->good_bytes[g] = (1 + sim_draw(t, 20)) * GIB;
	for (uint32_t i = 0; i < 15 * size; i++)
		(void)add_worker(t, i % 3 != 0 ? h100 : NULL, 80 * GIB);
	t->held = arena_array_of(t->arena, uint32_t, (size_t)t->workers_n * SIM_HELD);
	for (uint32_t i = 0; i < 600 * size; i++) {
		uint32_t gpus = sim_draw(t, 2) == 0 ? 0 : UINT32_C(1) << sim_draw(t, 4);
		struct sim_step *s = add_step(t, gpus, minutes(t, 5, 60));
		uint32_t a = sim_draw(t, t->goods_n + 1), b = sim_draw(t, a + 1);
		s->good = 1 + sim_draw(t, b + 1) % t->goods_n; /* the first ones most often */
	}
	arrive(t, 0.8);
}

/* ---- by name ---------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*make)(struct sim_trace *t, uint32_t size);
} worlds[] = { { "packable", make_packable }, { "mixed", make_mixed },
	{ "priorities", make_priorities }, { "projects", make_projects }, { "wide", make_wide },
	{ "gangs", make_gangs }, { "gang_churn", make_gang_churn }, { "shares", make_shares },
	{ "quota", make_quota }, { "churn", make_churn }, { "large", make_large },
	{ "preempt", make_preempt }, { "reclaim", make_reclaim }, { "held", make_held },
	{ "empty", make_empty } };
enum { WORLDS = sizeof worlds / sizeof worlds[0] };
const char *const sim_trace_names[] = { "packable", "mixed", "priorities", "projects", "wide",
	"gangs", "gang_churn", "shares", "quota", "preempt", "reclaim", "churn", "large", "held",
	NULL };

struct sim_trace *sim_trace_new(const char *name, uint32_t size, uint64_t seed)
{
	for (size_t i = 0; i < WORLDS; i++)
		if (strcmp(worlds[i].name, name) == 0) {
			struct sim_trace *t = trace_new(worlds[i].name, seed);
			worlds[i].make(t, size);
			return t;
		}
	return NULL;
}
