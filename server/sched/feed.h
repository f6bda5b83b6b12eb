/* A stored table fed to a monitor, as if it had come through the API: the observations output of a
 * run. The batch id makes it idempotent. */
#ifndef SERVER_SCHED_FEED_H
#define SERVER_SCHED_FEED_H
#include "api/monitor.h"
#include "server/blob/blob.h"

struct app;

struct feed {
	struct str project_id, monitor, batch, path;
	struct blob_id blob;
};
/* Once, from the loop, never inside the call. What *f leads to must live until then. */
typedef void feed_cb(void *arg, const struct observation_result *result, const struct err *e);
void feed_start(struct app *app, const struct feed *f, feed_cb *cb, void *arg);

#endif
