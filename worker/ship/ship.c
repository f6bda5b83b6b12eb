#include "worker/ship/ship.h"

#include "lib/base/id.h"
#define DOCUMENT_TIMEOUT (60 * CLOCK_SECOND)

#define WAIT_FIRST (CLOCK_SECOND / 5)
#define WAIT_MOST  (30 * CLOCK_SECOND)

enum ship_outcome ship_outcome(
	const struct fetch_reply *reply, const struct err *failed, struct err *ret)
{
	const struct err none = { .code = ERR_OK };

	if (failed->code != ERR_OK) {
		*ret = *failed;
		return SHIP_AGAIN;
	}
	if (fetch_problem(reply, ret) == 0)
		return SHIP_OK;
	if (ret->code == ERR_SUPERSEDED)
		return SHIP_SUPERSEDED;
	/* A credential that is refused may be mended; what the attempt made is not lost for it. */
	if (retry_useful(&none, reply->status) || err_retryable(ret->code) ||
		reply->status >= 500 || reply->status == 401 || reply->status == 403)
		return SHIP_AGAIN;
	return SHIP_REFUSED;
}

int64_t ship_wait(struct retry *r, const struct fetch_reply *reply)
{
	int64_t at_least = reply != NULL && reply->status != 0
				   ? fetch_retry_after(reply, clock_now(&clock_real))
				   : 0;
	uint64_t random;

	r->first = WAIT_FIRST;
	r->cap = WAIT_MOST;
	id_random(&random, sizeof random);
	return retry_next(r, random, at_least) / 1000 + 1;
}

struct fetch *ship_document(const struct ship_target *to, const char *method, const char *what,
	struct str body, fetch_done_cb *done, void *arg)
{
	char path[SHIP_PATH_MAX];

	(void)str_print(
		path, sizeof path, "/api/v1/workers/self/attempts/%s/%s", to->attempt, what);
	const struct fetch_request q = { .method = method,
		.path = path,
		.headers = { "Content-Type: application/json" },
		.body = body,
		.timeout = DOCUMENT_TIMEOUT };
	return fetch_start(to->http, &q, done, arg);
}
