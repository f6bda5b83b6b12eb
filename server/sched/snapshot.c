#include "server/sched/snapshot.h"

#include "lib/base/mem.h"
#include "server/sched/snapshot_inside.h"

static void put(enum line_kind kind, const void *line, struct buf *out)
{
	struct buf b;

	buf_init(&b, SNAPSHOT_LINE_MAX);
	field_encode(line_tables[kind], line, &b);
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
	put(LINE_PROJECT,
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

static struct list links_list(uint64_t links, int64_t room[64])
{
	struct list out = { room, 0 };

	for (; links != 0; links &= links - 1)
		room[out.n++] = __builtin_ctzll(links);
	return out;
}

static void put_worker(const struct place_worker *w, struct buf *out)
{
	int64_t runtimes[32], isolated[32];
	struct line_gpu *gpus = mem_new((size_t)w->gpus_n + 1, sizeof *gpus);
	int64_t(*links)[64] = mem_new((size_t)w->gpus_n + 1, sizeof *links);
	struct line_worker l = { .kind = LINE_WORKER,
		.id = w->id,
		.name = w->name.p != NULL ? w->name : w->id,
		.pool = w->pool,
		.labels = labels_list(w->labels, w->labels_n),
		.runtimes = { runtimes, 0 },
		.isolated = { isolated, 0 },
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

	for (int r = 0; r < 32; r++) {
		if ((w->runtimes >> r & 1) != 0)
			runtimes[l.runtimes.n++] = r;
		if ((w->isolated >> r & 1) != 0)
			isolated[l.isolated.n++] = r;
	}
	for (uint32_t i = 0; i < w->gpus_n; i++) {
		const struct place_gpu *g = &w->gpus[i];
		gpus[l.gpus.n++] = (struct line_gpu){ g->uuid, g->model, g->mig, (int64_t)g->memory,
			g->numa, g->free, links_list(g->links, links[i]) };
	}
	put(LINE_WORKER, &l, out);
	mem_free(links);
	mem_free(gpus);
}

static struct list positions(const uint32_t *from, uint32_t n)
{
	int64_t *to = mem_new(n + (size_t)1, sizeof *to);

	for (uint32_t i = 0; i < n; i++)
		to[i] = from[i];
	return (struct list){ to, n };
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
	l.cleared = positions(s->cleared, s->cleared_n);
	l.goods = positions(s->goods, s->goods_n);
	put(LINE_STEP, &l, out);
	mem_free(l.goods.items);
	mem_free(l.cleared.items);
}

static void put_running(const struct place_running *x, struct buf *out)
{
	struct line_running l = { .kind = LINE_RUNNING,
		.worker = x->worker,
		.memory = (int64_t)x->memory,
		.ends_by = x->ends_by,
		.cpus = x->cpus,
		.gpus = texts_list(x->gpus, x->gpus_n),
		.id = x->id,
		.step = x->step,
		.project = x->project,
		.priority = x->priority,
		.since = x->since,
		.by = x->by,
		.fixed = x->fixed,
		.spared = positions(x->spared, x->spared_n) };

	put(LINE_RUNNING, &l, out);
	mem_free(l.spared.items);
}

static void put_good(const struct place_good *g, struct buf *out)
{
	const uint64_t most = INT64_MAX / 200;
	struct line_good l = { .kind = LINE_GOOD,
		.name = g->name,
		.bytes = (int64_t)(g->bytes < most ? g->bytes : most),
		.workers = positions(g->workers, g->workers_n) };

	put(LINE_GOOD, &l, out);
	mem_free(l.workers.items);
}

static void put_preempted(const struct place_preempted *p, struct buf *out)
{
	int64_t *victims = mem_new(p->victims_n, sizeof *victims);
	int64_t *reclaimed = mem_new(p->victims_n, sizeof *reclaimed);
	struct line_preempted l = { .kind = LINE_PREEMPTED,
		.step = p->step,
		.workers = positions(p->workers, p->workers_n),
		.victims = { victims, p->victims_n },
		.reclaimed = { reclaimed, 0 } };

	for (uint32_t i = 0; i < p->victims_n; i++) {
		victims[i] = p->victims[i].running;
		if (p->victims[i].reclaimed)
			reclaimed[l.reclaimed.n++] = p->victims[i].running;
	}
	put(LINE_PREEMPTED, &l, out);
	mem_free(l.workers.items);
	mem_free(victims);
	mem_free(reclaimed);
}

void snapshot_write(
	const struct place_snapshot *s, const struct place_result *r, int64_t at, struct buf *out)
{
	put(LINE_SNAPSHOT,
		&(struct line_snapshot){ LINE_SNAPSHOT, SNAPSHOT_FORMAT, at, (int64_t)s->projects_n,
			(int64_t)s->workers_n, (int64_t)s->steps_n, (int64_t)s->running_n,
			(int64_t)r->placed_n, (int64_t)r->waiting_n, (int64_t)s->pools_n,
			(int64_t)r->preempted_n, (int64_t)s->goods_n },
		out);
	for (size_t i = 0; i < s->projects_n; i++)
		put_project(&s->projects[i], out);
	for (size_t i = 0; i < s->pools_n; i++)
		put(LINE_POOL,
			&(struct line_pool){ LINE_POOL, s->pools[i].name, (int)s->pools[i].policy,
				(int)s->pools[i].preemption, s->pools[i].sensitivities },
			out);
	for (size_t i = 0; i < s->workers_n; i++)
		put_worker(&s->workers[i], out);
	for (size_t i = 0; i < s->goods_n; i++)
		put_good(&s->goods[i], out);
	for (size_t i = 0; i < s->steps_n; i++)
		put_step(&s->steps[i], out);
	for (size_t i = 0; i < s->running_n; i++)
		put_running(&s->running[i], out);
	for (size_t i = 0; i < r->placed_n; i++) {
		const struct place_assignment *x = &r->placed[i];
		put(LINE_PLACED,
			&(struct line_placed){ LINE_PLACED, x->step, x->worker, x->runtime, x->rank,
				x->held, texts_list(x->gpus, x->gpus_n) },
			out);
	}
	for (size_t i = 0; i < r->waiting_n; i++)
		put(LINE_WAITING, &(struct line_waiting){ LINE_WAITING, r->waiting[i] }, out);
	for (size_t i = 0; i < r->preempted_n; i++)
		put_preempted(&r->preempted[i], out);
}
