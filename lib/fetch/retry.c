#include "lib/fetch/retry.h"

int64_t retry_next(struct retry *r, uint64_t random, int64_t at_least)
{
	uint64_t limit = (uint64_t)r->first, cap = (uint64_t)r->cap;

	BUG_ON(r->first <= 0 || r->cap <= 0);
	if (r->max_tries != 0 && r->tries >= r->max_tries)
		return -1;
	for (unsigned i = 0; i < r->tries && limit < cap; i++)
		limit *= 2; /* stays below 2^64: limit < cap < 2^63 */
	if (limit > cap)
		limit = cap;
	if (r->tries < UINT32_MAX)
		r->tries++;
	int64_t wait = (int64_t)(random % (limit + 1));
	return wait > at_least ? wait : at_least;
}

bool retry_useful(const struct err *e, int status)
{
	if (e->code != ERR_OK)
		return err_retryable(e->code);
	return status == 408 || status == 425 || status == 429 || status == 500 || status == 502 ||
	       status == 503 || status == 504;
}
