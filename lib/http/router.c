#include "lib/http/router.h"

#include "lib/base/mem.h"

/*
 * A trie of segments. Each node has its fixed children, one child for "{name}", and the rows that
 * end there, one per method; "{name*}" is a list of rows at the node before it. A fixed child is
 * tried first; when nothing below it fits, the parameter is tried: depth is bounded by the number
 * of segments and each level has two choices, but patterns that make both fit are rare and short.
 */

struct node {
	struct str segment;
	struct node *next; /* sibling */
	struct node *fixed; /* first fixed child */
	struct node *param; /* child for "{name}" */
	const struct http_route **ends,
		**rests; /* rows whose pattern ends here; "{name*}" below here */
	size_t n_ends, n_rests;
};

struct router {
	struct arena *arena;
	struct node *root;
};

enum { ROUTER_MEMORY = 8 << 20 };

static bool is_param(struct str seg)
{
	return seg.n > 2 && seg.p[0] == '{' && seg.p[seg.n - 1] == '}';
}

static bool is_rest(struct str seg)
{
	return is_param(seg) && seg.p[seg.n - 2] == '*';
}

static void row_add(
	struct arena *a, const struct http_route ***rows, size_t *n, const struct http_route *row)
{
	const struct http_route **grown = arena_array_of(a, const struct http_route *, *n + 1);

	for (size_t i = 0; i < *n; i++) {
		BUG_ON(strcmp((*rows)[i]->method, row->method) == 0);
		grown[i] = (*rows)[i];
	}
	grown[(*n)++] = row;
	*rows = grown;
}

static struct node *child(struct arena *a, struct node *at, struct str seg)
{
	struct node *c;

	if (is_param(seg)) {
		if (at->param == NULL)
			at->param = arena_new_of(a, struct node);
		return at->param;
	}
	for (c = at->fixed; c != NULL; c = c->next)
		if (str_eq(c->segment, seg))
			return c;
	c = arena_new_of(a, struct node);
	c->segment = seg;
	c->next = at->fixed;
	at->fixed = c;
	return c;
}

static void check_row(const struct http_route *row)
{
	struct str rest = str_c(row->pattern + 1), seg;
	size_t params = 0;

	BUG_ON(row->pattern[0] != '/' || row->handler == NULL);
	while (str_next(&rest, '/', &seg)) {
		params += is_param(seg) ? 1 : 0;
		BUG_ON(is_rest(seg) && rest.p != NULL); /* "{name*}" is the last */
	}
	BUG_ON(params > HTTP_PARAMS_MAX);
}

static void route_add(struct router *r, const struct http_route *row)
{
	struct str rest = str_c(row->pattern + 1), seg;
	struct node *at = r->root;

	check_row(row);
	while (str_next(&rest, '/', &seg)) {
		if (is_rest(seg)) {
			row_add(r->arena, &at->rests, &at->n_rests, row);
			return;
		}
		at = child(r->arena, at, seg);
	}
	row_add(r->arena, &at->ends, &at->n_ends, row);
}

struct router *router_new(const struct http_route *routes)
{
	struct router *r = mem_new_of(struct router);

	r->arena = arena_new(ROUTER_MEMORY);
	r->root = arena_new_of(r->arena, struct node);
	for (; routes != NULL && routes->pattern != NULL; routes++)
		route_add(r, routes);
	return r;
}

void router_free(struct router *r)
{
	if (r == NULL)
		return;
	arena_drop(r->arena);
	mem_free(r);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

const char *router_decode(struct str s, bool form, char *out, size_t *ret_n)
{
	static const char broken[] = "has a '%' without two hexadecimal digits after it";
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		int hi, lo;

		if (s.p[i] != '%') {
			out[n] = s.p[i];
			if (form && s.p[i] == '+')
				out[n] = ' ';
			n++;
			continue;
		}
		if (s.n - i < 3)
			return broken;
		hi = hex_value(s.p[i + 1]);
		lo = hex_value(s.p[i + 2]);
		if (hi < 0 || lo < 0)
			return broken;
		if (hi == 0 && lo == 0)
			return "has a NUL (%00), which nothing here can have in its name";
		out[n++] = (char)(hi << 4 | lo);
		i += 2;
	}
	*ret_n = n;
	return NULL;
}

struct walk {
	struct str seg[ROUTER_SEGMENTS_MAX]; /* decoded, neighbours in decoded_path */
	size_t n;
	struct str method, params[HTTP_PARAMS_MAX];
	const struct http_route *route;
	/* The first place that fits, for any method: what 405 tells. */
	const struct http_route *const *rows;
	size_t n_rows;
};

/* Decodes path into one string and marks the segments in it. */
static int split(
	struct walk *w, struct arena *a, struct str path, struct str *ret_decoded, struct err *e)
{
	char *out = arena_alloc(a, path.n + 1);
	const char *why;
	size_t at = 0;
	struct str rest, seg;

	if (path.n == 0 || path.p[0] != '/')
		return err_set(e, ERR_NOT_FOUND, "There is nothing at this address");
	out[at++] = '/';
	rest = str_slice(path, 1, path.n - 1);
	while (str_next(&rest, '/', &seg)) {
		size_t n = 0;

		if (w->n == ROUTER_SEGMENTS_MAX)
			return err_set(e, ERR_MALFORMED, "The path has more than %d segments",
				ROUTER_SEGMENTS_MAX);
		if (w->n != 0)
			out[at++] = '/';
		why = router_decode(seg, false, out + at, &n);
		if (why != NULL)
			return err_set(e, ERR_MALFORMED, "The path %s", why);
		seg = (struct str){ out + at, n };
		if (!str_utf8_valid(seg))
			return err_set(e, ERR_MALFORMED, "The path is not UTF-8");
		if (str_is(seg, ".") || str_is(seg, ".."))
			return err_set(e, ERR_MALFORMED, "The path has '.' or '..' as a segment");
		w->seg[w->n++] = seg;
		at += n;
	}
	*ret_decoded = (struct str){ out, at };
	return 0;
}

static const struct http_route *row_for(
	const struct http_route *const *rows, size_t n, struct str method)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(method, rows[i]->method))
			return rows[i];
	for (size_t i = 0; i < n; i++)
		if (str_is(method, "HEAD") && strcmp(rows[i]->method, "GET") == 0)
			return rows[i];
	return NULL;
}

static bool take(struct walk *w, const struct http_route *const *rows, size_t n)
{
	if (n != 0 && w->rows == NULL) {
		w->rows = rows;
		w->n_rows = n;
	}
	w->route = row_for(rows, n, w->method);
	return w->route != NULL;
}

static bool walk_from(struct walk *w, const struct node *at, size_t i, size_t params)
{
	const char *end = w->seg[w->n - 1].p + w->seg[w->n - 1].n;

	if (i == w->n)
		return take(w, at->ends, at->n_ends);
	for (const struct node *c = at->fixed; c != NULL; c = c->next)
		if (str_eq(c->segment, w->seg[i]) && walk_from(w, c, i + 1, params))
			return true;
	if (at->param != NULL && w->seg[i].n != 0) {
		w->params[params] = w->seg[i];
		if (walk_from(w, at->param, i + 1, params + 1))
			return true;
	}
	if (at->n_rests == 0)
		return false;
	w->params[params] = (struct str){ w->seg[i].p, (size_t)(end - w->seg[i].p) };
	return take(w, at->rests, at->n_rests);
}

static struct str allow_list(struct arena *a, const struct http_route *const *rows, size_t n)
{
	struct str all = STR("");

	for (size_t i = 0; i < n; i++)
		all = arena_printf(a, "%.*s%s%s%s", STR_ARG(all), i != 0 ? ", " : "",
			rows[i]->method, strcmp(rows[i]->method, "GET") == 0 ? ", HEAD" : "");
	return all;
}

int router_match(const struct router *r, struct arena *a, struct str method, struct str path,
	struct router_found *ret, struct err *e)
{
	struct walk w = { .method = method };

	*ret = (struct router_found){ .route = NULL };
	if (split(&w, a, path, &ret->decoded_path, e) < 0)
		return -1;
	if (!walk_from(&w, r->root, 0, 0)) {
		if (w.rows == NULL)
			return err_set(e, ERR_NOT_FOUND, "There is nothing at this address");
		ret->allow = allow_list(a, w.rows, w.n_rows);
		return err_set(e, ERR_METHOD_NOT_ALLOWED,
			"This address does not take %.*s; it takes %.*s", STR_ARG(method),
			STR_ARG(ret->allow));
	}
	ret->route = w.route;
	memcpy(ret->params, w.params, sizeof ret->params);
	return 0;
}
