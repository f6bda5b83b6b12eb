/* Logs of a step on several workers: each of its ranks has one. */
#include "cli/logs.h"

struct rank_of {
	struct cli *c;
	int64_t rank;
	struct str attempt;
};

static int on_rank(void *arg, const struct jsn *attempt, struct err *e)
{
	struct rank_of *r = arg;

	(void)e;
	if (jsn_get_int(jsn_get(attempt, "rank"), 0) == r->rank)
		r->attempt = arena_str(r->c->arena, jsn_get_str(jsn_get(attempt, "id")));
	return 0;
}

int rank_attempt(struct cli *c, const struct log_options *o, const struct jsn *step,
	struct str *ret, struct err *e)
{
	struct rank_of r = { c, o->rank, jsn_get_str(jsn_get(step, "attempt_id")) };
	struct api_call q = { .route = "attempts.list",
		.params = { jsn_get_str(jsn_get(step, "id")) } };
	int64_t nodes = jsn_get_int(jsn_get(step, "nodes"), 1);
	struct str more;

	if (o->rank >= nodes && o->step.p != NULL)
		return err_set(e, ERR_INVALID, "--rank: the last rank of the step is %lld",
			(long long)nodes - 1);
	if (o->rank != 0 && o->rank < nodes && r.attempt.n != 0 &&
		api_each(c, &q, 0, on_rank, &r, &more, e) < 0)
		return -1;
	*ret = o->rank < nodes ? r.attempt : STR("");
	return 0;
}
