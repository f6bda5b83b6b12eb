/*
 * The end of a run whose steps have all succeeded (state finishing): registers its model version,
 * applies the gate, feeds its observations to monitors, and ends the run. May be called again at
 * any time, after a crash too: what has been done is not done twice.
 */
#ifndef SERVER_SCHED_FINISH_H
#define SERVER_SCHED_FINISH_H
#include "lib/base/str.h"

struct app;
void finish_run(struct app *app, struct str run_id);

#endif
