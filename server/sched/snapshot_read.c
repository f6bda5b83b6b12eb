#include "api/pipeline.h"
#include "server/sched/snapshot_inside.h"

struct reader {
	struct arena *arena;
	struct snapshot_file file;
	struct line_snapshot head;
	struct place_project *projects;
	struct place_worker *workers;
	struct place_step *steps;
	struct place_running *running;
	struct place_pool *pools;
	struct place_preempted *preempted;
	struct place_good *goods;
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
	for (size_t i = 0; i < l->isolated.n; i++)
		w.isolated |= UINT32_C(1) << *list_at(&l->isolated, int64_t, i);
	for (size_t i = 0; i < l->gpus.n; i++) {
		const struct line_gpu *g = list_at(&l->gpus, struct line_gpu, i);
		gpus[i] = (struct place_gpu){ g->uuid, g->model, g->mig, (uint64_t)g->memory,
			g->free, (uint32_t)g->numa, 0 };
		for (size_t k = 0; k < g->links.n; k++)
			gpus[i].links |= UINT64_C(1) << *list_at(&g->links, int64_t, k);
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
	r->preempted = arena_array_of(r->arena, struct place_preempted, (size_t)l->preempted + 1);
	r->goods = arena_array_of(r->arena, struct place_good, (size_t)l->goods + 1);
	r->pools = arena_array_of(r->arena, struct place_pool, (size_t)l->pools + 1);
	r->running = arena_array_of(r->arena, struct place_running, (size_t)l->running + 1);
	r->file.placed = arena_array_of(r->arena, struct place_assignment, (size_t)l->placed + 1);
	r->file.waiting = arena_array_of(r->arena, uint32_t, (size_t)l->waiting + 1);
	return 0;
}

static int64_t most_of(const struct reader *r, enum line_kind kind)
{
	const int64_t most[LINE_KINDS] = { 1, r->head.projects, r->head.workers, r->head.steps,
		r->head.running, r->head.placed, r->head.waiting, r->head.pools, r->head.preempted,
		r->head.goods };

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
			(uint32_t)p->gpus.n, (uint32_t)p->held };
	else
		r->file.waiting[r->file.waiting_n++] = (uint32_t)w->step;
	return 0;
}

/* Those of a list, each below n; NULL: one is not. */
static uint32_t *positions(struct reader *r, const struct list *from, int64_t n)
{
	uint32_t *to = arena_array_of(r->arena, uint32_t, from->n + 1);

	for (size_t i = 0; i < from->n; i++) {
		int64_t at = *list_at(from, int64_t, i);
		if (at >= n)
			return NULL;
		to[i] = (uint32_t)at;
	}
	return to;
}

static int no_such(const char *field, struct err *e)
{
	return err_field(e, field, "there is no such line");
}

static int read_cleared(struct reader *r, const struct line_step *l, struct place_step *ret)
{
	ret->cleared = positions(r, &l->cleared, r->head.workers);
	ret->cleared_n = (uint32_t)l->cleared.n;
	return ret->cleared != NULL ? 0 : -1;
}

static int read_good(
	struct reader *r, const struct line_good *l, struct place_good *ret, struct err *e)
{
	*ret = (struct place_good){ .name = l->name,
		.bytes = (uint64_t)l->bytes,
		.workers = positions(r, &l->workers, r->head.workers),
		.workers_n = (uint32_t)l->workers.n };
	return ret->workers != NULL ? 0 : no_such("/workers", e);
}

static int read_goods(struct reader *r, const struct line_step *l, struct place_step *ret)
{
	ret->goods = positions(r, &l->goods, r->head.goods);
	ret->goods_n = (uint32_t)l->goods.n;
	return ret->goods != NULL ? 0 : -1;
}

static int read_running(
	struct reader *r, const struct line_running *l, struct place_running *ret, struct err *e)
{
	uint32_t *spared = positions(r, &l->spared, r->head.steps);

	if (in_range(l->worker, r->head.workers, "/worker", e) < 0)
		return -1;
	if (l->by > r->head.steps)
		return no_such("/by", e);
	if (spared == NULL)
		return no_such("/spared", e);
	*ret = (struct place_running){ .worker = (uint32_t)l->worker,
		.cpus = l->cpus,
		.memory = (uint64_t)l->memory,
		.gpus = texts_of(&l->gpus),
		.gpus_n = (uint32_t)l->gpus.n,
		.ends_by = l->ends_by,
		.id = l->id,
		.step = l->step,
		.project = (uint32_t)l->project,
		.priority = (int32_t)l->priority,
		.since = l->since,
		.fixed = l->fixed,
		.by = (uint32_t)l->by,
		.spared = spared,
		.spared_n = (uint32_t)l->spared.n };
	return 0;
}

static int read_preempted(struct reader *r, const struct line_preempted *l,
	struct place_preempted *ret, struct err *e)
{
	struct place_victim *victims =
		arena_array_of(r->arena, struct place_victim, l->victims.n + 1);
	uint32_t *workers = positions(r, &l->workers, r->head.workers);
	uint32_t *running = positions(r, &l->victims, r->head.running);

	if (in_range(l->step, r->head.steps, "/step", e) < 0)
		return -1;
	if (workers == NULL)
		return no_such("/workers", e);
	if (running == NULL)
		return no_such("/victims", e);
	for (size_t i = 0; i < l->victims.n; i++) {
		victims[i].running = running[i];
		for (size_t k = 0; k < l->reclaimed.n; k++)
			victims[i].reclaimed |= *list_at(&l->reclaimed, int64_t, k) == running[i];
	}
	*ret = (struct place_preempted){ (uint32_t)l->step, workers, victims,
		(uint32_t)l->workers.n, (uint32_t)l->victims.n };
	return 0;
}

static int take(struct reader *r, enum line_kind kind, const void *line, struct err *e)
{
	bool first = r->seen[LINE_SNAPSHOT] == 0;
	size_t at = r->seen[kind]++;
	const struct line_project *p = line;

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
		if (read_cleared(r, line, &r->steps[at]) < 0)
			return no_such("/cleared", e);
		if (read_goods(r, line, &r->steps[at]) < 0)
			return no_such("/goods", e);
		return in_range(r->steps[at].project, r->head.projects, "/project", e);
	case LINE_RUNNING: return read_running(r, line, &r->running[at], e);
	case LINE_PLACED:
	case LINE_WAITING: return read_decision(r, kind, line, e);
	case LINE_POOL: r->pools[at] = read_pool(line); return 0;
	case LINE_PREEMPTED: return read_preempted(r, line, &r->preempted[at], e);
	case LINE_GOOD: return read_good(r, line, &r->goods[at], e);
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
		struct line_preempted preempted;
		struct line_good good;
	} line;

	if (field_decode_loose(head_fields, text, r->arena, &line.head, e) < 0)
		return -1;
	enum line_kind kind = (enum line_kind)line.head.kind;
	if (field_decode(line_tables[kind], text, r->arena, &line, e) < 0)
		return -1;
	return take(r, kind, &line, e);
}

/* Where nothing is preempted, whose it is need not be known. */
static int check_running(const struct reader *r, struct err *e)
{
	bool preempts = false;

	for (int64_t i = 0; i < r->head.pools; i++)
		preempts = preempts || r->pools[i].preemption != PLACE_PREEMPT_NONE;
	for (int64_t i = 0; preempts && i < r->head.running; i++)
		if (r->running[i].project >= r->head.projects)
			return err_set(e, ERR_INVALID,
				"line %lld of kind running names a project that is not there",
				(long long)i + 1);
	return 0;
}

int snapshot_read(struct str text, struct arena *a, struct snapshot_file *ret, struct err *e)
{
	struct reader r = { .arena = a };
	struct str line;
	size_t number = 0;

	while (str_next(&text, '\n', &line) && (line.n != 0 || text.n != 0)) {
		number++;
		if (arena_room(a) < 2 * line.n + SNAPSHOT_LINE_MAX)
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
	if (check_running(&r, e) < 0)
		return -1;
	r.file.preempted = r.preempted;
	r.file.preempted_n = (size_t)r.head.preempted;
	r.file.snapshot = (struct place_snapshot){ .projects = r.projects,
		.steps = r.steps,
		.workers = r.workers,
		.running = r.running,
		.pools = r.pools,
		.goods = r.goods,
		.goods_n = (size_t)r.head.goods,
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
