/*
 * The end of a run whose steps have all succeeded (state finishing): feeds its observations to
 * monitors, registers its model version, applies the gate, moves the alias and the monitors that
 * watch it, and ends the run, the last four in one transaction. An output that cannot be used fails
 * the run, and then nothing is registered. May be called again at any time, after a crash too: what
 * has been done is not done twice.
 *
 * A run that has failed or was cancelled is brought here as well: it closes the retraining that it
 * was.
 */
#ifndef SERVER_SCHED_FINISH_H
#define SERVER_SCHED_FINISH_H
#include "lib/base/str.h"

struct app;
struct finish;

/* Listens for runs that end, and looks from time to time for what was left behind. */
struct finish *finish_new(struct app *app);
void finish_free(struct finish *f); /* before the hub; NULL is fine */
void finish_run(struct app *app, struct str run_id);

#endif
