#include "server/core/render.h"

#include "lib/base/clock.h"

/*
 * One scanner cuts the text into literal pieces and references; it runs twice, first to count and
 * to find every fault, then to write, so that the arena gives exactly what the result takes.
 * Look-ups must therefore answer the same twice.
 */

/* One piece of a text. */
struct piece {
	struct str literal; /* when name.n is 0 */
	struct str name;
	struct clock_span span;
	int sign; /* 0: no arithmetic */
};

struct scan {
	struct str text;
	size_t at;
	struct err *e;
};

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.';
}

static int fail_at(const struct scan *s, const char *what)
{
	return err_field(s->e, "", "%s, in the ${…} at byte %zu", what, s->at + 1);
}

/* " - 3y" after the name. */
static int read_arithmetic(const struct scan *s, struct str rest, struct piece *ret)
{
	struct str span;

	if (rest.n < 2 || (rest.p[0] != '+' && rest.p[0] != '-') || rest.p[1] != ' ')
		return fail_at(s, "only ' + ' or ' - ' and a duration may follow a name");
	span = str_trim(str_slice(rest, 2, rest.n));
	if (!clock_parse_span(span, &ret->span))
		return fail_at(s, "a duration is expected, as 14d, 3mo or 1y");
	ret->sign = rest.p[0] == '+' ? 1 : -1;
	return 0;
}

/* The reference that starts at s->at, which points at its "${". */
static int read_reference(struct scan *s, struct piece *ret)
{
	struct str rest = str_slice(s->text, s->at + 2, s->text.n), inside;
	ptrdiff_t end = str_find_char(rest, '}');
	size_t n = 0;

	if (end < 0)
		return fail_at(s, "the closing '}' is missing");
	inside = str_trim(str_slice(rest, 0, (size_t)end));
	while (n < inside.n && name_char(inside.p[n]))
		n++;
	if (n == 0)
		return fail_at(s, "a name is expected");
	*ret = (struct piece){ .name = str_slice(inside, 0, n) };
	if (n < inside.n) {
		if (inside.p[n] != ' ')
			return fail_at(s, "a name is followed by something that is no part of it");
		if (read_arithmetic(s, str_trim(str_slice(inside, n, inside.n)), ret) < 0)
			return -1;
	}
	s->at += 2 + (size_t)end + 1;
	return 0;
}

/* 1: a piece; 0: the end; -1: failed. */
static int next_piece(struct scan *s, struct piece *ret)
{
	struct str t = s->text;
	size_t from = s->at;

	if (from == t.n)
		return 0;
	if (str_starts(str_slice(t, from, 3), STR("$${"))) {
		s->at += 3;
		*ret = (struct piece){ .literal = STR("${") };
		return 1;
	}
	if (str_starts(str_slice(t, from, 2), STR("${")))
		return read_reference(s, ret) < 0 ? -1 : 1;
	for (s->at++; s->at < t.n && t.p[s->at] != '$'; s->at++)
		continue;
	*ret = (struct piece){ .literal = str_slice(t, from, s->at - from) };
	return 1;
}

static int fail_unknown(const struct render_scope *s, const struct piece *p, struct err *e)
{
	struct str name = names_shown(p->name);
	ptrdiff_t minus = str_find_char(p->name, '-');
	struct near near;
	char text[NEAR_TEXT_MAX];
	struct render_value v;

	/* ${window.start-3y}: the sign was read as a part of the name. */
	if (minus > 0 && s->find(s->arg, str_slice(p->name, 0, (size_t)minus), &v))
		return err_field(
			e, "", "there is no '%.*s'; put spaces around the '-'", STR_ARG(name));
	near_init(&near, p->name);
	for (size_t i = 0; i < s->names_n; i++)
		near_try(&near, s->names[i]);
	return err_field(e, "", "there is no '%.*s'%s", STR_ARG(name), near_text(text, &near));
}

static int shift(const struct piece *p, struct render_value *v, struct err *e)
{
	struct str name = names_shown(p->name);
	bool fits = false;

	if (p->sign != 0 && v->kind == RENDER_DATE && p->span.us % CLOCK_DAY != 0)
		return err_field(e, "", "'%.*s' is a day; only whole days can be %s it",
			STR_ARG(name), p->sign > 0 ? "added to" : "taken from");
	/* Spans that no date can take are not even tried: their sum need not fit. */
	if (p->span.months <= 12 * CLOCK_YEAR_MAX &&
		p->span.us <= INT64_C(366) * CLOCK_YEAR_MAX * CLOCK_DAY) {
		if (p->sign != 0)
			v->us = clock_add(v->us, p->span, p->sign);
		fits = clock_in_years(v->us);
	}
	if (!fits)
		return err_field(e, "", "'%.*s' leads out of the years %d to %d", STR_ARG(name),
			CLOCK_YEAR_MIN, CLOCK_YEAR_MAX);
	return 0;
}

/* The text of a reference; `date` is where one is made. */
static int value_text(const struct piece *p, struct render_value *v, char date[CLOCK_TEXT_MAX],
	struct str *ret, struct err *e)
{
	bool dated = v->kind == RENDER_DATE || v->kind == RENDER_TIME;

	if (v->kind == RENDER_LATER) {
		*ret = STR_NONE;
		return 0;
	}
	if (p->sign != 0 && !dated)
		return err_field(e, "", "'%.*s' is no date: no duration can be added to it",
			STR_ARG(names_shown(p->name)));
	if (!dated) {
		*ret = v->text;
		return 0;
	}
	if (shift(p, v, e) < 0)
		return -1;
	*ret = str_c(v->kind == RENDER_DATE ? clock_format_date(date, v->us)
					    : clock_format(date, v->us));
	return 0;
}

/* One pass over the text: counts its result into *n, and writes it unless out is NULL. */
static int pass(struct scan scan, const struct render_scope *s, char *out, size_t *n, bool *later)
{
	struct piece p;
	int more;

	*n = 0;
	while ((more = next_piece(&scan, &p)) > 0) {
		struct render_value v = { .kind = RENDER_TEXT };
		struct str add = p.literal;
		char date[CLOCK_TEXT_MAX];
		if (p.name.n != 0 && !s->find(s->arg, p.name, &v))
			return fail_unknown(s, &p, scan.e);
		if (p.name.n != 0 && value_text(&p, &v, date, &add, scan.e) < 0)
			return -1;
		*later = *later || v.kind == RENDER_LATER;
		if (out != NULL && add.n != 0)
			memcpy(out + *n, add.p, add.n);
		*n += add.n;
	}
	return more;
}

int render_text(struct str text, const struct render_scope *s, size_t max, struct arena *a,
	struct str *ret, bool *ret_later, struct err *e)
{
	struct scan scan = { .text = text, .e = e };
	bool later = false;
	size_t n, again;
	char *out;

	if (pass(scan, s, NULL, &n, &later) < 0)
		return -1;
	if (n > max || (later && text.n > max))
		return err_field(e, "", "becomes longer than %zu bytes", max);
	if (ret_later != NULL)
		*ret_later = later;
	if (later) {
		*ret = arena_str(a, text);
		return 0;
	}
	out = arena_alloc(a, n + 1);
	if (pass(scan, s, out, &again, &later) < 0)
		return -1;
	BUG_ON(again != n);
	*ret = (struct str){ out, n };
	return 0;
}

static bool find_in_list(const void *arg, struct str name, struct render_value *ret)
{
	const struct render_list *l = arg;

	for (size_t i = 0; i < l->n; i++) {
		if (!str_eq(l->names[i], name))
			continue;
		*ret = l->values[i];
		return true;
	}
	return false;
}

struct render_scope render_list_scope(const struct render_list *l)
{
	return (struct render_scope){
		.find = find_in_list, .arg = l, .names = l->names, .names_n = l->n
	};
}

bool render_has_reference(struct str text)
{
	for (size_t i = 0; i + 1 < text.n; i++) {
		if (text.p[i] != '$')
			continue;
		if (text.p[i + 1] == '{')
			return true;
		if (str_starts(str_slice(text, i, 3), STR("$${")))
			i += 2;
	}
	return false;
}
