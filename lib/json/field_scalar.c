#include "lib/base/num.h"
#include "lib/json/node.h"

#include <inttypes.h>
#include <math.h>

/* Scalars: their JSON type, their text form, their bounds. Messages say what the value must be. */

#define MONTH_US    (30 * CLOCK_DAY)
#define SPAN_MAX_US (FIELD_SPAN_YEARS * 12 * MONTH_US)

static int fail(struct field_reader *r, const char *what)
{
	return err_field(r->e, "", "must be %s", what);
}

int field_wrong_type(struct field_reader *r, const char *wanted, const struct jsn *v)
{
	if (r->text)
		return fail(r, wanted);
	return err_field(r->e, "", "must be %s, not %s", wanted, jsn_type_name(v->type));
}

void *field_take(struct field_reader *r, size_t n, size_t size)
{
	size_t total, room = arena_room(r->a);

	if (__builtin_mul_overflow(n, size, &total) || room < 64 || total > room - 64) {
		(void)err_set(r->e, ERR_TOO_LARGE, "the message is too large to be held in memory");
		return NULL;
	}
	return arena_alloc(r->a, total);
}

int field_copy(struct field_reader *r, struct str s, struct str *ret)
{
	char *p = field_take(r, s.n + 1, 1);

	if (p == NULL)
		return -1;
	if (s.n != 0)
		memcpy(p, s.p, s.n);
	*ret = (struct str){ p, s.n };
	return 0;
}

static int64_t count_max(const struct field *f)
{
	if (f->max != 0)
		return f->max;
	switch (f->type) {
	case FIELD_STR: return FIELD_STR_MAX;
	case FIELD_RAW: return FIELD_RAW_MAX;
	case FIELD_LIST: return FIELD_LIST_MAX;
	default: return FIELD_MAP_MAX;
	}
}

int field_check_count(struct field_reader *r, const struct field *f, size_t n, const char *what)
{
	int64_t max = count_max(f), got = (int64_t)n;

	if (got > max)
		return err_field(
			r->e, "", "must have at most %" PRId64 " %s, not %zu", max, what, n);
	if (got < f->min && n == 0)
		return err_field(r->e, "", "must not be empty");
	if (got < f->min)
		return err_field(
			r->e, "", "must have at least %" PRId64 " %s, not %zu", f->min, what, n);
	return 0;
}

static int check_int(struct field_reader *r, const struct field *f, int64_t v)
{
	bool upper = f->max != 0 || f->min < 0, lower = f->min != 0 || f->max != 0;

	if ((!upper || v <= f->max) && (!lower || v >= f->min))
		return 0;
	if (!upper || f->max == INT64_MAX)
		return err_field(r->e, "", "must be at least %" PRId64, f->min);
	if (f->min == INT64_MIN)
		return err_field(r->e, "", "must be at most %" PRId64, f->max);
	return err_field(r->e, "", "must be between %" PRId64 " and %" PRId64, f->min, f->max);
}

static int check_real(struct field_reader *r, const struct field *f, double v)
{
	bool upper = f->rmax != 0 || f->rmin < 0, lower = f->rmin != 0 || f->rmax != 0;

	if (isnan(v) || ((!upper || v <= f->rmax) && (!lower || v >= f->rmin)))
		return 0;
	if (!upper)
		return err_field(r->e, "", "must be at least %.15g", f->rmin);
	return err_field(r->e, "", "must be between %.15g and %.15g", f->rmin, f->rmax);
}

static int read_bool(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	(void)f;
	if (v->type != JSN_BOOL)
		return field_wrong_type(r, "true or false", v);
	*(bool *)out = v->b;
	return 0;
}

static int read_int(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	int64_t i;

	if (v->type == JSN_INT)
		i = v->i;
	else if (r->mode != FIELD_LAX || v->type != JSN_STR ||
		 !num_parse_i64(v->s, INT64_MIN, INT64_MAX, &i))
		return field_wrong_type(r, "a whole number", v);
	if (check_int(r, f, i) < 0)
		return -1;
	*(int64_t *)out = i;
	return 0;
}

static bool nonfinite(struct str s, bool lax, double *ret)
{
	static const struct {
		const char *name;
		double value;
		bool lax;
	} names[] = {
		{ "NaN", (double)NAN, false },
		{ "Infinity", (double)INFINITY, false },
		{ "-Infinity", -(double)INFINITY, false },
		{ "nan", (double)NAN, true },
		{ "inf", (double)INFINITY, true },
		{ "-inf", -(double)INFINITY, true },
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if ((lax || !names[i].lax) && str_is(s, names[i].name)) {
			*ret = names[i].value;
			return true;
		}
	return false;
}

static int read_real(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	bool lax = r->mode == FIELD_LAX, open = (f->flags & FIELD_NONFINITE) != 0;
	double d;

	if (v->type == JSN_INT || v->type == JSN_REAL)
		d = jsn_get_real(v, 0);
	else if (v->type != JSN_STR ||
		 !((open && nonfinite(v->s, lax, &d)) || (lax && num_parse_double(v->s, &d))))
		return field_wrong_type(r,
			open ? "a number, \"NaN\", \"Infinity\" or \"-Infinity\"" : "a number", v);
	if (check_real(r, f, d) < 0)
		return -1;
	*(double *)out = d;
	return 0;
}

static int read_str(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	char number[24];
	struct str s = v->s;

	if (r->mode == FIELD_LAX && v->type == JSN_INT) {
		(void)str_print(number, sizeof number, "%" PRId64, v->i);
		s = str_c(number);
	} else if (v->type != JSN_STR) {
		return field_wrong_type(r,
			v->line != 0 && v->type != JSN_LIST && v->type != JSN_OBJ
				? "a string (put it in quotes)"
				: "a string",
			v);
	}
	if (!str_utf8_valid(s))
		return fail(r, "valid UTF-8");
	if ((f->flags & FIELD_TEXT) != 0 ? r->mode != FIELD_LAX && !str_is_text(s)
					 : str_has_control(s))
		return err_field(r->e, "", "must not contain control characters");
	if (field_check_count(r, f, str_utf8_count(s), "characters") < 0)
		return -1;
	if ((f->flags & FIELD_NAME) != 0 && !str_is_name(s))
		return fail(r,
			"1 to 63 of a-z, 0-9, '.', '_' and '-', starting with a letter or digit");
	return field_copy(r, s, out);
}

static int wrong_enum(struct field_reader *r, const struct field *f, struct str s)
{
	char list[200] = "";
	const char *near = NULL;
	unsigned best = 3;
	size_t n = 0;

	for (int i = 0; f->names[i] != NULL; i++) {
		unsigned d = jsn_distance(s, str_c(f->names[i]), 2);
		if (d < best && d < strlen(f->names[i])) {
			best = d;
			near = f->names[i];
		}
		if (n < sizeof list && f->names[i][0] != '\0')
			(void)str_print(
				list + n, sizeof list - n, "%s%s", n == 0 ? "" : ", ", f->names[i]);
		n = strlen(list);
	}
	if (near != NULL)
		return err_field(r->e, "", "must be one of %s; did you mean '%s'?", list, near);
	return err_field(r->e, "", "must be one of %s", list);
}

static int read_enum(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	int count = 0;

	while (f->names[count] != NULL)
		count++;
	if (r->mode == FIELD_LAX && v->type == JSN_INT && v->i >= 0 && v->i < count) {
		*(int *)out = (int)v->i;
		return 0;
	}
	if (v->type != JSN_STR && !(r->mode == FIELD_LAX && v->type == JSN_INT))
		return field_wrong_type(r, "a string", v);
	struct str s = jsn_get_str(v);
	for (int i = 0; i < count; i++)
		if (str_is(s, f->names[i])) {
			*(int *)out = i;
			return 0;
		}
	return wrong_enum(r, f, s);
}

static int check_time(struct field_reader *r, const struct field *f, int64_t us)
{
	bool early = us < f->min, date = f->type == FIELD_DATE;
	char text[CLOCK_TEXT_MAX];
	int64_t limit = early ? f->min : f->max;

	if ((f->min == 0 && f->max == 0) || (!early && (f->max == 0 || us <= f->max)))
		return 0;
	return err_field(r->e, "", "must not be %s %s", early ? "before" : "after",
		date ? clock_format_date(text, limit) : clock_format(text, limit));
}

static int read_time(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	static const char wanted[] = "a time as \"2026-11-30T02:57:58Z\"";
	static const char wanted_date[] = "a date as \"2026-11-30\"";
	bool date = f->type == FIELD_DATE;
	int64_t us;

	if (v->type != JSN_STR)
		return field_wrong_type(r, date ? wanted_date : wanted, v);
	if (!(date ? clock_parse_date(v->s, &us) : clock_parse(v->s, &us)))
		return fail(r, date ? wanted_date : wanted);
	if (check_time(r, f, us) < 0)
		return -1;
	*(int64_t *)out = us;
	return 0;
}

static int check_span(struct field_reader *r, const struct field *f, int64_t us)
{
	char text[CLOCK_SPAN_TEXT_MAX];

	if (f->min == 0 && f->max == 0)
		return 0;
	if (us < f->min)
		return err_field(r->e, "", "must be at least %s", clock_format_span(text, f->min));
	if (f->max != 0 && us > f->max)
		return err_field(r->e, "", "must be at most %s", clock_format_span(text, f->max));
	return 0;
}

static int read_span(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	static const char wanted[] = "a duration as \"30m\" or \"1d12h\" (s m h d w mo q y)";
	struct field_span *span = out;
	struct clock_span parsed;
	int64_t us;

	if (v->type != JSN_STR)
		return field_wrong_type(r, wanted, v);
	if (clock_is_span(v->s) && !clock_parse_span(v->s, &parsed))
		return fail(r, "a duration of at most 1000y");
	if (!clock_parse_span(v->s, &parsed))
		return fail(r, wanted);
	if (__builtin_mul_overflow(parsed.months, MONTH_US, &us) ||
		__builtin_add_overflow(us, parsed.us, &us) || us > SPAN_MAX_US)
		return fail(r, "a duration of at most 1000y");
	if (check_span(r, f, us) < 0)
		return -1;
	if (field_copy(r, v->s, &span->text) < 0)
		return -1;
	span->span = parsed;
	return 0;
}

static int read_size(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	static const char wanted[] = "a size as \"1GiB\" or a number of bytes";
	char text[2][NUM_SIZE_MAX];
	uint64_t bytes;

	if (v->type == JSN_INT && v->i >= 0)
		bytes = (uint64_t)v->i;
	else if (v->type == JSN_INT)
		return fail(r, wanted);
	else if (v->type != JSN_STR)
		return field_wrong_type(r, wanted, v);
	else if (!num_is_size(v->s))
		return fail(r, wanted);
	else if (!num_parse_size(v->s, &bytes))
		bytes = UINT64_MAX;
	uint64_t max = f->max != 0 ? (uint64_t)f->max : INT64_MAX;
	if (bytes > max)
		return err_field(r->e, "", "must be at most %s", num_format_size(text[0], max));
	if ((int64_t)bytes < f->min)
		return err_field(r->e, "", "must be at least %s",
			num_format_size(text[0], (uint64_t)f->min));
	*(int64_t *)out = (int64_t)bytes;
	return 0;
}

static int read_raw(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	static const char object[] = "{\"type\":\"object\"";
	size_t max = (size_t)count_max(f);
	struct buf b;
	int rc;

	if (r->mode == FIELD_STRICT && f->schema != NULL && v->type != JSN_OBJ &&
		strncmp(f->schema, object, sizeof object - 1) == 0)
		return field_wrong_type(r, "an object", v);
	buf_init(&b, max);
	jsn_write(v, &b);
	if (buf_failed(&b))
		rc = err_field(r->e, "", "must have at most %zu bytes as JSON", max);
	else
		rc = field_copy(r, buf_str(&b), out);
	buf_done(&b);
	return rc;
}

int field_read_scalar(struct field_reader *r, const struct field *f, const struct jsn *v, void *out)
{
	static int (*const readers[FIELD_TYPE_COUNT])(
		struct field_reader *, const struct field *, const struct jsn *, void *) = {
		[FIELD_BOOL] = read_bool,
		[FIELD_INT] = read_int,
		[FIELD_REAL] = read_real,
		[FIELD_STR] = read_str,
		[FIELD_ENUM] = read_enum,
		[FIELD_TIME] = read_time,
		[FIELD_DATE] = read_time,
		[FIELD_SPAN] = read_span,
		[FIELD_SIZE] = read_size,
		[FIELD_RAW] = read_raw,
	};

	BUG_ON(readers[f->type] == NULL);
	return readers[f->type](r, f, v, out);
}

size_t field_scalar_size(enum field_type type)
{
	static const size_t sizes[FIELD_TYPE_COUNT] = {
		[FIELD_BOOL] = sizeof(bool),
		[FIELD_INT] = sizeof(int64_t),
		[FIELD_REAL] = sizeof(double),
		[FIELD_STR] = sizeof(struct str),
		[FIELD_ENUM] = sizeof(int),
		[FIELD_TIME] = sizeof(int64_t),
		[FIELD_DATE] = sizeof(int64_t),
		[FIELD_SPAN] = sizeof(struct field_span),
		[FIELD_SIZE] = sizeof(int64_t),
		[FIELD_RAW] = sizeof(struct str),
	};

	BUG_ON(sizes[type] == 0);
	return sizes[type];
}

struct jsn field_text_value(enum field_type type, struct str text)
{
	struct jsn v = { .type = JSN_STR, .s = text };
	int64_t i;
	double d;

	if (type == FIELD_BOOL && (str_is(text, "true") || str_is(text, "false")))
		v = (struct jsn){ .type = JSN_BOOL, .b = str_is(text, "true") };
	else if ((type == FIELD_INT || type == FIELD_REAL) &&
		 num_parse_i64(text, INT64_MIN, INT64_MAX, &i))
		v = (struct jsn){ .type = JSN_INT, .i = i };
	else if (type == FIELD_REAL && num_parse_double(text, &d))
		v = (struct jsn){ .type = JSN_REAL, .r = d };
	return v;
}
