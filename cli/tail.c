#include "cli/tail.h"

#include "cli/follow.h"
#include "cli/view.h"
#include "lib/base/clock.h"
#include "lib/json/json_write.h"
#include "lib/regex/regex.h"

#include <unistd.h>

enum { LINE_MAX_BYTES = 8 << 20 };

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

bool tail_is_search(const struct log_options *o)
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
	if (t->of_gang) {
		jsn_key(&w, "rank");
		jsn_int(&w, t->rank);
	}
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
		if (t->of_gang && t->o->rank == LOG_ALL_RANKS)
			buf_addf(&t->line, "[rank %lld] ", (long long)t->rank);
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
		if (empty && !tail_is_search(t->o))
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

int tail_show(struct tail *t, int64_t from, struct err *e)
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

int tail_more(struct tail *t, bool *ret_news, struct err *e)
{
	int64_t before = t->seen.next;
	int rc;

	buf_init(&t->line, LINE_MAX_BYTES);
	rc = read_pages(t, e);
	buf_done(&t->line);
	*ret_news = t->seen.next != before;
	return rc;
}

int tail_find_end(struct cli *c, struct str attempt, int64_t *ret, struct err *e)
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
