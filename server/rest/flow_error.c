#include "server/rest/flow_error.h"

#include "lib/http/reply.h"
#include "lib/json/json_write.h"

enum { ERROR_TEXT_MAX = 8 << 10 };

/* What is not here is 500 INTERNAL_ERROR, which clients repeat for minutes: no user's mistake. */
static const struct {
	enum err_code code;
	int status;
	const char *name;
} table[] = {
	{ ERR_MALFORMED, 400, "INVALID_PARAMETER_VALUE" },
	{ ERR_INVALID, 400, "INVALID_PARAMETER_VALUE" },
	{ ERR_UNSUPPORTED_MEDIA, 400, "INVALID_PARAMETER_VALUE" },
	{ ERR_RANGE, 416, "INVALID_PARAMETER_VALUE" },
	{ ERR_TOO_LARGE, 413, "INVALID_PARAMETER_VALUE" },
	{ ERR_REQUEST_TIMEOUT, 400, "BAD_REQUEST" },
	{ ERR_LENGTH_REQUIRED, 400, "BAD_REQUEST" },
	{ ERR_CONFLICT, 400, "RESOURCE_ALREADY_EXISTS" },
	{ ERR_UNAUTHENTICATED, 401, "UNAUTHENTICATED" },
	{ ERR_FORBIDDEN, 403, "PERMISSION_DENIED" },
	{ ERR_NOT_FOUND, 404, "RESOURCE_DOES_NOT_EXIST" },
	{ ERR_METHOD_NOT_ALLOWED, 404, "ENDPOINT_NOT_FOUND" },
	{ ERR_SUPERSEDED, 409, "ABORTED" },
	{ ERR_IN_PROGRESS, 409, "ABORTED" },
	{ ERR_RATE_LIMITED, 429, "REQUEST_LIMIT_EXCEEDED" },
	{ ERR_CORRUPT, 500, "DATA_LOSS" },
	{ ERR_NOT_IMPLEMENTED, 501, "NOT_IMPLEMENTED" },
	{ ERR_UNAVAILABLE, 503, "TEMPORARILY_UNAVAILABLE" },
	{ ERR_DATABASE, 503, "TEMPORARILY_UNAVAILABLE" },
	{ ERR_TIMEOUT, 504, "DEADLINE_EXCEEDED" },
	{ ERR_NO_SPACE, 507, "RESOURCE_EXHAUSTED" },
};

void flow_error_reply_as(struct http_req *q, int status, const char *error_code, const char *text)
{
	struct buf b;
	struct jsn_out w;

	buf_init(&b, ERROR_TEXT_MAX);
	w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "error_code");
	jsn_text(&w, error_code);
	jsn_key(&w, "message");
	jsn_text(&w, text);
	jsn_obj_end(&w);
	http_reply_json(q, status, buf_failed(&b) ? STR("{}") : buf_str(&b));
	buf_done(&b);
}

void flow_error_reply(struct http_req *q, const struct err *e)
{
	if (e->code == ERR_UNAVAILABLE || e->code == ERR_DATABASE)
		(void)http_reply_header(q, "Retry-After", STR("1"));
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (table[i].code == e->code) {
			flow_error_reply_as(q, table[i].status, table[i].name, e->msg);
			return;
		}
	flow_error_reply_as(q, 500, "INTERNAL_ERROR", e->msg);
}

bool flow_refuse(struct http_req *q, const struct err *why)
{
	if (!str_starts(q->path, STR("/api/2.0/mlflow/")) &&
		!str_starts(q->path, STR("/api/2.0/mlflow-artifacts/")))
		return false;
	if (why->code == ERR_NOT_FOUND || why->code == ERR_METHOD_NOT_ALLOWED)
		flow_error_reply_as(
			q, 404, "ENDPOINT_NOT_FOUND", "The server has no such endpoint.");
	else
		flow_error_reply(q, why);
	return true;
}
