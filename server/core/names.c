#include "server/core/names.h"

#include <stdlib.h>

static int by_name(const void *a, const void *b, void *arg)
{
	const struct str *items = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = str_cmp(items[x], items[y]);

	return c != 0 ? c : (x > y) - (x < y);
}

void names_index(struct names *ret, const struct str *items, size_t n, struct arena *a)
{
	uint32_t *sorted = arena_array_of(a, uint32_t, n != 0 ? n : 1);
	struct str *copy = arena_array_of(a, struct str, n != 0 ? n : 1);

	BUG_ON(n > UINT32_MAX);
	for (uint32_t i = 0; i < n; i++) {
		sorted[i] = i;
		copy[i] = items[i];
	}
	if (n > 1)
		qsort_r(sorted, n, sizeof *sorted, by_name, copy);
	*ret = (struct names){ .items = copy, .sorted = sorted, .n = n };
}

ptrdiff_t names_find(const struct names *s, struct str name)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (str_cmp(s->items[s->sorted[mid]], name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == s->n || !str_eq(s->items[s->sorted[low]], name))
		return -1;
	return (ptrdiff_t)s->sorted[low];
}

ptrdiff_t names_duplicate(const struct names *s)
{
	ptrdiff_t found = -1;

	for (size_t i = 1; i < s->n; i++) {
		ptrdiff_t at = (ptrdiff_t)s->sorted[i];
		if (str_eq(s->items[s->sorted[i - 1]], s->items[at]) && (found < 0 || at < found))
			found = at;
	}
	return found;
}

struct str names_shown(struct str name)
{
	size_t n = name.n < 60 ? name.n : 60;

	while (n > 0 && n < name.n && ((unsigned char)name.p[n] & 0xC0) == 0x80)
		n--;
	return str_slice(name, 0, n);
}

int names_alias_check(struct str name, const char *pointer, struct err *e)
{
	struct str shown = names_shown(name);
	size_t digits = 0, from = name.n > 1 && *name.p == 'v' ? 1 : 0;

	if (!str_is_name(name))
		return err_field(e, pointer,
			"an alias is 1 to 63 of a-z, 0-9, '.', '_' and '-', and begins with a "
			"letter or digit");
	while (from + digits < name.n && name.p[from + digits] >= '0' &&
		name.p[from + digits] <= '9')
		digits++;
	if (str_is(name, "latest") || from + digits == name.n)
		return err_field(e, pointer,
			"'%.*s' cannot be an alias: it reads as a version ('latest', a number, "
			"'v' and a number)",
			STR_ARG(shown));
	return 0;
}

enum { NEAR_NAME_MAX = 64, NEAR_FAR = 3 };

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment over three rows; both names are at most NEAR_NAME_MAX bytes. */
static unsigned distance(struct str a, struct str b)
{
	unsigned rows[3][NEAR_NAME_MAX + 1];

	for (size_t j = 0; j <= b.n; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a.n; i++) {
		unsigned *now = rows[i % 3];
		const unsigned *up = rows[(i - 1) % 3], *up2 = rows[(i + 1) % 3];
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b.n; j++) {
			unsigned d = up[j - 1] + (a.p[i - 1] != b.p[j - 1]);
			d = least(d, least(up[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
				d = least(d, up2[j - 2] + 1);
			now[j] = d;
		}
	}
	return rows[a.n % 3][b.n];
}

void near_init(struct near *ret, struct str wrong)
{
	*ret = (struct near){ .wrong = wrong, .best = STR_NONE, .distance = NEAR_FAR };
}

void near_try(struct near *n, struct str candidate)
{
	size_t gap = candidate.n > n->wrong.n ? candidate.n - n->wrong.n : n->wrong.n - candidate.n;

	if (candidate.n == 0 || candidate.n > NEAR_NAME_MAX || n->wrong.n > NEAR_NAME_MAX ||
		gap >= NEAR_FAR)
		return;
	unsigned d = distance(n->wrong, candidate);
	if (d < n->distance && (size_t)d * 3 <= candidate.n) {
		n->distance = d;
		n->best = candidate;
	}
}

const char *near_text(char out[NEAR_TEXT_MAX], const struct near *n)
{
	out[0] = '\0';
	if (n->best.n != 0)
		(void)str_print(out, NEAR_TEXT_MAX, "; did you mean '%.*s'?", STR_ARG(n->best));
	return out;
}

const char *names_near(char out[NEAR_TEXT_MAX], const struct names *s, struct str wrong)
{
	struct near n;

	near_init(&n, wrong);
	for (size_t i = 0; i < s->n; i++)
		near_try(&n, s->items[i]);
	return near_text(out, &n);
}
