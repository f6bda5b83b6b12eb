/* What the server says of itself: version, its own contract, liveness and readiness. */
#include "lib/json/json_write.h"
#include "server/rest/handlers.h"
#include "server/rest/openapi.h"

static void reply_raw(struct call *c, struct buf *b)
{
	http_reply_json(c->req, 200, buf_str(b));
	buf_done(b);
}

static void version_get(struct call *c)
{
	struct buf b;

	buf_init(&b, 4096);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "server");
	jsn_text(&w, TIDEMILL_VERSION);
	jsn_key(&w, "api");
	jsn_text(&w, "v1");
	jsn_obj_end(&w);
	reply_raw(c, &b);
}

static void openapi_get(struct call *c)
{
	struct buf b;

	buf_init(&b, OPENAPI_MAX);
	openapi_print(&b);
	reply_raw(c, &b);
}

static void schema_get(struct call *c)
{
	struct buf b;

	buf_init(&b, OPENAPI_MAX);
	if (openapi_file_schema(call_param(c, "kind"), &b)) {
		reply_raw(c, &b);
		return;
	}
	buf_done(&b);
	call_not_found(c, "schema");
}

static void livez_get(struct call *c)
{
	http_reply_text(c->req, 200, "ok\n");
}

static void readyz_get(struct call *c)
{
	if (c->app->draining)
		http_reply_text(c->req, 503, "draining\n");
	else if (!db_is_up(c->app->db))
		http_reply_text(c->req, 503, "the database cannot be reached\n");
	else
		http_reply_text(c->req, 200, "ok\n");
}

const struct binding server_bindings[] = {
	{ "server.version", version_get },
	{ "server.openapi", openapi_get },
	{ "server.contract", openapi_get },
	{ "server.schema", schema_get },
	{ "server.livez", livez_get },
	{ "server.readyz", readyz_get },
	{ 0 },
};
