/*
 * The worker as a whole: what it is made of, and the table of the attempts that it holds. Owned by
 * main.c; passed to whoever needs it.
 */
#ifndef WORKER_AGENT_H
#define WORKER_AGENT_H
#include "api/pipeline.h"
#include "api/worker.h"
#include "lib/base/id.h"
#include "lib/base/ip.h"
#include "lib/loop/timer.h"
#include "worker/conf.h"
#include "worker/enrol.h"
#include "worker/host.h"
#include "worker/runtime/runtime.h"

struct job;

enum { AGENT_JOBS_MAX = 1024, AGENT_RECENT = 256, AGENT_REFUSED = 64 };

/* An assignment that could not be taken; told until the server says forget. In memory only: after a
 * restart it is given, and refused, again. */
struct refused {
	char attempt[ID_MAX]; /* "": free */
	int64_t epoch;
	char message[400];
};

struct agent_runtime {
	struct agent *agent;
	struct runtime *r; /* NULL: not here */
	bool offered; /* else it is here for attempts of an earlier configuration alone */
	struct runtime_about about;
	bool probed, listed;
};

struct agent {
	struct loop *loop;
	struct worker_conf conf;
	struct credential credential;
	struct host host;
	struct fetch_client *http;
	struct cache *cache;
	struct hold_list *holds;
	struct watch *watch;
	struct gpus *gpus;
	struct sync *sync; /* NULL until everything is known */
	struct agent_runtime runtimes[RUNTIME_COUNT];
	char init[512]; /* our copy of tidemill-init, at a path that the host has too */
	struct job *jobs;
	size_t n_jobs;
	int waiting; /* calls of runtimes that have not come back */
	bool adopted; /* the attempts of an earlier process are known */
	bool draining, closing;
	char recent[AGENT_RECENT][ID_MAX]; /* attempts that were forgotten last */
	size_t n_recent;
	struct refused refused[AGENT_REFUSED];
	char (*kept)[ID_MAX]; /* steps whose checkpoints are here; CHECKPOINTS_MAX */
	size_t n_kept;
	struct loop_timer probe, ready;
	int lock; /* of work-dir: one worker each */
	char from[IP_TEXT_MAX]; /* our address as the last exchange had it; "": none yet */
	int64_t relieved; /* when the cache was last told that the disk is full, loop_now(); 0:
			     never */
	int64_t renewed; /* the last exchange that was answered: when it was sent, loop_now(); 0:
			    none */
};

/* Opens everything below work-dir, adopts what runs, and then starts to speak with the server. */
int agent_open(struct agent *g, struct err *e) MUST_CHECK;
/* Ends what is in flight without touching the commands. Fine after a failed open. */
void agent_close(struct agent *g);

/* Sets `init` to the program that came with this one. */
int agent_find_init(struct agent *g, struct err *e) MUST_CHECK;
/* Makes those that are offered. */
int agent_open_runtimes(struct agent *g, struct err *e) MUST_CHECK;
void agent_probe(struct agent *g);

/* Blanks what a message must not hold. */
void agent_clean(char *text);

/* ---- for the jobs ---- */
/* Something that the server is told has changed. */
void agent_changed(struct agent *g);
/* How long ago the server heard of us for sure, in microseconds. */
int64_t agent_silence(const struct agent *g);
/* A job has let go of its devices: others may go on. */
void agent_devices_free(struct agent *g);
void agent_job_gone(struct agent *g, struct job *j); /* unlinks it; it frees itself */
/* A checkpoint of the step is kept, or is taken by a new attempt. */
void agent_kept(struct agent *g, struct str step, bool here);
/* The runtime of an attempt that was found again, whether it is still offered or not; NULL when it
 * cannot be had. */
struct runtime *agent_runtime_again(struct agent *g, struct str name);
bool agent_offers(const struct agent *g, const struct runtime *r); /* for new attempts */
/* Something of an attempt may be left there: it is removed once the runtime can be used again. */
void agent_left_over(struct agent *g, const struct runtime *r);

/* ---- for the exchange ---- */
/* True when it brought anything new. */
bool agent_apply(struct agent *g, const struct sync_reply *r);
/* An assignment cannot be taken: that attempt ends, and nothing else. */
void agent_refuse(struct agent *g, struct str attempt, int64_t epoch, const struct err *why);
/* The server has answered what was sent then (loop_now()): it counts our silence from a later
 * moment than that, while the answer itself may have been on its way for long. */
void agent_renewed(struct agent *g, int64_t sent_at);
/* This host's address on the way to the server. */
void agent_reached(struct agent *g, const char *from);
/* Some assignments are not on disk yet, and are therefore not told of as held. */
bool agent_storing(const struct agent *g);
/* How often it must hear of us, in milliseconds; 0: whenever. */
int64_t agent_renew_every(const struct agent *g);
/* All but `wait`; lives in the arena. */
void agent_report(struct agent *g, struct arena *a, struct sync_request *out);

#endif
