#include "lib/json/yaml_scalar.h"

#include "lib/base/num.h"

#include <math.h>
#include <stdlib.h>

static bool one_of(struct str s, const char *const *names)
{
	for (; *names != NULL; names++)
		if (str_is(s, *names))
			return true;
	return false;
}

static size_t count_digits(struct str s, size_t at, unsigned base)
{
	size_t n = 0;

	for (; at + n < s.n; n++) {
		char c = s.p[at + n];
		bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
		if (!(c >= '0' && c < (base == 8 ? '8' : '9' + 1)) && !(base == 16 && letter))
			break;
	}
	return n;
}

/* 0o17, 0x1F: no sign. */
static bool prefixed(struct str s, struct jsn *v, const char **ret_why)
{
	unsigned base = s.p[1] == 'o' ? 8 : 16;
	uint64_t u = 0;

	for (size_t i = 2; i < s.n; i++) {
		char c = s.p[i];
		unsigned d = (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
		if (u > (uint64_t)INT64_MAX / base ||
			__builtin_add_overflow(u * base, (uint64_t)d, &u) || u > INT64_MAX) {
			*ret_why = "is a number too large to be held; put it in quotes";
			return false;
		}
	}
	v->type = JSN_INT;
	v->i = (int64_t)u;
	return true;
}

static bool decimal(struct str s, size_t sign, struct jsn *v, const char **ret_why)
{
	if (s.n > sign + 1 && s.p[sign] == '0') {
		*ret_why =
			"is a number with leading zeros; put it in quotes, or write 0o for octal";
		return false;
	}
	if (!num_parse_i64(s.p[0] == '+' ? str_slice(s, 1, s.n) : s, INT64_MIN, INT64_MAX, &v->i)) {
		*ret_why = "is a number too large to be held; put it in quotes";
		return false;
	}
	v->type = JSN_INT;
	return true;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_real(struct str s, size_t at)
{
	size_t whole = count_digits(s, at, 10), part = 0;

	at += whole;
	if (at < s.n && s.p[at] == '.') {
		part = count_digits(s, at + 1, 10);
		at += 1 + part;
	}
	if (whole + part == 0)
		return false;
	if (at < s.n && (s.p[at] == 'e' || s.p[at] == 'E')) {
		at++;
		if (at < s.n && (s.p[at] == '-' || s.p[at] == '+'))
			at++;
		size_t n = count_digits(s, at, 10);
		if (n == 0)
			return false;
		at += n;
	}
	return at == s.n;
}

bool yaml_scalar(struct str text, struct jsn *v, const char **ret_why)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const trues[] = { "true", "True", "TRUE", NULL };
	static const char *const falses[] = { "false", "False", "FALSE", NULL };
	size_t sign = text.n != 0 && (text.p[0] == '-' || text.p[0] == '+') ? 1 : 0;
	size_t digits = count_digits(text, sign, 10);

	if (one_of(text, nulls)) {
		v->type = JSN_NULL;
	} else if (one_of(text, trues) || one_of(text, falses)) {
		v->type = JSN_BOOL;
		v->b = one_of(text, trues);
	} else if (text.n > 2 && text.p[0] == '0' && (text.p[1] == 'o' || text.p[1] == 'x') &&
		   count_digits(text, 2, text.p[1] == 'o' ? 8 : 16) == text.n - 2) {
		return prefixed(text, v, ret_why);
	} else if (digits != 0 && sign + digits == text.n) {
		return decimal(text, sign, v, ret_why);
	} else if (is_real(text, sign)) {
		v->type = JSN_REAL;
		v->r = strtod(text.p, NULL);
		if (!isfinite(v->r)) {
			*ret_why = "is a number too large to be held; put it in quotes";
			return false;
		}
	} else {
		v->type = JSN_STR;
		v->s = text;
	}
	return true;
}
