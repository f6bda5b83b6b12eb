/*
 * Pools of workers, as administrators set them. A pool is there as soon as a worker belongs to it;
 * what nobody has set of it is as by default. Policy, sensitivity and preemption have the numbers
 * of server/core/place.h.
 */
#ifndef API_POOL_H
#define API_POOL_H
#include "api/page.h"
#include "lib/json/field.h"

/* How steps are spread over workers that could take them. */
enum pool_policy { POOL_AUTO, POOL_PACK, POOL_SPREAD, POOL_POLICY_COUNT };
extern const char *const pool_policy_names[];

/* Who may end whose work to take its place. */
enum pool_preemption {
	POOL_PREEMPT_NONE,
	POOL_PREEMPT_QUOTA,
	POOL_PREEMPT_PRIORITY,
	POOL_PREEMPT_COUNT
};
extern const char *const pool_preemption_names[];

struct worker_pool {
	struct str name;
	int policy, preemption;
	struct list sensitivity; /* int, enum sensitivity: what steps may be to come here */
	int64_t workers; /* that belong to it */
	int64_t version; /* 0: as by default */
};
extern const struct field worker_pool_fields[];

struct worker_pool_put {
	int policy, preemption;
	struct list sensitivity; /* empty: the default */
};
extern const struct field worker_pool_put_fields[];

#endif
