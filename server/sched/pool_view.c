#include "api/pipeline.h"
#include "lib/base/mem.h"
#include "server/sched/pool_inside.h"

#include <stdlib.h>

/* What placement sees of the scheduler's memory. */

enum { SNAPSHOT_STEPS_MAX = 20000 };

/* ---- the snapshot ---- */

struct snapshot {
	struct pool *pool;
	struct arena *arena;
	struct place_project *projects;
	size_t projects_n;
	struct map *index; /* project id -> position + 1 */
};

static uint32_t project_at(struct snapshot *s, struct str id)
{
	uintptr_t at = (uintptr_t)map_get(s->index, id);

	if (at == 0) {
		const struct tally *t = map_get(s->pool->tallies, id);
		s->projects[s->projects_n] =
			t != NULL ? t->project : (struct place_project){ .id = id, .weight = 1 };
		at = ++s->projects_n;
		(void)map_put(s->index, id, (void *)at);
	}
	return (uint32_t)(at - 1);
}

static int by_urgency(const void *a, const void *b)
{
	const struct waiting *x = *(struct waiting *const *)a, *y = *(struct waiting *const *)b;

	if (x->step.priority != y->step.priority)
		return x->step.priority > y->step.priority ? -1 : 1;
	if (x->step.queued_at != y->step.queued_at)
		return x->step.queued_at < y->step.queued_at ? -1 : 1;
	return str_cmp(x->step.id, y->step.id);
}

/* More than a pass looks at: of each project as many as of any other, the most urgent of each; the
 * rest of the room is for whoever is most urgent. Moves them to the front. */
static size_t most_urgent(struct snapshot *s, struct waiting **all, size_t n)
{
	uint32_t *taken = arena_array_of(s->arena, uint32_t, n + 1);
	struct waiting **later = arena_array_of(s->arena, struct waiting *, n + 1);
	size_t front = 0, left = 0, share;

	qsort(all, n, sizeof all[0], by_urgency);
	for (size_t i = 0; i < n; i++)
		(void)project_at(s, all[i]->project_id);
	share = SNAPSHOT_STEPS_MAX / s->projects_n + 1;
	for (size_t i = 0; i < n; i++) {
		uint32_t project = project_at(s, all[i]->project_id);
		if (front < SNAPSHOT_STEPS_MAX && taken[project]++ < share)
			all[front++] = all[i];
		else
			later[left++] = all[i];
	}
	for (size_t i = 0; i < left && front < SNAPSHOT_STEPS_MAX; i++)
		all[front++] = later[i];
	return front;
}

/* Positions of those workers that are there. */
static const uint32_t *see_workers(
	struct pool *p, struct arena *a, const struct list *ids, uint32_t *ret_n)
{
	uint32_t *at = arena_array_of(a, uint32_t, ids->n);

	*ret_n = 0;
	for (size_t i = 0; i < ids->n; i++) {
		const struct host *h = map_get(p->hosts, *list_at(ids, struct str, i));
		if (h != NULL)
			at[(*ret_n)++] = h->at;
	}
	return at;
}

static void take_steps(struct pool *p, struct snapshot *s, int64_t now, struct place_snapshot *ret,
	int64_t *ret_next)
{
	struct waiting **all = arena_array_of(s->arena, struct waiting *, map_count(p->steps) + 1);
	size_t n = 0, at = 0;
	struct str key;
	void *value;

	*ret_next = 0;
	while (map_next(p->steps, &at, &key, &value)) {
		struct waiting *w = value;
		if (w->not_before <= now)
			all[n++] = w;
		else if (*ret_next == 0 || w->not_before < *ret_next)
			*ret_next = w->not_before;
	}
	if (n > SNAPSHOT_STEPS_MAX)
		n = most_urgent(s, all, n);
	struct place_step *steps = arena_array_of(s->arena, struct place_step, n + 1);
	for (size_t i = 0; i < n; i++) {
		steps[i] = all[i]->step;
		steps[i].project = project_at(s, all[i]->project_id);
		if (all[i]->kept_on.n != 0)
			steps[i].kept =
				see_workers(p, s->arena, &all[i]->kept_on, &steps[i].kept_n);
		if (all[i]->cleared_on.n != 0)
			steps[i].cleared =
				see_workers(p, s->arena, &all[i]->cleared_on, &steps[i].cleared_n);
	}
	ret->steps = steps;
	ret->steps_n = n;
	pool_see_goods(p, all, steps, n, s->arena, ret);
}

/* Seen by whoever holds the connection; asked for only when what we know has grown old. */
static bool is_offline(
	struct host *h, int64_t now, int64_t offline_after, pool_seen *seen, void *arg)
{
	if (now - h->seen_at > offline_after / 2 || h->lost_at > h->seen_at)
		h->seen_at = seen(arg, h->worker.id, h->seen_at);
	return now - h->seen_at > offline_after || h->lost_at > h->seen_at;
}

/* They are marked as attempts come and go; the snapshot stays as it is. */
static const struct place_gpu *own_gpus(const struct host *h, struct arena *a)
{
	struct place_gpu *gpus;

	if (h->worker.gpus_n == 0)
		return NULL;
	gpus = arena_array_of(a, struct place_gpu, h->worker.gpus_n);
	memcpy(gpus, h->gpus, h->worker.gpus_n * sizeof *gpus);
	return gpus;
}

static int by_id(const void *a, const void *b)
{
	return str_cmp(
		(*(struct host *const *)a)->worker.id, (*(struct host *const *)b)->worker.id);
}

/* By id, as placement wants them, so that it need not sort them for each pass. */
static void put_in_order(struct pool *p)
{
	size_t n = 0, at = 0;
	struct str key;
	void *value;

	if (p->ordered)
		return;
	p->order = mem_resize(p->order, map_count(p->hosts), sizeof *p->order);
	while (map_next(p->hosts, &at, &key, &value))
		p->order[n++] = value;
	if (n > 1)
		qsort(p->order, n, sizeof *p->order, by_id);
	p->ordered = true;
}

void pool_snapshot(struct pool *p, int64_t now, int64_t offline_after, pool_seen *seen, void *arg,
	struct arena *a, struct place_snapshot *ret, int64_t *ret_next)
{
	struct snapshot s = { .pool = p, .arena = a, .index = map_new() };
	struct place_worker *workers =
		arena_array_of(a, struct place_worker, map_count(p->hosts) + 1);

	put_in_order(p);
	*ret = (struct place_snapshot){ 0 };
	s.projects = arena_array_of(
		a, struct place_project, map_count(p->steps) + map_count(p->tallies) + 1);
	for (size_t i = 0; i < map_count(p->hosts); i++) {
		struct host *h = p->order[i];
		h->worker.offline = is_offline(h, now, offline_after, seen, arg);
		h->worker.avoided = now < h->avoid_until;
		h->at = (uint32_t)ret->workers_n;
		workers[ret->workers_n] = h->worker;
		workers[ret->workers_n++].gpus = own_gpus(h, a);
	}
	take_steps(p, &s, now, ret, ret_next);
	ret->now = now;
	ret->runtimes = runtime_names;
	ret->workers = workers;
	if (p->rules != NULL) {
		ret->pools = p->rules->pools;
		ret->pools_n = p->rules->n;
	}
	ret->projects = s.projects;
	ret->projects_n = s.projects_n;
	map_free(s.index);
}

/* ---- what runs ---- */

/* Of the projects of all that runs, too, since it may be theirs to give way. */
struct seen {
	struct snapshot s;
	struct map *steps; /* id -> position + 1 */
	int64_t now;
	bool preempts;
};

static void seen_init(struct seen *v, struct pool *p, int64_t now, struct arena *a,
	const struct place_snapshot *from)
{
	*v = (struct seen){ .s = { p, a, (struct place_project *)(uintptr_t)from->projects,
				    from->projects_n, map_new() },
		.steps = map_new(),
		.now = now };
	for (size_t i = 0; i < from->pools_n; i++)
		v->preempts = v->preempts || from->pools[i].preemption != PLACE_PREEMPT_NONE;
	for (size_t i = 0; v->preempts && i < from->projects_n; i++)
		(void)map_put(v->s.index, from->projects[i].id, (void *)(uintptr_t)(i + 1));
	for (size_t i = 0; v->preempts && i < from->steps_n; i++)
		(void)map_put(v->steps, from->steps[i].id, (void *)(uintptr_t)(i + 1));
}

static void see_preemption(struct seen *v, const struct holding *held, struct place_running *x)
{
	uint32_t *spared = arena_array_of(v->s.arena, uint32_t, held->spared.n + 1);
	int64_t asked_by = held->asked_at != 0 ? held->asked_at + PLACE_GRACE : 0;

	x->id = held->id;
	x->step = held->step_id;
	x->project = project_at(&v->s, held->project_id);
	x->priority = held->priority;
	x->fixed = held->fixed;
	if (held->started_at != 0)
		x->since = held->checkpoint_at > held->started_at ? held->checkpoint_at
								  : held->started_at;
	for (size_t i = 0; i < held->spared.n; i++) {
		uintptr_t at = (uintptr_t)map_get(v->steps, *list_at(&held->spared, struct str, i));
		if (at != 0)
			spared[x->spared_n++] = (uint32_t)(at - 1);
	}
	x->spared = spared;
	if (held->preempted_by.n == 0)
		return;
	x->by = (uint32_t)(uintptr_t)map_get(v->steps, held->preempted_by);
	if (x->ends_by == 0 || asked_by < x->ends_by)
		x->ends_by = asked_by;
}

void pool_add_running(struct pool *p, int64_t now, struct arena *a, struct place_snapshot *ret)
{
	struct place_running *out =
		arena_array_of(a, struct place_running, map_count(p->attempts) + 1);
	size_t at = 0;
	struct str key;
	struct seen seen;
	void *value;

	seen_init(&seen, p, now, a, ret);
	while (map_next(p->attempts, &at, &key, &value)) {
		const struct holding *held = value;
		if (held->host == NULL)
			continue;
		out[ret->running_n] = (struct place_running){ .worker = held->host->at,
			.cpus = held->cpus,
			.memory = held->memory,
			.gpus = held->devices.items,
			.gpus_n = (uint32_t)held->devices.n };
		if (held->time_limit != 0)
			out[ret->running_n].ends_by =
				(held->started_at != 0 ? held->started_at : now) + held->time_limit;
		if (seen.preempts)
			see_preemption(&seen, held, &out[ret->running_n]);
		ret->running_n++;
	}
	ret->running = out;
	ret->projects_n = seen.s.projects_n;
	map_free(seen.s.index);
	map_free(seen.steps);
}

static void drop_on_drop(void *arena)
{
	arena_drop(arena);
}

void pool_hold(struct pool *p, struct arena *a)
{
	struct map *all[] = { p->steps, p->hosts, p->attempts, p->tallies };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		size_t at = 0;
		struct str key;
		void *object;
		while (map_next(all[i], &at, &key, &object)) {
			struct arena *held = *(struct arena **)object;
			arena_hold(held);
			arena_defer(a, drop_on_drop, held);
		}
	}
	if (p->rules != NULL) {
		arena_hold(p->rules->arena);
		arena_defer(a, drop_on_drop, p->rules->arena);
	}
}

static int by_time(const void *pa, const void *pb)
{
	const struct pool_later *a = pa, *b = pb;

	if (a->not_before != b->not_before)
		return a->not_before < b->not_before ? -1 : 1;
	return str_cmp(a->step_id, b->step_id);
}

struct pool_later *pool_list_later(struct pool *p, int64_t now, struct arena *a, size_t *ret_n)
{
	struct pool_later *out = arena_array_of(a, struct pool_later, map_count(p->steps) + 1);
	size_t n = 0, at = 0;
	struct str key;
	void *value;

	while (map_next(p->steps, &at, &key, &value)) {
		const struct waiting *w = value;
		if (w->not_before > now)
			out[n++] = (struct pool_later){ w->step.id, w->project_id, w->step.pool,
				w->not_before };
	}
	if (n > 1)
		qsort(out, n, sizeof *out, by_time);
	*ret_n = n;
	return out;
}

void pool_keep(struct pool *p, const struct place_snapshot *s, const struct place_result *r)
{
	for (size_t i = 0; i < p->kept_n; i++) {
		struct waiting *w = map_get(p->steps, p->kept[i]);
		if (w != NULL)
			w->kept_on.n = 0;
	}
	arena_drop(p->kept_arena);
	p->kept_arena = arena_new(1 << 20);
	p->kept_n = 0;
	for (size_t i = 0; i < r->kept_n; i++) {
		struct str step = s->steps[r->kept[i].step].id;
		struct waiting *w = map_get(p->steps, step);
		if (w == NULL)
			continue;
		if (w->kept_on.n == 0) {
			w->kept_on.items =
				arena_array_of(p->kept_arena, struct str, place_nodes(&w->step));
			p->kept[p->kept_n++] = arena_str(p->kept_arena, step);
		}
		*list_at(&w->kept_on, struct str, w->kept_on.n++) =
			arena_str(p->kept_arena, s->workers[r->kept[i].worker].id);
	}
}
