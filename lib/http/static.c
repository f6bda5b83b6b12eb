#include "lib/http/static.h"

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/http/reply.h"

struct static_files {
	struct map *by_path;
};

static const char page_policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
	"connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
	"frame-ancestors 'none'; require-trusted-types-for 'script'";

struct static_files *static_files_new(const struct static_asset *assets, size_t n)
{
	struct static_files *f = mem_new_of(struct static_files);

	f->by_path = map_new();
	for (size_t i = 0; i < n; i++) {
		/* The map keeps plain pointers; it never writes through this one. */
		union {
			const struct static_asset *in;
			void *out;
		} u = { .in = &assets[i] };

		map_put(f->by_path, str_c(assets[i].path), u.out);
	}
	return f;
}

void static_files_free(struct static_files *f)
{
	if (f == NULL)
		return;
	map_free(f->by_path);
	mem_free(f);
}

/* A segment in braces stands for any; a slash at the end says nothing. */
static bool is_like(struct str path, const char *pattern)
{
	struct str want = str_c(pattern), a, b;

	if (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	for (;;) {
		bool more = str_next(&want, '/', &a);
		if (more != str_next(&path, '/', &b))
			return false;
		if (!more)
			return true;
		bool any = a.n != 0 && a.p[0] == '{' && b.n != 0;
		if (!any && !str_eq(a, b))
			return false;
	}
}

static bool is_page(const char *const *pages, struct str path)
{
	for (; *pages != NULL; pages++)
		if (is_like(path, *pages))
			return true;
	return false;
}

/* The file or page of the path; NULL with *e for a path that has none. */
static const struct static_asset *find(
	const struct static_files *f, const char *const *pages, struct http_req *q, struct err *e)
{
	const struct static_asset *a;
	bool page = is_page(pages, q->decoded_path);

	(void)err_set(e, ERR_NOT_FOUND, "There is nothing at this address");
	if (page)
		http_reply_header(q, "Vary", STR("Accept"));
	else if (!str_is(q->decoded_path, "/"))
		return map_get(f->by_path, q->decoded_path);
	if (page && str_find(http_header(q, "accept"), STR("text/html")) < 0)
		return NULL;
	a = map_get(f->by_path, STR("/index.html"));
	if (a == NULL)
		(void)err_set(e, ERR_NOT_FOUND, "This server was built without its dashboard");
	return a;
}

static void page_headers(struct http_req *q)
{
	http_reply_header(q, "Content-Security-Policy", STR(page_policy));
	http_reply_header(q, "Referrer-Policy", STR("no-referrer"));
	http_reply_header(q, "Cross-Origin-Opener-Policy", STR("same-origin"));
	http_reply_header(q, "Permissions-Policy", STR("camera=(), microphone=(), geolocation=()"));
	if (q->tls)
		http_reply_header(q, "Strict-Transport-Security", STR("max-age=31536000"));
}

void static_files_reply(const struct static_files *f, const char *const *pages, struct http_req *q)
{
	struct err e;
	const struct static_asset *a = find(f, pages, q, &e);
	struct str etag;

	if (a == NULL) {
		http_reply_err(q, &e);
		return;
	}
	if (str_starts(str_c(a->type), STR("text/html")))
		page_headers(q);
	http_reply_header(q, "Cross-Origin-Resource-Policy", STR("same-origin"));
	http_reply_header(q, "Cache-Control",
		str_starts(str_c(a->path), STR("/assets/"))
			? STR("public, max-age=31536000, immutable")
			: STR("no-cache"));
	etag = arena_printf(q->arena, "\"%s\"", a->etag);
	http_reply_header(q, "ETag", etag);
	if (str_find(http_header(q, "if-none-match"), etag) >= 0)
		http_reply_empty(q, 304);
	else
		http_reply_const(
			q, 200, a->type, (struct str){ a->begin, (size_t)(a->end - a->begin) });
}
