#include "tests/sim/sim.h"

#define MOST_LOST 0.05 /* of all work */

/* Books: what each worker's GPUs, cores and memory are used for is kept here, by step, without a
 * look at what placement believes. */

static int64_t thousandths(double cpus)
{
	return (int64_t)(cpus * 1000 + 0.5);
}

static void release(struct sim *m, struct sim_step *s)
{
	uint32_t me = (uint32_t)(s - m->t->steps) + 1;

	for (uint32_t n = 0; n < place_nodes(&s->want); n++) {
		struct sim_worker *w = &m->t->workers[s->workers[n]];
		for (uint32_t g = 0; g < w->is.gpus_n; g++)
			if (w->holder[g] == me)
				w->holder[g] = 0;
		w->cpus_used -= thousandths(s->want.cpus);
		w->memory_used -= s->want.memory;
		w->running--;
	}
}

static bool runs_on(const struct sim_step *s, uint32_t worker)
{
	for (uint32_t n = 0; s->state == SIM_RUNS && n < place_nodes(&s->want); n++)
		if (s->workers[n] == worker)
			return true;
	return false;
}

void sim_put_back(struct sim *m, struct sim_step *s)
{
	release(m, s);
	s->state = SIM_WAITS;
	s->want.queued_at = m->now;
	s->kept_n = 0;
	s->by = 0;
	s->ends_at = 0;
	m->report.lost++;
}

static void change(struct sim *m, const struct sim_change *c)
{
	struct sim_worker *w = &m->t->workers[c->worker];

	m->changed = true;
	w->is.offline = c->kind == SIM_OFFLINE || (w->is.offline && c->kind != SIM_ONLINE);
	w->is.draining = c->kind == SIM_DRAIN || (w->is.draining && c->kind != SIM_RESUME);
	for (uint32_t i = 0; c->kind == SIM_OFFLINE && i < m->t->steps_n; i++) {
		struct sim_step *s = &m->t->steps[i];
		if (runs_on(s, c->worker)) /* one of its workers is enough */
			sim_put_back(m, s);
	}
}

static int64_t next_time(const struct sim *m)
{
	const struct sim_trace *t = m->t;
	int64_t next = m->changes_done < t->changes_n ? t->changes[m->changes_done].at : INT64_MAX;

	for (uint32_t i = 0; i < t->steps_n; i++) {
		const struct sim_step *s = &t->steps[i];
		int64_t at = INT64_MAX;
		if (s->state == SIM_LATER)
			at = s->arrives;
		else if (s->state == SIM_RUNS)
			at = s->ends_at != 0 && s->ends_at < s->started + s->lasts
				     ? s->ends_at
				     : s->started + s->lasts;
		next = at < next ? at : next;
	}
	return next;
}

static void happen(struct sim *m)
{
	struct sim_trace *t = m->t;

	for (uint32_t i = 0; i < t->steps_n; i++) {
		struct sim_step *s = &t->steps[i];
		if (s->state == SIM_LATER && s->arrives <= m->now) {
			s->state = SIM_WAITS;
			s->want.queued_at = s->arrives;
		} else if (s->state == SIM_RUNS && s->started + s->lasts <= m->now) {
			release(m, s);
			s->by = 0;
			s->state = SIM_ENDED;
			m->report.makespan = m->now - t->began;
		}
	}
	sim_preempt_happen(m);
	while (m->changes_done < t->changes_n && t->changes[m->changes_done].at <= m->now)
		change(m, &t->changes[m->changes_done++]);
}

/* ---- what placement sees --------------------------------------------------------- */

static struct place_worker *see_workers(struct sim *m)
{
	struct sim_trace *t = m->t;
	struct place_worker *out = arena_array_of(m->arena, struct place_worker, t->workers_n + 1u);

	for (uint32_t i = 0; i < t->workers_n; i++) {
		struct sim_worker *w = &t->workers[i];
		for (uint32_t g = 0; g < w->is.gpus_n; g++)
			w->gpus[g].free = w->holder[g] == 0;
		out[i] = w->is;
		out[i].cpus_free = w->is.cpus - (double)w->cpus_used / 1000;
		out[i].memory_free = w->is.memory - w->memory_used;
		out[i].running = w->running;
	}
	return out;
}

static struct place_project *see_projects(struct sim *m)
{
	struct sim_trace *t = m->t;
	struct place_project *out =
		arena_array_of(m->arena, struct place_project, t->projects_n + 1u);

	memcpy(out, t->projects, t->projects_n * sizeof *out);
	for (uint32_t i = 0; i < t->steps_n; i++) {
		const struct sim_step *s = &t->steps[i];
		struct place_project *p = &out[s->want.project];
		if (s->state != SIM_RUNS)
			continue;
		p->running += place_nodes(&s->want);
		p->gpus += place_nodes(&s->want) * s->want.gpus.count;
		p->cpus += place_nodes(&s->want) * s->want.cpus;
		p->memory += place_nodes(&s->want) * s->want.memory;
	}
	return out;
}

static void see_steps(struct sim *m, struct place_step *steps, struct place_running *running)
{
	for (uint32_t i = 0; i < m->t->steps_n; i++) {
		const struct sim_step *s = &m->t->steps[i];
		if (s->state == SIM_WAITS) {
			m->step_of[m->s.steps_n] = i;
			steps[m->s.steps_n] = s->want;
			steps[m->s.steps_n].kept = s->kept_on;
			steps[m->s.steps_n].cleared = s->cleared_on;
			steps[m->s.steps_n].cleared_n = s->cleared_n;
			steps[m->s.steps_n++].kept_n = s->kept_n;
			continue;
		}
		for (uint32_t n = 0; s->state == SIM_RUNS && n < place_nodes(&s->want); n++) {
			m->running_of[m->s.running_n] = i;
			running[m->s.running_n++] = (struct place_running){ .worker = s->workers[n],
				.cpus = s->want.cpus,
				.memory = s->want.memory,
				.gpus = s->gpus + (size_t)n * s->want.gpus.count,
				.gpus_n = s->want.gpus.count,
				.ends_by = s->want.time_limit != 0 ? s->started + s->want.time_limit
								   : 0 };
		}
	}
}

static void see(struct sim *m)
{
	struct sim_trace *t = m->t;
	struct place_step *steps = arena_array_of(m->arena, struct place_step, t->steps_n + 1u);
	struct place_running *running;
	size_t nodes = 1;

	for (uint32_t i = 0; i < t->steps_n; i++)
		nodes += place_nodes(&t->steps[i].want);
	running = arena_array_of(m->arena, struct place_running, nodes);
	m->step_of = arena_array_of(m->arena, uint32_t, t->steps_n + 1u);
	m->s = (struct place_snapshot){ .projects = see_projects(m),
		.workers = see_workers(m),
		.steps = steps,
		.running = running,
		.projects_n = t->projects_n,
		.workers_n = t->workers_n,
		.now = m->now,
		.seed = t->seed ^ m->report.passes };
	m->running_of = arena_array_of(m->arena, uint32_t, nodes);
	see_steps(m, steps, running);
	for (size_t i = 0; t->preempts && i < m->s.running_n; i++)
		sim_preempt_see(m, m->running_of[i], &running[i]);
	m->s.pools = &t->pool;
	m->s.pools_n = t->preempts;
	if (t->goods_n != 0)
		sim_held_see(m, steps);
}

/* ---- one pass -------------------------------------------------------------------- */

static void remember_kept(struct sim *m)
{
	for (size_t i = 0; i < m->s.steps_n; i++)
		m->t->steps[m->step_of[i]].kept_n = 0;
	for (size_t i = 0; i < m->r.kept_n; i++) {
		struct sim_step *s = &m->t->steps[m->step_of[m->r.kept[i].step]];
		s->kept_on[s->kept_n++] = m->r.kept[i].worker;
		if (s->kept_since == 0 && m->now - s->want.queued_at >= PLACE_PATIENCE)
			s->kept_since = m->now;
	}
	m->report.kept += m->r.kept_n;
}

static int pass_once(struct sim *m, struct err *e)
{
	uint32_t every = m->t->replay_every;

	see(m);
	struct arena *a = arena_new(place_room(&m->s));
	place_pass(&m->s, a, &m->r);
	int rc = every != 0 && m->report.passes % every == 0 ? sim_check_replay(m, e) : 0;
	if (rc == 0)
		rc = sim_check_placed(m, e);
	if (rc == 0)
		rc = sim_check_waiting(m, e);
	if (rc == 0)
		rc = sim_check_why(m, a, e);
	if (rc == 0 && m->t->preempts)
		rc = sim_check_preempted(m, e);
	if (m->t->goods_n != 0)
		sim_held_book(m);
	remember_kept(m);
	m->report.placed += m->r.placed_n;
	m->report.passes++;
	m->changed = false;
	arena_drop(a);
	return rc;
}

static int pass(struct sim *m, struct err *e)
{
	m->arena = arena_new(SIZE_MAX / 4);
	int rc = pass_once(m, e);
	arena_drop(m->arena);
	return rc;
}

/* ---- the whole ------------------------------------------------------------------- */

/* If every step ran at once on GPUs that nobody can break into pieces: no schedule is shorter. */
static int64_t least_makespan(const struct sim_trace *t, double *ret_gpus)
{
	double work = 0, gpus = 0;

	for (uint32_t i = 0; i < t->steps_n; i++)
		work += (double)place_nodes(&t->steps[i].want) *
			(double)t->steps[i].want.gpus.count * (double)t->steps[i].lasts;
	for (uint32_t i = 0; i < t->workers_n; i++)
		gpus += t->workers[i].is.gpus_n;
	*ret_gpus = gpus;
	return gpus > 0 ? (int64_t)(work / gpus) : 0;
}

static int used_enough(struct sim *m, struct err *e)
{
	const struct sim_trace *t = m->t;
	double gpus, used = 0;
	int64_t end = t->began + least_makespan(t, &gpus);

	for (uint32_t i = 0; i < t->steps_n; i++) {
		const struct sim_step *s = &t->steps[i];
		int64_t to = s->started + s->lasts < end ? s->started + s->lasts : end;
		if (s->state == SIM_ENDED && to > s->started)
			used += (double)place_nodes(&s->want) * (double)s->want.gpus.count *
				(double)(to - s->started);
	}
	m->report.used = gpus > 0 ? used / (gpus * (double)(end - t->began)) : 0;
	if (m->report.used < t->least_used)
		return err_set(e, ERR_INTERNAL,
			"%.2f %% of the GPU time was used, which should be %.0f %%",
			100 * m->report.used, 100 * t->least_used);
	return 0;
}

/* Of all work as it was at the beginning: what preemption has cost. */
static int lost_little(struct sim *m, double work, struct err *e)
{
	m->report.work_lost = work > 0 ? m->report.work_lost / work : 0;
	return m->report.work_lost > MOST_LOST
		       ? err_set(e, ERR_INTERNAL, "%.2f %% of the work was lost by preemption",
				 100 * m->report.work_lost)
		       : 0;
}

int sim_run(struct sim_trace *t, struct sim_report *ret, struct err *e)
{
	struct sim m = { .t = t, .head = UINT32_MAX };
	double gpus, work = (double)least_makespan(t, &gpus);
	int rc = 0;

	work *= gpus;

	m.eldest = arena_array_of(t->arena, uint32_t, t->projects_n + 1u);
	m.eldest_since = arena_array_of(t->arena, int64_t, t->projects_n + 1u);
	for (uint32_t i = 0; i < t->steps_n; i++) {
		struct sim_step *s = &t->steps[i];
		if (s->workers == NULL)
			sim_step_room(t, s);
		int64_t most = s->lasts > s->want.time_limit ? s->lasts : s->want.time_limit;
		m.longest = most > m.longest ? most : m.longest;
	}
	for (m.now = t->began; rc == 0 && m.now != INT64_MAX; m.now = next_time(&m)) {
		happen(&m);
		rc = pass(&m, e);
	}
	m.now = t->began + m.report.makespan;
	if (rc == 0)
		rc = used_enough(&m, e);
	if (rc == 0)
		rc = lost_little(&m, work, e);
	if (rc == 0) {
		m.arena = arena_new(SIZE_MAX / 4);
		see(&m);
		struct arena *a = arena_new(place_room(&m.s));
		place_pass(&m.s, a, &m.r);
		rc = sim_check_end(&m, e);
		arena_drop(a);
		arena_drop(m.arena);
	}
	*ret = m.report;
	return rc;
}
