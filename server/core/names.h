/*
 * A sorted view of names for look-ups, duplicates and "did you mean". Borrows the names; the index
 * lives in the arena. Pure.
 */
#ifndef SERVER_CORE_NAMES_H
#define SERVER_CORE_NAMES_H
#include "lib/base/arena.h"
#include "lib/base/err.h"

struct names {
	const struct str *items;
	const uint32_t *sorted; /* positions in byte order of their names */
	size_t n;
};

void names_index(struct names *ret, const struct str *items, size_t n, struct arena *a);
/* The position of the name (the first, when it occurs twice), or -1. */
ptrdiff_t names_find(const struct names *s, struct str name);
/* The first position whose name stands at an earlier one as well, or -1. */
ptrdiff_t names_duplicate(const struct names *s);

/* At most 60 bytes of the name and no half character: what a message shows of it. */
struct str names_shown(struct str name);

/* Whether a name may be an alias of a model's version: not when it reads as a version itself
 * ("latest", "7", "v7"), as MLflow has it, too. ERR_INVALID with this pointer. */
int names_alias_check(struct str name, const char *pointer, struct err *e) MUST_CHECK;

/* The candidate closest to a mistyped name, by insertions, deletions, replacements and swaps of
 * neighbours; candidates further away than a third of their length (at most 2) are not close. */
struct near {
	struct str wrong, best; /* best.n is 0 while there is none */
	unsigned distance;
};

void near_init(struct near *ret, struct str wrong);
void near_try(struct near *n, struct str candidate);
/* "; did you mean 'x'?", or "" when nothing is close. Returns out. */
enum { NEAR_TEXT_MAX = 160 };
const char *near_text(char out[NEAR_TEXT_MAX], const struct near *n);
/* The same over a whole list. */
const char *names_near(char out[NEAR_TEXT_MAX], const struct names *s, struct str wrong);

#endif
