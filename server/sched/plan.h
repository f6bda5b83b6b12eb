/*
 * What follows from the state of a run: which steps become ready, which have ended and how, which
 * attempts must stop, what becomes of the run. plan_make works it out and writes nothing; plans_add
 * turns the result into statements. Both the first look at a new run (launch) and every later one
 * (progress) go through here.
 */
#ifndef SERVER_SCHED_PLAN_H
#define SERVER_SCHED_PLAN_H
#include "api/run.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "server/core/dag.h"
#include "server/sched/gang.h"
#include "server/store/engine_store.h"

struct db_unit;

struct map;
struct spec_scope;
struct step_spec;

/* What a step has put out, for others that name it. */
struct plan_value {
	struct str text;
	int64_t size; /* bytes; -1: it has put out no such thing */
	bool here; /* the text has been read */
};

/* What the cache says of a step. */
struct plan_cached {
	struct str key; /* "": it has none, and is run */
	struct str step, run; /* that it is the same as; "": none was found */
	int64_t rows; /* about: files and metrics that are to be written when it is taken */
};

struct plan_step {
	struct str id, name, spec, tracking_run; /* spec: JSON */
	const struct step_spec *parsed; /* the same; NULL: from the text */
	struct list needs; /* struct str */
	bool joins; /* combinations, which it needs */
	struct list matrix; /* struct field_pair: of a combination; only of late ones */
	struct str matrix_of; /* of a combination */
	int64_t slots; /* how many of its like may be on their way; 0: all */
	double metric; /* what it has come to, NAN included */
	bool has_metric;
	bool late; /* its spec is filled in when it becomes ready */
	const struct plan_cached *cached; /* NULL: not looked up */
	bool reused; /* it stands for a step of another run: nothing of it runs */
	int state; /* enum step_state */
	struct str reason, message; /* of its end, as stored */
	int64_t deadline; /* of its time in the queue; 0: none */
	struct str blocked; /* what it waits for there, as last noted */
	int64_t user_failures, infra_failures, attempts;
	int64_t preempted; /* attempts whose place was taken, when the newest is one */
	/* the newest attempt, "" when there is none */
	struct str attempt_id, attempt_reason, attempt_message, worker_id;
	int attempt_state; /* enum attempt_state */
	int64_t attempt_started_at;
	bool attempt_cancelling; /* it has been asked to stop */
	struct str log_matches; /* of the attempt: JSON */
	struct list avoid_workers; /* struct str, names: their logs said that they are at fault */
	/* Of a gang the above is what its ranks come to. */
	struct gang gang;
	struct gang_verdict verdict;
};

struct plan_run {
	struct str id, project_id, pipeline, group;
	int state; /* enum run_state */
	int64_t version;
	bool cancelling, finishing_work;
	bool admitted; /* its concurrency group has let it in, or it has none */
	bool blocked; /* an older run of its group is open */
	bool look; /* it is marked as to be looked at */
	/* What late steps are filled in with; NULL: not read yet. */
	const struct spec_scope *scope;
	const struct map *values; /* struct plan_value, by name; with scope */
	bool cache_looked; /* the cache was asked for steps of this look */
	bool takes_none; /* of what the cache has: the last try could not be written */
	struct list data; /* struct str: ids of the versions of data sets that its steps find */
	struct plan_step *steps;
	size_t n;
};

/* A step that is ready, with its spec as it would run. */
struct plan_cache_want {
	size_t step;
	const struct step_spec *spec;
};

struct plan;

/* NULL in *ret_plan when nothing changes. `random` seeds the delays of retries. */
int plan_make(const struct plan_run *run, int64_t now, uint64_t random, struct arena *a,
	struct plan **ret_plan, struct err *e) MUST_CHECK;
/* A late step is ready, and scope and values are not there: they are read, and the plan is made
 * anew. *ret_names: struct str, each once. */
bool plan_wants(const struct plan *p, struct list *ret_names);
/* Steps are ready that are to be looked up in the cache before (struct plan_cache_want); the plan
 * is made anew then. */
bool plan_cache_wants(const struct plan *p, struct list *ret);
/* Steps were left for a look that follows at once. */
bool plan_leaves(const struct plan *p);
size_t plan_spec_bytes(const struct plan *p); /* of steps that are filled in */
/* Of steps that the cache has, in rows; -1 without any. One alone may have any number. */
int64_t plan_cached_rows(const struct plan *p);
/* All statements of several plans, of as many runs: all or nothing, and nothing (TM001) when a run
 * is not at its version any more. */
void plans_add(struct db_unit *u, const struct plan *const *plans, size_t n, int64_t now);
/* The state of the run after the plan. */
int plan_run_state(const struct plan *p);
/* The parts, for a run that is written in the state that the plan leads to. */
int plan_step_state(const struct plan *p, size_t i);
const struct queue_rows *plan_queue(const struct plan *p);
const struct events *plan_events(const struct plan *p);

#endif
