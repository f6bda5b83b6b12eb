#include "server/rest/openapi.h"

#include "api/monitor.h"
#include "api/pipeline.h"
#include "api/route.h"
#include "lib/base/err.h"
#include "lib/json/json_write.h"

static void put_schema(struct jsn_out *w, const struct field *t)
{
	struct buf b;

	buf_init(&b, OPENAPI_MAX);
	field_schema(t, &b);
	jsn_raw(w, buf_str(&b));
	buf_done(&b);
}

static void put_row_schema(struct jsn_out *w, const struct field *f)
{
	struct buf b;

	buf_init(&b, OPENAPI_MAX);
	field_schema_row(f, &b);
	jsn_raw(w, buf_str(&b));
	buf_done(&b);
}

static void pair(struct jsn_out *w, const char *key, const char *value)
{
	jsn_key(w, key);
	jsn_text(w, value);
}

static void put_param(struct jsn_out *w, struct str name, const char *in, bool required)
{
	jsn_obj_begin(w);
	jsn_key(w, "name");
	jsn_str(w, name);
	pair(w, "in", in);
	jsn_key(w, "required");
	jsn_bool(w, required);
}

static void put_path_params(struct jsn_out *w, const char *path)
{
	for (const char *p = path; (p = strchr(p, '{')) != NULL; p++) {
		struct str name = { p + 1, strcspn(p + 1, "*}") };
		put_param(w, name, "path", true);
		jsn_key(w, "schema");
		jsn_raw(w, STR("{\"type\":\"string\"}"));
		jsn_obj_end(w);
	}
}

static void put_header(struct jsn_out *w, const char *name, bool required, const char *doc)
{
	put_param(w, str_c(name), "header", required);
	pair(w, "description", doc);
	jsn_key(w, "schema");
	jsn_raw(w, STR("{\"type\":\"string\"}"));
	jsn_obj_end(w);
}

static void put_params(struct jsn_out *w, const struct route *r)
{
	jsn_key(w, "parameters");
	jsn_list_begin(w);
	put_path_params(w, r->path);
	for (const struct field *f = r->query; f != NULL && f->name != NULL; f++) {
		put_param(w, str_c(f->name), "query", (f->flags & FIELD_REQUIRED) != 0);
		pair(w, "description", f->doc);
		jsn_key(w, "schema");
		put_row_schema(w, f);
		jsn_obj_end(w);
	}
	if (r->flags & ROUTE_IDEMPOTENT)
		put_header(w, "Idempotency-Key", false, "1 to 255 printable ASCII characters");
	if (r->flags & ROUTE_BATCH)
		put_header(w, "Idempotency-Key", false,
			"Identity of the batch, as the parameter batch: at most 255 bytes");
	if (r->flags & ROUTE_IF_MATCH)
		put_header(w, "If-Match", true, "The object's ETag");
	jsn_list_end(w);
}

static void put_media(struct jsn_out *w, const char *type, const struct field *t)
{
	jsn_key(w, type);
	jsn_obj_begin(w);
	if (t != NULL) {
		jsn_key(w, "schema");
		put_schema(w, t);
	}
	jsn_obj_end(w);
}

static void put_content(struct jsn_out *w, const char *type, const struct field *t)
{
	jsn_key(w, "content");
	jsn_obj_begin(w);
	put_media(w, type, t);
	jsn_obj_end(w);
}

static void put_body(struct jsn_out *w, const struct route *r)
{
	if (r->body == BODY_NONE)
		return;
	jsn_key(w, "requestBody");
	jsn_obj_begin(w);
	jsn_key(w, "required");
	jsn_bool(w, true);
	jsn_key(w, "content");
	jsn_obj_begin(w);
	const char *const *types = route_body_types(r->body);
	if (*types == NULL)
		put_media(w, "application/octet-stream", NULL);
	for (; *types != NULL; types++)
		put_media(w, *types, r->in);
	jsn_obj_end(w);
	jsn_obj_end(w);
}

static void put_list_schema(struct jsn_out *w, const struct field *t)
{
	jsn_key(w, "content");
	jsn_obj_begin(w);
	jsn_key(w, "application/json");
	jsn_obj_begin(w);
	jsn_key(w, "schema");
	jsn_obj_begin(w);
	pair(w, "type", "object");
	jsn_key(w, "required");
	jsn_raw(w, STR("[\"items\"]"));
	jsn_key(w, "properties");
	jsn_obj_begin(w);
	jsn_key(w, "items");
	jsn_obj_begin(w);
	pair(w, "type", "array");
	jsn_key(w, "items");
	put_schema(w, t);
	jsn_obj_end(w);
	jsn_key(w, "next_cursor");
	jsn_raw(w, STR("{\"type\":\"string\"}"));
	jsn_obj_end(w);
	jsn_obj_end(w);
	jsn_obj_end(w);
	jsn_obj_end(w);
}

static void put_stream(struct jsn_out *w, const struct route *r)
{
	jsn_key(w, "content");
	jsn_obj_begin(w);
	if (r->types[0] == NULL)
		put_media(w, "application/octet-stream", NULL);
	for (size_t i = 0; i < 3 && r->types[i] != NULL; i++)
		put_media(w, r->types[i], NULL);
	jsn_obj_end(w);
}

static void put_reply(struct jsn_out *w, const struct route *r)
{
	jsn_obj_begin(w);
	pair(w, "description", r->doc);
	switch (r->reply) {
	case REPLY_OBJECT: put_content(w, "application/json", r->out); break;
	case REPLY_LIST: put_list_schema(w, r->out); break;
	case REPLY_STREAM: put_stream(w, r); break;
	case REPLY_RAW: put_content(w, "application/json", NULL); break;
	case REPLY_EMPTY:
	case REPLY_DRY: break;
	}
	jsn_obj_end(w);
}

static void put_responses(struct jsn_out *w, const struct route *r)
{
	char status[16];

	jsn_key(w, "responses");
	jsn_obj_begin(w);
	(void)str_print(status, sizeof status, "%d", r->ok);
	jsn_key(w, status);
	put_reply(w, r);
	if (r->reply == REPLY_DRY) {
		jsn_key(w, "200");
		jsn_obj_begin(w);
		pair(w, "description", "With dry_run: what would go");
		put_content(w, "application/json", r->out);
		jsn_obj_end(w);
	}
	jsn_key(w, "default");
	jsn_raw(w, STR("{\"$ref\":\"#/components/responses/Problem\"}"));
	jsn_obj_end(w);
}

static void lower(const char *method, char out[8])
{
	size_t i = 0;

	for (; method[i] != '\0' && i < 7; i++)
		out[i] = (char)(method[i] | 0x20);
	out[i] = '\0';
}

static void put_operation(struct jsn_out *w, const struct route *r)
{
	char method[8];
	struct str tag = { r->id, strcspn(r->id, ".") };

	lower(r->method, method);
	jsn_key(w, method);
	jsn_obj_begin(w);
	pair(w, "operationId", r->id);
	pair(w, "summary", r->doc);
	jsn_key(w, "tags");
	jsn_list_begin(w);
	jsn_str(w, tag);
	jsn_list_end(w);
	pair(w, "x-permission", permission_name(r->perm));
	if (r->perm == PERM_PUBLIC) {
		jsn_key(w, "security");
		jsn_raw(w, STR("[]"));
	}
	put_params(w, r);
	put_body(w, r);
	put_responses(w, r);
	jsn_obj_end(w);
}

/* OpenAPI has no "rest of the path": {path*} becomes {path}. */
static void put_path(struct jsn_out *w, const char *path)
{
	char out[256];
	size_t n = 0;

	for (; *path != '\0' && n + 1 < sizeof out; path++)
		if (*path != '*')
			out[n++] = *path;
	jsn_key_str(w, (struct str){ out, n });
}

static bool is_first(size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (strcmp(routes[i].path, routes[j].path) == 0)
			return false;
	return true;
}

static void put_paths(struct jsn_out *w)
{
	jsn_key(w, "paths");
	jsn_obj_begin(w);
	for (size_t i = 0; i < routes_count; i++) {
		if (!is_first(i))
			continue;
		put_path(w, routes[i].path);
		jsn_obj_begin(w);
		for (size_t j = i; j < routes_count; j++)
			if (strcmp(routes[i].path, routes[j].path) == 0)
				put_operation(w, &routes[j]);
		jsn_obj_end(w);
	}
	jsn_obj_end(w);
}

static void put_components(struct jsn_out *w)
{
	jsn_key(w, "components");
	jsn_obj_begin(w);
	jsn_key(w, "securitySchemes");
	jsn_raw(w, STR("{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}"));
	jsn_key(w, "schemas");
	jsn_obj_begin(w);
	jsn_key(w, "ErrorCode");
	jsn_obj_begin(w);
	pair(w, "type", "string");
	jsn_key(w, "enum");
	jsn_list_begin(w);
	for (int i = ERR_OK + 1; i < ERR_COUNT; i++)
		jsn_text(w, err_name((enum err_code)i));
	jsn_list_end(w);
	jsn_obj_end(w);
	jsn_key(w, "Problem");
	jsn_raw(w,
		STR("{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\",\"code\"],"
		    "\"properties\":{"
		    "\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},\"status\":{"
		    "\"type\":\"integer\"},"
		    "\"detail\":{\"type\":\"string\"},\"code\":{\"$ref\":\"#/components/schemas/"
		    "ErrorCode\"},"
		    "\"request_id\":{\"type\":\"string\"},\"errors\":{\"type\":\"array\","
		    "\"items\":{\"type\":\"object\","
		    "\"properties\":{\"pointer\":{\"type\":\"string\"},\"in\":{\"type\":\"string\","
		    "\"enum\":[\"body\",\"query\",\"path\",\"header\"]},\"parameter\":{\"type\":"
		    "\"string\"},\"code\":{\"type\":"
		    "\"string\"},"
		    "\"detail\":{\"type\":\"string\"}}}}}}"));
	jsn_obj_end(w);
	jsn_key(w, "responses");
	jsn_raw(w, STR("{\"Problem\":{\"description\":\"What went wrong (RFC 9457)\",\"content\":{"
		       "\"application/problem+json\":{\"schema\":{\"$ref\":\"#/components/schemas/"
		       "Problem\"}}}}}"));
	jsn_obj_end(w);
}

void openapi_print(struct buf *out)
{
	struct jsn_out w = jsn_out(out);

	jsn_obj_begin(&w);
	pair(&w, "openapi", "3.1.0");
	jsn_key(&w, "info");
	jsn_raw(&w, STR("{\"title\":\"Tidemill\",\"version\":\"1\",\"license\":{\"name\":\"Apache-"
			"2.0\",\"identifier\":\"Apache-2.0\"}}"));
	jsn_key(&w, "security");
	jsn_raw(&w, STR("[{\"token\":[]}]"));
	put_paths(&w);
	put_components(&w);
	jsn_obj_end(&w);
	buf_addc(out, '\n');
}

bool openapi_file_schema(struct str name, struct buf *out)
{
	const struct field *t = NULL;

	if (str_is(name, "pipeline.json"))
		t = pipeline_file_fields;
	else if (str_is(name, "monitor.json"))
		t = monitor_file_fields;
	if (t != NULL)
		field_schema(t, out);
	return t != NULL;
}

void openapi_files(struct buf *out)
{
	buf_adds(out, "### Pipeline\n");
	field_doc(pipeline_file_fields, "", out);
	buf_adds(out, "\n**`resources.gpus`**, when it is an object\n");
	field_doc(gpu_request_fields, "", out);
	buf_adds(out, "\n### Monitor\n");
	field_doc(monitor_file_fields, "", out);
}
