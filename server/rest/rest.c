/*
 * From a request's head to its handler: rest_auth runs when the head is there (credential, then the
 * project of the path and the caller's role in it), rest_run when the body may be read or has been
 * read (query and body through the route's tables, then the handler). An object that the caller may
 * not see and one that is not there are answered alike.
 */
#include "server/rest/rest.h"

#include "lib/base/mem.h"
#include "lib/json/yaml.h"
#include "server/rest/grants.h"
#include "server/store/auth_store.h"

enum { BODY_DEFAULT = 256 << 10 };

struct bound {
	const struct route *route;
	call_handler *handler;
};

struct rest {
	struct http_route *routes;
	struct bound *bound;
};

static void rest_on_caller(void *arg, const struct caller *who, const struct err *e);
static void rest_find_project(struct call *c);
static void rest_on_project(struct call *c, const struct db_rows *rows);
static void rest_check_role(struct call *c);
static void rest_run(struct http_req *q);

static call_handler *handler_of(const struct binding *const *tables, const char *id)
{
	for (; *tables != NULL; tables++)
		for (const struct binding *b = *tables; b->id != NULL; b++)
			if (strcmp(b->id, id) == 0)
				return b->handler;
	return NULL;
}

static enum http_body body_kind(const struct route *r)
{
	switch (r->body) {
	case BODY_NONE: return HTTP_BODY_NONE;
	case BODY_JSON:
	case BODY_YAML: return HTTP_BODY_WHOLE;
	case BODY_STREAM:
	case BODY_ROWS: break;
	}
	return HTTP_BODY_STREAM;
}

static uint64_t body_max(const struct route *r)
{
	if (r->in_max != 0)
		return r->in_max;
	return r->body == BODY_JSON || r->body == BODY_YAML ? BODY_DEFAULT : 0;
}

struct rest *rest_new(const struct binding *const *tables)
{
	struct rest *r = mem_new_of(struct rest);
	size_t n = 0;

	r->routes = mem_new(routes_count + 1, sizeof *r->routes);
	r->bound = mem_new(routes_count, sizeof *r->bound);
	for (size_t i = 0; i < routes_count; i++) {
		call_handler *handler = handler_of(tables, routes[i].id);
		if (handler == NULL)
			continue;
		r->bound[n] = (struct bound){ &routes[i], handler };
		r->routes[n] = (struct http_route){ routes[i].method, routes[i].path, rest_run,
			body_kind(&routes[i]), body_max(&routes[i]), &r->bound[n] };
		n++;
	}
	return r;
}

void rest_free(struct rest *r)
{
	if (r == NULL)
		return;
	mem_free(r->routes);
	mem_free(r->bound);
	mem_free(r);
}

const struct http_route *rest_routes(const struct rest *r)
{
	return r->routes;
}

const struct route *rest_route_of(const struct http_req *q)
{
	const struct bound *b = q->route != NULL ? q->route->data : NULL;

	return b != NULL ? b->route : NULL;
}

void rest_auth(struct http_req *q)
{
	const struct bound *b = q->route != NULL ? q->route->data : NULL;

	if (b == NULL) { /* the dashboard's own files */
		http_auth_ok(q);
		return;
	}
	struct call *c = arena_new_of(q->arena, struct call);
	*c = (struct call){ .req = q,
		.app = q->app,
		.arena = q->arena,
		.route = b->route,
		.handler = b->handler,
		.role = -1 };
	q->user = c;
	if (c->route->perm == PERM_PUBLIC) {
		http_auth_ok(q);
		return;
	}
	auth_check(c->app->auth, q, rest_on_caller, c);
}

static bool is_person(const struct caller *who)
{
	return who->kind == CREDENTIAL_PAT || who->kind == CREDENTIAL_CI;
}

/* Whether this kind of credential may call the operation at all. */
static bool kind_allowed(const struct call *c)
{
	switch (c->route->perm) {
	case PERM_WORKER: return c->who.kind == CREDENTIAL_WORKER;
	case PERM_JOIN: return c->who.kind == CREDENTIAL_JOIN;
	case PERM_BOOTSTRAP: return c->who.kind == CREDENTIAL_BOOTSTRAP;
	case PERM_ADMIN: return is_person(&c->who) && c->who.admin;
	case PERM_TRACK_READ:
	case PERM_TRACK_WRITE: return is_person(&c->who) || c->who.kind == CREDENTIAL_JOB;
	case PERM_PUBLIC:
	case PERM_SELF:
	case PERM_READ:
	case PERM_SUBMIT:
	case PERM_OPERATE:
	case PERM_OWN:
	case PERM_COUNT: break;
	}
	return is_person(&c->who);
}

/* What the cache lends for the callback only, for as long as the request lives. */
static struct caller keep_caller(struct arena *a, const struct caller *who)
{
	struct caller c = *who;
	struct str *const texts[] = { &c.token_id, &c.principal_id, &c.name, &c.project_id,
		&c.project, &c.worker_id, &c.attempt_id, &c.data };

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		*texts[i] = arena_str(a, *texts[i]);
	return c;
}

static void rest_on_caller(void *arg, const struct caller *who, const struct err *e)
{
	struct call *c = arg;
	struct err refused;

	if (e->code != ERR_OK) {
		if (e->code == ERR_UNAUTHENTICATED)
			(void)http_reply_header(
				c->req, "WWW-Authenticate", STR("Bearer realm=\"tidemill\""));
		call_fail(c, e);
		return;
	}
	c->who = keep_caller(c->arena, who);
	if (kind_allowed(c)) {
		rest_find_project(c);
		return;
	}
	(void)err_set(&refused, ERR_FORBIDDEN, "this needs the permission \"%s\"",
		permission_name(c->route->perm));
	call_fail(c, &refused);
}

/* Path parameters that name an object which a project owns. */
static const char *const object_params[] = { "run", "step", "attempt", "tracking", "decision" };

static const char *owner_param(const struct call *c)
{
	for (size_t i = 0; i < sizeof object_params / sizeof object_params[0]; i++) {
		char pattern[32];
		(void)str_print(pattern, sizeof pattern, "{%s}", object_params[i]);
		if (strstr(c->route->path, pattern) != NULL)
			return object_params[i];
	}
	return NULL;
}

static void take_grant(struct call *c, const struct grant *g)
{
	c->project_id = arena_str(c->arena, g->project_id);
	c->project = arena_str(c->arena, g->project);
	c->role = call_role(c, c->project_id, g->role);
}

static void rest_find_project(struct call *c)
{
	const char *object = owner_param(c);
	bool named = strstr(c->route->path, "{project}") != NULL;

	if (c->route->perm == PERM_WORKER || (!named && object == NULL)) {
		http_auth_ok(c->req);
		return;
	}
	struct grant g;
	if (named &&
		grants_get(c->app->grants, c->who.principal_id, call_param(c, "project"), &g)) {
		take_grant(c, &g);
		rest_check_role(c);
		return;
	}
	struct db_unit *u = call_unit(c);
	c->grants = grants_changes(c->app->grants);
	if (named)
		auth_store_access_project(u, c->who.principal_id, call_param(c, "project"));
	else
		auth_store_access_object(u, c->who.principal_id, object, call_param(c, object));
	call_send(c, u, DB_READ, rest_on_project);
}

static int role_needed(enum permission p)
{
	switch (p) {
	case PERM_READ:
	case PERM_TRACK_READ: return ROLE_VIEWER;
	case PERM_SUBMIT:
	case PERM_TRACK_WRITE: return ROLE_CI;
	case PERM_OPERATE: return ROLE_OPERATOR;
	case PERM_PUBLIC:
	case PERM_SELF:
	case PERM_OWN:
	case PERM_ADMIN:
	case PERM_WORKER:
	case PERM_JOIN:
	case PERM_BOOTSTRAP:
	case PERM_COUNT: break;
	}
	return ROLE_OWNER;
}

static void rest_on_project(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n != 0) {
		struct grant g = { db_str(&rows[0], 0, 0), db_str(&rows[0], 0, 1),
			db_str(&rows[0], 0, 2) };
		take_grant(c, &g);
		if (c->role >= 0)
			grants_put(c->app->grants, c->grants, c->who.principal_id, &g);
	}
	rest_check_role(c);
}

static void rest_check_role(struct call *c)
{
	struct err e;

	if (c->role < 0) {
		bool named = strstr(c->route->path, "{project}") != NULL;
		const char *what = named ? "project" : owner_param(c);
		call_not_found(c, strcmp(what, "tracking") == 0 ? "tracking run" : what);
		return;
	}
	if (c->role < role_needed(c->route->perm)) {
		(void)err_set(&e, ERR_FORBIDDEN,
			"this needs the role \"%s\" in the project, the caller has \"%s\"",
			role_names[role_needed(c->route->perm)], role_names[c->role]);
		call_fail(c, &e);
		return;
	}
	http_auth_ok(c->req);
}

static int refuse_arg(const struct http_req *q, struct err *e)
{
	char name[64];

	(void)str_print(name, sizeof name, "%.*s", STR_ARG(q->args[0].name));
	(void)err_field(e, "", "this takes no query parameters");
	err_field_prefix(e, name);
	return -1;
}

static int decode_query(struct call *c, struct err *e)
{
	struct http_req *q = c->req;
	struct field_pair *pairs = arena_array_of(c->arena, struct field_pair, q->n_args + 1);

	if (c->route->flags & ROUTE_MLFLOW)
		return 0; /* by its own rules */
	if (c->route->query == NULL)
		return q->n_args == 0 ? 0 : refuse_arg(q, e);
	for (size_t i = 0; i < q->n_args; i++)
		pairs[i] = (struct field_pair){ q->args[i].name, q->args[i].value };
	c->query = arena_alloc(c->arena, c->route->query_size);
	if (field_decode_pairs(c->route->query, pairs, q->n_args, c->arena, c->query, e) < 0)
		return -1;
	return call_page_check(c, e);
}

static bool type_is(const struct http_req *q, const char *type)
{
	struct str rest = http_header(q, "Content-Type"), first;

	return str_next(&rest, ';', &first) && str_eq_nocase(str_trim(first), str_c(type));
}

/* One of those that the contract names. */
static int check_type(const struct call *c, struct err *e)
{
	const char *const *types = route_body_types(c->route->body);
	char said[128] = "";

	if (*types == NULL || (c->route->flags & ROUTE_MLFLOW))
		return 0;
	for (size_t i = 0, n = 0; types[i] != NULL; i++) {
		if (type_is(c->req, types[i]))
			return 0;
		(void)str_print(said + n, sizeof said - n, "%s%s", i == 0 ? "" : " or ", types[i]);
		n = strlen(said);
	}
	return err_set(e, ERR_UNSUPPORTED_MEDIA, "Content-Type must be %s", said);
}

static int decode_body(struct call *c, struct err *e)
{
	struct http_req *q = c->req;
	bool yaml = c->route->body == BODY_YAML && !type_is(q, "application/json");

	if (check_type(c, e) < 0)
		return -1;
	if (c->route->in == NULL)
		return 0;
	c->in = arena_alloc(c->arena, c->route->in_size);
	return yaml ? yaml_decode(c->route->in, q->body, c->arena, c->in, e)
		    : field_decode(c->route->in, q->body, c->arena, c->in, e);
}

/* Bodies are read as they are: what is packed would be taken for what it is not. */
static int check_coding(const struct call *c, struct err *e)
{
	struct str coding = http_header(c->req, "Content-Encoding");

	if (coding.n == 0 || str_eq_nocase(coding, STR("identity")) || c->route->body == BODY_NONE)
		return 0;
	return err_set(e, ERR_UNSUPPORTED_MEDIA,
		"Content-Encoding is not taken: send the bytes as they are");
}

static void rest_run(struct http_req *q)
{
	struct call *c = q->user;
	struct err e;

	c->query_bad = true;
	if (check_coding(c, &e) == 0 && decode_query(c, &e) == 0) {
		c->query_bad = false;
		if (decode_body(c, &e) == 0) {
			c->handler(c);
			return;
		}
	}
	call_fail(c, &e);
}
