#include "server/sched/replay.h"
#include "tests/sim/sim.h"

/*
 * What must hold after every pass, worked out from the trace and the books (run.c) without the help
 * of placement. README.md says the rules in words.
 */

enum { WAITING_LOOKED_AT = 32 };

#define WRONG(e, ...) err_set((e), ERR_INTERNAL, __VA_ARGS__)

static struct sim_step *step_at(const struct sim *m, uint32_t at)
{
	return &m->t->steps[m->step_of[at]];
}

/* ---- whether a worker may take a step -------------------------------------------- */

static bool labelled(const struct place_worker *w, const struct place_label *l)
{
	for (uint32_t i = 0; i < w->labels_n; i++)
		if (str_eq(w->labels[i].key, l->key) && str_eq(w->labels[i].value, l->value))
			return true;
	return false;
}

static bool offers(const struct place_worker *w, const struct place_step *s)
{
	for (uint8_t i = 0; i < s->runtimes_n; i++)
		if ((w->runtimes >> s->runtimes[i] & 1) != 0)
			return true;
	return false;
}

bool sim_welcome(const struct place_worker *w, const struct place_step *s)
{
	if (w->offline || w->draining || !str_eq(w->pool, s->pool) || !offers(w, s))
		return false;
	for (uint32_t i = 0; i < s->requires_n; i++)
		if (!labelled(w, &s->requires[i]))
			return false;
	for (uint32_t i = 0; i < s->avoids_n; i++)
		if (labelled(w, &s->avoids[i]))
			return false;
	return true;
}

/* `idle`: if nothing ran on it. */
bool sim_has_room(const struct sim_worker *w, const struct place_step *s, bool idle)
{
	double cpus = w->is.cpus - (idle ? 0 : (double)w->cpus_used / 1000);
	uint64_t memory = w->is.memory - (idle ? 0 : w->memory_used);
	uint32_t match = 0;

	if (s->cpus > cpus + 1e-6 || s->memory > memory || s->disk > w->is.disk_free)
		return false;
	for (uint32_t g = 0; g < w->is.gpus_n; g++)
		if ((idle || w->holder[g] == 0) &&
			gpus_match(&s->gpus, w->gpus[g].model, w->gpus[g].memory, w->gpus[g].mig))
			match++;
	return match >= s->gpus.count;
}

/* All its nodes, each on a worker of its own. */
static bool could_run(const struct sim *m, const struct place_step *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->t->workers_n; i++)
		n += sim_welcome(&m->t->workers[i].is, s) &&
		     sim_has_room(&m->t->workers[i], s, true);
	return n >= place_nodes(s);
}

/* ---- quotas ---------------------------------------------------------------------- */

struct held {
	uint64_t steps, gpus;
};

static struct held held_by(const struct sim *m, uint32_t project)
{
	struct held h = { 0 };

	for (uint32_t i = 0; i < m->t->steps_n; i++) {
		const struct sim_step *s = &m->t->steps[i];
		if (s->state != SIM_RUNS || s->want.project != project)
			continue;
		h.steps += place_nodes(&s->want);
		h.gpus += place_nodes(&s->want) * s->want.gpus.count;
	}
	return h;
}

static uint64_t most(const struct place_quota *q, bool borrowing)
{
	return !q->limited ? UINT64_MAX : (uint64_t)q->nominal + (borrowing ? q->borrow : 0);
}

/* Whether one more such step would be within the quota of its project. */
bool sim_may_hold(const struct sim *m, const struct place_step *s, bool borrowing)
{
	const struct place_project *p = &m->t->projects[s->project];
	const struct held h = held_by(m, s->project);

	return h.steps + place_nodes(s) <= most(&p->steps_quota, borrowing) &&
	       (s->gpus.count == 0 ||
		       h.gpus + place_nodes(s) * s->gpus.count <= most(&p->gpus_quota, borrowing));
}

/* ---- placements ------------------------------------------------------------------ */

static int take_gpus(struct sim_worker *w, struct sim_step *s, uint32_t me,
	const struct place_assignment *a, struct err *e)
{
	if (a->gpus_n != s->want.gpus.count)
		return WRONG(e, "%.*s got %u GPUs, and asks for %u", STR_ARG(s->want.id), a->gpus_n,
			s->want.gpus.count);
	for (uint32_t i = 0; i < a->gpus_n; i++) {
		uint32_t g = 0;
		while (g < w->is.gpus_n && !str_eq(w->gpus[g].uuid, a->gpus[i]))
			g++;
		if (g == w->is.gpus_n)
			return WRONG(e, "%.*s got a GPU that its worker does not have",
				STR_ARG(s->want.id));
		if (w->holder[g] != 0)
			return WRONG(e, "%.*s got the GPU %.*s, which is held", STR_ARG(s->want.id),
				STR_ARG(a->gpus[i]));
		if (!gpus_match(&s->want.gpus, w->gpus[g].model, w->gpus[g].memory, w->gpus[g].mig))
			return WRONG(e, "%.*s got a GPU of another kind", STR_ARG(s->want.id));
		w->holder[g] = me;
		s->gpus[a->rank * s->want.gpus.count + i] = w->gpus[g].uuid;
	}
	return 0;
}

static int take(struct sim *m, const struct place_assignment *a, struct err *e)
{
	struct sim_step *s = step_at(m, a->step);
	struct sim_worker *w = &m->t->workers[a->worker];
	uint32_t me = m->step_of[a->step] + 1;

	if (s->state != SIM_WAITS)
		return WRONG(e, "%.*s was placed twice", STR_ARG(s->want.id));
	if (a->rank != s->placed || a->rank >= place_nodes(&s->want))
		return WRONG(
			e, "%.*s has no rank %u after %u", STR_ARG(s->want.id), a->rank, s->placed);
	for (uint32_t n = 0; n < s->placed; n++)
		if (s->workers[n] == a->worker)
			return WRONG(e, "%.*s has two ranks on %.*s", STR_ARG(s->want.id),
				STR_ARG(w->is.id));
	if (!sim_welcome(&w->is, &s->want) || (w->is.runtimes >> a->runtime & 1) == 0)
		return WRONG(e, "%.*s may not go to %.*s", STR_ARG(s->want.id), STR_ARG(w->is.id));
	if (take_gpus(w, s, me, a, e) < 0)
		return -1;
	w->cpus_used += (int64_t)(s->want.cpus * 1000 + 0.5);
	w->memory_used += s->want.memory;
	w->running++;
	if ((double)w->cpus_used > w->is.cpus * 1000 + 0.5 || w->memory_used > w->is.memory)
		return WRONG(e, "%.*s has given more than it has, to %.*s", STR_ARG(w->is.id),
			STR_ARG(s->want.id));
	s->workers[s->placed++] = a->worker;
	if (s->placed < place_nodes(&s->want))
		return 0;
	s->placed = 0;
	s->state = SIM_RUNS;
	s->started = m->now;
	if (m->now - s->want.queued_at > m->report.longest_wait)
		m->report.longest_wait = m->now - s->want.queued_at;
	return 0;
}

int sim_check_placed(struct sim *m, struct err *e)
{
	int32_t last = INT32_MAX;
	bool borrowed = false;

	m->granted = arena_array_of(m->arena, bool, m->r.placed_n + 1);
	for (size_t i = 0; i < m->r.placed_n; i++) {
		const struct place_assignment *a = &m->r.placed[i];
		const struct place_step *s = &step_at(m, a->step)->want;
		const struct sim_step *open = i != 0 ? step_at(m, m->r.placed[i - 1].step) : NULL;
		if (a->rank != 0) {
			m->granted[i] = m->granted[i - 1];
			if (take(m, a, e) < 0)
				return -1;
			continue;
		}
		if (open != NULL && open->placed != 0)
			return WRONG(e, "%.*s got a part of its workers", STR_ARG(open->want.id));
		bool grant = sim_may_hold(m, s, false);
		if (!sim_may_hold(m, s, true))
			return WRONG(e, "%.*s is more than its project's quota", STR_ARG(s->id));
		if (grant && borrowed)
			return WRONG(e, "%.*s is granted, and came after what was borrowed",
				STR_ARG(s->id));
		if (grant == !borrowed && s->priority > last)
			return WRONG(e, "%.*s came after a step of less priority", STR_ARG(s->id));
		m->granted[i] = grant;
		borrowed = !grant;
		last = s->priority;
		if (take(m, a, e) < 0)
			return -1;
	}
	if (m->r.placed_n != 0 && step_at(m, m->r.placed[m->r.placed_n - 1].step)->placed != 0)
		return WRONG(e, "the last step got a part of its workers");
	return 0;
}

/* ---- those that wait ------------------------------------------------------------- */

/* Whether a step that could start there at once may have to leave the worker to another. */
static bool is_kept(const struct sim *m, uint32_t worker, const struct place_step *s, uint32_t me)
{
	for (uint32_t i = 0; m->t->preempts && i < m->t->steps_n; i++)
		for (uint32_t n = 0; n < m->t->steps[i].cleared_n; n++)
			if (m->t->steps[i].cleared_on[n] == worker && &m->t->steps[i].want != s)
				return true; /* of what is free there, some is set aside */
	for (size_t i = 0; i < m->r.kept_n; i++) {
		const struct place_kept *k = &m->r.kept[i];
		if (k->worker != worker)
			continue;
		bool in_time =
			s->time_limit != 0 && k->until != 0 && m->now + s->time_limit <= k->until;
		return k->step != me && !in_time;
	}
	return false;
}

static bool may_ever_hold(const struct sim *m, const struct place_step *s)
{
	const struct place_project *p = &m->t->projects[s->project];

	return most(&p->steps_quota, true) >= place_nodes(s) &&
	       place_nodes(s) * s->gpus.count <= most(&p->gpus_quota, true);
}

/* Whether the quota of its project is kept for one before it, that has waited for long. */
static bool stands_back(const struct sim *m, size_t waiting)
{
	const struct place_step *s = &step_at(m, m->r.waiting[waiting])->want;
	const struct place_project *p = &m->t->projects[s->project];
	const struct held h = held_by(m, s->project);

	for (size_t i = 0; i < waiting; i++) {
		const struct place_step *b = &step_at(m, m->r.waiting[i])->want;
		uint64_t gpus = place_nodes(b) * b->gpus.count + place_nodes(s) * s->gpus.count;
		bool full =
			h.steps + place_nodes(b) + place_nodes(s) > most(&p->steps_quota, true) ||
			(s->gpus.count != 0 && h.gpus + gpus > most(&p->gpus_quota, true));
		if (full && b->project == s->project && b->priority >= s->priority &&
			m->now - b->queued_at >= PLACE_PATIENCE && may_ever_hold(m, b) &&
			could_run(m, b))
			return true;
	}
	return false;
}

/* No step waits that could have what is free. */
static int check_idle(struct sim *m, size_t i_waiting, struct err *e)
{
	uint32_t at = m->r.waiting[i_waiting];
	const struct place_step *s = &step_at(m, at)->want;

	uint32_t n = 0;

	if (!sim_may_hold(m, s, true) || stands_back(m, i_waiting))
		return 0;
	for (uint32_t i = 0; i < m->t->workers_n; i++) {
		const struct sim_worker *w = &m->t->workers[i];
		n += sim_welcome(&w->is, s) && sim_has_room(w, s, false) && !is_kept(m, i, s, at);
		if (n == place_nodes(s))
			return WRONG(e, "%.*s waits although %.*s is free for it", STR_ARG(s->id),
				STR_ARG(w->is.id));
	}
	return 0;
}

static int check_all_there(const struct sim *m, struct err *e)
{
	bool *seen = arena_array_of(m->arena, bool, m->s.steps_n + 1);

	size_t placed = 0;

	for (size_t i = 0; i < m->r.placed_n; i++)
		placed += m->r.placed[i].rank == 0;
	if (placed + m->r.waiting_n != m->s.steps_n)
		return WRONG(e, "%zu placed and %zu waiting are not %zu", placed, m->r.waiting_n,
			m->s.steps_n);
	for (size_t i = 0; i < m->r.waiting_n; i++) {
		uint32_t at = m->r.waiting[i];
		if (at >= m->s.steps_n || seen[at] || step_at(m, at)->state != SIM_WAITS)
			return WRONG(e, "a step waits twice, or was placed and waits");
		seen[at] = true;
	}
	return 0;
}

/* Where one worker is kept at a time it goes to who has it kept, whoever holds less meanwhile. */
static int check_goes_first(const struct sim *m, struct err *e)
{
	for (uint32_t i = 0; i < m->t->steps_n; i++) {
		const struct sim_step *s = &m->t->steps[i];
		if (s->state == SIM_WAITS && s->kept_since != 0 &&
			m->now - s->kept_since > 2 * m->longest)
			return WRONG(e, "a worker was kept for %.*s at %lld s, and it still waits",
				STR_ARG(s->want.id), (long long)(s->kept_since / SIM_SECOND));
	}
	return 0;
}

static int check_kept(const struct sim *m, struct err *e)
{
	if (m->t->steady && m->t->workers_n < 16 && check_goes_first(m, e) < 0)
		return -1;
	for (size_t i = 0; i < m->r.kept_n; i++) {
		const struct place_kept *k = &m->r.kept[i];
		const struct sim_step *s = step_at(m, k->step);
		const struct sim_worker *w = &m->t->workers[k->worker];
		if (s->state != SIM_WAITS || !sim_welcome(&w->is, &s->want) ||
			!sim_has_room(w, &s->want, true))
			return WRONG(e, "%.*s is kept for %.*s, which cannot use it",
				STR_ARG(w->is.id), STR_ARG(s->want.id));
	}
	return 0;
}

/* ---- nobody starves -------------------------------------------------------------- */

/* INT64_MAX: nobody knows. */
static int64_t kept_until(const struct sim *m, uint32_t step, bool *ret_kept)
{
	*ret_kept = false;
	for (size_t i = 0; i < m->r.kept_n; i++)
		if (m->r.kept[i].step == step) {
			*ret_kept = true;
			return m->r.kept[i].until != 0 ? m->r.kept[i].until : INT64_MAX;
		}
	return INT64_MAX;
}

static uint32_t find_head(const struct sim *m)
{
	for (size_t i = 0; i < m->r.waiting_n; i++) {
		const struct place_step *s = &step_at(m, m->r.waiting[i])->want;
		bool kept;
		(void)kept_until(m, m->r.waiting[i], &kept);
		if (kept) /* its quota may have been used up after its turn */
			return m->r.waiting[i];
		if (sim_may_hold(m, s, true) && could_run(m, s) && !stands_back(m, i))
			return m->r.waiting[i];
	}
	return UINT32_MAX;
}

/* Steps that go before it by rank, whatever it has waited. */
static bool outranked(const struct sim *m, const struct place_step *s, bool borrows)
{
	for (size_t i = 0; i < m->r.placed_n; i++) {
		const struct place_step *p = &step_at(m, m->r.placed[i].step)->want;
		if ((borrows && m->granted[i]) ||
			(borrows == !m->granted[i] && p->priority > s->priority))
			return true;
	}
	return false;
}

/* Places are being cleared: for this moment it is not known what is free next. */
static bool clears(const struct sim *m)
{
	for (uint32_t i = 0; m->t->preempts && i < m->t->steps_n; i++)
		if (m->t->steps[i].cleared_n != 0)
			return true;
	return false;
}

static int check_head(struct sim *m, struct err *e)
{
	uint32_t at = find_head(m);

	if (at == UINT32_MAX) {
		m->head = UINT32_MAX;
		return 0;
	}
	const struct sim_step *head = step_at(m, at);
	const struct place_step *s = &head->want;
	bool borrows = !sim_may_hold(m, s, false);
	bool kept;
	int64_t until = kept_until(m, at, &kept);
	if (!kept && m->now - s->queued_at >= PLACE_PATIENCE && !clears(m))
		return WRONG(e, "%.*s is first and has waited long, and nothing is kept for it",
			STR_ARG(s->id));
	if (m->head != m->step_of[at] || m->changed || borrows != m->head_borrows ||
		outranked(m, s, borrows)) {
		m->head_since = m->now;
	} else if (m->t->in_line && until > m->head_until) {
		return WRONG(e, "%.*s was to start by %lld s, and now by %lld s", STR_ARG(s->id),
			(long long)(m->head_until / SIM_SECOND), (long long)(until / SIM_SECOND));
	}
	m->head = m->step_of[at];
	m->head_until = until;
	m->head_borrows = borrows;
	int64_t patience = s->queued_at + PLACE_PATIENCE - m->head_since;
	int64_t bound = (patience > 0 ? patience : 0) + 2 * m->longest;
	int64_t waited = m->now - m->head_since;
	m->report.longest_head = waited > m->report.longest_head ? waited : m->report.longest_head;
	if (waited > bound)
		return WRONG(e, "%.*s has been first for %lld s, which is more than %lld s",
			STR_ARG(s->id), (long long)(waited / SIM_SECOND),
			(long long)(bound / SIM_SECOND));
	return 0;
}

/* The one with the greatest priority, of those the one that has waited longest. */
static uint32_t find_eldest(const struct sim *m, uint32_t project)
{
	const struct place_step *best = NULL;
	uint32_t found = UINT32_MAX;

	for (size_t i = 0; i < m->r.waiting_n; i++) {
		const struct place_step *s = &step_at(m, m->r.waiting[i])->want;
		if (s->project != project || !may_ever_hold(m, s) ||
			(best != NULL && (s->priority < best->priority ||
						 (s->priority == best->priority &&
							 s->queued_at >= best->queued_at))) ||
			!could_run(m, s))
			continue;
		best = s;
		found = m->step_of[m->r.waiting[i]];
	}
	return found;
}

/* Steps of its project that went before it by rank. */
static bool passed_over(const struct sim *m, const struct place_step *eldest)
{
	for (size_t i = 0; i < m->r.placed_n; i++) {
		const struct place_step *p = &step_at(m, m->r.placed[i].step)->want;
		if (p->project == eldest->project &&
			(p->priority > eldest->priority ||
				m->s.steps[m->r.placed[i].step].kept_n != 0))
			return true;
	}
	return false;
}

/* The quota of a project is not used up for ever by those behind a step that waits for it. */
static int check_quota_wait(struct sim *m, uint32_t project, struct err *e)
{
	uint32_t at = find_eldest(m, project);
	const struct place_step *s = at != UINT32_MAX ? &m->t->steps[at].want : NULL;

	if (s == NULL || m->eldest[project] != at || sim_may_hold(m, s, true) || passed_over(m, s))
		m->eldest_since[project] = m->now;
	m->eldest[project] = at;
	if (s == NULL)
		return 0;
	int64_t waited = m->now - m->eldest_since[project];
	int64_t patience = s->queued_at + PLACE_PATIENCE - m->eldest_since[project];
	if (waited > m->report.longest_over)
		m->report.longest_over = waited;
	/* One of its project for which a worker is kept may come first: that takes two runs. */
	if (waited > (patience > 0 ? patience : 0) + 3 * m->longest)
		return WRONG(e, "%.*s has waited %lld s for the quota of its project",
			STR_ARG(s->id), (long long)(waited / SIM_SECOND));
	return 0;
}

int sim_check_waiting(struct sim *m, struct err *e)
{
	size_t n = m->r.waiting_n;

	if (check_all_there(m, e) < 0 || check_kept(m, e) < 0)
		return -1;
	for (size_t i = 0; i < WAITING_LOOKED_AT && i < n; i++) {
		size_t at = i < WAITING_LOOKED_AT / 2 ? i : sim_draw(m->t, (uint32_t)n);
		if (check_idle(m, at, e) < 0)
			return -1;
	}
	for (uint32_t i = 0; i < m->t->projects_n; i++)
		if (check_quota_wait(m, i, e) < 0)
			return -1;
	return check_head(m, e);
}

/* ---- the same decision, and the end ---------------------------------------------- */

int sim_check_replay(struct sim *m, struct err *e)
{
	struct arena *a = arena_new(SNAPSHOT_ARENA);
	struct snapshot_file file;
	struct buf text, words;
	int rc = 0;

	buf_init(&text, SNAPSHOT_BYTES_MAX);
	buf_init(&words, 1 << 20);
	snapshot_write(&m->s, &m->r, m->now, &text);
	if (buf_failed(&text))
		rc = WRONG(e, "the snapshot is too large");
	else
		rc = snapshot_read(buf_str(&text), a, &file, e);
	if (rc == 0 && !replay_snapshot(&file, STR_NONE, &words))
		rc = WRONG(e, "recorded and decided anew: %.*s", STR_ARG(buf_str(&words)));
	m->report.replayed++;
	buf_done(&words);
	buf_done(&text);
	arena_drop(a);
	return rc;
}

/* ---- why, and when ---------------------------------------------------------------- */

static int ask(struct sim *m, size_t waiting, struct err *e)
{
	uint32_t at = m->r.waiting[waiting], n = 0;
	struct arena *scratch = arena_new(place_start_room(&m->r));
	struct place_change change;
	char text[PLACE_TEXT_MAX];
	bool kept;
	int rc = 0;

	const struct place_blocker *b = place_blockers(&m->r, waiting, &n);
	for (uint32_t i = 0; i < n; i++)
		(void)place_explain(text, &b[i], true);
	if (place_change(&m->r, waiting, &change))
		(void)place_change_text(text, &change);
	int64_t start = place_start(&m->r, waiting, m->now, scratch);
	int64_t until = kept_until(m, at, &kept);
	if (n == 0)
		rc = WRONG(e, "%.*s waits for nothing", STR_ARG(step_at(m, at)->want.id));
	else if (m->head == m->step_of[at] && until != INT64_MAX && (start == 0 || start > until))
		rc = WRONG(e, "%.*s is to start by %lld s, and told %lld s",
			STR_ARG(step_at(m, at)->want.id), (long long)(until / SIM_SECOND),
			(long long)(start / SIM_SECOND));
	else if (arena_used(scratch) > place_start_room(&m->r))
		rc = WRONG(e, "place_start_room is too little");
	arena_drop(scratch);
	return rc;
}

int sim_check_why(struct sim *m, const struct arena *a, struct err *e)
{
	size_t n = m->r.waiting_n, first = 0;

	if (m->t->why_every != 0 && m->report.passes % m->t->why_every == 0 && n != 0) {
		while (first + 1 < n && m->step_of[m->r.waiting[first]] != m->head)
			first++;
		if (ask(m, first, e) < 0 || ask(m, sim_draw(m->t, (uint32_t)n), e) < 0)
			return -1;
	}
	if (arena_used(a) > place_room(&m->s))
		return WRONG(e, "place_room is too little: %zu and not %zu bytes",
			place_room(&m->s), arena_used(a));
	return 0;
}

int sim_check_end(struct sim *m, struct err *e)
{
	if (m->r.placed_n != 0)
		return WRONG(e, "%zu steps are placed when nothing happens", m->r.placed_n);
	for (size_t i = 0; i < m->r.waiting_n; i++) {
		const struct place_step *s = &step_at(m, m->r.waiting[i])->want;
		uint32_t n;
		const struct place_blocker *b = place_blockers(&m->r, i, &n);
		if (sim_may_hold(m, s, true) && could_run(m, s))
			return WRONG(e, "%.*s waits for ever", STR_ARG(s->id));
		bool gone = b->kind == PLACE_OFFLINE || b->kind == PLACE_DRAINING ||
			    (b->kind == PLACE_NODES && b->workers < place_nodes(s));
		if (!b->never && !gone)
			return WRONG(e, "%.*s waits for ever and does not say so", STR_ARG(s->id));
	}
	return 0;
}
