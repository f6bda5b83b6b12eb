/*
 * Runs that start by the clock, at the end of other pipelines' runs, and when data sets get new
 * versions. The leader decides which
 * instants of a schedule have come (server/core/schedule) and writes down the runs that are owed,
 * each once; then it makes them, and tries again for a day what cannot be made now.
 */
#ifndef SERVER_SCHED_SCHEDULES_H
#define SERVER_SCHED_SCHEDULES_H

struct app;
struct schedules;

struct schedules *schedules_new(struct app *app);
void schedules_free(struct schedules *s); /* NULL is fine */

#endif
