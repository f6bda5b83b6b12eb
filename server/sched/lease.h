/*
 * Leadership by a lease row: 5 s, renewed every second, in the database's time. The holder's writes
 * are guarded by the epoch, so a leader that has lost the lease without knowing can change nothing.
 * Released on a good end, so that another server takes over at once.
 */
#ifndef SERVER_SCHED_LEASE_H
#define SERVER_SCHED_LEASE_H
#include <stdbool.h>
#include <stdint.h>

struct app;
struct lease;

/* Told in a later turn, with the new standing. */
typedef void lease_cb(void *arg, bool leading);
struct lease *lease_new(struct app *app, const char *role, lease_cb *cb, void *arg);
/* Gives the lease back; the release is sent before the memory goes. NULL is fine. */
void lease_free(struct lease *l);
bool lease_held(const struct lease *l);
int64_t lease_epoch(const struct lease *l);
int64_t lease_since(const struct lease *l); /* wall time of the acquisition */

#endif
