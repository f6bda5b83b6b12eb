/*
 * Whether a failed attempt is followed by another, and when. Each blame has its own budget, so that
 * a fault of ours never uses up the user's retries. An attempt that no worker had begun costs
 * nothing, but waits like any other; one whose place was taken by another step waits in the queue
 * only. Pure: the randomness is a parameter.
 */
#ifndef SERVER_CORE_RETRY_H
#define SERVER_CORE_RETRY_H
#include <stdbool.h>
#include <stdint.h>

/* The numbers of enum reason_blame in api/run.h. */
enum retry_blame { RETRY_BLAME_USER, RETRY_BLAME_INFRA, RETRY_BLAME_CANCEL, RETRY_BLAME_PREEMPTED };

struct retry_policy {
	int64_t user, infra, preempted; /* further attempts that each blame may cause */
	int64_t first, max; /* backoff in microseconds */
	double factor;
};
extern const struct retry_policy
	retry_default; /* 0 user, 5 infra, 20 preempted, 10 s × 2 up to 10 min */

struct retry_counts {
	int64_t user, infra; /* failures that were charged, before this one */
	int64_t preempted; /* how often it was, this time included */
	int64_t attempts; /* all attempts that have ended, this one included: at least 1 */
};

struct retry_verdict {
	bool again;
	int64_t delay; /* microseconds; uniform over [0, min(max, first · factor^(attempts − 1))] */
	int64_t user, infra; /* the counts to store, this failure included */
};

/* `begun`: the worker had taken the attempt up (it was preparing or further). `random`: 64 uniform
 * bits. Full jitter after M. Brooker, "Exponential Backoff And Jitter". */
struct retry_verdict retry_decide(const struct retry_policy *p, const struct retry_counts *c,
	enum retry_blame blame, bool begun, uint64_t random);

#endif
