/*
 * The hub reads the outbox as it grows and tells the parts of this server what has happened: each
 * event once and in order, from the loop, never inside hub_wake(). It is woken by our own commits,
 * by the other servers' notifications, and by a timer, since notifications may be lost. Events from
 * before the hub was opened are not told: whoever needs a starting point reads the state itself.
 */
#ifndef SERVER_SCHED_HUB_H
#define SERVER_SCHED_HUB_H
#include "api/event.h"

struct app;
struct hub;

/* One event; lent for the call. project_id is of ev->project's row. */
typedef void hub_cb(void *arg, const struct event *ev, struct str project_id);
struct hub_listener;

struct hub *hub_new(struct app *app);
void hub_free(struct hub *h); /* all listeners must be gone; NULL is fine */
void hub_wake(struct hub *h);
struct hub_listener *hub_listen(struct hub *h, hub_cb *fn, void *arg);
void hub_unlisten(struct hub_listener *l); /* also inside a callback; NULL is fine */
/* The id of the newest event that was told. */
int64_t hub_position(const struct hub *h);
/* What was committed before this time (loop_now()) has been told. */
int64_t hub_told_until(const struct hub *h);

#endif
