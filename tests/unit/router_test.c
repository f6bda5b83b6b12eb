#include "lib/http/router.h"

#include "tests/unit/unit.h"

static void handler(struct http_req *q)
{
	(void)q;
}

static const struct http_route routes[] = {
	{ .method = "GET", .pattern = "/", .handler = handler },
	{ .method = "GET", .pattern = "/api/runs", .handler = handler },
	{ .method = "POST", .pattern = "/api/runs", .handler = handler },
	{ .method = "GET", .pattern = "/api/runs/{run_id}", .handler = handler },
	{ .method = "DELETE", .pattern = "/api/runs/{run_id}", .handler = handler },
	{ .method = "GET", .pattern = "/api/runs/search", .handler = handler },
	{ .method = "POST", .pattern = "/api/runs/{run_id}/cancel", .handler = handler },
	{ .method = "GET", .pattern = "/api/runs/{run_id}/steps/{step}/log", .handler = handler },
	{ .method = "PUT", .pattern = "/artifacts/{run}/{path*}", .handler = handler },
	{ .pattern = NULL },
};

struct found {
	struct arena *arena;
	struct router *router;
	struct router_found f;
	struct err e;
	int rc;
};

static struct found find(const char *method, const char *path)
{
	struct found r = { .arena = arena_new(1 << 20), .router = router_new(routes) };

	r.rc = router_match(r.router, r.arena, str_c(method), str_c(path), &r.f, &r.e);
	return r;
}

static void done(struct found *r)
{
	router_free(r->router);
	arena_drop(r->arena);
}

static void finds(const char *method, const char *path, size_t row, const char *p0, const char *p1)
{
	struct found r = find(method, path);

	assert_int_equal(r.rc, 0);
	assert_ptr_equal(r.f.route, &routes[row]);
	if (p0 != NULL)
		assert_true(str_is(r.f.params[0], p0));
	if (p1 != NULL)
		assert_true(str_is(r.f.params[1], p1));
	done(&r);
}

static void fails(const char *method, const char *path, enum err_code code, const char *allow)
{
	struct found r = find(method, path);

	assert_int_equal(r.rc, -1);
	assert_int_equal(r.e.code, code);
	if (allow != NULL)
		assert_true(str_is(r.f.allow, allow));
	done(&r);
}

static void says(const char *path, const char *what)
{
	struct found r = find("GET", path);

	assert_int_equal(r.rc, -1);
	assert_int_equal(r.e.code, ERR_MALFORMED);
	assert_non_null(strstr(r.e.msg, what));
	done(&r);
}

void test_router__finds_rows_and_parameters(void **state)
{
	(void)state;
	finds("GET", "/", 0, NULL, NULL);
	finds("GET", "/api/runs", 1, NULL, NULL);
	finds("HEAD", "/api/runs", 1, NULL, NULL);
	finds("POST", "/api/runs", 2, NULL, NULL);
	finds("GET", "/api/runs/r1", 3, "r1", NULL);
	finds("POST", "/api/runs/r1/cancel", 6, "r1", NULL);
	finds("GET", "/api/runs/r1/steps/train/log", 7, "r1", "train");
	finds("PUT", "/artifacts/r1/a/b%20c/d", 8, "r1", "a/b c/d");
	finds("PUT", "/artifacts/r1/a", 8, "r1", "a");
}

void test_router__fixed_segments_win_but_do_not_hide(void **state)
{
	(void)state;
	finds("GET", "/api/runs/search", 5, NULL, NULL);
	finds("DELETE", "/api/runs/search", 4, "search", NULL);
	finds("POST", "/api/runs/search/cancel", 6, "search", NULL);
}

void test_router__decodes_each_segment_once(void **state)
{
	(void)state;
	finds("GET", "/api/runs/a%2Fb", 3, "a/b", NULL);
	finds("GET", "/api/runs/a%2541", 3, "a%41", NULL);
	finds("GET", "/api/runs/%C3%A9+", 3, "\xc3\xa9+", NULL);
	finds("GET", "/%61pi/runs", 1, NULL, NULL);
	fails("GET", "/api/runs/%", ERR_MALFORMED, NULL);
	fails("GET", "/api/runs/%4", ERR_MALFORMED, NULL);
	fails("GET", "/api/runs/%zz", ERR_MALFORMED, NULL);
	says("/api/runs/a%00b", "has a NUL (%00)");
	says("/api/runs/a%zz", "'%' without two hexadecimal digits");
	says("/api/runs/%ff", "The path is not UTF-8");
	fails("GET", "/api/runs/../x", ERR_MALFORMED, NULL);
	fails("GET", "/api/runs/%2e%2E/x", ERR_MALFORMED, NULL);
	fails("PUT", "/artifacts/r1/a/./b", ERR_MALFORMED, NULL);
}

void test_router__what_is_missing_and_what_is_not_allowed(void **state)
{
	(void)state;
	fails("GET", "/api", ERR_NOT_FOUND, NULL);
	fails("GET", "/api/runs/", ERR_NOT_FOUND, NULL);
	fails("GET", "/api/runs/r1/", ERR_NOT_FOUND, NULL);
	fails("GET", "/api//runs", ERR_NOT_FOUND, NULL);
	fails("GET", "*", ERR_NOT_FOUND, NULL);
	fails("PATCH", "/api/runs", ERR_METHOD_NOT_ALLOWED, "GET, HEAD, POST");
	fails("GET", "/api/runs/r1/cancel", ERR_METHOD_NOT_ALLOWED, "POST");
	fails("GET", "/artifacts/r1/x", ERR_METHOD_NOT_ALLOWED, "PUT");
}

void test_router__bounds_the_segments(void **state)
{
	char path[2 * ROUTER_SEGMENTS_MAX + 32] = "/artifacts/r";
	size_t n = strlen(path);

	(void)state;
	for (int i = 2; i < ROUTER_SEGMENTS_MAX; i++) {
		path[n++] = '/';
		path[n++] = 'x';
	}
	path[n] = '\0';
	finds("PUT", path, 8, "r", NULL);
	path[n++] = '/';
	path[n] = '\0';
	fails("PUT", path, ERR_MALFORMED, NULL);
}
