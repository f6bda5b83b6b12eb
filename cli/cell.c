#include "cli/cell.h"

#include "lib/base/clock.h"
#include "lib/base/num.h"

#include <math.h>

enum { COMMIT_SHOWN = 12, AGE_DAYS = 60 };

/* Control characters would break the table, or do worse on a terminal. */
void cell_add_text(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char ch = (unsigned char)s.p[i];
		bool c1 = ch == 0xc2 && i + 1 < s.n && ((unsigned char)s.p[i + 1] & 0xe0) == 0x80;
		if (c1)
			i++;
		buf_addc(out, c1 || ch < ' ' || ch == 0x7f ? ' ' : s.p[i]);
	}
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void add_real(enum cell_place place, const struct jsn *v, struct buf *out)
{
	char text[NUM_DOUBLE_MAX];
	double r = jsn_get_real(v, 0);

	if (place == CELL_EXACT || !isfinite(r))
		buf_adds(out, num_format_double(text, r));
	else
		buf_addf(out, "%.4g", r);
}

static void add_share(enum cell_place place, const struct jsn *v, struct buf *out)
{
	if (place == CELL_EXACT)
		add_real(place, v, out);
	else
		buf_addf(out, "%.3g%%", jsn_get_real(v, 0) * 100);
}

static void add_size(enum cell_place place, const struct jsn *v, struct buf *out)
{
	char text[NUM_SIZE_MAX];
	int64_t n = jsn_get_int(v, 0);

	if (place != CELL_EXACT && n >= 0)
		buf_adds(out, num_format_size(text, (uint64_t)n));
	else
		buf_addf(out, "%lld", (long long)n);
}

/* ---- times ----------------------------------------------------------------------------------- */

void cell_add_age(int64_t us, int64_t now, struct buf *out)
{
	bool past = us <= now;
	int64_t age = past ? now - us : us - now;
	char text[CLOCK_TEXT_MAX];

	if (age >= AGE_DAYS * CLOCK_DAY) {
		buf_adds(out, clock_format_date(text, us));
		return;
	}
	int64_t unit = age < CLOCK_MINUTE ? CLOCK_SECOND
		       : age < CLOCK_HOUR ? CLOCK_MINUTE
		       : age < CLOCK_DAY  ? CLOCK_HOUR
					  : CLOCK_DAY;
	buf_addf(out, "%s%s%s", past ? "" : "in ", clock_format_span(text, age / unit * unit),
		past ? " ago" : "");
}

static void add_time(enum cell_place place, struct str s, struct buf *out)
{
	char text[CLOCK_TEXT_MAX];
	int64_t us;

	if (place == CELL_EXACT || !clock_parse(s, &us)) {
		cell_add_text(s, out);
		return;
	}
	if (place == CELL_TABLE) {
		cell_add_age(us, clock_now(&clock_real), out);
		return;
	}
	int64_t whole = us - ((us % CLOCK_SECOND) + CLOCK_SECOND) % CLOCK_SECOND;
	(void)clock_format(text, whole);
	text[10] = ' ';
	buf_adds(out, text);
	if (place == CELL_FIELD) {
		buf_adds(out, " (");
		cell_add_age(us, clock_now(&clock_real), out);
		buf_addc(out, ')');
	}
}

static void add_length(enum cell_place place, int64_t us, struct buf *out)
{
	long long s = (long long)(us / CLOCK_SECOND);

	if (place == CELL_EXACT)
		buf_addf(out, "%lld.%03lld", s, (long long)(us % CLOCK_SECOND / 1000));
	else if (us < 10 * CLOCK_SECOND)
		buf_addf(out, "%.1fs", (double)us / (double)CLOCK_SECOND);
	else if (us < CLOCK_MINUTE)
		buf_addf(out, "%llds", s);
	else if (us < CLOCK_HOUR)
		buf_addf(out, "%lldm %02llds", s / 60, s % 60);
	else if (us < CLOCK_DAY)
		buf_addf(out, "%lldh %02lldm", s / 3600, s / 60 % 60);
	else
		buf_addf(out, "%lldd %lldh", s / 86400, s / 3600 % 24);
}

void cell_add_length(enum cell_place place, const struct jsn *from, const struct jsn *until,
	int64_t now, struct buf *out)
{
	int64_t start, end = now;

	if (!clock_parse(jsn_get_str(from), &start) ||
		(jsn_type(until) == JSN_STR && !clock_parse(jsn_get_str(until), &end)))
		return;
	add_length(place, end > start ? end - start : 0, out);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void add_scalar(enum cell_place place, const struct jsn *v, struct buf *out);

static void add_pairs(enum cell_place place, const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		if (i > 0)
			buf_addc(out, ',');
		cell_add_text(jsn_name(jsn_at(v, i)), out);
		buf_addc(out, '=');
		add_scalar(place, jsn_at(v, i), out);
	}
}

static void add_list(enum cell_place place, const struct jsn *v, struct buf *out)
{
	for (size_t i = 0; i < jsn_count(v); i++) {
		const struct jsn *item = jsn_at(v, i);
		bool nested = jsn_type(item) == JSN_LIST && jsn_count(item) > 0;
		if (i > 0)
			buf_addc(out, ',');
		if (nested)
			buf_addc(out, '(');
		add_scalar(place, item, out);
		if (nested)
			buf_addc(out, ')');
	}
}

static void add_scalar(enum cell_place place, const struct jsn *v, struct buf *out)
{
	switch (jsn_type(v)) {
	case JSN_NULL: break;
	case JSN_BOOL: buf_adds(out, jsn_get_bool(v, false) ? "yes" : "no"); break;
	case JSN_INT: buf_addf(out, "%lld", (long long)jsn_get_int(v, 0)); break;
	case JSN_REAL: add_real(place, v, out); break;
	case JSN_STR: cell_add_text(jsn_get_str(v), out); break;
	case JSN_LIST: add_list(place, v, out); break;
	case JSN_OBJ:
		if (jsn_count(v) == 0)
			break;
		buf_addc(out, '(');
		add_pairs(place, v, out);
		buf_addc(out, ')');
		break;
	}
}

void cell_add(enum cell_place place, enum column_kind kind, const struct jsn *v, struct buf *out)
{
	struct str s = jsn_get_str(v);

	if (jsn_type(v) == JSN_NULL)
		return;
	switch (kind) {
	case COLUMN_TIME: add_time(place, s, out); break;
	case COLUMN_DATE: cell_add_text(str_slice(s, 0, 10), out); break;
	case COLUMN_SIZE: add_size(place, v, out); break;
	case COLUMN_PAIRS: add_pairs(place, v, out); break;
	case COLUMN_COMMIT:
		cell_add_text(place == CELL_TABLE ? str_slice(s, 0, COMMIT_SHOWN) : s, out);
		break;
	case COLUMN_COUNT:
		if (jsn_count(v) != 0)
			buf_addf(out, "%zu", jsn_count(v));
		break;
	case COLUMN_RANK:
		if (jsn_get_int(jsn_get(v, "ranks"), 0) > 0)
			buf_addf(out, "%lld", (long long)jsn_get_int(jsn_get(v, "rank"), 0));
		break;
	case COLUMN_REAL:
	case COLUMN_SHARE:
		if (s.p != NULL) /* "NaN" */
			cell_add_text(s, out);
		else if (kind == COLUMN_REAL)
			add_real(place, v, out);
		else
			add_share(place, v, out);
		break;
	case COLUMN_BLOCKED:
		if (jsn_get_bool(jsn_get(v, "unsatisfiable"), false))
			buf_adds(out, "in vain: ");
		cell_add_text(jsn_get_str(jsn_get(v, "message")), out);
		break;
	case COLUMN_TEXT:
	case COLUMN_STATE: add_scalar(place, v, out); break;
	case COLUMN_LENGTH:
	case COLUMN_SHAPE: BUG_ON(true); /* take more than one value */
	}
}
