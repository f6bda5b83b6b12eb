/* Inside of the scheduler's memory, for pool.c, which keeps it, and pool_view.c, which looks at it.
 * Every object lies in its own arena, which it names first. */
#ifndef SERVER_SCHED_POOL_INSIDE_H
#define SERVER_SCHED_POOL_INSIDE_H
#include "lib/base/map.h"
#include "lib/json/json_read.h"
#include "server/sched/goods.h"
#include "server/sched/pool.h"

/* Something that a step needs on its worker. */
struct pool_want {
	uint64_t key;
	struct str name;
};

struct waiting {
	struct arena *arena;
	struct place_step step; /* project: filled in for each snapshot */
	struct str project_id;
	int64_t not_before;
	uint64_t blocked;
	bool preemptible;
	struct pool_want *wants; /* images and data, at most PLACE_GOODS_MAX */
	uint32_t wants_n;
	struct list cleared_on; /* struct str: ids of workers on which others are ended for it */
	struct list kept_on; /* struct str: ids of the workers that the last pass kept for it */
};

/* What it has free is kept up to date in worker as attempts come and go. */
struct host {
	struct arena *arena;
	struct place_worker worker;
	struct place_gpu *gpus; /* worker.gpus, to be marked */
	int64_t seen_at;
	int64_t avoid_until, lost_at; /* 0: not */
	double cpus_held;
	uint64_t memory_held;
	const struct goods_key *holds; /* images and data */
	uint32_t holds_n;
	uint32_t at; /* position in the snapshot that is being made */
};

struct holding {
	struct arena *arena;
	const struct host *host; /* of the worker; NULL when that is gone */
	struct str id, worker_id, project_id, step_id;
	int32_t priority;
	bool fixed; /* not to be ended for another */
	struct list spared; /* struct str: steps for which it was ended before */
	struct str preempted_by; /* the step for which it is asked to end; "": none */
	int64_t asked_at, checkpoint_at; /* to end; 0: not */
	double cpus;
	uint64_t memory;
	struct list devices; /* struct str */
	int64_t time_limit, started_at; /* 0: none, not that we know */
};

/* What a project may hold, and what its open attempts hold. */
struct tally {
	struct arena *arena;
	struct place_project project;
};

struct pool {
	struct map *steps, *hosts, *attempts, *tallies; /* by id */
	struct str kept[PLACE_KEPT_STEPS_MAX]; /* steps whose kept_on is set */
	size_t kept_n;
	struct arena *kept_arena;
	struct rules {
		struct arena *arena;
		struct place_pool *pools;
		size_t n;
	} * rules; /* of pools of workers; NULL: none were set */
	struct host **order; /* all hosts, by id, while it is right */
	bool ordered;
};

/* pool_goods.c: what the steps need of what workers hold; once hosts have their positions. */
void pool_see_goods(struct pool *p, struct waiting *const *waiting, struct place_step *steps,
	size_t n, struct arena *a, struct place_snapshot *ret);
void pool_want_goods(struct waiting *w, const struct jsn *request);
void pool_read_holds(struct host *h, struct str keys);

/* Every object begins with its arena, which also holds the object; NULL is fine. */
void pool_free_object(void *object);
struct tally *pool_tally(struct pool *p, struct str project_id); /* made when it is not there */
struct str pool_text(struct arena *a, const struct db_rows *r, size_t i, const char *column);

#endif
