/* Where what an attempt leaves behind is brought to. Borrowed; outlives whoever ships. */
#ifndef WORKER_SHIP_SHIP_H
#define WORKER_SHIP_SHIP_H
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/fetch/fetch.h"
#include "lib/fetch/retry.h"

struct loop;

struct ship_target {
	struct loop *loop;
	struct fetch_client *http; /* with the worker's credential */
	const char *attempt;
	int64_t epoch;
};

/* How a request ended, for all that ship. */
enum ship_outcome {
	SHIP_OK,
	SHIP_AGAIN, /* the server or the way to it has trouble: wait and try again, for hours */
	SHIP_REFUSED, /* asking again will hardly help; *ret says why */
	SHIP_SUPERSEDED, /* another attempt has taken over: nothing of this one counts any more */
};
enum ship_outcome ship_outcome(
	const struct fetch_reply *reply, const struct err *failed, struct err *ret);

/* The wait before the next try, in milliseconds: 0.2 s and doubling, up to 30 s, jittered. */
int64_t ship_wait(struct retry *r, const struct fetch_reply *reply);

enum { SHIP_PATH_MAX = 256 };

/* Sends a document to WHAT of the attempt. */
struct fetch *ship_document(const struct ship_target *to, const char *method, const char *what,
	struct str body, fetch_done_cb *done, void *arg) __attribute__((returns_nonnull));

#endif
