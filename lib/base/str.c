#include "lib/base/str.h"

#include <stdarg.h>
#include <stdio.h>

int str_cmp(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n != 0 ? memcmp(a.p, b.p, n) : 0;

	if (c != 0)
		return c;
	return (a.n > b.n) - (a.n < b.n);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool str_eq_nocase(struct str a, struct str b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && str_eq((struct str){ s.p, prefix.n }, prefix);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n && str_eq((struct str){ s.p + (s.n - suffix.n), suffix.n }, suffix);
}

ptrdiff_t str_find(struct str s, struct str needle)
{
	if (needle.n == 0)
		return 0;
	if (s.n < needle.n)
		return -1;
	const char *at = memmem(s.p, s.n, needle.p, needle.n);
	return at != NULL ? at - s.p : -1;
}

ptrdiff_t str_find_char(struct str s, char c)
{
	const char *at = s.n != 0 ? memchr(s.p, c, s.n) : NULL;

	return at != NULL ? at - s.p : -1;
}

struct str str_trim(struct str s)
{
	while (s.n != 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n != 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

struct str str_slice(struct str s, size_t from, size_t n)
{
	if (from > s.n)
		from = s.n;
	if (n > s.n - from)
		n = s.n - from;
	return (struct str){ s.p != NULL ? s.p + from : NULL, n };
}

bool str_next(struct str *rest, char sep, struct str *ret_piece)
{
	if (rest->p == NULL)
		return false;
	ptrdiff_t at = str_find_char(*rest, sep);
	if (at < 0) {
		*ret_piece = *rest;
		*rest = STR_NONE;
		return true;
	}
	*ret_piece = (struct str){ rest->p, (size_t)at };
	*rest = (struct str){ rest->p + at + 1, rest->n - (size_t)at - 1 };
	return true;
}

/* Length of the well-formed sequence at p (Unicode 15, table 3-7), or 0. */
static size_t utf8_step(const unsigned char *p, size_t n)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t len;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		len = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		len = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (n < len)
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < len; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return len;
}

bool str_utf8_valid(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t i = 0;

	while (i < s.n) {
		size_t len = utf8_step(p + i, s.n - i);
		if (len == 0)
			return false;
		i += len;
	}
	return true;
}

size_t str_utf8_count(struct str s)
{
	size_t count = 0;

	for (size_t i = 0; i < s.n; i++)
		count += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return count;
}

bool str_has_control(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || (unsigned char)s.p[i] == 0x7f)
			return true;
	return false;
}

bool str_is_text(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

bool str_is_name(struct str s)
{
	if (s.n < 1 || s.n > 63)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		if (!word && (i == 0 || (c != '.' && c != '_' && c != '-')))
			return false;
	}
	return true;
}

/* FNV-1a, 64 bit (http://www.isthe.com/chongo/tech/comp/fnv/), with a seed folded into the basis
 * and a final avalanche so that the low bits may index a table. */
uint64_t str_hash(struct str s, uint64_t seed)
{
	uint64_t h = 0xcbf29ce484222325u ^ seed;

	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93u;
	return h ^ (h >> 32);
}

bool str_glob(struct str pattern, struct str s)
{
	size_t p = 0, i = 0, star = SIZE_MAX, mark = 0;

	while (i < s.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			mark = i;
		} else if (p < pattern.n && (pattern.p[p] == '?' || pattern.p[p] == s.p[i])) {
			p++;
			i++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			i = ++mark;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

bool str_print(char *out, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(out, size, fmt, ap);
	va_end(ap);
	return n >= 0 && (size_t)n < size;
}
