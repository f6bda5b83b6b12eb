/*
 * What starts runs by itself. While this server leads: a new version of a data set starts the
 * pipelines that name it, once per version (a unique key of the run sees to that). The hub tells of
 * new versions; the tick finds those that were missed.
 */
#ifndef SERVER_SCHED_TRIGGERS_H
#define SERVER_SCHED_TRIGGERS_H

struct app;
struct triggers;

struct triggers *triggers_new(struct app *app);
void triggers_free(struct triggers *t); /* NULL is fine */

#endif
