/*
 * Leadership by a lease row: 5 s, renewed every second, in the database's time. The holder's writes
 * are guarded by the epoch, so a leader that has lost the lease without knowing can change nothing.
 * Released when a server is asked to end, so that another one takes over at once.
 */
#ifndef SERVER_SCHED_LEASE_H
#define SERVER_SCHED_LEASE_H
#include <stdbool.h>
#include <stdint.h>

struct app;
struct lease;

/* Told in a later turn, with the new standing; of lease_resign inside it. */
typedef void lease_cb(void *arg, bool leading);
struct lease *lease_new(struct app *app, const char *role, lease_cb *cb, void *arg);
/* Somebody may have given the lease back: asks for it now. */
void lease_look(struct lease *l);
/* Gives the lease back, or ceases to ask for it, for good; the other servers are notified. */
void lease_resign(struct lease *l);
/* Resigns; the release is sent before the memory goes. NULL is fine. */
void lease_free(struct lease *l);
bool lease_held(const struct lease *l);
int64_t lease_epoch(const struct lease *l);
int64_t lease_age(const struct lease *l); /* µs since the acquisition */

#endif
