/*
 * Placement: which waiting step goes to which worker, as a pure function of a snapshot. The same
 * snapshot gives the same answer, whatever the order of its projects, steps and workers; the GPUs
 * of a worker are taken in the order given where they are alike, and of one kind (model, memory,
 * profile of slices) where that is possible, and of that kind those that are nearest to each other
 * (place_near.h).
 *
 * Order: first the steps with which their project stays within what its quota grants it, then those
 * that borrow; priority; then those that have waited for PLACE_PATIENCE and for which the last pass
 * kept a worker; then the project with the least by weight of what it holds most of (its
 * dominant share of GPUs, CPUs or memory; placements of this pass count); then the longest wait;
 * then the id. No project gets more than its quota and what it may borrow; nor do its steps use
 * that up for ever when one before them has waited for PLACE_PATIENCE: they must leave it enough.
 *
 * A step may want several workers at once, each with all that it asks for (a gang): it gets all of
 * them in one pass, each on a worker of its own, or none. It counts for shares and quotas as often
 * as it has nodes. Its assignments follow one another, in the order of their ranks.
 *
 * Each step is tried once. A step with GPUs goes where it leaves the fewest matching GPUs free (the
 * most, where its pool spreads). One without GPUs goes to workers that have none, if it can; then,
 * where its pool packs, where it leaves the fewest cores free, and where it spreads, to the one
 * that runs the fewest attempts. What is equal so far goes to the one that holds the most bytes of
 * the step's image and data; then to the one that runs the fewest attempts; then the id decides. So
 * no step ever waits for a worker that holds more. A worker that is avoided comes after all others.
 * No worker is ever given more than it has free. A step goes to no pool that does not allow its
 * sensitivity.
 *
 * A step that finds no place is passed by those behind it, but not for ever: a worker is kept for
 * it (backfill with reservations, as EASY of D. Lifka, 1995, per worker). It is the one whose work
 * ends first by its time limits; others may use what is kept only if their own time limits end
 * before, or if they leave enough. For a gang as many workers as it wants are kept, those that are
 * all free soonest. Where no time limits say when that will be, a worker is kept
 * once the step has waited for PLACE_PATIENCE, and given to nobody else meanwhile.
 *
 * Last come the steps of pools that preempt. One that has found no place, and would have none
 * within PLACE_GRACE, takes that of attempts that run: of a smaller priority, while it does not
 * borrow what they were granted; or, with a quota of its project, of another that borrows while it
 * does not, whatever their priorities. An attempt counts as borrowing when those of its project of
 * greater priorities and, among equals, older ones use up what is granted. The fewest attempts are
 * chosen, then those that lose the least work: time since the last checkpoint times GPUs (one at
 * least). All attempts of one step end together. None is ended twice for the same step. What is
 * freed is set aside for the step that it was freed for, until that is placed or is over its quota.
 *
 * Why a step was not placed is worked out when asked for (place_why.h).
 *
 * Everything borrowed stays with the caller for as long as the result is used; the result lives in
 * the arena, which must have place_room() bytes left. Linear in steps × workers at worst, far less
 * when steps are alike.
 */
#ifndef SERVER_CORE_PLACE_H
#define SERVER_CORE_PLACE_H
#include "server/core/gpus.h"

enum { PLACE_GOODS_MAX = 33 }; /* of a step: one image, and data sets */
enum { PLACE_RUNTIMES_MAX = 8, PLACE_LABELS_MAX = 64, PLACE_NODES_MAX = 64 };
enum { PLACE_KEPT_STEPS_MAX = 16, PLACE_KEPT_MAX = PLACE_KEPT_STEPS_MAX + PLACE_NODES_MAX };
enum { PLACE_PREEMPTED_MAX = 8 }; /* steps that take the place of others, in one pass */
#define PLACE_PATIENCE INT64_C(600000000) /* microseconds */
#define PLACE_GRACE    INT64_C(30000000) /* in which what is asked to end has ended */
#define PLACE_NOWHERE  UINT32_MAX

/* How much a step wants to be kept apart; the numbers of enum sensitivity in api/pipeline.h. */
enum place_sensitivity {
	PLACE_PUBLIC,
	PLACE_INTERNAL,
	PLACE_CONFIDENTIAL,
	PLACE_RESTRICTED,
	PLACE_SENSITIVITIES
};

/* Which of the workers that fit is taken; the numbers of enum pool_policy in api/pool.h. */
enum place_policy {
	PLACE_AUTO, /* GPUs as PLACE_PACK, steps without GPUs as PLACE_SPREAD */
	PLACE_PACK, /* the fullest */
	PLACE_SPREAD, /* the emptiest */
	PLACE_POLICIES
};

/* Whose work may be ended for whom; the numbers of enum pool_preemption in api/pool.h. */
enum place_preemption {
	PLACE_PREEMPT_NONE,
	PLACE_PREEMPT_QUOTA, /* what is granted by a quota takes from what is borrowed */
	PLACE_PREEMPT_PRIORITY, /* that, and a greater priority from a smaller one */
	PLACE_PREEMPTIONS
};

/* What holds of a pool. One that the snapshot does not name is as place_pool_default. */
struct place_pool {
	struct str name;
	enum place_policy policy;
	enum place_preemption preemption;
	uint8_t sensitivities; /* bit s: steps of sensitivity s may come here */
};
extern const struct place_pool place_pool_default;

struct place_label {
	struct str key, value;
};
/* With its name behind it, and no value: the label that stands for one worker alone. */
#define PLACE_SELF "worker:"

/* What a project may hold at once. */
struct place_quota {
	bool limited; /* else there is none */
	uint32_t nominal, borrow; /* granted, and beyond that, after what is granted to others */
};

struct place_project {
	struct str id, name; /* the name is for people */
	double weight; /* > 0; twice the weight, twice the share */
	uint32_t running; /* steps that hold a worker now, and what they hold: */
	uint32_t gpus;
	double cpus;
	uint64_t memory;
	struct place_quota gpus_quota, steps_quota;
};

struct place_step {
	struct str id;
	uint32_t project; /* position in the snapshot's projects */
	int32_t priority; /* greater goes first */
	int64_t queued_at; /* microseconds */
	double cpus;
	uint64_t memory, disk; /* bytes */
	struct gpus_want gpus;
	uint32_t nodes; /* workers that it wants at once; 0 is 1 */
	struct str pool;
	uint8_t sensitivity; /* enum place_sensitivity */
	const struct place_label *requires, *avoids;
	uint32_t requires_n, avoids_n;
	uint8_t runtimes[PLACE_RUNTIMES_MAX]; /* acceptable, below 32, the best first */
	uint8_t runtimes_n;
	int64_t time_limit; /* microseconds that it may run; 0: for ever */
	const uint32_t *kept; /* workers that the last pass kept for it */
	uint32_t kept_n;
	const uint32_t *goods; /* positions of what it needs, as far as somebody holds it */
	uint32_t goods_n;
	const uint32_t *cleared; /* workers on which others were ended for it, one for each node */
	uint32_t cleared_n;
};

static inline uint32_t place_nodes(const struct place_step *s)
{
	return s->nodes > 1 ? s->nodes : 1;
}

/* What steps need on a worker, and some workers hold already: an image, a version of a data set. */
struct place_good {
	struct str name; /* for people */
	uint64_t bytes;
	const uint32_t *workers; /* positions */
	uint32_t workers_n;
};

struct place_gpu {
	struct str uuid, model;
	struct str mig; /* profile of a slice; "": a whole GPU */
	uint64_t memory; /* bytes */
	bool free; /* well, and held by no attempt */
	uint32_t numa; /* its NUMA node + 1; 0: not known */
	uint64_t links; /* bit i: it has NVLink to the worker's GPU at position i */
};

struct place_worker {
	struct str id, name, pool; /* the name is for people */
	const struct place_label *labels;
	uint32_t labels_n;
	uint32_t runtimes; /* bit r: it offers runtime r */
	uint32_t isolated; /* bit r: ranks of a gang that runtime r starts here are not reached */
	double cpus_free, cpus; /* free now, in all */
	uint64_t memory_free, memory;
	uint64_t disk_free;
	const struct place_gpu *gpus; /* all that are well, free or not */
	uint32_t gpus_n;
	uint32_t gpus_unwell;
	uint32_t running; /* attempts */
	bool offline, draining;
	bool avoided; /* attempts have failed by its fault: it is taken when no other fits */
};

/* What an attempt holds of a worker; what is free there has been counted without it. They tell when
 * what they hold becomes free. */
struct place_running {
	uint32_t worker; /* position in the snapshot's workers */
	double cpus;
	uint64_t memory;
	const struct str *gpus; /* UUIDs */
	uint32_t gpus_n;
	int64_t ends_by; /* when its time limit ends it; 0: it has none */
	/* For preemption: */
	struct str id, step; /* of the attempt, and of its step, whose attempts end together */
	uint32_t project; /* position in the snapshot's projects */
	int32_t priority;
	int64_t since; /* of what would be lost: its start, or its last checkpoint; 0: nothing */
	bool fixed; /* not to be ended: its step wants that, or it ends anyway */
	uint32_t by; /* position of the step for which it is being ended, plus one; 0: none */
	const uint32_t *spared; /* positions of steps for which it was ended once: never again */
	uint32_t spared_n;
};

struct place_snapshot {
	const struct place_project *projects;
	const struct place_step *steps;
	const struct place_worker *workers;
	const struct place_running *running;
	const struct place_pool *pools;
	const struct place_good *goods;
	size_t projects_n, steps_n, workers_n, running_n, pools_n, goods_n;
	int64_t now; /* microseconds */
	const char *const *runtimes; /* their names by number, for people; may be NULL */
	uint64_t seed; /* of hash tables: random, so that nobody can fill them; changes no answer */
};

struct place_assignment {
	uint32_t step, worker; /* positions in the snapshot */
	uint32_t rank; /* below the step's nodes */
	int runtime;
	const struct str *gpus; /* UUIDs */
	uint32_t gpus_n;
	uint32_t held; /* of what it needs and some worker holds, thousandths of the bytes are there
			*/
};

/* A worker that is kept for a step that waits; a gang has several. */
struct place_kept {
	uint32_t step, worker;
	int64_t until; /* when it can start there; 0: not known */
};

/* An attempt that is to be ended for a step. */
struct place_victim {
	uint32_t running; /* position in the snapshot's running */
	bool reclaimed; /* it borrowed what is granted to the step; else it is of a smaller priority
			 */
};

/* A step that finds no place, and takes that of others. */
struct place_preempted {
	uint32_t step;
	const uint32_t *workers; /* one for each node */
	const struct place_victim *victims;
	uint32_t workers_n, victims_n;
};

struct place_pass;

struct place_result {
	const struct place_assignment *placed; /* in the order of decision */
	const uint32_t *waiting; /* steps, in the order in which they were tried */
	const struct place_kept *kept;
	const struct place_preempted *preempted; /* in the order of decision */
	size_t placed_n, waiting_n, kept_n, preempted_n;
	struct place_pass *pass; /* for place_why.h */
};

/* Bytes of arena that place_pass may need for this snapshot. */
size_t place_room(const struct place_snapshot *s);
void place_pass(const struct place_snapshot *s, struct arena *a, struct place_result *ret);

#endif
