#include "lib/base/num.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool num_parse_u64(struct str s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0 || s.n > 20 || (s.n > 1 && s.p[0] == '0'))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		if (__builtin_mul_overflow(v, 10u, &v) ||
			__builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
			return false;
	}
	if (v < min || v > max)
		return false;
	*ret = v;
	return true;
}

bool num_parse_i64(struct str s, int64_t min, int64_t max, int64_t *ret)
{
	bool negative = s.n != 0 && s.p[0] == '-';
	uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX, u;
	int64_t v;

	if (!num_parse_u64(str_slice(s, negative ? 1 : 0, s.n), 0, limit, &u))
		return false;
	if (negative)
		v = u == (uint64_t)INT64_MAX + 1 ? INT64_MIN : -(int64_t)u;
	else
		v = (int64_t)u;
	if (v < min || v > max)
		return false;
	*ret = v;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool num_parse_hex_u64(struct str s, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0 || s.n > 16)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		int d = hex_digit(s.p[i]);
		if (d < 0)
			return false;
		v = v << 4 | (uint64_t)d;
	}
	*ret = v;
	return true;
}

static size_t digits(struct str s, size_t at)
{
	size_t n = 0;

	while (at + n < s.n && s.p[at + n] >= '0' && s.p[at + n] <= '9')
		n++;
	return n;
}

/* RFC 8259, section 6: [-] int [frac] [exp]. */
static bool is_json_number(struct str s)
{
	size_t at = s.n != 0 && s.p[0] == '-' ? 1 : 0, n = digits(s, at);

	if (n == 0 || (n > 1 && s.p[at] == '0'))
		return false;
	at += n;
	if (at < s.n && s.p[at] == '.') {
		n = digits(s, at + 1);
		if (n == 0)
			return false;
		at += 1 + n;
	}
	if (at < s.n && (s.p[at] == 'e' || s.p[at] == 'E')) {
		at++;
		if (at < s.n && (s.p[at] == '+' || s.p[at] == '-'))
			at++;
		n = digits(s, at);
		if (n == 0)
			return false;
		at += n;
	}
	return at == s.n;
}

bool num_parse_double(struct str s, double *ret)
{
	char text[512];

	if (s.n >= sizeof text || !is_json_number(s))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	double v = strtod(text, NULL);
	if (!isfinite(v))
		return false;
	*ret = v;
	return true;
}

/* The bytes that the unit behind a number stands for, 0 when it is none. */
static uint64_t size_unit(struct str name)
{
	static const struct {
		const char *name;
		uint64_t unit;
	} units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "KB", 1000u },
		{ "MB", 1000000u },
		{ "GB", 1000000000u },
		{ "TB", 1000000000000u },
		{ "PB", 1000000000000000u },
		{ "KiB", 1024u },
		{ "MiB", 1048576u },
		{ "GiB", 1073741824u },
		{ "TiB", 1099511627776u },
		{ "PiB", 1125899906842624u },
	};

	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (str_is(name, units[i].name))
			return units[i].unit;
	return 0;
}

bool num_parse_size(struct str s, uint64_t *ret)
{
	size_t n = digits(s, 0);
	uint64_t unit = size_unit(str_slice(s, n, s.n)), v;

	if (unit == 0 || !num_parse_u64(str_slice(s, 0, n), 0, UINT64_MAX, &v))
		return false;
	return !__builtin_mul_overflow(v, unit, ret);
}

bool num_is_size(struct str s)
{
	size_t n = digits(s, 0);

	return n != 0 && size_unit(str_slice(s, n, s.n)) != 0;
}

const char *num_format_size(char out[NUM_SIZE_MAX], uint64_t bytes)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double v = (double)bytes;
	uint64_t unit = 1;
	size_t i = 0;

	while (v >= 1024 && i + 1 < sizeof names / sizeof names[0]) {
		v /= 1024;
		unit *= 1024;
		i++;
	}
	(void)str_print(out, NUM_SIZE_MAX, bytes % unit == 0 ? "%.0f %s" : "%.1f %s", v, names[i]);
	return out;
}

const char *num_format_double(char out[NUM_DOUBLE_MAX], double v)
{
	if (isnan(v)) {
		(void)str_print(out, NUM_DOUBLE_MAX, "NaN");
		return out;
	}
	if (isinf(v)) {
		(void)str_print(out, NUM_DOUBLE_MAX, v > 0 ? "Infinity" : "-Infinity");
		return out;
	}
	for (int precision = 15; precision <= 17; precision++) {
		(void)str_print(out, NUM_DOUBLE_MAX, "%.*g", precision, v);
		if (strtod(out, NULL) == v)
			break;
	}
	if (strpbrk(out, ".e") == NULL)
		memcpy(out + strlen(out), ".0", 3); /* 24 characters at most before it */
	return out;
}

const char *num_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}
