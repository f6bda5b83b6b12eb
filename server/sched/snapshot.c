#include "server/sched/snapshot.h"

#include "api/pipeline.h"
#include "api/pool.h"
#include "lib/base/mem.h"
#include "lib/json/field.h"

/* ---- the lines ---------------------------------------------------------------------------------
 */

enum { FORMAT = 3, LINE_MAX = 1 << 20, LINES_MAX = 200000, DEVICES_MAX = 1000 };
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
	LINE_KINDS
};
static const char *const line_names[] = { "snapshot", "project", "worker", "step", "running",
	"placed", "waiting", "pool", NULL };

struct line_head {
	int kind;
};
struct line_snapshot {
	int kind;
	int64_t format, at, projects, workers, steps, running, placed, waiting, pools;
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
	int64_t memory;
	bool free;
};
struct line_worker {
	int kind;
	struct str id, name, pool;
	struct list labels, runtimes, gpus;
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
	struct list gpu_models, requires, avoids, runtimes, also_kept;
};
struct line_running {
	int kind;
	int64_t worker, memory, ends_by;
	double cpus;
	struct list gpus;
};
struct line_placed {
	int kind;
	int64_t step, worker, runtime, rank;
	struct list gpus;
};
struct line_waiting {
	int kind;
	int64_t step;
};

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

static const struct field head_fields[] = {
	{ "kind", FIELD_ENUM, Q, offsetof(struct line_head, kind), .names = line_names }, { 0 }
};
#define THIS line_snapshot
static const struct field snapshot_fields[] = { KIND, COUNT(format, FORMAT), INSTANT(at),
	COUNT(projects, LINES_MAX), COUNT(workers, LINES_MAX), COUNT(steps, LINES_MAX),
	COUNT(running, LINES_MAX), COUNT(placed, LINES_MAX), COUNT(waiting, LINES_MAX),
	LATER(pools, LINES_MAX), { 0 } };
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
	{ "mig", FIELD_STR, FIELD_OMIT_EMPTY, AT(mig) }, { 0 } };
#undef THIS
#define THIS line_worker
static const struct field worker_line_fields[] = { KIND, TEXT(id), TEXT(name), TEXT(pool),
	LABELS(labels), RUNTIMES(runtimes), REAL(cpus), REAL(cpus_free), AMOUNT(memory),
	AMOUNT(memory_free), AMOUNT(disk_free), COUNT(gpus_unwell, UINT32_MAX),
	COUNT(running, UINT32_MAX), FLAG(offline), FLAG(draining), FLAG(avoided),
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
	LATER(sensitivity, PLACE_SENSITIVITIES - 1), { 0 } };
#undef THIS
#define THIS line_running
static const struct field running_fields[] = { KIND, COUNT(worker, LINES_MAX), REAL(cpus),
	AMOUNT(memory), TEXTS(gpus, DEVICES_MAX), INSTANT(ends_by), { 0 } };
#undef THIS
#define THIS line_placed
static const struct field placed_fields[] = { KIND, COUNT(step, LINES_MAX),
	COUNT(worker, LINES_MAX), COUNT(runtime, RUNTIME_COUNT - 1), TEXTS(gpus, GPUS_MAX),
	{ "rank", FIELD_INT, FIELD_OMIT_EMPTY, AT(rank), .max = PLACE_NODES_MAX - 1 }, { 0 } };
#undef THIS
#define THIS line_waiting
static const struct field waiting_fields[] = { KIND, COUNT(step, LINES_MAX), { 0 } };
#undef THIS

static const struct field *const tables[LINE_KINDS] = { snapshot_fields, project_fields,
	worker_line_fields, step_line_fields, running_fields, placed_fields, waiting_fields,
	pool_line_fields };

/* ---- writing ------------------------------------------------------------------------------------
 */

static void put(const struct field *t, const void *line, struct buf *out)
{
	struct buf b;

	buf_init(&b, LINE_MAX);
	field_encode(t, line, &b);
	out->failed = out->failed || b.failed;
	buf_add(out, buf_str(&b));
	buf_addc(out, '\n');
	buf_done(&b);
}

/* struct field_pair has the shape of a label. */
static struct list labels_list(const struct place_label *labels, uint32_t n)
{
	_Static_assert(sizeof(struct place_label) == sizeof(struct field_pair), "labels are pairs");
	return (struct list){ (void *)(uintptr_t)labels, n };
}

static struct list texts_list(const struct str *texts, size_t n)
{
	return (struct list){ (void *)(uintptr_t)texts, n };
}

static void put_project(const struct place_project *p, struct buf *out)
{
	put(project_fields,
		&(struct line_project){ .kind = LINE_PROJECT,
			.id = p->id,
			.name = p->name.p != NULL ? p->name : p->id,
			.weight = p->weight,
			.cpus = p->cpus,
			.running = p->running,
			.gpus = p->gpus,
			.memory = (int64_t)p->memory,
			.gpus_quota = { p->gpus_quota.nominal, p->gpus_quota.borrow },
			.steps_quota = { p->steps_quota.nominal, p->steps_quota.borrow },
			.has_gpus_quota = p->gpus_quota.limited,
			.has_steps_quota = p->steps_quota.limited },
		out);
}

static void put_worker(const struct place_worker *w, struct buf *out)
{
	int64_t runtimes[32];
	struct line_gpu *gpus = mem_new((size_t)w->gpus_n + 1, sizeof *gpus);
	struct line_worker l = { .kind = LINE_WORKER,
		.id = w->id,
		.name = w->name.p != NULL ? w->name : w->id,
		.pool = w->pool,
		.labels = labels_list(w->labels, w->labels_n),
		.runtimes = { runtimes, 0 },
		.gpus = { gpus, 0 },
		.cpus = w->cpus,
		.cpus_free = w->cpus_free,
		.memory = (int64_t)w->memory,
		.memory_free = (int64_t)w->memory_free,
		.disk_free = (int64_t)w->disk_free,
		.gpus_unwell = w->gpus_unwell,
		.running = w->running,
		.offline = w->offline,
		.draining = w->draining,
		.avoided = w->avoided };

	for (int r = 0; r < 32; r++)
		if ((w->runtimes >> r & 1) != 0)
			runtimes[l.runtimes.n++] = r;
	for (uint32_t i = 0; i < w->gpus_n; i++)
		gpus[l.gpus.n++] = (struct line_gpu){ w->gpus[i].uuid, w->gpus[i].model,
			w->gpus[i].mig, (int64_t)w->gpus[i].memory, w->gpus[i].free };
	put(worker_line_fields, &l, out);
	mem_free(gpus);
}

static void put_step(const struct place_step *s, struct buf *out)
{
	int64_t runtimes[PLACE_RUNTIMES_MAX], kept[PLACE_NODES_MAX];
	struct line_step l = { .kind = LINE_STEP,
		.id = s->id,
		.pool = s->pool,
		.project = s->project,
		.priority = s->priority,
		.queued_at = s->queued_at,
		.memory = (int64_t)s->memory,
		.disk = (int64_t)s->disk,
		.gpus = s->gpus.count,
		.gpu_memory_min = (int64_t)s->gpus.memory_min,
		.gpu_memory_max = (int64_t)s->gpus.memory_max,
		.gpu_mig = s->gpus.mig,
		.time_limit = s->time_limit,
		.nodes = s->nodes > 1 ? s->nodes : 0,
		.kept = s->kept_n != 0 ? s->kept[0] + INT64_C(1) : 0,
		.also_kept = { kept, 0 },
		.sensitivity = s->sensitivity,
		.cpus = s->cpus,
		.gpu_models = texts_list(s->gpus.models, s->gpus.models_n),
		.requires = labels_list(s->requires, s->requires_n),
		.avoids = labels_list(s->avoids, s->avoids_n),
		.runtimes = { runtimes, s->runtimes_n } };

	for (uint8_t i = 0; i < s->runtimes_n; i++)
		runtimes[i] = s->runtimes[i];
	for (uint32_t i = 1; i < s->kept_n; i++)
		kept[l.also_kept.n++] = s->kept[i];
	put(step_line_fields, &l, out);
}

void snapshot_write(
	const struct place_snapshot *s, const struct place_result *r, int64_t at, struct buf *out)
{
	put(snapshot_fields,
		&(struct line_snapshot){ LINE_SNAPSHOT, FORMAT, at, (int64_t)s->projects_n,
			(int64_t)s->workers_n, (int64_t)s->steps_n, (int64_t)s->running_n,
			(int64_t)r->placed_n, (int64_t)r->waiting_n, (int64_t)s->pools_n },
		out);
	for (size_t i = 0; i < s->projects_n; i++)
		put_project(&s->projects[i], out);
	for (size_t i = 0; i < s->pools_n; i++)
		put(pool_line_fields,
			&(struct line_pool){ LINE_POOL, s->pools[i].name, (int)s->pools[i].policy,
				(int)s->pools[i].preemption, s->pools[i].sensitivities },
			out);
	for (size_t i = 0; i < s->workers_n; i++)
		put_worker(&s->workers[i], out);
	for (size_t i = 0; i < s->steps_n; i++)
		put_step(&s->steps[i], out);
	for (size_t i = 0; i < s->running_n; i++) {
		const struct place_running *x = &s->running[i];
		put(running_fields,
			&(struct line_running){ LINE_RUNNING, x->worker, (int64_t)x->memory,
				x->ends_by, x->cpus, texts_list(x->gpus, x->gpus_n) },
			out);
	}
	for (size_t i = 0; i < r->placed_n; i++) {
		const struct place_assignment *x = &r->placed[i];
		put(placed_fields,
			&(struct line_placed){ LINE_PLACED, x->step, x->worker, x->runtime, x->rank,
				texts_list(x->gpus, x->gpus_n) },
			out);
	}
	for (size_t i = 0; i < r->waiting_n; i++)
		put(waiting_fields, &(struct line_waiting){ LINE_WAITING, r->waiting[i] }, out);
}

/* ---- reading ------------------------------------------------------------------------------------
 */

struct reader {
	struct arena *arena;
	struct snapshot_file file;
	struct line_snapshot head;
	struct place_project *projects;
	struct place_worker *workers;
	struct place_step *steps;
	struct place_running *running;
	struct place_pool *pools;
	size_t seen[LINE_KINDS];
};

static const struct str *texts_of(const struct list *l)
{
	return l->items;
}

static struct place_quota read_quota(bool limited, const struct line_quota *q)
{
	return (struct place_quota){ limited, (uint32_t)q->nominal, (uint32_t)q->borrow };
}

static struct place_project read_project(const struct line_project *l)
{
	return (struct place_project){ .id = l->id,
		.name = l->name,
		.weight = l->weight,
		.running = (uint32_t)l->running,
		.gpus = (uint32_t)l->gpus,
		.cpus = l->cpus,
		.memory = (uint64_t)l->memory,
		.gpus_quota = read_quota(l->has_gpus_quota, &l->gpus_quota),
		.steps_quota = read_quota(l->has_steps_quota, &l->steps_quota) };
}

static struct place_pool read_pool(const struct line_pool *l)
{
	return (struct place_pool){ l->name, (enum place_policy)l->policy,
		(enum place_preemption)l->preemption, (uint8_t)l->sensitivities };
}

static struct place_worker read_worker(struct reader *r, const struct line_worker *l)
{
	struct place_gpu *gpus = arena_array_of(r->arena, struct place_gpu, l->gpus.n + 1);
	struct place_worker w = { .id = l->id,
		.name = l->name,
		.pool = l->pool,
		.labels = l->labels.items,
		.labels_n = (uint32_t)l->labels.n,
		.cpus = l->cpus,
		.cpus_free = l->cpus_free,
		.memory = (uint64_t)l->memory,
		.memory_free = (uint64_t)l->memory_free,
		.disk_free = (uint64_t)l->disk_free,
		.gpus = gpus,
		.gpus_n = (uint32_t)l->gpus.n,
		.gpus_unwell = (uint32_t)l->gpus_unwell,
		.running = (uint32_t)l->running,
		.offline = l->offline,
		.draining = l->draining,
		.avoided = l->avoided };

	for (size_t i = 0; i < l->runtimes.n; i++)
		w.runtimes |= UINT32_C(1) << *list_at(&l->runtimes, int64_t, i);
	for (size_t i = 0; i < l->gpus.n; i++) {
		const struct line_gpu *g = list_at(&l->gpus, struct line_gpu, i);
		gpus[i] = (struct place_gpu){ g->uuid, g->model, g->mig, (uint64_t)g->memory,
			g->free };
	}
	return w;
}

static struct place_step read_step(struct reader *r, const struct line_step *l)
{
	uint32_t *kept = arena_array_of(r->arena, uint32_t, l->also_kept.n + 1);
	struct place_step s = { .id = l->id,
		.project = (uint32_t)l->project,
		.priority = (int32_t)l->priority,
		.queued_at = l->queued_at,
		.cpus = l->cpus,
		.memory = (uint64_t)l->memory,
		.disk = (uint64_t)l->disk,
		.gpus = { .count = (uint32_t)l->gpus,
			.models = texts_of(&l->gpu_models),
			.models_n = l->gpu_models.n,
			.memory_min = (uint64_t)l->gpu_memory_min,
			.memory_max = (uint64_t)l->gpu_memory_max,
			.mig = l->gpu_mig },
		.pool = l->pool,
		.requires = l->requires.items,
		.requires_n = (uint32_t)l->requires.n,
		.avoids = l->avoids.items,
		.avoids_n = (uint32_t)l->avoids.n,
		.runtimes_n = (uint8_t)l->runtimes.n,
		.time_limit = l->time_limit,
		.nodes = (uint32_t)l->nodes,
		.sensitivity = (uint8_t)l->sensitivity,
		.kept = kept };

	if (l->kept != 0)
		kept[s.kept_n++] = (uint32_t)l->kept - 1;
	for (size_t i = 0; i < l->also_kept.n; i++)
		kept[s.kept_n++] = (uint32_t)*list_at(&l->also_kept, int64_t, i);

	for (size_t i = 0; i < l->runtimes.n; i++)
		s.runtimes[i] = (uint8_t)*list_at(&l->runtimes, int64_t, i);
	return s;
}

static int read_head(struct reader *r, const struct line_snapshot *l)
{
	r->head = *l;
	r->file.at = l->at;
	r->projects = arena_array_of(r->arena, struct place_project, (size_t)l->projects + 1);
	r->workers = arena_array_of(r->arena, struct place_worker, (size_t)l->workers + 1);
	r->steps = arena_array_of(r->arena, struct place_step, (size_t)l->steps + 1);
	r->pools = arena_array_of(r->arena, struct place_pool, (size_t)l->pools + 1);
	r->running = arena_array_of(r->arena, struct place_running, (size_t)l->running + 1);
	r->file.placed = arena_array_of(r->arena, struct place_assignment, (size_t)l->placed + 1);
	r->file.waiting = arena_array_of(r->arena, uint32_t, (size_t)l->waiting + 1);
	return 0;
}

static int64_t most_of(const struct reader *r, enum line_kind kind)
{
	const int64_t most[LINE_KINDS] = { 1, r->head.projects, r->head.workers, r->head.steps,
		r->head.running, r->head.placed, r->head.waiting, r->head.pools };

	return most[kind];
}

static int in_range(int64_t at, int64_t n, const char *field, struct err *e)
{
	return at < n ? 0 : err_field(e, field, "there is no such line: %lld", (long long)at);
}

static int read_decision(struct reader *r, enum line_kind kind, const void *line, struct err *e)
{
	const struct line_placed *p = line;
	const struct line_waiting *w = line;
	int64_t step = kind == LINE_PLACED ? p->step : w->step;

	if (in_range(step, r->head.steps, "/step", e) < 0 ||
		(kind == LINE_PLACED && in_range(p->worker, r->head.workers, "/worker", e) < 0))
		return -1;
	if (kind == LINE_PLACED)
		r->file.placed[r->file.placed_n++] = (struct place_assignment){ (uint32_t)p->step,
			(uint32_t)p->worker, (uint32_t)p->rank, (int)p->runtime, texts_of(&p->gpus),
			(uint32_t)p->gpus.n };
	else
		r->file.waiting[r->file.waiting_n++] = (uint32_t)w->step;
	return 0;
}

static int take(struct reader *r, enum line_kind kind, const void *line, struct err *e)
{
	bool first = r->seen[LINE_SNAPSHOT] == 0;
	size_t at = r->seen[kind]++;
	const struct line_project *p = line;
	const struct line_running *x = line;

	if (first != (kind == LINE_SNAPSHOT))
		return err_field(e, "/kind", "the first line, and no other, is the snapshot's");
	if (kind != LINE_SNAPSHOT && (int64_t)at >= most_of(r, kind))
		return err_field(e, "/kind", "there are more lines of this kind than were counted");
	switch (kind) {
	case LINE_SNAPSHOT: return read_head(r, line);
	case LINE_PROJECT: r->projects[at] = read_project(p); return 0;
	case LINE_WORKER: r->workers[at] = read_worker(r, line); return 0;
	case LINE_STEP:
		r->steps[at] = read_step(r, line);
		return in_range(r->steps[at].project, r->head.projects, "/project", e);
	case LINE_RUNNING:
		r->running[at] = (struct place_running){ (uint32_t)x->worker, x->cpus,
			(uint64_t)x->memory, texts_of(&x->gpus), (uint32_t)x->gpus.n, x->ends_by };
		return in_range(x->worker, r->head.workers, "/worker", e);
	case LINE_PLACED:
	case LINE_WAITING: return read_decision(r, kind, line, e);
	case LINE_POOL: r->pools[at] = read_pool(line); return 0;
	case LINE_KINDS: break;
	}
	return 0;
}

static int read_line(struct reader *r, struct str text, struct err *e)
{
	union {
		struct line_head head;
		struct line_snapshot snapshot;
		struct line_project project;
		struct line_worker worker;
		struct line_step step;
		struct line_running running;
		struct line_placed placed;
		struct line_waiting waiting;
		struct line_pool pool;
	} line;

	if (field_decode_loose(head_fields, text, r->arena, &line.head, e) < 0)
		return -1;
	enum line_kind kind = (enum line_kind)line.head.kind;
	if (field_decode(tables[kind], text, r->arena, &line, e) < 0)
		return -1;
	return take(r, kind, &line, e);
}

int snapshot_read(struct str text, struct arena *a, struct snapshot_file *ret, struct err *e)
{
	struct reader r = { .arena = a };
	struct str line;
	size_t number = 0;

	while (str_next(&text, '\n', &line) && (line.n != 0 || text.n != 0)) {
		number++;
		if (arena_room(a) < 2 * line.n + LINE_MAX)
			return err_set(
				e, ERR_TOO_LARGE, "line %zu: the snapshot is too large", number);
		if (read_line(&r, line, e) < 0) {
			struct err why = *e;
			return err_set(e, why.code, "line %zu: %s%s%s", number, why.field,
				why.field[0] != '\0' ? ": " : "", why.msg);
		}
	}
	for (int kind = 0; kind < LINE_KINDS; kind++)
		if ((int64_t)r.seen[kind] != most_of(&r, (enum line_kind)kind))
			return err_set(e, ERR_INVALID, "the lines of kind %s are %zu, not %lld",
				line_names[kind], r.seen[kind],
				(long long)most_of(&r, (enum line_kind)kind));
	r.file.snapshot = (struct place_snapshot){ .projects = r.projects,
		.steps = r.steps,
		.workers = r.workers,
		.running = r.running,
		.pools = r.pools,
		.pools_n = (size_t)r.head.pools,
		.projects_n = (size_t)r.head.projects,
		.steps_n = (size_t)r.head.steps,
		.workers_n = (size_t)r.head.workers,
		.running_n = (size_t)r.head.running,
		.now = r.head.at,
		.runtimes = runtime_names };
	*ret = r.file;
	return 0;
}
