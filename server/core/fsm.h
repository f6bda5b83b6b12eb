/*
 * The states of runs, steps and attempts, and what may follow what. Pure tables: the store writes a
 * change as compare-and-set on the old state, and a change that a table does not know is never
 * written. States have the numbers and names of api/run.h and of the CHECK constraints in the
 * schema; a test holds the three together. Reports may come twice, so an event that repeats the
 * state it led to leads there again; what has ended never changes.
 */
#ifndef SERVER_CORE_FSM_H
#define SERVER_CORE_FSM_H
#include "lib/base/buf.h"

enum fsm_run_state {
	FSM_RUN_QUEUED, /* no step has started: its concurrency group or a worker is waited for */
	FSM_RUN_RUNNING,
	FSM_RUN_FINISHING, /* all steps succeeded; the model is registered, monitors are fed */
	FSM_RUN_SUCCEEDED,
	FSM_RUN_FAILED,
	FSM_RUN_CANCELLED,
	FSM_RUN_STATES
};
enum fsm_run_event {
	FSM_RUN_START, /* the command of a step has begun */
	FSM_RUN_FINISH, /* the last step has succeeded, and something is to be done with its outputs
			 */
	FSM_RUN_SUCCEED,
	FSM_RUN_FAIL,
	FSM_RUN_CANCEL, /* asked for, and no step is left running */
	FSM_RUN_EVENTS
};

enum fsm_step_state {
	FSM_STEP_WAITING, /* for what it needs */
	FSM_STEP_QUEUED, /* for a worker */
	FSM_STEP_ASSIGNED,
	FSM_STEP_RUNNING,
	FSM_STEP_FINISHING, /* the command has ended; log and outputs are on their way */
	FSM_STEP_SUCCEEDED,
	FSM_STEP_FAILED,
	FSM_STEP_CANCELLED,
	FSM_STEP_SKIPPED, /* something that it needs did not succeed */
	FSM_STEP_STATES
};
enum fsm_step_event {
	FSM_STEP_READY, /* what it needs has succeeded */
	FSM_STEP_ASSIGN,
	FSM_STEP_RUN,
	FSM_STEP_FINISH,
	FSM_STEP_SUCCEED,
	FSM_STEP_RETRY, /* the attempt failed and there will be another */
	FSM_STEP_FAIL,
	FSM_STEP_CANCEL,
	FSM_STEP_SKIP,
	FSM_STEP_EVENTS
};

enum fsm_attempt_state {
	FSM_ATTEMPT_ASSIGNED,
	FSM_ATTEMPT_PREPARING, /* checkout, staging, image */
	FSM_ATTEMPT_RUNNING,
	FSM_ATTEMPT_FINISHING,
	FSM_ATTEMPT_SUCCEEDED,
	FSM_ATTEMPT_FAILED,
	FSM_ATTEMPT_CANCELLED,
	FSM_ATTEMPT_LOST, /* the server gave it up */
	FSM_ATTEMPT_STATES
};
/* A worker reports states, and may pass some of them between two reports: event number i is the
 * report of state number i. LOSE is the server's own. */
enum fsm_attempt_event {
	FSM_ATTEMPT_ASSIGN,
	FSM_ATTEMPT_PREPARE,
	FSM_ATTEMPT_RUN,
	FSM_ATTEMPT_FINISH,
	FSM_ATTEMPT_SUCCEED,
	FSM_ATTEMPT_FAIL,
	FSM_ATTEMPT_CANCEL,
	FSM_ATTEMPT_LOSE,
	FSM_ATTEMPT_EVENTS
};

/* One machine: next[state * events_n + event] is the next state, or -1. */
struct fsm {
	const char *name;
	const char *const *states, *const *events; /* names */
	int states_n, events_n;
	int start, first_end; /* the states from first_end on are final */
	const signed char *next;
};
extern const struct fsm fsm_run, fsm_step, fsm_attempt;

/* The next state, or -1 when the pair is impossible (numbers out of range included). */
int fsm_next(const struct fsm *f, int state, int event);
bool fsm_ended(const struct fsm *f, int state);
/* "running"; "?" outside the table. */
const char *fsm_name(const struct fsm *f, int state);
/* The state of that name, or -1. */
int fsm_parse(const struct fsm *f, struct str name);
/* A Mermaid state diagram, for docs. */
void fsm_print(const struct fsm *f, struct buf *out);

#endif
