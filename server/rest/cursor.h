/*
 * Cursors of lists: the sort key of the last item of a page, in hex behind a mark of the list that
 * gave it, so that a cursor is opaque, safe in a URL, and good for no other list. The mark is no
 * secret: it keeps mistakes out, and what a cursor opens is what the caller may read anyway.
 */
#ifndef SERVER_REST_CURSOR_H
#define SERVER_REST_CURSOR_H
#include "lib/base/buf.h"
#include "server/rest/call.h"

/* The cursor that goes on behind `key` in the list that the call is for. */
void cursor_put(const struct call *c, struct str key, struct buf *out);
/* False when no page of this list has given the cursor. The key lies in the call's arena. */
bool cursor_key(const struct call *c, struct str cursor, struct str *ret_key);

#endif
