#include "cli/rank.h"

#include "cli/view.h"

enum { STEPS_SHOWN = 5 };

static struct str text_of(const struct jsn *object, const char *member)
{
	return jsn_get_str(jsn_get(object, member));
}

/* ---- which there are ------------------------------------------------------------------------- */

struct reading {
	struct arena *a;
	struct str first; /* the attempt of rank 0 */
	struct rank_row *rows;
	size_t n, room;
	bool mine; /* the ranks that come now are those of that attempt */
};

/* They come by number and rank. */
static int on_attempt(void *arg, const struct jsn *attempt, struct err *e)
{
	struct reading *r = arg;
	struct str id = text_of(attempt, "id"), state = text_of(attempt, "state");

	(void)e;
	if (jsn_get_int(jsn_get(attempt, "rank"), 0) == 0)
		r->mine = str_eq(id, r->first);
	if (!r->mine || r->n == r->room)
		return 0;
	r->rows[r->n++] = (struct rank_row){ .attempt = arena_str(r->a, id),
		.reason = arena_str(r->a, text_of(attempt, "reason")),
		.ended_at = arena_str(r->a, text_of(attempt, "ended_at")),
		.failed = str_is(state, "failed") || str_is(state, "lost") };
	return 0;
}

int rank_list(struct cli *c, const struct jsn *step, struct list *ret, struct err *e)
{
	int64_t nodes = jsn_get_int(jsn_get(step, "nodes"), 1);
	struct reading r = { .a = c->arena,
		.first = arena_str(c->arena, text_of(step, "attempt_id")),
		.room = nodes > 1 ? (size_t)nodes : 1 };
	struct api_call q = { .route = "attempts.list",
		.params = { arena_str(c->arena, text_of(step, "id")) } };
	struct str more;

	r.rows = arena_array_of(c->arena, struct rank_row, r.room);
	if (r.first.n != 0 && r.room == 1)
		r.rows[r.n++].attempt = r.first;
	else if (r.first.n != 0 && api_each(c, &q, 0, on_attempt, &r, &more, e) < 0)
		return -1;
	*ret = (struct list){ r.rows, r.n };
	return 0;
}

size_t rank_cause(const struct list *rows, struct str step_reason)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < rows->n; i++) {
		const struct rank_row *r = list_at(rows, struct rank_row, i);
		if (!r->failed || !str_eq(r->reason, step_reason))
			continue;
		if (found == SIZE_MAX ||
			str_cmp(r->ended_at, list_at(rows, struct rank_row, found)->ended_at) < 0)
			found = i;
	}
	return found == SIZE_MAX ? 0 : found;
}

/* ---- showing them ---------------------------------------------------------------------------- */

struct showing {
	struct cli *c;
	struct view_list *list; /* of the step at hand */
	int64_t number; /* of its newest attempt */
	size_t steps;
};

static int on_rank(void *arg, const struct jsn *attempt, struct err *e)
{
	struct showing *s = arg;

	(void)e;
	if (jsn_get_int(jsn_get(attempt, "number"), 0) == s->number)
		view_list_add(s->list, attempt);
	return 0;
}

static int on_step(void *arg, const struct jsn *step, struct err *e)
{
	struct showing *s = arg;
	struct str more = STR_NONE, head;

	if (jsn_get_int(jsn_get(step, "nodes"), 1) < 2 || text_of(step, "attempt_id").n == 0 ||
		s->steps++ >= STEPS_SHOWN)
		return 0;
	s->number = jsn_get_int(jsn_get(step, "attempts"), 0);
	head = arena_printf(s->c->arena, "\nRanks of step %.*s, attempt %lld\n",
		STR_ARG(text_of(step, "name")), (long long)s->number);
	struct api_call q = { .route = "attempts.list",
		.params = { arena_str(s->c->arena, text_of(step, "id")) } };
	if (view_print(head, e) < 0)
		return -1;
	s->list = view_list_new(s->c, &view_rank);
	if (api_each(s->c, &q, 0, on_rank, s, &more, e) < 0) {
		view_list_free(s->list);
		return -1;
	}
	return view_list_end(s->list, STR_NONE, e);
}

int rank_show(struct cli *c, struct str run, struct err *e)
{
	struct showing s = { .c = c };
	struct api_call q = { .route = "steps.list", .params = { run } };
	struct str more;

	if (!c->tty || c->output != OUTPUT_TABLE)
		return 0;
	if (api_each(c, &q, 0, on_step, &s, &more, e) < 0)
		return -1;
	if (s.steps > STEPS_SHOWN)
		cli_say(c,
			"%zu more steps run on several workers; see tidemill run attempts STEP_ID",
			s.steps - STEPS_SHOWN);
	return 0;
}
