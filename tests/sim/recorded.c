#include "lib/base/fs.h"
#include "server/sched/replay.h"
#include "tests/sim/sim.h"

/* A recorded snapshot as the beginning of a simulation. */

static void take_workers(struct sim_trace *t, const struct place_snapshot *s)
{
	t->workers = arena_array_of(t->arena, struct sim_worker, s->workers_n + 1);
	t->workers_n = (uint32_t)s->workers_n;
	for (uint32_t i = 0; i < t->workers_n; i++) {
		struct sim_worker *w = &t->workers[i];
		w->is = s->workers[i];
		w->gpus = arena_array_of(t->arena, struct place_gpu, w->is.gpus_n + 1u);
		w->holder = arena_array_of(t->arena, uint32_t, w->is.gpus_n + 1u);
		memcpy(w->gpus, s->workers[i].gpus, w->is.gpus_n * sizeof *w->gpus);
		w->is.gpus = w->gpus;
	}
}

static int64_t lasts(struct sim_trace *t, int64_t limit)
{
	int64_t most = limit != 0 ? limit : 4 * SIM_HOUR;

	return 1 + (int64_t)sim_draw(t, 1000) * (most / 1000);
}

/* What runs is not recorded with its project: it goes to the first that holds as much, if there is
 * one, and counts for no quota else. */
static uint32_t whose(struct place_project *left, uint32_t n, const struct place_running *r)
{
	for (uint32_t i = 0; i < n; i++)
		if (left[i].running != 0 && left[i].gpus >= r->gpus_n) {
			left[i].running--;
			left[i].gpus -= r->gpus_n;
			return i;
		}
	return n;
}

static void take_running(
	struct sim_trace *t, struct place_project *left, const struct place_running *r, int64_t now)
{
	uint32_t me = t->steps_n++;
	struct sim_step *s = &t->steps[me];
	struct sim_worker *w = &t->workers[r->worker];
	int64_t limit = r->ends_by > now ? r->ends_by - now : r->ends_by != 0;

	*s = (struct sim_step){ .state = SIM_RUNS,
		.started = now,
		.lasts = lasts(t, limit),
		.want = { .id = arena_printf(t->arena, "running_%u", me),
			.project = whose(left, t->projects_n - 1, r),
			.cpus = r->cpus,
			.memory = r->memory,
			.time_limit = limit,
			.gpus.count = r->gpus_n } };
	sim_step_room(t, s);
	s->workers[0] = r->worker;
	for (uint32_t i = 0; i < r->gpus_n; i++) {
		s->gpus[i] = r->gpus[i];
		for (uint32_t g = 0; g < w->is.gpus_n; g++)
			if (str_eq(w->gpus[g].uuid, r->gpus[i]))
				w->holder[g] = me + 1;
	}
	w->cpus_used += (int64_t)(r->cpus * 1000 + 0.5);
	w->memory_used += r->memory;
	w->running++;
}

static void take_waiting(struct sim_trace *t, const struct place_step *want)
{
	struct sim_step *s = &t->steps[t->steps_n++];

	*s = (struct sim_step){
		.want = *want, .state = SIM_WAITS, .lasts = lasts(t, want->time_limit)
	};
	sim_step_room(t, s);
	for (uint32_t i = 0; i < want->kept_n && i < place_nodes(want); i++)
		s->kept_on[s->kept_n++] = want->kept[i];
}

/* The file, which must hold the decision that is made of it. */
static int read_file(
	struct sim_trace *t, const char *path, struct snapshot_file *ret, struct err *e)
{
	struct buf text, words;

	buf_init(&text, SNAPSHOT_BYTES_MAX);
	buf_init(&words, 1 << 20);
	int rc = fs_read(path, &text, e);
	if (rc == 0)
		rc = snapshot_read(buf_str(&text), t->arena, ret, e);
	if (rc == 0 && !replay_snapshot(ret, STR_NONE, &words))
		rc = err_set(e, ERR_INTERNAL, "decided anew: %.*s", STR_ARG(buf_str(&words)));
	buf_done(&words);
	buf_done(&text);
	return rc;
}

struct sim_trace *sim_trace_read(const char *path, uint64_t seed, struct err *e)
{
	struct sim_trace *t = sim_trace_new("empty", 1, seed);
	struct snapshot_file f;

	t->name = path;
	t->replay_every = 1;
	if (read_file(t, path, &f, e) < 0) {
		sim_trace_free(t);
		return NULL;
	}
	const struct place_snapshot *s = &f.snapshot;
	struct place_project *left =
		arena_array_of(t->arena, struct place_project, s->projects_n + 1);
	t->projects = arena_array_of(t->arena, struct place_project, s->projects_n + 1);
	t->projects_n = (uint32_t)s->projects_n + 1;
	memcpy(left, s->projects, s->projects_n * sizeof *left);
	memcpy(t->projects, s->projects, s->projects_n * sizeof *t->projects);
	t->projects[s->projects_n] = (struct place_project){ .id = STR("others"), .weight = 1 };
	for (uint32_t i = 0; i < t->projects_n; i++) {
		struct place_project *p = &t->projects[i];
		p->running = p->gpus = 0;
		p->cpus = 0;
		p->memory = 0;
	}
	take_workers(t, s);
	t->steps = arena_array_of(t->arena, struct sim_step, s->steps_n + s->running_n + 1);
	for (size_t i = 0; i < s->running_n; i++)
		take_running(t, left, &s->running[i], f.at);
	for (size_t i = 0; i < s->steps_n; i++)
		take_waiting(t, &s->steps[i]);
	t->began = f.at;
	return t;
}
