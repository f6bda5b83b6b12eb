#include "server/core/dag.h"

/*
 * Edges are kept twice while the graph is built: what a step needs (kept in the result) and what
 * waits for a step. The order is Kahn's algorithm; steps that become free are taken by position, so
 * that the order is the user's own wherever the graph allows it. What Kahn leaves over contains a
 * circle, and walking back along needs that are left over must meet it.
 */

struct build {
	const struct dag_step *steps;
	size_t n, edges;
	struct names names;
	uint32_t *need_at, *need; /* by step: what it needs */
	uint32_t *after_at, *after; /* by step: what waits for it */
	uint32_t *left; /* needs that have not been ordered yet */
	uint32_t *order;
	size_t ordered;
	struct arena *a;
	struct err *e;
};

static int fail_need(struct build *b, size_t step, size_t at)
{
	err_field_index(b->e, at);
	err_field_prefix(b->e, "needs");
	err_field_prefix(b->e, arena_dup(b->a, b->steps[step].name));
	return -1;
}

static int check_size(struct build *b)
{
	if (b->n > DAG_STEPS_MAX)
		return err_field(
			b->e, "", "has %zu steps; at most %d are allowed", b->n, DAG_STEPS_MAX);
	for (size_t i = 0; i < b->n; i++) {
		b->edges += b->steps[i].needs_n;
		if (b->steps[i].needs_n > DAG_EDGES_MAX || b->edges > DAG_EDGES_MAX)
			return err_field(b->e, "", "has more than %d needs in all", DAG_EDGES_MAX);
	}
	return 0;
}

static int index_names(struct build *b)
{
	struct str *names = arena_array_of(b->a, struct str, b->n != 0 ? b->n : 1);

	for (size_t i = 0; i < b->n; i++)
		names[i] = b->steps[i].name;
	names_index(&b->names, names, b->n, b->a);
	ptrdiff_t twice = names_duplicate(&b->names);
	if (twice < 0)
		return 0;
	(void)err_field(b->e, "", "is the name of two steps");
	err_field_prefix(b->e, arena_dup(b->a, names[twice]));
	return -1;
}

/* The step that need number `at` of step i names; seen[x] is i + 1 once i has named x. */
static int find_need(struct build *b, size_t i, size_t at, uint32_t *seen, uint32_t *ret)
{
	struct str name = b->steps[i].needs[at];
	ptrdiff_t found = names_find(&b->names, name);
	char near[NEAR_TEXT_MAX];

	if (found < 0) {
		(void)err_field(b->e, "", "there is no step '%.*s'%s", STR_ARG(names_shown(name)),
			names_near(near, &b->names, name));
		return fail_need(b, i, at);
	}
	if ((size_t)found == i) {
		(void)err_field(b->e, "", "a step cannot need itself");
		return fail_need(b, i, at);
	}
	if (seen[found] == i + 1) {
		(void)err_field(b->e, "", "'%.*s' is named twice", STR_ARG(names_shown(name)));
		return fail_need(b, i, at);
	}
	seen[found] = (uint32_t)i + 1;
	*ret = (uint32_t)found;
	return 0;
}

static int link_needs(struct build *b)
{
	uint32_t *seen = arena_array_of(b->a, uint32_t, b->n + 1), at = 0;

	b->need_at = arena_array_of(b->a, uint32_t, b->n + 1);
	b->after_at = arena_array_of(b->a, uint32_t, b->n + 2);
	b->left = arena_array_of(b->a, uint32_t, b->n + 1);
	b->need = arena_array_of(b->a, uint32_t, b->edges + 1);
	b->after = arena_array_of(b->a, uint32_t, b->edges + 1);
	for (size_t i = 0; i < b->n; i++) {
		for (size_t k = 0; k < b->steps[i].needs_n; k++) {
			if (find_need(b, i, k, seen, &b->need[at]) < 0)
				return -1;
			b->after_at[b->need[at] + 2]++;
			at++;
		}
		b->need_at[i + 1] = at;
		b->left[i] = (uint32_t)b->steps[i].needs_n;
	}
	/* Counts become starts, one place further on, so that filling moves each to its end. */
	for (size_t i = 2; i < b->n + 2; i++)
		b->after_at[i] += b->after_at[i - 1];
	for (uint32_t i = 0; i < b->n; i++)
		for (uint32_t k = b->need_at[i]; k < b->need_at[i + 1]; k++)
			b->after[b->after_at[b->need[k] + 1]++] = i;
	return 0;
}

/* A heap of free steps, the first position on top. */
static void heap_push(uint32_t *heap, size_t *n, uint32_t v)
{
	size_t i = (*n)++;

	for (; i > 0 && heap[(i - 1) / 2] > v; i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = v;
}

static uint32_t heap_pop(uint32_t *heap, size_t *n)
{
	uint32_t top = heap[0], v = heap[--*n];
	size_t i = 0;

	for (size_t child = 1; child < *n; child = 2 * i + 1) {
		if (child + 1 < *n && heap[child + 1] < heap[child])
			child++;
		if (heap[child] >= v)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = v;
	return top;
}

static void order_steps(struct build *b)
{
	uint32_t *heap = arena_array_of(b->a, uint32_t, b->n + 1);
	size_t n = 0;

	b->order = arena_array_of(b->a, uint32_t, b->n + 1);
	for (uint32_t i = 0; i < b->n; i++)
		if (b->left[i] == 0)
			heap_push(heap, &n, i);
	while (n > 0) {
		uint32_t i = heap_pop(heap, &n);
		b->order[b->ordered++] = i;
		for (uint32_t k = b->after_at[i]; k < b->after_at[i + 1]; k++)
			if (--b->left[b->after[k]] == 0)
				heap_push(heap, &n, b->after[k]);
	}
}

/* The first need of step i that is part of what is left over. */
static uint32_t left_need(const struct build *b, uint32_t i)
{
	for (uint32_t k = b->need_at[i]; k < b->need_at[i + 1]; k++)
		if (b->left[b->need[k]] != 0)
			return b->need[k];
	BUG_ON(true);
}

static int fail_circle(struct build *b)
{
	uint32_t *seen = arena_array_of(b->a, uint32_t, b->n + 1), at = 0, length = 0;
	char text[sizeof b->e->msg - 64];
	struct str first;

	while (b->left[at] == 0)
		at++;
	for (; seen[at] == 0; at = left_need(b, at))
		seen[at] = 1;
	first = b->steps[at].name;
	(void)str_print(text, sizeof text, "%.*s", STR_ARG(names_shown(first)));
	uint32_t on = at;
	do {
		on = left_need(b, on);
		length++;
		char longer[sizeof text];
		struct str name = names_shown(b->steps[on].name);
		if (!str_print(longer, sizeof longer, "%s → %.*s", text, STR_ARG(name)) ||
			strlen(longer) + sizeof " → …" > sizeof longer)
			break;
		memcpy(text, longer, sizeof text);
	} while (on != at);
	(void)err_field(
		b->e, "", "steps need each other in a circle: %s%s", text, on != at ? " → …" : "");
	err_field_prefix(b->e, "needs");
	err_field_prefix(b->e, arena_dup(b->a, first));
	return -1;
}

int dag_build(
	const struct dag_step *steps, size_t n, struct arena *a, struct dag *ret, struct err *e)
{
	struct build b = { .steps = steps, .n = n, .a = a, .e = e };

	if (check_size(&b) < 0 || index_names(&b) < 0 || link_needs(&b) < 0)
		return -1;
	order_steps(&b);
	if (b.ordered < n)
		return fail_circle(&b);
	bool *joins = arena_array_of(a, bool, n + 1);
	for (size_t i = 0; i < n; i++)
		joins[i] = steps[i].joins;
	*ret = (struct dag){
		.n = n, .order = b.order, .need_at = b.need_at, .need = b.need, .joins = joins
	};
	return 0;
}

/* ---- what comes next --------------------------------------------------------------- */

/* How the needs of a step stand: all have succeeded, one never will, or neither yet. */
enum needs { NEEDS_MET, NEEDS_OPEN, NEEDS_FAILED };

static enum needs look_at_needs(const struct dag *d, const int *states, uint32_t step)
{
	enum needs all = NEEDS_MET;
	size_t skipped = 0, n = d->need_at[step + 1] - d->need_at[step];

	for (uint32_t k = d->need_at[step]; k < d->need_at[step + 1]; k++) {
		int s = states[d->need[k]];
		bool ignored = s == FSM_STEP_SKIPPED && d->joins[step] && ++skipped < n;
		if (ignored)
			continue;
		if (s == FSM_STEP_FAILED || s == FSM_STEP_CANCELLED || s == FSM_STEP_SKIPPED)
			return NEEDS_FAILED;
		if (s != FSM_STEP_SUCCEEDED)
			all = NEEDS_OPEN;
	}
	return all;
}

static enum dag_outcome outcome(const int *states, size_t n, bool cancelling)
{
	size_t count[FSM_STEP_STATES] = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (!fsm_ended(&fsm_step, states[i]))
			return DAG_GOING;
		count[states[i]]++;
	}
	bool well = count[FSM_STEP_FAILED] == 0 && count[FSM_STEP_CANCELLED] == 0;
	if (cancelling && !well)
		return DAG_CANCELLED;
	if (count[FSM_STEP_FAILED] != 0)
		return DAG_FAILED;
	return count[FSM_STEP_CANCELLED] != 0 ? DAG_CANCELLED : DAG_SUCCEEDED;
}

void dag_advance(const struct dag *d, const int *states, bool cancelling, struct arena *a,
	struct dag_next *ret)
{
	int *now = arena_array_of(a, int, d->n + 1);
	uint32_t *ready = arena_array_of(a, uint32_t, d->n + 1);
	uint32_t *skip = arena_array_of(a, uint32_t, d->n + 1);
	uint32_t *cancel = arena_array_of(a, uint32_t, d->n + 1);
	struct dag_next next = { .ready = ready, .skip = skip, .cancel = cancel };

	for (size_t i = 0; i < d->n; i++) {
		BUG_ON(states[i] < 0 || states[i] >= FSM_STEP_STATES);
		now[i] = states[i];
	}
	/* In order, so that one pass carries a failure to the end of the graph. */
	for (size_t i = 0; i < d->n; i++) {
		uint32_t step = d->order[i];
		if (now[step] != FSM_STEP_WAITING && !(cancelling && now[step] == FSM_STEP_QUEUED))
			continue;
		if (cancelling) {
			now[step] = FSM_STEP_CANCELLED;
			cancel[next.cancel_n++] = step;
			continue;
		}
		enum needs needs = look_at_needs(d, now, step);
		if (needs == NEEDS_FAILED) {
			now[step] = FSM_STEP_SKIPPED;
			skip[next.skip_n++] = step;
		} else if (needs == NEEDS_MET) {
			now[step] = FSM_STEP_QUEUED;
			ready[next.ready_n++] = step;
		}
	}
	next.outcome = outcome(now, d->n, cancelling);
	*ret = next;
}
