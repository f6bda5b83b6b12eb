/*
 * Streams that stay open for hours are looked at again every two seconds: when the token has been
 * revoked or has run out, its principal was shut out, the session has ended, or the caller is no
 * member of the project any more, the stream is cut. One statement looks at all streams of this
 * server; while the database cannot be reached, streams stay.
 */
#ifndef SERVER_REST_ACCESS_H
#define SERVER_REST_ACCESS_H
#include "server/rest/call.h"

struct access;
struct access_watch;

struct access *access_new(struct app *app);
void access_stop(struct access *a); /* before the database is closed; NULL is fine */
void access_free(struct access *a); /* after the loop; all watches must be gone; NULL is fine */

/* Watches the caller of c in c's project; copies what it needs. on_lost runs once, from the loop;
 * the watch is still to be ended. */
typedef void access_lost_cb(void *arg);
struct access_watch *access_watch(struct call *c, access_lost_cb *on_lost, void *arg);
void access_unwatch(struct access_watch *w); /* NULL is fine; also inside on_lost */

#endif
