/* The API's front door: binds operations to handlers and dispatches requests to them. */
#ifndef SERVER_REST_REST_H
#define SERVER_REST_REST_H
#include "lib/http/req.h"
#include "server/rest/call.h"

struct rest;

/* One table of bindings of each file; ended by a NULL pointer. Operations without a handler are not
 * routed. */
struct rest *rest_new(const struct binding *const *tables);
void rest_free(struct rest *r);
/* For lib/http: the routes, and the auth hook that checks the caller's permission. */
const struct http_route *rest_routes(const struct rest *r);
void rest_auth(struct http_req *q);

/* The operation that a request has found; NULL: none. */
const struct route *rest_route_of(const struct http_req *q);

#endif
