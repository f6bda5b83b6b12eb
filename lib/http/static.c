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

/* Where programs look for data and browsers for parts of a page: no place for a page to say that it
 * is none. */
static bool is_data(struct str path)
{
	return str_starts(path, STR("/api/")) || str_starts(path, STR("/assets/"));
}

/* What a path is answered with. */
struct found {
	const struct static_asset *asset; /* NULL with *e: nothing */
	int status; /* 404: the page that says so */
};

static struct found find(
	const struct static_files *f, const char *const *pages, struct http_req *q, struct err *e)
{
	struct str path = q->decoded_path;
	struct found it = { map_get(f->by_path, path), 200 };
	bool page = is_page(pages, path), root = str_is(path, "/");

	(void)err_set(e, ERR_NOT_FOUND, "There is nothing at this address");
	if (it.asset != NULL || (!page && !root && is_data(path)))
		return it;
	if (!root)
		http_reply_header(q, "Vary", STR("Accept"));
	if (!root && str_find(http_header(q, "accept"), STR("text/html")) < 0)
		return it;
	it = (struct found){ map_get(f->by_path, STR("/index.html")), page || root ? 200 : 404 };
	if (it.asset == NULL)
		(void)err_set(e, ERR_NOT_FOUND, "This server was built without its dashboard");
	return it;
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
	struct found it = find(f, pages, q, &e);
	const struct static_asset *a = it.asset;
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
	if (it.status == 200)
		http_reply_header(q, "ETag", etag);
	if (it.status == 200 && str_find(http_header(q, "if-none-match"), etag) >= 0)
		http_reply_empty(q, 304);
	else
		http_reply_const(q, it.status, a->type,
			(struct str){ a->begin, (size_t)(a->end - a->begin) });
}
