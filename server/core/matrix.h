/*
 * The combinations of a step's matrix: every value of every key with every value of the others, the
 * last key changing first. Pure. Each has a name by which its step is known: STEP.KEY-VALUE for
 * each key in turn, with what may not stand in a name as '-'; when two would be alike, or one too
 * long, all of them are counted instead: STEP.1, STEP.2 …
 */
#ifndef SERVER_CORE_MATRIX_H
#define SERVER_CORE_MATRIX_H
#include "server/core/names.h"

enum { MATRIX_KEYS_MAX = 16, MATRIX_MAX = 256, MATRIX_VALUE_MAX = 255 };

struct matrix_key {
	struct str name;
	const struct str *values; /* as texts */
	size_t n;
};

/* ERR_INVALID with the pointer of the culprit (/alpha/1): no keys, no values, one that is there
 * twice, too many. *ret_count is the number of combinations. */
int matrix_check(
	const struct matrix_key *keys, size_t n, size_t *ret_count, struct err *e) MUST_CHECK;
/* The value of each key in combination i. */
void matrix_pick(const struct matrix_key *keys, size_t n, size_t i, struct str *ret_values);
/* The names of all `count` combinations, or ERR_INVALID when the step's own is too long. */
int matrix_names(struct str step, const struct matrix_key *keys, size_t n, size_t count,
	struct arena *a, struct str *ret, struct err *e) MUST_CHECK;

#endif
