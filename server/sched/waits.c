#include "server/sched/waits.h"

#include "api/run.h"
#include "lib/base/num.h"

enum { NAMES_MAX = 3, BLOCKERS_MAX = 6 };

static struct blocker *add(struct step_wait *w, const char *kind, struct str message)
{
	BUG_ON(w->blockers.n == BLOCKERS_MAX);
	struct blocker *b = list_at(&w->blockers, struct blocker, w->blockers.n++);

	*b = (struct blocker){ .kind = str_c(kind), .message = message };
	return b;
}

/* ---- the graph and the group ---- */

/* "train (queued: no worker of pool default has a GPU), evaluate (waiting) and 4 more" */
static struct str names_of(const struct list *needs, struct arena *a)
{
	struct str text = STR("");

	for (size_t i = 0; i < needs->n && i < NAMES_MAX; i++) {
		const struct wait_need *n = list_at(needs, struct wait_need, i);
		text = arena_printf(a, "%.*s%s%.*s (%.*s%s%.*s)", STR_ARG(text), i != 0 ? ", " : "",
			STR_ARG(n->name), STR_ARG(n->state), n->why.n != 0 ? ": " : "",
			STR_ARG(n->why));
	}
	if (needs->n > NAMES_MAX)
		text = arena_printf(
			a, "%.*s and %zu more", STR_ARG(text), needs->n - (size_t)NAMES_MAX);
	return text;
}

static struct list names_list(const struct list *needs, struct arena *a)
{
	struct list out = { arena_array_of(a, struct str, needs->n), needs->n };

	for (size_t i = 0; i < needs->n; i++)
		*list_at(&out, struct str, i) = list_at(needs, struct wait_need, i)->name;
	return out;
}

static void explain_needs(const struct wait_facts *f, struct arena *a, struct step_wait *ret)
{
	if (f->held_by.n != 0) {
		struct blocker *b = add(ret, "group",
			arena_printf(a, "waits for its turn in the concurrency group %.*s%s%.*s",
				STR_ARG(f->held_by), f->holder.n != 0 ? ", which is held by " : "",
				STR_ARG(f->holder)));
		b->what = f->held_by;
		b->run_id = f->holder;
	}
	if (f->needs.n == 0)
		return;
	struct blocker *b = add(ret, "needs",
		arena_printf(a, "waits for %s %.*s", f->needs.n == 1 ? "step" : "steps",
			STR_ARG(names_of(&f->needs, a))));
	b->steps = names_list(&f->needs, a);
}

/* Others of its matrix go first. */
static void explain_turn(const struct wait_facts *f, struct arena *a, struct step_wait *ret)
{
	if (f->needs.n != 0 || f->held_by.n != 0 || f->slots == 0 || f->mates.n < (size_t)f->slots)
		return;
	struct blocker *b = add(ret, "parallel",
		arena_printf(a,
			"waits for its turn: max_parallel of %.*s is %lld, and %.*s %s on "
			"the way",
			STR_ARG(f->matrix), (long long)f->slots, STR_ARG(names_of(&f->mates, a)),
			f->mates.n == 1 ? "is" : "are"));
	b->what = f->matrix;
	b->unit = STR("steps");
	b->need = 1;
	b->most = f->slots;
	b->has_need = b->has_free = b->has_most = true;
	b->steps = names_list(&f->mates, a);
}

/* ---- on its way ---- */

static void explain_assigned(const struct wait_facts *f, struct arena *a, struct step_wait *ret)
{
	bool told = !str_is(f->attempt_state, "assigned");
	char size[NUM_SIZE_MAX];
	struct str text, what = STR("");

	if (f->data.n != 0)
		what = arena_printf(a, ", its data (%.*s, %s)", STR_ARG(f->data),
			num_format_size(size, (uint64_t)f->data_bytes));
	if (told)
		text = arena_printf(a, "%.*s prepares it: its code%.*s and what it runs in",
			STR_ARG(f->worker), STR_ARG(what));
	else
		text = arena_printf(
			a, "%.*s has been chosen and has not begun yet", STR_ARG(f->worker));
	struct blocker *b = add(ret, told ? "preparing" : "placing", text);
	b->worker_id = f->worker_id;
	b->worker = f->worker;
}

/* ---- in the queue ---- */

static bool is_later(const struct wait_facts *f, int64_t now)
{
	return f->not_before > now;
}

static void explain_backoff(const struct wait_facts *f, struct arena *a, struct step_wait *ret)
{
	char until[CLOCK_TEXT_MAX];
	struct blocker *b = add(ret, "backoff",
		arena_printf(a, "waits until %s before it tries again; attempt %lld failed: %.*s",
			clock_format(until, f->not_before / CLOCK_SECOND * CLOCK_SECOND),
			(long long)f->attempt, STR_ARG(f->attempt_reason)));

	b->until = f->not_before;
}

static const char *unit_of(const struct place_blocker *b)
{
	switch (b->kind) {
	case PLACE_QUOTA: return b->need != 0 ? "gpus" : "steps";
	case PLACE_GPUS: return "gpus";
	case PLACE_NODES: return "workers";
	case PLACE_MEMORY:
	case PLACE_DISK: return "bytes";
	case PLACE_CPUS: return "millicpus";
	default: return NULL;
	}
}

static void put_blocker(const struct place_blocker *from, struct arena *a, struct step_wait *ret)
{
	char text[PLACE_TEXT_MAX];
	struct blocker *b = add(ret, place_blocker_name(from->kind),
		arena_str(a, str_c(place_explain(text, from, true))));
	const char *unit = unit_of(from);

	b->unsatisfiable = from->never;
	b->what = from->kind == PLACE_NO_POOL ? from->pool : from->what;
	b->value = from->value;
	b->workers = from->workers;
	b->worker_id = from->worker;
	b->worker = from->worker_name;
	b->until = from->until;
	if (unit == NULL)
		return;
	b->unit = str_c(unit);
	b->need = from->kind == PLACE_QUOTA && from->need == 0 ? from->nodes : from->need;
	b->free = from->most_free;
	b->has_need = b->has_free = true;
	b->most = from->most_all;
	b->has_most = from->kind != PLACE_DISK;
	b->largest_id = from->largest;
	b->largest = from->largest_name;
}

static void put_change(const struct place_change *from, struct arena *a, struct step_wait *ret)
{
	char text[PLACE_TEXT_MAX];
	struct wait_change *c = &ret->start_now;
	struct wait_edit *edits = arena_array_of(a, struct wait_edit, from->edits_n);

	ret->has_start_now = true;
	*c = (struct wait_change){ .message = arena_printf(a, "it would start at once %s",
					   place_change_text(text, from)),
		.worker_id = from->worker,
		.worker = from->worker_name,
		.edits = { edits, from->edits_n } };
	for (uint32_t i = 0; i < from->edits_n; i++) {
		const struct place_edit *e = &from->edits[i];
		bool amount = e->kind <= PLACE_EDIT_TIME_LIMIT;
		edits[i] = (struct wait_edit){ .kind = str_c(place_edit_name(e->kind)),
			.what = e->what,
			.value = e->value,
			.from = e->from,
			.to = e->to,
			.has_from = amount,
			.has_to = amount };
	}
}

static void look_deep(
	const struct why_view *v, size_t waiting, struct arena *a, struct step_wait *ret)
{
	struct arena *scratch = arena_new(place_start_room(&v->result));
	struct place_change change;

	if (place_change(&v->result, waiting, &change))
		put_change(&change, a, ret);
	ret->earliest_start = place_start(&v->result, waiting, v->at, scratch);
	arena_drop(scratch);
}

static void explain_placed(const struct place_snapshot *s, const struct place_assignment *x,
	struct arena *a, struct step_wait *ret)
{
	const struct place_worker *w = &s->workers[x->worker];
	struct str held = STR("");

	if (x->held != 0)
		held = arena_printf(a, ", which holds %u.%u %% of the image and data that it needs",
			x->held / 10, x->held % 10);
	struct blocker *b = add(ret, "placing",
		arena_printf(a, "%.*s takes it next%.*s", STR_ARG(w->name), STR_ARG(held)));
	b->worker_id = w->id;
	b->worker = w->name;
}

static void explain_queued(const struct wait_facts *f, const struct why_view *v, bool deep,
	struct arena *a, struct step_wait *ret)
{
	struct why_place at = why_find(v, f->step_id);
	uint32_t n;

	ret->as_of = v->at;
	if (at.placed >= 0) {
		explain_placed(&v->snapshot, &v->result.placed[at.placed], a, ret);
		return;
	}
	if (at.waiting < 0) {
		(void)add(ret, "new", STR("the scheduler has not looked at it yet"));
		return;
	}
	ret->has_position = true;
	ret->position = v->position[at.waiting];
	ret->of = v->of[at.waiting];
	const struct place_blocker *b = place_blockers(&v->result, (size_t)at.waiting, &n);
	for (uint32_t i = 0; i < n; i++) {
		put_blocker(&b[i], a, ret);
		ret->unsatisfiable |= b[i].never;
	}
	if (deep)
		look_deep(v, (size_t)at.waiting, a, ret);
}

bool wait_wants_view(const struct wait_facts *f, int64_t now)
{
	return f->state == STEP_QUEUED && f->queued && !is_later(f, now);
}

void wait_explain(const struct wait_facts *f, const struct why_view *v, int64_t now, bool deep,
	struct arena *a, struct step_wait *ret)
{
	*ret = (struct step_wait){ .step_id = f->step_id,
		.run_id = f->run_id,
		.name = f->name,
		.pipeline = f->pipeline,
		.number = f->number,
		.state = f->state,
		.has_pool = f->queued,
		.pool = f->pool,
		.priority = f->priority,
		.cpus = f->cpus,
		.memory = f->memory,
		.gpus = f->gpus,
		.queued_at = f->queued_at,
		.deadline = f->deadline,
		.blockers = { arena_array_of(a, struct blocker, BLOCKERS_MAX), 0 },
		.as_of = now };
	if (f->state == STEP_WAITING) {
		explain_needs(f, a, ret);
		explain_turn(f, a, ret);
	} else if (f->state == STEP_ASSIGNED) {
		explain_assigned(f, a, ret);
	} else if (f->state == STEP_QUEUED && f->queued && is_later(f, now)) {
		explain_backoff(f, a, ret);
	} else if (wait_wants_view(f, now)) {
		explain_queued(f, v, deep, a, ret);
	}
}
