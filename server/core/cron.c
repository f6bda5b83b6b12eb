#include "server/core/cron.h"

#include "lib/base/clock.h"
#include "lib/base/num.h"

enum { FIELDS = 5, HOURS = 24, MINUTES = 60 };
#define ALL_HOURS ((UINT32_C(1) << HOURS) - 1)
#define HORIZON   (12 * 366 * CLOCK_DAY)

/* ---- reading ---- */

static const char *const month_names[] = { "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug",
	"sep", "oct", "nov", "dec", NULL };
static const char *const weekday_names[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat",
	NULL };

static const struct cron_field {
	const char *name;
	int min, max;
	const char *const *names; /* of min and what follows; NULL: numbers only */
} fields[FIELDS] = {
	{ "minute", 0, 59, NULL },
	{ "hour", 0, 23, NULL },
	{ "day of the month", 1, 31, NULL },
	{ "month", 1, 12, month_names },
	{ "day of the week", 0, 7, weekday_names },
};

static const struct {
	const char *name, *text;
} macros[] = { { "@hourly", "0 * * * *" }, { "@daily", "0 0 * * *" }, { "@midnight", "0 0 * * *" },
	{ "@weekly", "0 0 * * 0" }, { "@monthly", "0 0 1 * *" }, { "@yearly", "0 0 1 1 *" },
	{ "@annually", "0 0 1 1 *" } };

static int read_value(const struct cron_field *f, struct str s, int *ret, struct err *e)
{
	int64_t n;

	for (int i = 0; f->names != NULL && f->names[i] != NULL; i++) {
		if (str_eq_nocase(s, str_c(f->names[i]))) {
			*ret = f->min + i;
			return 0;
		}
	}
	if (!num_parse_i64(s, f->min, f->max, &n))
		return err_set(e, ERR_INVALID, "%s: '%.*s' is not in %d-%d%s", f->name, STR_ARG(s),
			f->min, f->max, f->names != NULL ? ", and no name of one" : "");
	*ret = (int)n;
	return 0;
}

/* "*", "5", "1-5", each with "/2" but for the single value. */
static int read_item(const struct cron_field *f, struct str s, uint64_t *bits, struct err *e)
{
	ptrdiff_t slash = str_find_char(s, '/');
	struct str range = slash < 0 ? s : str_slice(s, 0, (size_t)slash);
	ptrdiff_t dash = str_find_char(range, '-');
	int64_t step = 1;
	int from = f->min, to = f->max;

	if (slash >= 0 && !num_parse_i64(str_slice(s, (size_t)slash + 1, s.n), 1, f->max, &step))
		return err_set(e, ERR_INVALID, "%s: the step of '%.*s' is not in 1-%d", f->name,
			STR_ARG(s), f->max);
	if (dash >= 0) {
		if (read_value(f, str_slice(range, 0, (size_t)dash), &from, e) < 0 ||
			read_value(f, str_slice(range, (size_t)dash + 1, range.n), &to, e) < 0)
			return -1;
	} else if (!str_is(range, "*")) {
		if (read_value(f, range, &from, e) < 0)
			return -1;
		if (slash >= 0)
			return err_set(e, ERR_INVALID, "%s: write '%.*s' as %.*s-%d/%lld", f->name,
				STR_ARG(s), STR_ARG(range), f->max, (long long)step);
		to = from;
	}
	if (from > to)
		return err_set(e, ERR_INVALID, "%s: '%.*s' ends before it begins", f->name,
			STR_ARG(range));
	for (int64_t v = from; v <= to; v += step)
		*bits |= UINT64_C(1) << v;
	return 0;
}

static int read_field(const struct cron_field *f, struct str s, uint64_t *ret, struct err *e)
{
	struct str item;

	*ret = 0;
	while (str_next(&s, ',', &item)) {
		if (read_item(f, item, ret, e) < 0)
			return -1;
	}
	return 0;
}

static bool next_word(struct str *rest, struct str *ret)
{
	*rest = str_trim(*rest);
	*ret = *rest;
	ret->n = 0;
	while (ret->n < rest->n && rest->p[ret->n] != ' ' && rest->p[ret->n] != '\t')
		ret->n++;
	*rest = str_slice(*rest, ret->n, rest->n);
	return ret->n != 0;
}

static bool comes_ever(const struct cron *c)
{
	static const int longest[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	for (int m = 1; m <= 12; m++) {
		uint32_t there = (uint32_t)((UINT64_C(2) << longest[m - 1]) - 2);
		if ((c->months & (1u << m)) != 0 && (c->days & there) != 0)
			return true;
	}
	return !c->any_day && !c->any_weekday;
}

int cron_parse(struct str text, struct cron *ret, struct err *e)
{
	uint64_t bits[FIELDS];
	bool any[FIELDS];
	struct str rest = str_trim(text), word;

	for (size_t i = 0; i < sizeof macros / sizeof *macros; i++) {
		if (str_is(rest, macros[i].name))
			rest = str_c(macros[i].text);
	}
	for (int i = 0; i < FIELDS; i++) {
		if (!next_word(&rest, &word) || word.p[0] == '@')
			return err_set(e, ERR_INVALID,
				"must have five fields (minute, hour, day of the month, month, day "
				"of the week), or be @hourly, @daily, @weekly, @monthly or "
				"@yearly");
		if (read_field(&fields[i], word, &bits[i], e) < 0)
			return -1;
		any[i] = word.p[0] == '*';
	}
	if (next_word(&rest, &word))
		return err_set(e, ERR_INVALID, "has more than five fields: '%.*s'", STR_ARG(word));
	*ret = (struct cron){ .minutes = bits[0],
		.hours = (uint32_t)bits[1],
		.days = (uint32_t)bits[2],
		.months = (uint16_t)bits[3],
		.weekdays = (uint8_t)((bits[4] | bits[4] >> 7) & 0x7f), /* 7 is Sunday, too */
		.any_day = any[2],
		.any_weekday = any[4] };
	if (!comes_ever(ret))
		return err_set(e, ERR_INVALID, "names a day that no year has");
	return 0;
}

/* ---- instants ---- */

struct walk {
	const struct cron_rule *rule;
	int64_t last, until; /* what was told last; instants up to it are over */
	cron_cb *fn;
	void *arg;
};

static bool day_matches(const struct cron *c, int64_t day)
{
	struct clock_date d = clock_date(day);
	int64_t since = (day + 4) % 7; /* 1970-01-01 was a Thursday */
	bool by_day = (c->days & (1u << d.day)) != 0;
	bool by_weekday = (c->weekdays & (1u << (since < 0 ? since + 7 : since))) != 0;

	if ((c->months & (1u << d.month)) == 0)
		return false;
	return c->any_day || c->any_weekday ? by_day && by_weekday : by_day || by_weekday;
}

/* False: enough. */
static bool tell(struct walk *w, int64_t at)
{
	if (at <= w->last)
		return true;
	if (at > w->until)
		return false;
	w->last = at;
	return w->fn(w->arg, at);
}

static bool each_of_day(struct walk *w, int64_t day)
{
	const struct cron *c = &w->rule->cron;

	for (int i = 0; i < HOURS * MINUTES; i++) {
		if ((c->hours & (1u << i / MINUTES)) == 0) {
			i += MINUTES - 1;
			continue;
		}
		if ((c->minutes & (UINT64_C(1) << i % MINUTES)) == 0)
			continue;
		struct zone_instants at = zone_instants_of(w->rule->zone, day, i * 60);
		if (!(at.kind == ZONE_NEVER && w->rule->skip) && !tell(w, at.first))
			return false;
	}
	return true;
}

/* From where the day begins to where the next one does, minute by minute of real time. */
static bool each_minute_of_day(struct walk *w, int64_t day)
{
	const struct cron_rule *r = w->rule;
	int64_t end = zone_instants_of(r->zone, day + 1, 0).first;
	int64_t at = zone_instants_of(r->zone, day, 0).first;

	while (at < end) {
		struct zone_time t = zone_time_of(r->zone, at);
		int past = t.second % 60; /* offsets once had seconds */
		if (past == 0 &&
			(r->cron.minutes & (UINT64_C(1) << t.second / 60 % MINUTES)) != 0 &&
			!tell(w, at))
			return false;
		at += (60 - past) * CLOCK_SECOND;
	}
	return true;
}

/* A day earlier than the local one to begin with: what was gone over is told later than its day. */
void cron_each(const struct cron_rule *r, int64_t after, int64_t until, cron_cb *fn, void *arg)
{
	struct walk w = { .rule = r, .last = after, .until = until, .fn = fn, .arg = arg };
	bool every_hour = (r->cron.hours & ALL_HOURS) == ALL_HOURS;
	int64_t end;

	if (until <= after)
		return;
	end = zone_time_of(r->zone, until).day + 1;
	for (int64_t day = zone_time_of(r->zone, after).day - 1; day <= end; day++) {
		if (!day_matches(&r->cron, day))
			continue;
		if (!(every_hour ? each_minute_of_day(&w, day) : each_of_day(&w, day)))
			return;
	}
}

static bool take_first(void *arg, int64_t at)
{
	int64_t *first = arg;

	*first = at;
	return false;
}

int64_t cron_next(const struct cron_rule *r, int64_t after)
{
	int64_t first = INT64_MAX;

	cron_each(r, after, clock_in_years(after + HORIZON) ? after + HORIZON : CLOCK_END - 1,
		take_first, &first);
	return first;
}
