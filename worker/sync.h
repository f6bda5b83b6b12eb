/*
 * The exchange with the server (api/worker.h): one request is always parked there, so that what the
 * server wants arrives at once; what changes here is told by a second one that does not wait. After
 * a failure it tries again with a jittered, growing pause. Nothing here ends because the server is
 * away.
 */
#ifndef WORKER_SYNC_H
#define WORKER_SYNC_H
struct agent;
struct sync;

struct sync *sync_new(struct agent *g) __attribute__((returns_nonnull));
void sync_changed(struct sync *s); /* there is something to tell; cheap, any number of times */
/* Stops; requests in flight end with their client. */
void sync_stop(struct sync *s);
void sync_free(struct sync *s); /* after the client; NULL is fine */

#endif
