/*
 * The graph of a pipeline's steps. dag_build checks it and orders it; dag_advance says, from the
 * states of all steps, what comes next. Pure; results live in the arena (dag_build takes about
 * 80 bytes a step and 8 an edge). Steps are named by their position in the caller's array.
 */
#ifndef SERVER_CORE_DAG_H
#define SERVER_CORE_DAG_H
#include "server/core/fsm.h"
#include "server/core/names.h"

enum { DAG_STEPS_MAX = 1000, DAG_EDGES_MAX = 10000 };

struct dag_step {
	struct str name;
	const struct str *needs;
	size_t needs_n;
	bool joins; /* it stands for those that it needs: what is skipped among them does not count,
		       unless all are */
};

struct dag {
	size_t n;
	const uint32_t *order; /* each step after all that it needs; otherwise by position */
	const uint32_t *need_at; /* step i needs need[need_at[i]] … need[need_at[i + 1] - 1] */
	const uint32_t *need;
	const bool *joins; /* by step */
};

/* ERR_INVALID with the pointer of the culprit (/STEP/needs/2): an unknown name, the step itself, a
 * name twice, a circle (named: "a → b → a"), too many. */
int dag_build(const struct dag_step *steps, size_t n, struct arena *a, struct dag *ret,
	struct err *e) MUST_CHECK;

enum dag_outcome {
	DAG_GOING, /* something runs, waits for a worker, or will be ready */
	DAG_SUCCEEDED,
	DAG_FAILED,
	DAG_CANCELLED
};

struct dag_next {
	const uint32_t *ready; /* waiting → queued */
	const uint32_t *skip; /* waiting → skipped: something that it needs did not succeed */
	const uint32_t *cancel; /* waiting or queued → cancelled at once; no worker has them */
	size_t ready_n, skip_n, cancel_n;
	enum dag_outcome outcome; /* once these changes are made */
};

/* states[i] is the enum fsm_step_state of step i. `cancelling`: the run is to end; nothing new is
 * started, and the outcome is cancelled unless every step succeeded, or was skipped because of its
 * condition, before it took effect. Without that, one failed step makes the run failed when all
 * have ended; other branches run on. */
void dag_advance(const struct dag *d, const int *states, bool cancelling, struct arena *a,
	struct dag_next *ret);

#endif
