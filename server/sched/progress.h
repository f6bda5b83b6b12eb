/*
 * How a run goes on. progress_run reads the run, its steps and their newest attempts, works out
 * what follows from them (server/core/dag, fsm, retry), and writes that as one unit guarded by the
 * run's version; when somebody else was quicker it reads again. It can be called at any time, by
 * anybody, as often as they like: what has been done already is not done again. Called after every
 * change that may matter to a run, and by the leader for all open runs when it takes over.
 */
#ifndef SERVER_SCHED_PROGRESS_H
#define SERVER_SCHED_PROGRESS_H
#include "lib/base/str.h"

struct app;
struct progress;

struct progress *progress_new(struct app *app);
void progress_stop(struct progress *p); /* before the database goes; NULL is fine */
void progress_free(struct progress *p);
void progress_run(struct app *app, struct str run_id);
/* Runs that may have been left where they are by a server that went away. */
void progress_sweep(struct app *app);

#endif
