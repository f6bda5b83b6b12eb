/*
 * Finds the row of the caller's table for a method and a path. The path is split at its slashes
 * and each segment is percent-decoded once, so an encoded slash never splits. Refused as malformed:
 * a broken escape, an encoded NUL, "." and ".." as segments. Cost: O(segments), whatever the size
 * of the table. Immutable once made.
 */
#ifndef LIB_HTTP_ROUTER_H
#define LIB_HTTP_ROUTER_H
#include "lib/http/req.h"

enum { ROUTER_SEGMENTS_MAX = 64 };

struct router;

/* Rows that contradict each other (the same method and pattern, or names that end up in one place
 * twice) are a bug. The table outlives the router. */
struct router *router_new(const struct http_route *routes) __attribute__((returns_nonnull));
void router_free(struct router *r); /* NULL is fine */

struct router_found {
	const struct http_route *route; /* NULL: none */
	struct str params[HTTP_PARAMS_MAX];
	struct str decoded_path;
	struct str allow; /* with a path that exists, but not for this method: "GET, HEAD, POST" */
};

/* ERR_MALFORMED, ERR_NOT_FOUND or ERR_METHOD_NOT_ALLOWED; decoded_path is set for the latter two.
 */
int router_match(const struct router *r, struct arena *a, struct str method, struct str path,
	struct router_found *ret, struct err *e) MUST_CHECK;

/* Decodes %XX into out, which has room for s.n bytes; '+' becomes a space when `form`. NULL, or
 * what is wrong with the text, to be put after its name: "has a '%' without …", "has a NUL …". */
const char *router_decode(struct str s, bool form, char *out, size_t *ret_n);

#endif
