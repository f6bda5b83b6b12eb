#include "cli/ended.h"

#include "cli/rank.h"
#include "cli/view.h"

enum { STEPS_SHOWN = 5 };

struct ended {
	struct cli *c;
	struct str attempt; /* the one that is looked for */
	size_t steps;
};

static struct str text_of(const struct jsn *object, const char *member)
{
	return jsn_get_str(jsn_get(object, member));
}

static int on_attempt(void *arg, const struct jsn *attempt, struct err *e)
{
	const struct ended *x = arg;

	if (!str_eq(text_of(attempt, "id"), x->attempt))
		return 0;
	return view_object(x->c, &view_end, STR(""), attempt, e);
}

static int64_t number_of(const struct jsn *object, const char *member)
{
	return jsn_get_int(jsn_get(object, member), 0);
}

/* Which budget of retries has paid for how many attempts. */
static struct str budgets(struct cli *c, const struct jsn *step)
{
	const struct jsn *retries = jsn_get(jsn_get(step, "spec"), "retries");
	int64_t attempts = number_of(step, "attempts");

	if (attempts < 2)
		return STR("");
	return arena_printf(c->arena,
		" after %lld attempts: %lld failures of the command (retries.user: %lld), %lld of "
		"what is around it (retries.infra: %lld)",
		(long long)attempts, (long long)number_of(step, "user_failures"),
		(long long)number_of(retries, "user"), (long long)number_of(step, "infra_failures"),
		(long long)number_of(retries, "infra"));
}

static int on_step(void *arg, const struct jsn *step, struct err *e)
{
	struct ended *x = arg;
	struct str id = text_of(step, "id"), more, head;
	struct list ranks;

	if (!str_is(text_of(step, "state"), "failed") || text_of(step, "attempt_id").n == 0 ||
		x->steps++ >= STEPS_SHOWN)
		return 0;
	head = arena_printf(x->c->arena, "\nStep %.*s failed%.*s\n", STR_ARG(text_of(step, "name")),
		STR_ARG(budgets(x->c, step)));
	if (rank_list(x->c, step, &ranks, e) < 0)
		return -1;
	size_t cause = rank_cause(&ranks, text_of(step, "reason"));
	x->attempt = ranks.n > cause ? list_at(&ranks, struct rank_row, cause)->attempt : STR("");
	struct api_call q = { .route = "attempts.list", .params = { arena_str(x->c->arena, id) } };
	if (view_print(head, e) < 0)
		return -1;
	return api_each(x->c, &q, 0, on_attempt, x, &more, e);
}

int ended_show(struct cli *c, const struct jsn *run, struct err *e)
{
	struct ended x = { .c = c };
	struct api_call q = { .route = "steps.list", .params = { text_of(run, "id") } };
	struct str more;

	if (!c->tty || c->output != OUTPUT_TABLE || !str_is(text_of(run, "state"), "failed"))
		return 0;
	if (api_each(c, &q, 0, on_step, &x, &more, e) < 0)
		return -1;
	if (x.steps > STEPS_SHOWN)
		cli_say(c, "%zu more steps failed; see tidemill run steps %.*s",
			x.steps - STEPS_SHOWN, STR_ARG(text_of(run, "id")));
	return view_flush(e);
}
