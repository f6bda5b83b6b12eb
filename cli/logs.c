#include "cli/logs.h"

#include "cli/follow.h"
#include "cli/nouns.h"
#include "cli/view.h"
#include "cli/waits.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/json/json_write.h"
#include "lib/regex/regex.h"

#include <stdio.h>
#include <unistd.h>

enum { PAGE_LINES = 1000, LINE_MAX_BYTES = 8 << 20, POLL_US = 300000 };

/* ---- which lines were printed ---------------------------------------------------------------- */

static void seen_drop(struct seen *s, size_t i)
{
	s->n_ahead--;
	memmove(&s->ahead[i], &s->ahead[i + 1], (s->n_ahead - i) * sizeof s->ahead[0]);
}

/* Ranges that `next` has reached become part of what lies below it. */
static void seen_settle(struct seen *s)
{
	for (size_t i = 0; i < s->n_ahead;) {
		if (s->ahead[i].from > s->next) {
			i++;
			continue;
		}
		if (s->ahead[i].to > s->next)
			s->next = s->ahead[i].to;
		seen_drop(s, i);
		i = 0;
	}
}

bool seen_add(struct seen *s, int64_t line)
{
	if (s->next == 0)
		s->next = line;
	if (line < s->next)
		return false;
	for (size_t i = 0; i < s->n_ahead; i++) {
		if (line >= s->ahead[i].from && line < s->ahead[i].to)
			return false;
		if (line == s->ahead[i].to) {
			s->ahead[i].to++;
			return true;
		}
	}
	if (line == s->next) {
		s->next++;
		seen_settle(s);
		return true;
	}
	if (s->n_ahead == SEEN_RANGES) { /* more gaps than streams: the lowest will not come */
		s->next = s->ahead[0].to;
		seen_settle(s);
	}
	s->ahead[s->n_ahead].from = line;
	s->ahead[s->n_ahead++].to = line + 1;
	return true;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

struct tail {
	struct cli *c;
	struct regex *re; /* of --grep while following: pages are searched by the server */
	const struct log_options *o;
	struct str step, attempt; /* the name of one, the id of the other */
	struct seen seen;
	struct buf line;
	FILE *to;
	char from[24], last[24], since[CLOCK_TEXT_MAX];
	bool pending; /* a line was open when we last heard of it */
	bool over;
};

static bool is_search(const struct log_options *o)
{
	return o->grep.p != NULL || o->since != 0;
}

static bool is_line_wanted(const struct tail *t, const struct jsn *l)
{
	struct str text = jsn_get_str(jsn_get(l, "text"));
	int64_t time;

	if (t->o->since != 0 && clock_parse(jsn_get_str(jsn_get(l, "time")), &time) &&
		time < t->o->since)
		return false;
	return t->re == NULL || regex_matches(t->re, text.p != NULL ? text.p : "", text.n);
}

/* The API's object, and whose line it is: those of several steps come in one stream. */
static void put_object(const struct tail *t, const struct jsn *l, struct buf *out)
{
	struct jsn_out w = jsn_out(out);

	jsn_obj_begin(&w);
	for (size_t i = 0; i < jsn_count(l); i++) {
		struct buf value;
		buf_init(&value, LINE_MAX_BYTES);
		jsn_write(jsn_at(l, i), &value);
		jsn_key_str(&w, jsn_name(jsn_at(l, i)));
		jsn_raw(&w, buf_str(&value));
		buf_done(&value);
	}
	jsn_key(&w, "step");
	if (t->step.n != 0)
		jsn_str(&w, t->step);
	else
		jsn_null(&w);
	jsn_key(&w, "attempt");
	jsn_str(&w, t->attempt);
	jsn_obj_end(&w);
}

static int write_line(struct tail *t, const struct jsn *l, struct err *e)
{
	struct str text = jsn_get_str(jsn_get(l, "text"));
	struct str stream = jsn_get_str(jsn_get(l, "stream"));

	buf_clear(&t->line);
	if (t->c->output != OUTPUT_TABLE) {
		put_object(t, l, &t->line);
	} else {
		if (t->o->grep.p != NULL)
			buf_addf(&t->line, "%lld:", (long long)jsn_get_int(jsn_get(l, "line"), 0));
		if (t->o->timestamps)
			buf_addf(&t->line, "%.*s ", STR_ARG(jsn_get_str(jsn_get(l, "time"))));
		if (str_is(stream, "system"))
			buf_adds(&t->line, "[tidemill] ");
		if (isatty(fileno(t->to)) == 1)
			view_clean(text, &t->line);
		else
			buf_add(&t->line, text);
	}
	buf_addc(&t->line, '\n');
	if (fwrite(t->line.p, 1, t->line.n, t->to) != t->line.n)
		return err_errno(e, "write", "the log");
	return 0;
}

static int write_lines(struct tail *t, const struct jsn *lines, struct err *e)
{
	t->pending = false;
	for (size_t i = 0; i < jsn_count(lines); i++) {
		const struct jsn *l = jsn_at(lines, i);
		if (jsn_get_bool(jsn_get(l, "open"), false)) {
			if (t->seen.next == 0)
				t->seen.next = jsn_get_int(jsn_get(l, "line"), 0);
			t->pending = true;
			continue;
		}
		if (seen_add(&t->seen, jsn_get_int(jsn_get(l, "line"), 0)) &&
			is_line_wanted(t, l) && write_line(t, l, e) < 0)
			return -1;
	}
	return fflush(t->to) == 0 ? 0 : err_errno(e, "write", "the log");
}

static int on_message(void *arg, const struct sse_message *m, struct err *e)
{
	struct tail *t = arg;
	struct jsn_doc *doc;

	if (str_is(m->event, "end")) {
		t->over = true;
		return 0;
	}
	if (!str_is(m->event, "lines"))
		return 0;
	if (jsn_parse_answer(m->data, &doc, e) < 0)
		return -1;
	int rc = write_lines(t, jsn_get(jsn_root(doc), "lines"), e);
	jsn_doc_free(doc);
	return rc;
}

/* From the first line not printed; at the beginning the last ones, or all. */
static void place(struct tail *t, struct api_pair *query)
{
	query[0] = query[1] = (struct api_pair){ NULL, STR_NONE };
	if (t->seen.next == 0 && t->o->tail > 0) {
		(void)str_print(t->last, sizeof t->last, "%lld", (long long)t->o->tail);
		query[0] = (struct api_pair){ "tail", str_c(t->last) };
		return;
	}
	(void)str_print(
		t->from, sizeof t->from, "%lld", (long long)(t->seen.next > 0 ? t->seen.next : 1));
	query[0] = (struct api_pair){ "from", str_c(t->from) };
}

static void on_resume(void *arg, struct api_pair *query)
{
	place(arg, query);
}

static void add_search(struct tail *t, struct api_pair *query)
{
	struct str yes = STR("true");
	const struct log_options *o = t->o;

	query[0] = (struct api_pair){ "grep", o->grep };
	query[1] = (struct api_pair){ "regex", o->regex ? yes : STR_NONE };
	query[2] = (struct api_pair){ "ignore_case", o->ignore_case ? yes : STR_NONE };
	query[3] = (struct api_pair){ "since",
		o->since != 0 ? str_c(clock_format(t->since, o->since)) : STR_NONE };
}

/* What is stored, page by page, up to its end. */
static int read_pages(struct tail *t, struct err *e)
{
	struct api_reply r;
	int64_t last, total;
	int rc;

	do {
		struct api_call q = { .route = "logs.attempt", .params = { t->attempt } };
		place(t, q.query);
		q.query[2] = (struct api_pair){ "limit", STR("1000") };
		add_search(t, &q.query[3]);
		if (api_do(t->c, &q, &r, e) < 0)
			return -1;
		rc = write_lines(t, jsn_get(r.root, "lines"), e);
		last = jsn_get_int(jsn_get(r.root, "last"), 0);
		total = jsn_get_int(jsn_get(r.root, "total"), 0);
		bool empty = jsn_count(jsn_get(r.root, "lines")) == 0;
		if (t->seen.next <= last)
			t->seen.next = last + 1;
		api_done(&r);
		if (empty && !is_search(t->o))
			break;
	} while (rc == 0 && last < total);
	return rc;
}

static int follow_attempt(struct tail *t, struct err *e)
{
	struct follow f = { .route = "logs.attempt",
		.params = { t->attempt },
		.resume = on_resume,
		.on_message = on_message,
		.arg = t,
		.forever = true,
		.over = &t->over,
		.until = t->o->until };

	f.query[2] = (struct api_pair){ "follow", STR("true") };
	if (follow(t->c, &f, e) < 0)
		return -1;
	return t->pending ? read_pages(t, e) : 0;
}

static int on_raw(void *arg, struct str bytes, struct err *e)
{
	(void)arg;
	return view_print(bytes, e);
}

static int print_raw(struct cli *c, struct str attempt, struct err *e)
{
	struct api_call q = { .route = "logs.attempt",
		.params = { attempt },
		.push = on_raw,
		.query = { { "raw", STR("true") } },
		.once = true,
		.timeout = -1,
		.idle = CLOCK_MINUTE };
	struct api_reply r;

	if (api_do(c, &q, &r, e) < 0)
		return -1;
	api_done(&r);
	return view_flush(e);
}

static int compile(struct tail *t, struct err *e)
{
	const struct log_options *o = t->o;
	char why[REGEX_WHY_MAX];

	if (o->grep.p == NULL)
		return 0;
	t->re = regex_new(o->grep.p, o->grep.n,
		(o->regex ? 0 : REGEX_LITERAL) | (o->ignore_case ? REGEX_IGNORE_CASE : 0), why);
	return t->re != NULL ? 0 : cli_usage(e, "--grep: %s", why);
}

/* From line `from` on; 0: what the options say. Of t are set: c, o, step, attempt, to. */
static int show_attempt(struct tail *t, int64_t from, struct err *e)
{
	int rc;

	t->seen.next = from;
	if (t->o->raw)
		return print_raw(t->c, t->attempt, e);
	if (compile(t, e) < 0)
		return -1;
	buf_init(&t->line, LINE_MAX_BYTES);
	rc = t->o->follow ? follow_attempt(t, e) : read_pages(t, e);
	buf_done(&t->line);
	regex_free(t->re);
	return rc;
}

int logs_last(struct cli *c, struct str step_id, int64_t lines, struct err *e)
{
	struct log_options o = { .tail = lines };
	struct api_call q = { .route = "steps.get", .params = { step_id } };
	struct api_reply r;
	int rc = 0;

	if (api_do(c, &q, &r, e) < 0)
		return -1;
	struct tail t = { .c = c,
		.o = &o,
		.step = jsn_get_str(jsn_get(r.root, "name")),
		.attempt = jsn_get_str(jsn_get(r.root, "attempt_id")),
		.to = stderr };
	if (t.attempt.n != 0)
		rc = show_attempt(&t, 0, e);
	api_done(&r);
	return rc;
}

/* ---- all steps of a run ---------------------------------------------------------------------- */

struct run_logs {
	struct cli *c;
	const struct log_options *o;
	struct map *shown; /* attempts */
	struct map
		*starts; /* with --tail 0: attempt to int64_t, the first line that was not there */
	struct str said; /* what the run waits for, as told */
	bool found, printed;
};

static bool is_wanted(const struct run_logs *l, const struct jsn *step)
{
	return l->o->step.p == NULL || str_eq(l->o->step, jsn_get_str(jsn_get(step, "name")));
}

/* The number of the first line that is still to come, or still open. */
static int find_end(struct cli *c, struct str attempt, int64_t *ret, struct err *e)
{
	struct api_call q = {
		.route = "logs.attempt", .params = { attempt }, .query = { { "tail", STR("1") } }
	};
	struct api_reply r;

	if (api_do(c, &q, &r, e) < 0)
		return -1;
	const struct jsn *last = jsn_at(jsn_get(r.root, "lines"), 0);
	int64_t line = jsn_get_int(jsn_get(last, "line"), 0);
	*ret = jsn_get_bool(jsn_get(last, "open"), false) ? line : line + 1;
	api_done(&r);
	return 0;
}

/* Remembers where the attempts that are there end, before any of them is followed. */
static int on_old_step(void *arg, const struct jsn *step, struct err *e)
{
	struct run_logs *l = arg;
	struct str attempt;
	int64_t *start = arena_new_of(l->c->arena, int64_t);

	if (!is_wanted(l, step))
		return 0;
	if (rank_attempt(l->c, l->o, step, &attempt, e) < 0)
		return -1;
	if (attempt.n == 0)
		return 0;
	map_put(l->starts, attempt, start);
	return find_end(l->c, attempt, start, e);
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

static int on_step(void *arg, const struct jsn *step, struct err *e)
{
	struct run_logs *l = arg;
	struct str attempt;
	struct tail t = {
		.c = l->c, .o = l->o, .step = jsn_get_str(jsn_get(step, "name")), .to = stdout
	};
	bool nothing = l->o->tail == 0 && !l->o->follow;
	int64_t nodes = jsn_get_int(jsn_get(step, "nodes"), 1);

	if (!is_wanted(l, step))
		return 0;
	l->found = true;
	if (rank_attempt(l->c, l->o, step, &attempt, e) < 0)
		return -1;
	t.attempt = attempt;
	if (attempt.n == 0)
		say_reused(l, step);
	if (attempt.n == 0 || nothing || map_get(l->shown, attempt) != NULL)
		return 0;
	map_put(l->shown, attempt, l);
	l->printed = true;
	if (l->o->step.p == NULL) {
		int64_t n = jsn_get_int(jsn_get(step, "attempts"), 1);
		if (n > 1)
			cli_say(l->c, "==> %.*s, attempt %lld <==", STR_ARG(t.step), (long long)n);
		else
			cli_say(l->c, "==> %.*s <==", STR_ARG(t.step));
	}
	if (nodes > 1)
		cli_say(l->c, "rank %lld of %lld; --rank N has the others", (long long)l->o->rank,
			(long long)nodes);
	return show_attempt(&t, start_of(l, attempt), e);
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
			break;
		if (!l->o->follow || (ended && !l->printed))
			return 0;
		if (l->o->until != 0 && clock_elapsed(&clock_real) >= l->o->until)
			return err_set(e, ERR_TIMEOUT, "the time is up");
		if (!l->printed)
			api_sleep(POLL_US);
	}
	return err_set(e, ERR_NOT_FOUND, "the run has no step %.*s", STR_ARG(l->o->step));
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

	if (o->tail == 0 && find_end(c, attempt, &from, e) < 0)
		return -1;
	if (o->tail == 0 && !o->follow)
		return 0;
	if (c->output != OUTPUT_TABLE && api_each(c, &steps, 0, on_owner, &owner, &more, e) < 0)
		return -1;
	return show_attempt(&t, from, e);
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
		.rank = cli_int(c, "rank", 0),
		.tail = cli_int(c, "tail", -1) };
	struct str attempt = cli_text(c, "attempt");

	if (o.rank < 0)
		return cli_usage(e, "--rank counts from 0");

	if (o.raw && (o.follow || o.tail >= 0 || o.timestamps))
		return cli_usage(e, "--raw goes with neither --follow, --tail nor --timestamps");
	if (o.grep.p == NULL && (o.regex || o.ignore_case))
		return cli_usage(e, "--regex and --ignore-case go with --grep");
	if (o.grep.p != NULL && o.grep.n == 0)
		return cli_usage(e, "--grep needs a text");
	if (cli_text(c, "since").p != NULL)
		o.since = clock_now(&clock_real) - cli_span(c, "since", 0);
	if (is_search(&o) && (o.raw || o.tail >= 0))
		return cli_usage(e, "--grep and --since go with neither --raw nor --tail");
	if (attempt.p != NULL)
		return show_one(c, attempt, &o, e);
	return logs_run(c, cli_arg(c, 0), &o, e);
}
