/*
 * What the server counts of itself, for Prometheus (text format 0.0.4). Names are
 * tidemill_<subsystem>_<what>_<unit>[_total] in base units; labels take their values from our own
 * tables only, so their number is bounded.
 */
#ifndef SERVER_REST_METRICS_H
#define SERVER_REST_METRICS_H
#include "lib/base/buf.h"
#include "lib/http/server.h"

struct app;
struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m); /* NULL is fine */
/* For http_config.on_done: counts a request that is over, by its operation. */
void metrics_on_done(void *app, const struct http_done *d);
void metrics_print(const struct app *app, struct buf *b);

#endif
