/*
 * What is kept on disk of an attempt, beside its control folder: assignment.json, as the server
 * gave it, and state.json, written and synced before each act outside of this process, so that
 * whoever comes after a crash knows what may have happened.
 */
#ifndef WORKER_RECORD_H
#define WORKER_RECORD_H
#include "api/run.h"
#include "api/worker.h"

/* An attempt goes through these in this order; it may skip to FINISHING from any. */
enum job_phase {
	JOB_ASSIGNED, /* known, nothing done */
	JOB_PREPARING, /* checkout and staging */
	JOB_STARTING, /* the runtime may have started it */
	JOB_RUNNING, /* it has started it */
	JOB_FINISHING, /* the command is over: log and outputs are brought away */
	JOB_ENDED, /* the server is told, until it says forget */
	JOB_PHASE_COUNT
};
extern const char *const job_phase_names[];

struct record {
	int phase; /* enum job_phase */
	int result; /* enum attempt_state, when FINISHING or ENDED */
	int reason; /* enum reason */
	int stop; /* enum reason: why it is being stopped; REASON_NONE: it is not */
	struct str runtime; /* "" until one is chosen */
	struct str message, evidence; /* evidence: a JSON object */
	struct str secrets; /* secrets_digest() of those that it was started with */
	struct str image_id, image_ref, image_fault; /* of the image that ran, or did not */
	int64_t started_at, ended_at;
	int64_t received_elapsed; /* when it came, on clock_elapsed(), as counted since … */
	struct str boot; /* … this boot of the host */
	struct str killer; /* runtime_killer_name(), once it is over */
	int64_t exit_code, signal;
	bool has_exit_code, has_signal;
	bool resumed; /* it began with what an earlier attempt had left */
	bool unstarted; /* FINISHING, and there was no command */
};

enum { RECORD_MAX = 65536, ASSIGNMENT_MAX = 16 << 20 };

void record_encode(const struct record *r, struct buf *out);
/* (blocks) A small file below dir, synced. */
int record_write(const char *dir, const char *name, struct str text, struct err *e) MUST_CHECK;
/* (blocks) ERR_NOT_FOUND when one of them is not there. */
int record_read(const char *dir, struct arena *a, struct assignment *ret_task, struct record *ret,
	struct err *e) MUST_CHECK;

#endif
