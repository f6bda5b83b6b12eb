/*
 * Placement: which waiting step goes to which worker, as a pure function of a snapshot. The same
 * snapshot gives the same answer, whatever the order of its projects, steps and workers; the GPUs
 * of a worker are taken in the order given, and of one model and memory where that is possible.
 *
 * Order: priority, then the project with the fewest running steps by weight (placements of this
 * pass count), then the longest wait, then the id. Each step is tried once; a blocked one is passed
 * by those behind it. A step with GPUs goes where it leaves the fewest matching GPUs free, one
 * without GPUs goes to workers that have none, if it can; then to the worker that runs the fewest
 * attempts, then the id. No worker is ever given more than it has free.
 *
 * Every step that is not placed has blockers: what would have to change, with numbers, as things
 * stand at the end of the pass. Steps that want the same share them.
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
	uint32_t running; /* attempts */
	bool offline, draining;
};

struct place_snapshot {
	const struct place_project *projects;
	const struct place_step *steps;
	const struct place_worker *workers;
	size_t projects_n, steps_n, workers_n;
	uint64_t seed; /* of hash tables: random, so that nobody can fill them; changes no answer */
};

enum place_blocker_kind {
	PLACE_NO_POOL, /* no worker belongs to the pool; what = the pool */
	PLACE_OFFLINE, /* all `workers` that remain are offline */
	PLACE_DRAINING, /* … are draining */
	PLACE_RUNTIME, /* … offer none of the runtimes */
	PLACE_REQUIRES, /* … lack a label; what, value = the label that most of them lack */
	PLACE_AVOIDS, /* … have a label to be avoided */
	PLACE_CPUS, /* need, most_free and most_all are thousandths of a core */
	PLACE_MEMORY, /* bytes */
	PLACE_DISK, /* bytes */
	PLACE_GPUS, /* GPUs of one worker that match */
	PLACE_TOGETHER, /* each is free somewhere, but not all on one worker; worker = the one that
			   meets most: most_free of `need` wants; what = those it lacks */
	PLACE_BLOCKER_KINDS
};

struct place_blocker {
	enum place_blocker_kind kind;
	struct str what, value;
	uint32_t workers; /* how many workers it shuts out: those that had passed what is above */
	int64_t need, most_free, most_all; /* most_all < need: it can never fit as things are */
	struct str worker; /* the id of the worker with most_free */
	struct str worker_name;
};

struct place_assignment {
	uint32_t step, worker; /* positions in the snapshot */
	int runtime;
	const struct str *gpus; /* UUIDs */
	uint32_t gpus_n;
};

struct place_wait {
	uint32_t step;
	uint32_t blockers_n; /* at least 1 */
	const struct place_blocker *blockers;
};

struct place_result {
	const struct place_assignment *placed; /* in the order of decision */
	const struct place_wait *waiting; /* in the order in which they were tried */
	size_t placed_n, waiting_n;
};

/* Bytes of arena that place_pass may need for this snapshot. */
size_t place_room(const struct place_snapshot *s);
void place_pass(const struct place_snapshot *s, struct arena *a, struct place_result *ret);

/* "gpus": stable, for the API. */
const char *place_blocker_name(enum place_blocker_kind k);
/* A sentence for people: "needs 8 GPUs on one worker; gpu-07 has most free: 5 of 8". Returns out.
 */
enum { PLACE_TEXT_MAX = 512 };
const char *place_explain(char out[PLACE_TEXT_MAX], const struct place_blocker *b);

#endif
