/*
 * Placement: which waiting step goes to which worker, as a pure function of a snapshot. The same
 * snapshot gives the same answer, whatever the order of its projects, steps and workers; the GPUs
 * of a worker are taken in the order given, and of one model and memory where that is possible.
 *
 * Order: priority, then the project with the fewest running steps by weight (placements of this
 * pass count), then the longest wait, then the id. Each step is tried once; a blocked one is passed
 * by those behind it. A step with GPUs goes where it leaves the fewest matching GPUs free, one
 * without GPUs goes to workers that have none, if it can; then to the worker that runs the fewest
 * attempts, then the id. A worker that is avoided comes after all others. No worker is ever given
 * more than it has free.
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

enum { PLACE_RUNTIMES_MAX = 8, PLACE_LABELS_MAX = 64 };

struct place_label {
	struct str key, value;
};

struct place_project {
	struct str id;
	double weight; /* > 0; twice the weight, twice the share */
	uint32_t running; /* steps that hold a worker now */
};

struct place_step {
	struct str id;
	uint32_t project; /* position in the snapshot's projects */
	int32_t priority; /* greater goes first */
	int64_t queued_at; /* microseconds */
	double cpus;
	uint64_t memory, disk; /* bytes */
	struct gpus_want gpus;
	struct str pool;
	const struct place_label *requires, *avoids;
	uint32_t requires_n, avoids_n;
	uint8_t runtimes[PLACE_RUNTIMES_MAX]; /* acceptable, below 32, the best first */
	uint8_t runtimes_n;
	int64_t time_limit; /* microseconds that it may run; 0: for ever */
};

struct place_gpu {
	struct str uuid, model;
	uint64_t memory; /* bytes */
	bool free; /* well, and held by no attempt */
};

struct place_worker {
	struct str id, name, pool; /* the name is for people */
	const struct place_label *labels;
	uint32_t labels_n;
	uint32_t runtimes; /* bit r: it offers runtime r */
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

/* What an attempt holds of a worker; what is free there has been counted without it. The pass does
 * not look at these: they tell when what they hold may become free. */
struct place_running {
	uint32_t worker; /* position in the snapshot's workers */
	double cpus;
	uint64_t memory;
	const struct str *gpus; /* UUIDs */
	uint32_t gpus_n;
	int64_t ends_by; /* when its time limit ends it; 0: it has none */
};

struct place_snapshot {
	const struct place_project *projects;
	const struct place_step *steps;
	const struct place_worker *workers;
	const struct place_running *running;
	size_t projects_n, steps_n, workers_n, running_n;
	const char *const *runtimes; /* their names by number, for people; may be NULL */
	uint64_t seed; /* of hash tables: random, so that nobody can fill them; changes no answer */
};

struct place_assignment {
	uint32_t step, worker; /* positions in the snapshot */
	int runtime;
	const struct str *gpus; /* UUIDs */
	uint32_t gpus_n;
};

struct place_pass;

struct place_result {
	const struct place_assignment *placed; /* in the order of decision */
	const uint32_t *waiting; /* steps, in the order in which they were tried */
	size_t placed_n, waiting_n;
	struct place_pass *pass; /* for place_why.h */
};

/* Bytes of arena that place_pass may need for this snapshot. */
size_t place_room(const struct place_snapshot *s);
void place_pass(const struct place_snapshot *s, struct arena *a, struct place_result *ret);

#endif
