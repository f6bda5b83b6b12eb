/* gzip (RFC 1952) as a stream, for files that users bring; ours are zstd. Several members in a row
 * are one stream. Blocking (CPU): belongs on a work thread. */
#ifndef LIB_ZIP_GUNZIP_H
#define LIB_ZIP_GUNZIP_H
#include "lib/base/err.h"
#include "lib/base/str.h"

struct gunzip;

/* `limit` bounds the bytes that come out altogether. */
struct gunzip *gunzip_new(uint64_t limit);
void gunzip_free(struct gunzip *g); /* NULL is fine */
/* Pieces of what comes out; lent for the call; -1 with *e stops. */
typedef int gunzip_cb(void *arg, struct str piece, struct err *e);
/* ERR_TOO_LARGE past the limit, ERR_INVALID when the bytes are not gzip. */
int gunzip_add(struct gunzip *g, struct str in, gunzip_cb *fn, void *arg, struct err *e) MUST_CHECK;
/* ERR_INVALID when the bytes end within a member, or there were none. */
int gunzip_end(const struct gunzip *g, struct err *e) MUST_CHECK;

#endif
