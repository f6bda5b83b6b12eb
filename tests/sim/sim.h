/*
 * A world in which steps arrive, are placed by server/core/place, run and end, and workers come and
 * go. Time is virtual: microseconds that pass only from one event to the next. After each pass the
 * placement is checked against books of its own (check.c).
 */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H
#include "lib/base/err.h"
#include "server/core/place_why.h"

#define SIM_SECOND INT64_C(1000000)
#define SIM_MINUTE (60 * SIM_SECOND)
#define SIM_HOUR   (60 * SIM_MINUTE)

enum sim_state { SIM_LATER, SIM_WAITS, SIM_RUNS, SIM_ENDED };

struct sim_step {
	struct place_step want; /* queued_at: when it was queued, the last time */
	int64_t arrives, lasts; /* lasts: how long it truly runs, within its time limit */
	enum sim_state state;
	uint32_t *workers; /* of each node, while it runs: since `started`, with these GPUs */
	uint32_t placed; /* of its nodes, in this pass */
	int64_t started;
	struct str *gpus; /* those of node 0, then those of node 1, … */
	uint32_t *kept_on; /* workers that the last pass kept for it */
	uint32_t kept_n;
	bool firm; /* never to be ended for another */
	uint32_t good; /* number + 1 of the image that it needs; 0: none that counts */
	uint32_t by; /* step + 1 for which it is being ended, by ends_at */
	int64_t ends_at;
	uint32_t *ended_for, ended_for_n; /* steps for which it was ended so far */
	uint32_t *cleared_on, cleared_n; /* workers on which others are ended for it, since then: */
	int64_t cleared_at;
	int64_t kept_since; /* that a worker was kept for it although it had waited long; 0: not */
};

struct sim_worker {
	struct place_worker is; /* what is free is filled in for each pass */
	struct place_gpu *gpus;
	uint32_t *holder; /* of each GPU: step + 1; 0: nobody */
	int64_t cpus_used; /* thousandths */
	uint64_t memory_used;
	uint32_t running;
};

enum sim_change_kind { SIM_OFFLINE, SIM_ONLINE, SIM_DRAIN, SIM_RESUME };

/* What runs on a worker that goes offline is lost, and queued again. */
struct sim_change {
	int64_t at;
	uint32_t worker;
	enum sim_change_kind kind;
};

enum { SIM_HELD = 4 };

struct sim_trace {
	const char *name;
	uint64_t seed, random;
	struct arena *arena;
	struct place_project *projects; /* what they hold is filled in for each pass */
	struct sim_worker *workers;
	struct sim_step *steps;
	struct sim_change *changes; /* in order of time */
	uint32_t projects_n, workers_n, steps_n, changes_n;
	int64_t began;
	struct place_pool pool; /* of all workers, where it preempts */
	bool preempts;
	uint32_t goods_n;
	uint64_t *good_bytes;
	uint32_t *held; /* of each worker SIM_HELD: the numbers + 1 of those it holds, the last
			   first */
	bool blind; /* placement is not told of them */
	uint32_t replay_every, why_every; /* passes; 0: never */
	double least_used; /* of all GPU time up to the least makespan; 0: not asked */
	bool steady; /* one priority, no quota, no change of workers */
	bool in_line; /* and one project: first come, first served */
};

/* What a whole simulation was like. */
struct sim_report {
	size_t passes, placed, lost, replayed, kept, preempted;
	size_t wanted, held; /* images: by nodes that began, and where they were there already */
	double work_lost; /* by that, of all GPU time */
	int64_t makespan, longest_head, longest_over, longest_wait;
	double used; /* of all GPU time up to the least makespan */
};

struct sim {
	struct sim_trace *t;
	struct sim_report report;
	int64_t now, longest; /* longest: that any step may run */
	uint32_t changes_done;
	/* One pass. */
	struct arena *arena;
	struct place_snapshot s;
	struct place_result r;
	uint32_t *step_of, *running_of; /* of the snapshot's steps, and of what runs */
	bool *granted; /* of the placements: within what the quota of its project grants */
	bool changed; /* workers have come or gone since the last pass */
	/* Who is first of those that wait and could run. */
	uint32_t head;
	int64_t head_since, head_until;
	bool head_borrows;
	/* By project: who is first of those that wait and could run, and since when it has been so
	 * and beyond the quota. */
	uint32_t *eldest;
	int64_t *eldest_since;
};

/* traces.c: worlds by name, of a size (1 is small) and a seed; NULL: there is no such. */
struct sim_trace *sim_trace_new(const char *name, uint32_t size, uint64_t seed);
extern const char *const sim_trace_names[]; /* ends with NULL */
/* A recorded snapshot goes on from where it was: what has no time limit ends at random. */
struct sim_trace *sim_trace_read(const char *path, uint64_t seed, struct err *e);
/* Room for what its nodes are given; once the wish is as it will be. */
void sim_step_room(struct sim_trace *t, struct sim_step *s);
void sim_trace_free(struct sim_trace *t);
uint32_t sim_draw(struct sim_trace *t, uint32_t n); /* below n */

/* run.c: until nothing happens any more. -1: a promise was broken; e says which, and when. */
int sim_run(struct sim_trace *t, struct sim_report *ret, struct err *e) MUST_CHECK;

/* preempt.c: what is ended for others, in worlds that preempt. */
void sim_preempt_see(struct sim *m, uint32_t step, struct place_running *x);
/* Those that were asked to end have done so. */
void sim_preempt_happen(struct sim *m);
int sim_check_preempted(struct sim *m, struct err *e) MUST_CHECK;

/* held.c: where images are, in worlds that have some; after a pass: where they are now. */
void sim_held_see(struct sim *m, struct place_step *steps);
void sim_held_book(struct sim *m);

/* run.c: it waits again, and so on. */
void sim_put_back(struct sim *m, struct sim_step *s);

/* check.c: after a pass; books the placements. */
int sim_check_placed(struct sim *m, struct err *e) MUST_CHECK;
int sim_check_waiting(struct sim *m, struct err *e) MUST_CHECK;
int sim_check_replay(struct sim *m, struct err *e) MUST_CHECK;
/* The answers about the first that waits and about another, and the memory of all; `a`: the pass's.
 */
int sim_check_why(struct sim *m, const struct arena *a, struct err *e) MUST_CHECK;
/* When nothing happens any more: who still waits could never run. */
int sim_check_end(struct sim *m, struct err *e) MUST_CHECK;
/* Whether it may go to the worker at all; has room for it, if nothing ran (`idle`) or beside what
 * does; and whether its project may hold it, too. */
bool sim_welcome(const struct place_worker *w, const struct place_step *s);
bool sim_has_room(const struct sim_worker *w, const struct place_step *s, bool idle);
bool sim_may_hold(const struct sim *m, const struct place_step *s, bool borrowing);

#endif
