#include "server/core/fsm.h"

/* Tables are kept in columns. `no` is an impossible pair. */
/* clang-format off */
enum { no = -1 };

static const char *const run_states[] = { "queued", "running", "finishing", "succeeded", "failed",
	"cancelled" };
static const char *const run_events[] = { "start", "finish", "succeed", "fail", "cancel" };
/* A run of which no command had to be run passes over running. A run that is finishing has done all
 * its work: it can no longer be cancelled. */
enum { RQ = FSM_RUN_QUEUED, RR = FSM_RUN_RUNNING, RF = FSM_RUN_FINISHING, RS = FSM_RUN_SUCCEEDED,
	RX = FSM_RUN_FAILED, RC = FSM_RUN_CANCELLED };
static const signed char run_next[FSM_RUN_STATES][FSM_RUN_EVENTS] = {
	/*         start finish succeed fail cancel */
	[RQ] = {   RR,   RF,    RS,     RX,  RC },
	[RR] = {   RR,   RF,    RS,     RX,  RC },
	[RF] = {   no,   RF,    RS,     RX,  no },
	[RS] = {   no,   no,    RS,     no,  no },
	[RX] = {   no,   no,    no,     RX,  no },
	[RC] = {   no,   no,    no,     no,  RC },
};

static const char *const step_states[] = { "waiting", "queued", "assigned", "running", "finishing",
	"succeeded", "failed", "cancelled", "skipped" };
static const char *const step_events[] = { "ready", "assign", "run", "finish", "succeed", "retry",
	"fail", "cancel", "skip" };
/* Reports may jump over states (running was never seen), so each open state leads to each end. A
 * queued step fails when its time in the queue is over, a waiting one when what it needs has put out
 * something that it cannot use; one that stands for other steps succeeds without an attempt. */
enum { SW = FSM_STEP_WAITING, SQ = FSM_STEP_QUEUED, SA = FSM_STEP_ASSIGNED, SR = FSM_STEP_RUNNING,
	SF = FSM_STEP_FINISHING, SS = FSM_STEP_SUCCEEDED, SX = FSM_STEP_FAILED,
	SC = FSM_STEP_CANCELLED, SK = FSM_STEP_SKIPPED };
static const signed char step_next[FSM_STEP_STATES][FSM_STEP_EVENTS] = {
	/*         ready assign run finish succeed retry fail cancel skip */
	[SW] = {   SQ,   no,    no, no,    SS,     no,   SX,  SC,    SK },
	[SQ] = {   SQ,   SA,    no, no,    no,     SQ,   SX,  SC,    no },
	[SA] = {   no,   SA,    SR, SF,    SS,     SQ,   SX,  SC,    no },
	[SR] = {   no,   no,    SR, SF,    SS,     SQ,   SX,  SC,    no },
	[SF] = {   no,   no,    no, SF,    SS,     SQ,   SX,  SC,    no },
	[SS] = {   no,   no,    no, no,    SS,     no,   no,  no,    no },
	[SX] = {   no,   no,    no, no,    no,     no,   SX,  no,    no },
	[SC] = {   no,   no,    no, no,    no,     no,   no,  SC,    no },
	[SK] = {   no,   no,    no, no,    no,     no,   no,  no,    SK },
};

static const char *const attempt_states[] = { "assigned", "preparing", "running", "finishing",
	"succeeded", "failed", "cancelled", "lost" };
static const char *const attempt_events[] = { "assign", "prepare", "run", "finish", "succeed", "fail",
	"cancel", "lose" };
/* Never backwards; a lost attempt stays lost, whatever its worker says later. */
enum { AA = FSM_ATTEMPT_ASSIGNED, AP = FSM_ATTEMPT_PREPARING, AR = FSM_ATTEMPT_RUNNING,
	AF = FSM_ATTEMPT_FINISHING, AS = FSM_ATTEMPT_SUCCEEDED, AX = FSM_ATTEMPT_FAILED,
	AC = FSM_ATTEMPT_CANCELLED, AL = FSM_ATTEMPT_LOST };
static const signed char attempt_next[FSM_ATTEMPT_STATES][FSM_ATTEMPT_EVENTS] = {
	/*         assign prepare run finish succeed fail cancel lose */
	[AA] = {   AA,    AP,     AR, AF,    AS,     AX,  AC,    AL },
	[AP] = {   no,    AP,     AR, AF,    AS,     AX,  AC,    AL },
	[AR] = {   no,    no,     AR, AF,    AS,     AX,  AC,    AL },
	[AF] = {   no,    no,     no, AF,    AS,     AX,  AC,    AL },
	[AS] = {   no,    no,     no, no,    AS,     no,  no,    no },
	[AX] = {   no,    no,     no, no,    no,     AX,  no,    no },
	[AC] = {   no,    no,     no, no,    no,     no,  AC,    no },
	[AL] = {   no,    no,     no, no,    no,     no,  no,    AL },
};
/* clang-format on */

const struct fsm fsm_run = { "run", run_states, run_events, FSM_RUN_STATES, FSM_RUN_EVENTS,
	FSM_RUN_QUEUED, FSM_RUN_SUCCEEDED, run_next[0] };
const struct fsm fsm_step = { "step", step_states, step_events, FSM_STEP_STATES, FSM_STEP_EVENTS,
	FSM_STEP_WAITING, FSM_STEP_SUCCEEDED, step_next[0] };
const struct fsm fsm_attempt = { "attempt", attempt_states, attempt_events, FSM_ATTEMPT_STATES,
	FSM_ATTEMPT_EVENTS, FSM_ATTEMPT_ASSIGNED, FSM_ATTEMPT_SUCCEEDED, attempt_next[0] };

int fsm_next(const struct fsm *f, int state, int event)
{
	if (state < 0 || state >= f->states_n || event < 0 || event >= f->events_n)
		return -1;
	return f->next[state * f->events_n + event];
}

bool fsm_ended(const struct fsm *f, int state)
{
	return state >= f->first_end && state < f->states_n;
}

const char *fsm_name(const struct fsm *f, int state)
{
	return state >= 0 && state < f->states_n ? f->states[state] : "?";
}

int fsm_parse(const struct fsm *f, struct str name)
{
	for (int i = 0; i < f->states_n; i++)
		if (str_is(name, f->states[i]))
			return i;
	return -1;
}

/* Repeats (state to itself) are left out: they would only clutter the picture. */
void fsm_print(const struct fsm *f, struct buf *out)
{
	buf_addf(out, "stateDiagram-v2\n\t[*] --> %s\n", f->states[f->start]);
	for (int s = 0; s < f->states_n; s++) {
		for (int e = 0; e < f->events_n; e++) {
			int to = fsm_next(f, s, e);
			if (to >= 0 && to != s)
				buf_addf(out, "\t%s --> %s: %s\n", f->states[s], f->states[to],
					f->events[e]);
		}
		if (fsm_ended(f, s))
			buf_addf(out, "\t%s --> [*]\n", f->states[s]);
	}
}
