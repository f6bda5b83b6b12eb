#include "cli/logs.h"

#include "cli/nouns.h"
#include "cli/rank.h"
#include "cli/tail.h"
#include "cli/waits.h"
#include "lib/base/map.h"
#include "lib/base/num.h"

enum { POLL_US = 300000, POLL_EACH_US = 100000, POLL_MOST_US = 2000000 };

int logs_last(struct cli *c, struct str step_id, int64_t lines, int64_t *ret_rank, struct err *e)
{
	struct log_options o = { .tail = lines };
	struct api_call q = { .route = "steps.get", .params = { step_id } };
	struct api_reply r;
	struct list ranks;
	int rc;

	if (api_do(c, &q, &r, e) < 0)
		return -1;
	struct tail t = {
		.c = c, .o = &o, .step = jsn_get_str(jsn_get(r.root, "name")), .to = stderr
	};
	*ret_rank = -1;
	rc = rank_list(c, r.root, &ranks, e);
	if (rc == 0 && ranks.n != 0) {
		t.rank = (int64_t)rank_cause(&ranks, jsn_get_str(jsn_get(r.root, "reason")));
		t.attempt = list_at(&ranks, struct rank_row, t.rank)->attempt;
		if (ranks.n > 1) {
			*ret_rank = t.rank;
			cli_say(c, "The end of the log of rank %lld:", (long long)t.rank);
		}
		rc = tail_show(&t, 0, e);
	}
	api_done(&r);
	return rc;
}

/* ---- all steps of a run ---------------------------------------------------------------------- */

struct run_logs {
	struct cli *c;
	const struct log_options *o;
	struct map *shown; /* attempts, by that of rank 0 */
	struct map
		*starts; /* with --tail 0: attempt to int64_t, the first line that was not there */
	struct str said; /* what the run waits for, as told */
	bool found, printed;
	bool has_rank; /* some step has the rank that is asked for */
};

static bool is_wanted(const struct run_logs *l, const struct jsn *step)
{
	return l->o->step.p == NULL || str_eq(l->o->step, jsn_get_str(jsn_get(step, "name")));
}

static const struct rank_row *rank_at(const struct list *ranks, size_t i)
{
	return list_at(ranks, struct rank_row, i);
}

/* Whether the step has the rank, so that its log is to be shown. */
static int asks_for(struct run_logs *l, const struct jsn *step, bool *ret, struct err *e)
{
	int64_t nodes = jsn_get_int(jsn_get(step, "nodes"), 1);

	*ret = l->o->rank < nodes;
	l->has_rank |= *ret;
	if (!*ret && l->o->step.p != NULL)
		return err_set(e, ERR_INVALID, "--rank: the last rank of the step is %lld",
			(long long)nodes - 1);
	return 0;
}

/* Remembers where the attempts that are there end, before any of them is followed. */
static int on_old_step(void *arg, const struct jsn *step, struct err *e)
{
	struct run_logs *l = arg;
	struct list ranks;
	bool yes;

	if (!is_wanted(l, step))
		return 0;
	if (asks_for(l, step, &yes, e) < 0 || (yes && rank_list(l->c, step, &ranks, e) < 0))
		return -1;
	for (size_t i = 0; yes && i < ranks.n; i++) {
		int64_t *start = arena_new_of(l->c->arena, int64_t);
		if (l->o->rank != LOG_ALL_RANKS && (size_t)l->o->rank != i)
			continue;
		map_put(l->starts, rank_at(&ranks, i)->attempt, start);
		if (tail_find_end(l->c, rank_at(&ranks, i)->attempt, start, e) < 0)
			return -1;
	}
	return 0;
}

static int64_t start_of(const struct run_logs *l, struct str attempt)
{
	const int64_t *start = map_get(l->starts, attempt);

	return start != NULL ? *start : l->o->tail == 0 ? 1 : 0;
}

/* Once, of a step that stands for one of another run. */
static void say_reused(struct run_logs *l, const struct jsn *step)
{
	struct str id = jsn_get_str(jsn_get(step, "id"));
	const struct jsn *from = jsn_get(step, "reused");

	if (from == NULL || map_get(l->shown, id) != NULL)
		return;
	map_put(l->shown, id, l);
	cli_say(l->c, "==> %.*s was taken over from %.*s, which has its log <==",
		STR_ARG(jsn_get_str(jsn_get(step, "name"))),
		STR_ARG(jsn_get_str(jsn_get(from, "run_id"))));
}

/* The attempt of these ranks is over when the step is, or has a newer one. */
static int is_over(struct cli *c, struct str step, struct str first, bool *ret, struct err *e)
{
	struct api_call q = { .route = "steps.get", .params = { step } };
	struct api_reply r;

	if (api_do(c, &q, &r, e) < 0)
		return -1;
	*ret = jsn_type(jsn_get(r.root, "ended_at")) == JSN_STR ||
	       !str_eq(jsn_get_str(jsn_get(r.root, "attempt_id")), first);
	api_done(&r);
	return 0;
}

/* Of several logs at once each is asked for what is new, in turn. */
static int follow_all(
	struct run_logs *l, struct str step, struct tail *tails, size_t n, struct err *e)
{
	int64_t pause = (int64_t)n * POLL_EACH_US;
	bool over = false, news, any;

	pause = pause > POLL_MOST_US ? POLL_MOST_US : pause;
	do {
		/* Whatever was written before it was over is read after that. */
		any = false;
		if (is_over(l->c, step, tails[0].attempt, &over, e) < 0)
			return -1;
		for (size_t i = 0; i < n; i++) {
			if (tail_more(&tails[i], &news, e) < 0)
				return -1;
			any |= news;
		}
		if (l->o->until != 0 && clock_elapsed(&clock_real) >= l->o->until)
			return err_set(e, ERR_TIMEOUT, "the time is up");
		if (!over && !any)
			api_sleep(pause);
	} while (!over);
	return 0;
}

/* With --follow the ranks come mixed, else one after the other. */
static int show_all(
	struct run_logs *l, const struct jsn *step, const struct list *ranks, struct err *e)
{
	struct tail *tails = arena_array_of(l->c->arena, struct tail, ranks->n);
	int rc = 0;

	for (size_t i = 0; i < ranks->n; i++)
		tails[i] = (struct tail){ .c = l->c,
			.o = l->o,
			.step = arena_str(l->c->arena, jsn_get_str(jsn_get(step, "name"))),
			.attempt = rank_at(ranks, i)->attempt,
			.to = stdout,
			.of_gang = true,
			.rank = (int64_t)i,
			.seen.next = start_of(l, rank_at(ranks, i)->attempt) };
	if (l->o->follow)
		return follow_all(l, arena_str(l->c->arena, jsn_get_str(jsn_get(step, "id"))),
			tails, ranks->n, e);
	for (size_t i = 0; i < ranks->n && rc == 0; i++)
		rc = tail_show(&tails[i], tails[i].seen.next, e);
	return rc;
}

static int show_rank(
	struct run_logs *l, const struct jsn *step, const struct list *ranks, struct err *e)
{
	size_t i = l->o->rank > 0 ? (size_t)l->o->rank : 0;
	struct tail t = { .c = l->c,
		.o = l->o,
		.step = jsn_get_str(jsn_get(step, "name")),
		.attempt = rank_at(ranks, i)->attempt,
		.to = stdout,
		.of_gang = ranks->n > 1,
		.rank = (int64_t)i };

	if (ranks->n > 1)
		cli_say(l->c, "rank %zu of %zu; --rank N has another one, --rank all has all", i,
			ranks->n);
	return tail_show(&t, start_of(l, t.attempt), e);
}

static void say_step(const struct run_logs *l, const struct jsn *step)
{
	struct str name = jsn_get_str(jsn_get(step, "name"));
	int64_t n = jsn_get_int(jsn_get(step, "attempts"), 1);

	if (l->o->step.p != NULL)
		return;
	if (n > 1)
		cli_say(l->c, "==> %.*s, attempt %lld <==", STR_ARG(name), (long long)n);
	else
		cli_say(l->c, "==> %.*s <==", STR_ARG(name));
}

static int on_step(void *arg, const struct jsn *step, struct err *e)
{
	struct run_logs *l = arg;
	struct str first = jsn_get_str(jsn_get(step, "attempt_id"));
	bool nothing = l->o->tail == 0 && !l->o->follow, yes;
	struct list ranks;

	if (!is_wanted(l, step))
		return 0;
	l->found = true;
	if (asks_for(l, step, &yes, e) < 0)
		return -1;
	if (first.n == 0)
		say_reused(l, step);
	if (!yes || first.n == 0 || nothing || map_get(l->shown, first) != NULL)
		return 0;
	if (rank_list(l->c, step, &ranks, e) < 0)
		return -1;
	if (ranks.n <= (size_t)(l->o->rank > 0 ? l->o->rank : 0))
		return 0;
	map_put(l->shown, arena_str(l->c->arena, first), l);
	l->printed = true;
	say_step(l, step);
	return l->o->rank == LOG_ALL_RANKS && ranks.n > 1 ? show_all(l, step, &ranks, e)
							  : show_rank(l, step, &ranks, e);
}

/* Whether the run had ended before its steps are looked at: then nothing new comes after. */
static int run_has_ended(struct run_logs *l, struct str run, bool *ret, struct err *e)
{
	struct api_call q = { .route = "runs.get", .params = { run } };
	struct api_reply r;

	if (api_do(l->c, &q, &r, e) < 0)
		return -1;
	*ret = jsn_type(jsn_get(r.root, "ended_at")) == JSN_STR;
	if (l->o->follow)
		waits_say(l->c, r.root, &l->said);
	api_done(&r);
	return 0;
}

static int pass(struct run_logs *l, struct str run, bool *ret_ended, struct err *e)
{
	struct api_call steps = { .route = "steps.list", .params = { run } };
	struct str more;

	if (run_has_ended(l, run, ret_ended, e) < 0)
		return -1;
	return api_each(l->c, &steps, 0, on_step, l, &more, e);
}

static int follow_run(struct run_logs *l, struct str run, struct err *e)
{
	bool ended;

	for (;;) {
		l->printed = false;
		if (pass(l, run, &ended, e) < 0)
			return -1;
		if (l->o->step.p != NULL && !l->found)
			return err_set(
				e, ERR_NOT_FOUND, "the run has no step %.*s", STR_ARG(l->o->step));
		if (l->o->rank > 0 && !l->has_rank)
			return err_set(e, ERR_INVALID, "--rank: no step of the run has a rank %lld",
				(long long)l->o->rank);
		if (!l->o->follow || (ended && !l->printed))
			return 0;
		if (l->o->until != 0 && clock_elapsed(&clock_real) >= l->o->until)
			return err_set(e, ERR_TIMEOUT, "the time is up");
		if (!l->printed)
			api_sleep(POLL_US);
	}
}

int logs_run(struct cli *c, struct str run, const struct log_options *o, struct err *e)
{
	struct run_logs l = { .c = c, .o = o, .shown = map_new(), .starts = map_new() };
	struct api_call steps = { .route = "steps.list", .params = { run } };
	struct str more;
	int rc = 0;

	if (o->tail == 0 && o->follow)
		rc = api_each(c, &steps, 0, on_old_step, &l, &more, e);
	if (rc == 0)
		rc = follow_run(&l, run, e);
	map_free(l.shown);
	map_free(l.starts);
	return rc;
}

/* ---- one attempt by its id ------------------------------------------------------------------- */

struct owner {
	struct tail *t;
	bool found; /* among the attempts of the step at hand */
};

static int on_attempt(void *arg, const struct jsn *attempt, struct err *e)
{
	struct owner *o = arg;

	(void)e;
	if (str_eq(jsn_get_str(jsn_get(attempt, "id")), o->t->attempt))
		o->found = true;
	return 0;
}

static int on_owner(void *arg, const struct jsn *step, struct err *e)
{
	struct owner *o = arg;
	struct api_call q = { .route = "attempts.list",
		.params = { jsn_get_str(jsn_get(step, "id")) } };
	struct str more;

	if (o->t->step.n != 0)
		return 0;
	if (str_eq(jsn_get_str(jsn_get(step, "attempt_id")), o->t->attempt))
		o->found = true;
	else if (api_each(o->t->c, &q, 0, on_attempt, o, &more, e) < 0)
		return -1;
	if (o->found)
		o->t->step = arena_str(o->t->c->arena, jsn_get_str(jsn_get(step, "name")));
	return 0;
}

static int show_one(struct cli *c, struct str attempt, const struct log_options *o, struct err *e)
{
	struct tail t = { .c = c, .o = o, .attempt = attempt, .to = stdout };
	struct api_call steps = { .route = "steps.list", .params = { cli_arg(c, 0) } };
	struct owner owner = { .t = &t };
	struct str more;
	int64_t from = 0;

	if (o->tail == 0 && tail_find_end(c, attempt, &from, e) < 0)
		return -1;
	if (o->tail == 0 && !o->follow)
		return 0;
	if (c->output != OUTPUT_TABLE && api_each(c, &steps, 0, on_owner, &owner, &more, e) < 0)
		return -1;
	return tail_show(&t, from, e);
}

static int read_rank(const struct cli *c, int64_t *ret, struct err *e)
{
	struct str text = cli_text(c, "rank");

	*ret = 0;
	if (str_is(text, "all"))
		*ret = LOG_ALL_RANKS;
	else if (text.p != NULL && !num_parse_i64(text, 0, INT64_MAX, ret))
		return cli_usage(e, "--rank is a number from 0, or all; not %.40s", text.p);
	return 0;
}

int cmd_run_logs(struct cli *c, struct err *e)
{
	struct log_options o = { .step = cli_text(c, "step"),
		.follow = cli_has(c, "follow"),
		.raw = cli_has(c, "raw"),
		.timestamps = cli_has(c, "timestamps"),
		.grep = cli_text(c, "grep"),
		.regex = cli_has(c, "regex"),
		.ignore_case = cli_has(c, "ignore-case"),
		.tail = cli_int(c, "tail", -1) };
	struct str attempt = cli_text(c, "attempt");

	if (read_rank(c, &o.rank, e) < 0)
		return -1;
	if (attempt.p != NULL && cli_has(c, "rank"))
		return cli_usage(e, "--attempt names one rank already: leave out --rank");
	if (o.raw && o.rank == LOG_ALL_RANKS)
		return cli_usage(e, "--raw is for the bytes of one rank");
	if (o.raw && (o.follow || o.tail >= 0 || o.timestamps))
		return cli_usage(e, "--raw goes with neither --follow, --tail nor --timestamps");
	if (o.grep.p == NULL && (o.regex || o.ignore_case))
		return cli_usage(e, "--regex and --ignore-case go with --grep");
	if (o.grep.p != NULL && o.grep.n == 0)
		return cli_usage(e, "--grep needs a text");
	if (cli_text(c, "since").p != NULL)
		o.since = clock_now(&clock_real) - cli_span(c, "since", 0);
	if (tail_is_search(&o) && (o.raw || o.tail >= 0))
		return cli_usage(e, "--grep and --since go with neither --raw nor --tail");
	if (attempt.p != NULL)
		return show_one(c, attempt, &o, e);
	return logs_run(c, cli_arg(c, 0), &o, e);
}
