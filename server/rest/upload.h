/* A request's body into the blob store, with backpressure. For routes whose body is a stream. */
#ifndef SERVER_REST_UPLOAD_H
#define SERVER_REST_UPLOAD_H
#include "server/blob/blob.h"
#include "server/rest/call.h"

typedef void upload_done_cb(struct call *c, const struct blob_id *id);
typedef void call_fail_cb(struct call *c, const struct err *e);

/* digest: 64 hex digits that the bytes must have, or empty. done: the bytes are on the disk; it
 * sends a unit with blob_store_put() and answers when that is durable. The collector is kept away
 * until the request is over. fail: answers in the words of the API; NULL: call_fail. */
void upload_take(struct call *c, struct str digest, upload_done_cb *done, call_fail_cb *fail);

/* The 32 bytes as a view, for statements; and as hex in the arena. */
struct str upload_digest(const struct blob_id *id);
struct str upload_hex(struct call *c, const struct blob_id *id);

#endif
