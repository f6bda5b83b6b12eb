/*
 * What the leader writes down of why steps wait, so that it stands in runs, steps and events
 * without anybody asking: what is in the way of a step that has waited for a second, without the
 * numbers that change as work comes and goes. Written when it changes, many steps at a time and at
 * most once per tick; an event tells when its kind changes.
 */
#ifndef SERVER_SCHED_NOTE_H
#define SERVER_SCHED_NOTE_H
#include <stdint.h>

struct app;
struct note;
struct pool;

struct note *note_new(struct app *app);
void note_free(struct note *n); /* NULL is fine */
/* Looks at what waits, as far as a few milliseconds reach; the next call goes on from there. */
void note_tick(struct note *n, struct pool *pool, int64_t epoch);

#endif
