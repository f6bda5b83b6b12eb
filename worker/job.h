/*
 * One attempt on this worker, from its assignment until the server says forget. Its states are
 * those of record.h; each step of the way is one file: job.c (making, saving, reporting, stopping),
 * job_start.c (preparing and starting), job_gang.c (waiting for the other ranks of a gang),
 * job_run.c (watching the command), job_usage.c (what it uses), job_limits.c (how long it may take,
 * and GPUs that it does not use), job_checkpoint.c (what a later attempt goes on from),
 * job_finish.c (log, outputs, result, removal).
 */
#ifndef WORKER_JOB_H
#define WORKER_JOB_H
#include "lib/base/id.h"
#include "lib/fetch/retry.h"
#include "lib/loop/timer.h"
#include "worker/agent.h"
#include "worker/checkpoint.h"
#include "worker/rank.h"
#include "worker/record.h"
#include "worker/usage.h"

struct fetch;
struct secrets;
struct ship_log;
struct ship_outputs;
struct watch_dir;
struct workspace;

typedef void job_next_fn(struct job *j);

/* What the command leaves for a later attempt: see job_checkpoint.c. */
struct job_checkpoint {
	const char *root, *dir; /* the folder of outputs; of the checkpoint, below it */
	struct loop_timer look;
	struct checkpoint_state seen, shipped;
	uint64_t settling; /* the sum that looks found last, … */
	int64_t since; /* … first at this time (clock_elapsed) */
	struct ship_outputs *ship;
	struct list folder; /* the one output that it is */
	struct err err;
	bool looking, kept;
	bool looked; /* for the last time */
	char refused[160]; /* why what is there now has not been brought to the server; "" */
	job_next_fn *next; /* the attempt is over: what follows */
};

/* GPUs that the command holds and does not use: see job_limits.c. */
struct job_idle {
	struct loop_timer look;
	uint64_t seen; /* looks at the GPUs, when it was last judged */
	int64_t since, last; /* the first and the last look that found them idle (clock_elapsed) */
	int64_t looks; /* since then; 0: not idle */
	int most; /* percent, since then */
	bool warned;
	struct fetch *request; /* the warning */
	struct buf body;
	char text[200]; /* what is to be said, or was */
};

/* What the command uses of this host: see job_usage.c. */
struct job_usage {
	struct usage last; /* as the init has told it last; at_us 0: not yet */
	struct usage_sample *samples; /* that the server does not have, the oldest first */
	size_t n, sending;
	uint64_t gpus_seen; /* looks at the GPUs when they were last noted */
	struct fetch *request;
	struct buf body;
	struct retry wait;
	struct loop_timer again;
	bool refused; /* the server takes none */
	job_next_fn *next; /* the attempt is over: what follows, … */
	int64_t until; /* … at the latest at this time (loop_now) */
};

/* A rank of a gang, while its command waits for those of the others: see job_gang.c. */
struct job_gang {
	bool ready; /* the server is told of it, until all are: then it is */
	bool released;
	bool busy;
	char from[IP_TEXT_MAX]; /* this host's address on the way to the server, when it asked */
	struct rank_address here;
	struct str env, hostfile; /* for the command, once the others are known */
	struct err err;
};

struct job {
	struct agent *agent;
	struct job *next, *prev;
	struct arena *a;
	struct assignment task;
	struct record rec;
	const char *dir, *ctl, *secrets_dir;
	struct runtime *runtime; /* the chosen one; NULL before */
	struct runtime_status status; /* as seen last */

	/* Operations in flight; a job is freed when there are none. */
	int busy;
	bool saving, save_again, polling, stopping, removing, fresh;
	bool entering; /* a phase is being stored, and what it begins with has not run yet */
	bool stored; /* on disk, so that a restart finds it: the server is told of it */
	bool limited; /* the command has begun, and its limits are watched */
	bool admitted; /* holds its devices */
	bool cleared; /* nothing of it runs any more, for sure */
	bool agreeing; /* finishing, and the log is all that is waited for */
	bool forget; /* the server has said so */
	bool gone; /* everything is removed: free it */
	job_next_fn *after_save;
	struct buf text; /* what is being written */
	struct err save_err;
	struct workspace *workspace;
	struct ship_log *log;
	struct secrets *secrets; /* once they were read; NULL: it has none */
	bool secrets_known, unmaskable; /* they cannot be had, so the log must not leave */
	struct ship_outputs *outputs;
	struct job_checkpoint checkpoint;
	struct job_idle idle;
	struct job_usage usage;
	struct job_gang gang;
	struct watch_dir *watch;
	struct loop_timer limit, look, force, again;
	struct loop_timer resave; /* apart from `again`: a save keeps nothing else waiting */
	struct loop_timer unbusy; /* forgotten, and nothing is in flight any more */
	job_next_fn *retry; /* what `again` starts */
	struct retry wait;
	int asked; /* how often it was told to end */
	int unreachable; /* looks since its daemon has answered last */
	char message[512]; /* holds rec.message */
};

/* A new one, given by the server. The assignment is copied. ERR_TOO_LARGE. */
struct job *job_new(struct agent *g, const struct assignment *task, struct err *e) MUST_CHECK;
/* One of an earlier process, from its folder. */
struct job *job_adopt(struct agent *g, const char *dir, struct err *e) MUST_CHECK;
void job_resume(struct job *j); /* after all are adopted */

/* Ends it, whatever it is doing: REASON_CANCELLED, REASON_SUPERSEDED, REASON_TIMEOUT, … */
bool job_stop(struct job *j, enum reason why); /* false: it knew already */
bool job_forget(struct job *j); /* likewise */
/* All ranks of its gang are ready. */
bool job_release(struct job *j, const struct list *ranks); /* struct rank_place; likewise */
void job_report(const struct job *j, struct sync_attempt *out);
bool job_holds(const struct job *j, struct str device);
void job_admit(struct job *j); /* goes on when its devices are free */
/* Lets go of what is in flight, at the end of the process: the command stays. */
void job_close(struct job *j);
void job_free(struct job *j); /* not busy */

/* ---- between the files of a job ---- */
void job_enter(struct job *j, enum job_phase phase, job_next_fn *next); /* saves, then goes on */
void job_save(struct job *j, job_next_fn *next);
void job_later(struct job *j, job_next_fn *what, int64_t ms); /* by the timer `again` */
void job_prepare(struct job *j);
void job_start(struct job *j);
void job_watch(struct job *j); /* the command runs, or has ended */
/* Whether other ranks of its gang would reach it there: not in a container's own network. */
bool job_gang_reachable(const struct job *j, const struct runtime *r);
void job_gang_wait(struct job *j); /* its command waits */
void job_ask_to_end(struct job *j);
/* The command is over, or there was none. */
void job_finish(struct job *j, enum attempt_state result, enum reason why, const char *message);
int job_secrets(struct job *j, struct err *e) MUST_CHECK; /* reads them, once */
void job_log_open(struct job *j);
/* While the command runs, its checkpoint is brought to the server when it has changed. */
void job_checkpoint_watch(struct job *j);
/* The attempt is over: brings it for the last time when another may follow, keeps it here. */
void job_checkpoint_end(struct job *j, job_next_fn *next);
void job_checkpoint_cancel(struct job *j); /* what is on its way */
void job_checkpoint_init(struct job *j);
void job_checkpoint_paths(struct job *j); /* once those of the job are set */
/* Nothing while it is busy; whatever comes back then comes here again. */
void job_remove(struct job *j);
void job_log_abandon(struct job *j);
void job_timers_init(struct job *j);
void job_limits_init(struct job *j);
void job_limits_watch(struct job *j); /* the command has begun */
void job_start_limit(struct job *j); /* it has not, as is known now: how long it may still take */
void job_limits_cancel(struct job *j);
void job_usage_init(struct job *j);
void job_usage_done(struct job *j); /* at the end of the job */
void job_usage_look(struct job *j); /* the init may have told more */
/* The attempt is over: goes on when the server has all, or cannot be told soon. */
void job_usage_wait(struct job *j, job_next_fn *next);
void job_usage_cancel(struct job *j); /* what is on its way */
bool job_stop_fails(enum reason stop); /* what ends so has failed; else it is cancelled */
/* Why it was stopped, with the limit; "" when the reason says it all. */
const char *job_stop_text(struct job *j);
/* At the end of an operation: true when the process ends, and nothing more is to be done. */
bool job_returned(struct job *j);
struct runtime_ref job_ref(const struct job *j);
/* Its runtime failed with e, and nobody is left who could tell more of it: nothing of it runs. */
bool job_abandoned(const struct job *j, const struct err *e);

#endif
