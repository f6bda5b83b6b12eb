/* Errors in MLflow's form: {"error_code": "NAME", "message": "text"}, with its own statuses. Here
 * and not in server/mlflow, because the dispatcher refuses requests before a handler sees them. */
#ifndef SERVER_REST_FLOW_ERROR_H
#define SERVER_REST_FLOW_ERROR_H
#include "lib/http/req.h"

void flow_error_reply(struct http_req *q, const struct err *e);
/* The same with a code of MLflow's. */
void flow_error_reply_as(struct http_req *q, int status, const char *error_code, const char *text);
/* For what no route takes: answers (true) below /api/2.0/mlflow and /api/2.0/mlflow-artifacts;
 * clients fall back on ENDPOINT_NOT_FOUND. */
bool flow_refuse(struct http_req *q, const struct err *why);

#endif
