/*
 * Which of several attempts of one worker to end, so that what they hold is enough: the fewest,
 * then those that cost the least. Exact while that takes few trials, else near to it. Shared by
 * place_preempt.c only.
 */
#ifndef SERVER_CORE_PLACE_VICTIMS_H
#define SERVER_CORE_PLACE_VICTIMS_H
#include "lib/base/str.h"

enum { VICTIM_DIMS = 4, VICTIMS_MAX = 64 };

/* Attempts that end together. */
struct victim {
	int64_t gives[VICTIM_DIMS]; /* on this worker */
	uint32_t attempts; /* on all */
	uint64_t lost;
	struct str id; /* among equals the least */
	uint32_t running; /* the caller's */
};

struct victims_cost {
	uint32_t attempts;
	uint64_t lost;
};
static inline bool victims_cheaper(struct victims_cost a, struct victims_cost b)
{
	return a.attempts < b.attempts || (a.attempts == b.attempts && a.lost < b.lost);
}

struct victims_choice {
	uint32_t chosen[VICTIMS_MAX]; /* positions among those that were asked */
	uint32_t n;
	struct victims_cost cost;
};

/* Sorts the candidates. False: all of them are not enough, or nothing is cheaper than ret->cost is
 * at the call; ret is then as it was. */
bool victims_choose(
	struct victim *v, uint32_t n, const int64_t lacks[VICTIM_DIMS], struct victims_choice *ret);

#endif
