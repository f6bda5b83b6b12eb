#include "server/sched/replay.h"

#include "lib/base/clock.h"
#include "lib/base/num.h"

static bool same_assignment(const struct place_assignment *a, const struct place_assignment *b)
{
	if (a->step != b->step || a->worker != b->worker || a->runtime != b->runtime ||
		a->rank != b->rank || a->gpus_n != b->gpus_n)
		return false;
	for (uint32_t i = 0; i < a->gpus_n; i++)
		if (!str_eq(a->gpus[i], b->gpus[i]))
			return false;
	return true;
}

static bool same_preempted(const struct place_preempted *a, const struct place_preempted *b)
{
	bool same =
		a->step == b->step && a->workers_n == b->workers_n && a->victims_n == b->victims_n;

	for (uint32_t i = 0; same && i < a->workers_n; i++)
		same = a->workers[i] == b->workers[i];
	for (uint32_t i = 0; same && i < a->victims_n; i++)
		same = a->victims[i].running == b->victims[i].running &&
		       a->victims[i].reclaimed == b->victims[i].reclaimed;
	return same;
}

/* The first difference, if there is one. */
static bool compare(const struct snapshot_file *f, const struct place_result *r, struct buf *out)
{
	const struct place_snapshot *s = &f->snapshot;
	size_t i = 0;

	while (i < f->placed_n && i < r->placed_n && same_assignment(&f->placed[i], &r->placed[i]))
		i++;
	if (i < f->placed_n || i < r->placed_n) {
		const struct place_assignment *was = i < f->placed_n ? &f->placed[i] : NULL;
		const struct place_assignment *is = i < r->placed_n ? &r->placed[i] : NULL;
		buf_addf(out, "the decision differs: placement %zu was ", i + 1);
		for (int k = 0; k < 2; k++) {
			const struct place_assignment *x = k == 0 ? was : is;
			buf_adds(out, k == 0 ? "" : ", and is ");
			if (x == NULL)
				buf_adds(out, "none");
			else
				buf_addf(out, "%.*s on %.*s", STR_ARG(s->steps[x->step].id),
					STR_ARG(s->workers[x->worker].name));
		}
		buf_addc(out, '\n');
		return false;
	}
	for (i = 0; i < f->waiting_n && i < r->waiting_n; i++)
		if (f->waiting[i] != r->waiting[i])
			break;
	if (i < f->waiting_n || i < r->waiting_n) {
		buf_addf(out, "the decision differs: the order of those that wait, at place %zu\n",
			i + 1);
		return false;
	}
	for (i = 0; i < f->preempted_n && i < r->preempted_n; i++)
		if (!same_preempted(&f->preempted[i], &r->preempted[i]))
			break;
	if (i < f->preempted_n || i < r->preempted_n) {
		buf_addf(out, "the decision differs: who takes whose place, at place %zu\n", i + 1);
		return false;
	}
	buf_adds(out, "the decision is the same\n");
	return true;
}

static void explain_waiting(
	const struct snapshot_file *f, const struct place_result *r, size_t at, struct buf *out)
{
	const struct place_step *s = &f->snapshot.steps[r->waiting[at]];
	char text[PLACE_TEXT_MAX], time[CLOCK_TEXT_MAX];
	struct place_change change;
	uint32_t n;
	const struct place_blocker *b = place_blockers(r, at, &n);
	struct arena *scratch = arena_new(place_start_room(r));
	int64_t start = place_start(r, at, f->at, scratch);

	buf_addf(out, "%.*s waits, place %zu of %zu\n", STR_ARG(s->id), at + 1, r->waiting_n);
	for (uint32_t i = 0; i < n; i++)
		buf_addf(out, "  %s%s\n", b[i].never ? "in vain: " : "",
			place_explain(text, &b[i], true));
	for (size_t i = 0; i < r->preempted_n; i++)
		if (r->preempted[i].step == r->waiting[at])
			buf_addf(out, "  it takes the place of %u attempt%s on %.*s\n",
				r->preempted[i].victims_n, num_plural(r->preempted[i].victims_n),
				STR_ARG(f->snapshot.workers[r->preempted[i].workers[0]].name));
	if (place_change(r, at, &change))
		buf_addf(out, "  it would start at once %s\n", place_change_text(text, &change));
	if (start != 0)
		buf_addf(out, "  time limits let it start at %s\n", clock_format(time, start));
	arena_drop(scratch);
}

static void explain(const struct snapshot_file *f, const struct place_result *r, struct str step,
	struct buf *out)
{
	const struct place_snapshot *s = &f->snapshot;

	for (size_t i = 0; i < r->placed_n; i++)
		if (str_eq(s->steps[r->placed[i].step].id, step)) {
			buf_addf(out, "%.*s goes to %.*s\n", STR_ARG(step),
				STR_ARG(s->workers[r->placed[i].worker].name));
			return;
		}
	for (size_t i = 0; i < r->waiting_n; i++)
		if (str_eq(s->steps[r->waiting[i]].id, step)) {
			explain_waiting(f, r, i, out);
			return;
		}
}

bool replay_has_step(const struct snapshot_file *f, struct str step)
{
	for (size_t i = 0; i < f->snapshot.steps_n; i++)
		if (str_eq(f->snapshot.steps[i].id, step))
			return true;
	return false;
}

bool replay_snapshot(const struct snapshot_file *f, struct str step, struct buf *out)
{
	struct arena *a = arena_new(place_room(&f->snapshot));
	const struct place_snapshot *s = &f->snapshot;
	struct place_result r;
	char time[CLOCK_TEXT_MAX];

	place_pass(s, a, &r);
	buf_addf(out, "%s: %zu step%s of %zu project%s over %zu worker%s: %zu placed, %zu wait%s\n",
		clock_format(time, f->at), s->steps_n, num_plural(s->steps_n), s->projects_n,
		num_plural(s->projects_n), s->workers_n, num_plural(s->workers_n), r.placed_n,
		r.waiting_n, r.waiting_n == 1 ? "s" : "");
	bool same = compare(f, &r, out);
	if (step.n != 0)
		explain(f, &r, step, out);
	arena_drop(a);
	return same;
}
