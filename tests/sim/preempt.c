#include "tests/sim/sim.h"

/*
 * Who takes whose place. What was asked to end has ended within the grace, and goes on later from
 * its last checkpoint. What must hold is worked out from the books: README.md says it in words.
 */

#define CHECKPOINT_EVERY (10 * SIM_MINUTE)
#define WRONG(e, ...)    err_set((e), ERR_INTERNAL, __VA_ARGS__)

static int64_t checkpoint_at(const struct sim *m, const struct sim_step *s)
{
	return s->started + (m->now - s->started) / CHECKPOINT_EVERY * CHECKPOINT_EVERY;
}

void sim_preempt_see(struct sim *m, uint32_t step, struct place_running *x)
{
	const struct sim_step *s = &m->t->steps[step];
	uint32_t *spared = arena_array_of(m->arena, uint32_t, s->ended_for_n + 1u);

	x->id = arena_printf(
		m->arena, "at_%016llx_%05u_%u", (unsigned long long)s->started, step, x->worker);
	x->step = s->want.id;
	x->project = s->want.project;
	x->priority = s->want.priority;
	x->since = checkpoint_at(m, s);
	x->fixed = s->firm;
	for (uint32_t i = 0; i < m->s.steps_n; i++) {
		for (uint32_t k = 0; k < s->ended_for_n; k++)
			if (s->ended_for[k] == m->step_of[i])
				spared[x->spared_n++] = i;
		if (s->by == m->step_of[i] + 1)
			x->by = i + 1;
	}
	x->spared = spared;
	if (s->by != 0 && (x->ends_by == 0 || s->ends_at < x->ends_by))
		x->ends_by = s->ends_at;
}

void sim_preempt_happen(struct sim *m)
{
	for (uint32_t i = 0; i < m->t->steps_n; i++) {
		struct sim_step *s = &m->t->steps[i];
		if (s->state != SIM_RUNS || s->ends_at == 0 || s->ends_at > m->now)
			continue;
		int64_t done = checkpoint_at(m, s) - s->started;
		m->report.work_lost += (double)(m->now - s->started - done) *
				       (double)(place_nodes(&s->want) * s->want.gpus.count);
		s->lasts -= done;
		sim_put_back(m, s);
		m->report.lost--;
	}
}

/* ---- whether it was right -------------------------------------------------------- */

static uint64_t held_beyond(const struct sim *m, uint32_t project)
{
	const struct place_project *p = &m->t->projects[project];
	uint64_t gpus = 0;

	for (uint32_t i = 0; i < m->t->steps_n; i++) {
		const struct sim_step *s = &m->t->steps[i];
		if (s->state == SIM_RUNS && s->want.project == project && s->by == 0)
			gpus += place_nodes(&s->want) * s->want.gpus.count;
	}
	return p->gpus_quota.limited && gpus > p->gpus_quota.nominal ? gpus - p->gpus_quota.nominal
								     : 0;
}

static int check_victim(const struct sim *m, const struct sim_step *by, uint32_t victim,
	bool reclaimed, struct err *e)
{
	const struct sim_step *v = &m->t->steps[victim];
	uint32_t me = (uint32_t)(by - m->t->steps);
	bool borrows = held_beyond(m, v->want.project) != 0;
	bool granted = sim_may_hold(m, &by->want, false);

	if (v->state != SIM_RUNS || v->firm)
		return WRONG(e, "%.*s is ended, and must not be", STR_ARG(v->want.id));
	for (uint32_t i = 0; i < v->ended_for_n; i++)
		if (v->ended_for[i] == me)
			return WRONG(e, "%.*s is ended again for %.*s", STR_ARG(v->want.id),
				STR_ARG(by->want.id));
	if (reclaimed && (!granted || !borrows || v->want.project == by->want.project))
		return WRONG(e, "%.*s does not borrow what %.*s is granted", STR_ARG(v->want.id),
			STR_ARG(by->want.id));
	if (!reclaimed && (m->t->pool.preemption != PLACE_PREEMPT_PRIORITY ||
				  v->want.priority >= by->want.priority ||
				  (!granted && !borrows && v->want.project != by->want.project)))
		return WRONG(e, "%.*s does not come before %.*s", STR_ARG(by->want.id),
			STR_ARG(v->want.id));
	return 0;
}

static void ask_to_end(struct sim *m, struct sim_step *by, uint32_t victim)
{
	struct sim_step *v = &m->t->steps[victim];
	uint32_t *more = arena_array_of(m->t->arena, uint32_t, v->ended_for_n + 1u);

	if (v->by != 0)
		return; /* another attempt of the same gang */
	for (uint32_t i = 0; i < v->ended_for_n; i++)
		more[i] = v->ended_for[i];
	more[v->ended_for_n++] = (uint32_t)(by - m->t->steps);
	v->ended_for = more;
	v->by = (uint32_t)(by - m->t->steps) + 1;
	v->ends_at = m->now + (1 + sim_draw(m->t, 30)) * SIM_SECOND;
	m->report.preempted++;
}

static int take_place(struct sim *m, const struct place_preempted *p, struct err *e)
{
	struct sim_step *by = &m->t->steps[m->step_of[p->step]];

	if (by->state != SIM_WAITS || p->victims_n == 0 || p->workers_n != place_nodes(&by->want))
		return WRONG(e, "%.*s takes a place for nothing", STR_ARG(by->want.id));
	for (uint32_t i = 0; i < p->victims_n; i++)
		if (check_victim(m, by, m->running_of[p->victims[i].running],
			    p->victims[i].reclaimed, e) < 0)
			return -1;
	for (uint32_t i = 0; i < p->victims_n; i++)
		ask_to_end(m, by, m->running_of[p->victims[i].running]);
	by->cleared_on = arena_array_of(m->t->arena, uint32_t, p->workers_n);
	memcpy(by->cleared_on, p->workers, p->workers_n * sizeof *p->workers);
	by->cleared_n = p->workers_n;
	by->cleared_at = m->now;
	return 0;
}

/* It has its place as soon as all have ended, and nobody comes in between. */
static int check_cleared(struct sim *m, struct err *e)
{
	for (uint32_t i = 0; i < m->t->steps_n; i++) {
		struct sim_step *s = &m->t->steps[i];
		if (s->cleared_n == 0)
			continue;
		if (s->state != SIM_WAITS)
			s->cleared_n = 0;
		else if (m->now > s->cleared_at + PLACE_GRACE && sim_may_hold(m, &s->want, true))
			return WRONG(e, "%.*s has not got the place that others have left",
				STR_ARG(s->want.id));
	}
	return 0;
}

/* Whether all would be well if only this one ended. */
static bool would_do(const struct sim *m, const struct sim_step *by, uint32_t victim)
{
	struct sim_step *v = &m->t->steps[victim];
	bool ok = false;

	if (v->state != SIM_RUNS || v->firm || v->by != 0 || place_nodes(&v->want) != 1 ||
		v->want.priority >= by->want.priority)
		return false;
	for (uint32_t i = 0; i < v->ended_for_n; i++)
		if (v->ended_for[i] == (uint32_t)(by - m->t->steps))
			return false;
	struct sim_worker *w = &m->t->workers[v->workers[0]];
	for (uint32_t g = 0; g < w->is.gpus_n; g++)
		if (w->holder[g] == victim + 1)
			w->holder[g] = 0;
	w->cpus_used -= (int64_t)(v->want.cpus * 1000 + 0.5);
	w->memory_used -= v->want.memory;
	ok = sim_welcome(&w->is, &by->want) && sim_has_room(w, &by->want, false);
	w->cpus_used += (int64_t)(v->want.cpus * 1000 + 0.5);
	w->memory_used += v->want.memory;
	for (uint32_t i = 0; i < v->want.gpus.count; i++)
		for (uint32_t g = 0; g < w->is.gpus_n; g++)
			if (str_eq(w->gpus[g].uuid, v->gpus[i]))
				w->holder[g] = victim + 1;
	return ok;
}

/* Nobody less urgent runs where the first that waits could, but for a moment. */
static int check_inversion(struct sim *m, struct err *e)
{
	const struct sim_step *head;

	if (m->r.waiting_n == 0 || m->t->pool.preemption != PLACE_PREEMPT_PRIORITY)
		return 0;
	head = &m->t->steps[m->step_of[m->r.waiting[0]]];
	if (place_nodes(&head->want) != 1 || !sim_may_hold(m, &head->want, false))
		return 0;
	for (uint32_t i = 0; i < m->t->steps_n; i++) {
		const struct sim_step *s = &m->t->steps[i];
		bool ends_soon = s->state == SIM_RUNS && s->want.time_limit != 0 &&
				 s->started + s->want.time_limit <= m->now + PLACE_GRACE;
		if (s->cleared_n != 0 || s->by != 0 || ends_soon)
			return 0; /* places are being cleared: later */
	}
	for (uint32_t i = 0; i < m->t->steps_n; i++)
		if (would_do(m, head, i))
			return WRONG(e, "%.*s waits, and %.*s of less priority runs on",
				STR_ARG(head->want.id), STR_ARG(m->t->steps[i].want.id));
	return 0;
}

int sim_check_preempted(struct sim *m, struct err *e)
{
	for (size_t i = 0; i < m->r.preempted_n; i++)
		if (take_place(m, &m->r.preempted[i], e) < 0)
			return -1;
	if (check_cleared(m, e) < 0)
		return -1;
	return check_inversion(m, e);
}
