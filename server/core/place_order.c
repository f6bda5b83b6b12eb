#include "server/core/place_inside.h"

#include <stdlib.h>

/*
 * Within one priority each project has its own line, in order of waiting; a heap of projects, by
 * dominant share over weight, says whose turn it is. That is gone through twice: first for steps
 * with which their project stays within its grant, then for those that borrow, so that no priority
 * of one project takes what is granted to another.
 *
 * Steps for which a worker was kept before, and that have waited for long, come first within their
 * priority: a project that always holds a little less would take the worker from them each time.
 */

struct turn {
	int32_t priority;
	bool first; /* a worker is kept for it, and it has waited for long */
	uint32_t project; /* rank of its id */
	int64_t queued_at;
	uint32_t step;
};

static int by_turn(const void *pa, const void *pb, void *arg)
{
	const struct place_step *steps = arg;
	const struct turn *a = pa, *b = pb;

	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	if (a->first != b->first)
		return a->first ? -1 : 1;
	if (!a->first && a->project != b->project)
		return a->project < b->project ? -1 : 1;
	if (a->queued_at != b->queued_at)
		return a->queued_at < b->queued_at ? -1 : 1;
	return str_cmp(steps[a->step].id, steps[b->step].id);
}

static int by_project_id(const void *a, const void *b, void *arg)
{
	const struct place_project *projects = arg;

	return str_cmp(projects[*(const uint32_t *)a].id, projects[*(const uint32_t *)b].id);
}

static bool same_group(const struct turn *a, const struct turn *b)
{
	return a->priority == b->priority && a->first == b->first;
}

/* A project's line within one priority: turns[from] … turns[to - 1]. Those that are first within
 * their priority are one line. */
struct line {
	double load;
	uint32_t rank; /* of the project */
	size_t from, to;
};

struct order {
	struct place_pass *pass;
	struct turn *turns, *later; /* later: those that would borrow */
	size_t turns_n, later_n;
	uint32_t *by_rank; /* project of each rank */
	struct line *heap;
	size_t heap_n;
	double gpus, cpus, memory; /* of all workers */
};

static void count_used(struct place_pass *p)
{
	const struct place_snapshot *s = p->s;

	p->used = arena_array_of(p->a, struct place_used, s->projects_n + 1);
	p->reserved = arena_array_of(p->a, uint32_t, s->projects_n + 1);
	for (size_t i = 0; i < s->projects_n; i++)
		p->used[i] = (struct place_used){ .steps = s->projects[i].running,
			.gpus = s->projects[i].gpus,
			.memory = s->projects[i].memory,
			.cpus = place_thousandths(s->projects[i].cpus) };
}

static void order_init(struct order *o, struct place_pass *p)
{
	const struct place_snapshot *s = p->s;
	uint32_t *rank = arena_array_of(p->a, uint32_t, s->projects_n + 1);

	*o = (struct order){ .pass = p,
		.turns = arena_array_of(p->a, struct turn, s->steps_n + 1),
		.later = arena_array_of(p->a, struct turn, s->steps_n + 1),
		.turns_n = s->steps_n,
		.by_rank = arena_array_of(p->a, uint32_t, s->projects_n + 1),
		.heap = arena_array_of(p->a, struct line, s->projects_n + 1) };
	for (uint32_t i = 0; i < s->projects_n; i++)
		o->by_rank[i] = i;
	if (s->projects_n > 1)
		qsort_r(o->by_rank, s->projects_n, sizeof *o->by_rank, by_project_id,
			(void *)(uintptr_t)s->projects);
	for (uint32_t i = 0; i < s->projects_n; i++)
		rank[o->by_rank[i]] = i;
	for (uint32_t i = 0; i < s->steps_n; i++) {
		BUG_ON(s->steps[i].project >= s->projects_n);
		o->turns[i] = (struct turn){ .priority = s->steps[i].priority,
			.first = s->steps[i].kept_n != 0 && place_patient(p, i),
			.project = rank[s->steps[i].project],
			.queued_at = s->steps[i].queued_at,
			.step = i };
	}
	if (s->steps_n > 1)
		qsort_r(o->turns, s->steps_n, sizeof *o->turns, by_turn,
			(void *)(uintptr_t)s->steps);
	for (size_t i = 0; i < s->workers_n; i++) {
		o->gpus += s->workers[i].gpus_n;
		o->cpus += s->workers[i].cpus;
		o->memory += (double)s->workers[i].memory;
	}
	count_used(p);
}

/* ---- shares and quotas ----------------------------------------------------------- */

/* What the project holds of what it holds most of, by weight. */
static double load_of(const struct order *o, uint32_t rank)
{
	const struct place_project *project = &o->pass->s->projects[o->by_rank[rank]];
	const struct place_used *u = &o->pass->used[o->by_rank[rank]];
	double weight = project->weight > 0 ? project->weight : 1;
	double gpus = o->gpus > 0 ? (double)u->gpus / o->gpus : 0;
	double cpus = o->cpus > 0 ? (double)u->cpus / 1000 / o->cpus : 0;
	double memory = o->memory > 0 ? (double)u->memory / o->memory : 0;
	double most = gpus > cpus ? gpus : cpus;

	return (most > memory ? most : memory) / weight;
}

/* GPUs of all its nodes. */
static uint64_t gpus_of(const struct place_step *s)
{
	return (uint64_t)s->gpus.count * place_nodes(s);
}

static bool within(const struct place_quota *q, uint64_t used, uint64_t more, bool borrowing)
{
	uint64_t most = q->nominal + (borrowing ? (uint64_t)q->borrow : 0);

	return !q->limited || more == 0 || used + more <= most;
}

/* With what is kept of the quota for another step of the project: it must be left over, unless this
 * one ends before the other can start. */
static bool leaves_enough(const struct place_pass *p, uint32_t step)
{
	const struct place_step *s = &p->s->steps[step], *other;
	const struct place_project *project = &p->s->projects[s->project];
	const struct place_used *u = &p->used[s->project];
	uint32_t reserved = p->reserved[s->project];

	if (reserved == 0 || reserved == step + 1)
		return true;
	other = &p->s->steps[reserved - 1];
	if (other->priority < s->priority)
		return true; /* it was put off earlier, and its turn comes later */
	for (uint32_t i = 0; i < p->kept_n; i++)
		if (p->kept[i].step == reserved - 1 && place_in_time(p, step, &p->kept[i]))
			return true;
	return within(&project->gpus_quota, u->gpus + gpus_of(other), gpus_of(s), true) &&
	       within(&project->steps_quota, u->steps + place_nodes(other), place_nodes(s), true);
}

bool place_may_hold(const struct place_pass *p, uint32_t step, bool borrowing)
{
	const struct place_step *s = &p->s->steps[step];
	const struct place_project *project = &p->s->projects[s->project];
	const struct place_used *u = &p->used[s->project];

	return within(&project->gpus_quota, u->gpus, gpus_of(s), borrowing) &&
	       within(&project->steps_quota, u->steps, place_nodes(s), borrowing) &&
	       leaves_enough(p, step);
}

/* A step that has waited for long, and waits on, has its project's quota kept for it, or those
 * behind it would use that up for ever. */
static void reserve(struct place_pass *p, uint32_t step)
{
	const struct place_step *s = &p->s->steps[step];
	const struct place_project *project = &p->s->projects[s->project];

	uint32_t before = p->reserved[s->project];

	if ((project->gpus_quota.limited || project->steps_quota.limited) &&
		(before == 0 || p->s->steps[before - 1].priority < s->priority) &&
		place_patient(p, step) && within(&project->gpus_quota, 0, gpus_of(s), true) &&
		within(&project->steps_quota, 0, place_nodes(s), true) && place_could(p, step))
		p->reserved[s->project] = step + 1;
}

void place_count(struct place_pass *p, uint32_t step)
{
	const struct place_step *s = &p->s->steps[step];
	struct place_used *u = &p->used[s->project];

	u->steps += place_nodes(s);
	u->gpus += gpus_of(s);
	u->memory += s->memory * place_nodes(s);
	u->cpus += place_thousandths(s->cpus) * place_nodes(s);
	if (p->reserved[s->project] == step + 1)
		p->reserved[s->project] = 0;
}

/* ---- the heap -------------------------------------------------------------------- */

static bool before(const struct line *a, const struct line *b)
{
	return a->load < b->load || (!(b->load < a->load) && a->rank < b->rank);
}

/* Lets the line at position i sink to where it belongs. */
static void sink(struct order *o, size_t i)
{
	struct line v = o->heap[i];

	for (size_t child = 2 * i + 1; child < o->heap_n; child = 2 * i + 1) {
		if (child + 1 < o->heap_n && before(&o->heap[child + 1], &o->heap[child]))
			child++;
		if (!before(&o->heap[child], &v))
			break;
		o->heap[i] = o->heap[child];
		i = child;
	}
	o->heap[i] = v;
}

/* Makes the lines of the group that begins at turn `from`; returns where it ends. */
static size_t line_up(struct order *o, size_t from)
{
	const struct turn *group = &o->turns[from];
	size_t i = from;

	o->heap_n = 0;
	while (i < o->turns_n && same_group(&o->turns[i], group)) {
		uint32_t rank = o->turns[i].project;
		struct line l = { .load = load_of(o, rank), .rank = rank, .from = i };
		while (i < o->turns_n && same_group(&o->turns[i], group) &&
			(group->first || o->turns[i].project == rank))
			i++;
		l.to = i;
		o->heap[o->heap_n++] = l;
	}
	for (size_t k = o->heap_n / 2; k-- > 0;)
		sink(o, k);
	return i;
}

/* The top line has had its turn. */
static void turn_over(struct order *o, bool placed)
{
	struct line *top = &o->heap[0];

	if (placed)
		top->load = load_of(o, top->rank);
	if (++top->from == top->to)
		*top = o->heap[--o->heap_n];
	if (o->heap_n != 0)
		sink(o, 0);
}

/* ---- all turns ------------------------------------------------------------------- */

static void go_through(struct order *o, bool borrowing, place_try *try, void *arg)
{
	struct place_pass *p = o->pass;

	for (size_t from = 0; from < o->turns_n;) {
		from = line_up(o, from);
		while (o->heap_n != 0) {
			const struct turn turn = o->turns[o->heap[0].from];
			bool placed = false;
			if (!borrowing && !place_may_hold(p, turn.step, false)) {
				o->later[o->later_n++] = turn;
			} else {
				p->over[turn.step] =
					borrowing && !place_may_hold(p, turn.step, true);
				placed = try(p, arg, turn.step);
			}
			if (placed)
				place_count(p, turn.step);
			else
				reserve(p, turn.step);
			turn_over(o, placed);
		}
	}
}

void place_in_order(struct place_pass *p, place_try *try, void *arg)
{
	struct order o;

	order_init(&o, p);
	go_through(&o, false, try, arg);
	/* In the order in which they were put off, which is no order of turns. */
	o.turns = o.later;
	o.turns_n = o.later_n;
	if (o.turns_n > 1)
		qsort_r(o.turns, o.turns_n, sizeof *o.turns, by_turn,
			(void *)(uintptr_t)p->s->steps);
	go_through(&o, true, try, arg);
}
