/*
 * Files that are compiled in: the dashboard. /assets/ holds files whose names carry a hash of their
 * content (cached for ever); every other path that no file has is given index.html, since the
 * dashboard finds its way by itself. HTML carries the Content-Security-Policy and its companions.
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
/* Answers a GET or HEAD. Paths below one of the prefixes ("/api/", …; ends with NULL) are never
 * given index.html, but 404. */
void static_files_reply(
	const struct static_files *f, const char *const *not_pages, struct http_req *q);

#endif
