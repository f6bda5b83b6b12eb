/*
 * Files that are compiled in: the dashboard. /assets/ holds files whose names carry a hash of their
 * content (cached for ever). Paths of pages are given index.html, since the dashboard finds its way
 * by itself; everything else is what it says or 404. HTML carries the Content-Security-Policy and
 * its companions.
 */
#ifndef LIB_HTTP_STATIC_H
#define LIB_HTTP_STATIC_H
#include "lib/http/req.h"

struct static_asset {
	const char *path, *type,
		*etag; /* "/index.html", "text/html; charset=utf-8", without quotes */
	const char *begin, *end;
};

struct static_files;

/* The table, n rows, outlives the object. */
struct static_files *static_files_new(const struct static_asset *assets, size_t n)
	__attribute__((returns_nonnull));
void static_files_free(struct static_files *f); /* NULL is fine */
/* Answers a GET or HEAD. `pages` are the dashboard's own paths, as "/runs/{run}"; ends with NULL.
 * They are given index.html when the client takes HTML (so a program that asks for JSON at a wrong
 * address is told so), "/" always. Any other address but those below /api/ and /assets/ is given it
 * likewise, with 404: the dashboard says there is no such page. */
void static_files_reply(const struct static_files *f, const char *const *pages, struct http_req *q);

#endif
