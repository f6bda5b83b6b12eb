/*
 * One MLflow request on its way. A handler reads its message, finds what it is about (the caller's
 * permission is checked there), and goes on in a continuation; struct flow keeps what was found.
 *
 *     static void set_tag(struct call *c)
 *     {
 *             struct tag_put *in = flow_body(c, tag_put_fields, sizeof *in);
 *             if (in != NULL && flow_need(c, in->key, "key"))
 *                     flow_find_run(c, in->run_id, FLOW_WRITE, set_tag_on_run);
 *     }
 *
 * Every function that says so answers by itself when it fails, with MLflow's status and text.
 */
#ifndef SERVER_MLFLOW_FLOW_H
#define SERVER_MLFLOW_FLOW_H
#include "lib/json/json_write.h"
#include "server/mlflow/run_access.h"
#include "server/rest/call.h"

typedef void flow_next(struct call *c);
typedef bool flow_fault(struct call *c, const struct db_rows *rows);
enum flow_use {
	FLOW_READ,
	FLOW_WRITE, /* and the run or experiment must be active */
};

struct flow_run {
	int64_t id, experiment_id, made; /* made: days, the partition of its metrics */
	struct str run_id, project_id, artifact_uri;
};
struct flow_experiment {
	int64_t id;
	struct str project_id, name, artifact_location;
	bool active;
};
struct flow {
	void *in; /* the message */
	void *mine; /* the handler's own */
	struct str project_id;
	struct flow_run run;
	struct flow_experiment experiment;
	struct str own_run; /* of a job: the tracking run of its step */
	/* inside */
	struct str wanted;
	struct run_asked asked;
	enum flow_use use;
	flow_next *next, *after_project;
	call_rows_cb *on_rows;
	flow_fault *on_fault;
};
struct flow *flow_of(struct call *c); /* made at the first call */

/* The body by its table, in the arena; NULL when it has been answered. Also flow_of(c)->in. */
void *flow_body(struct call *c, const struct field *t, size_t size);
/* A query argument, or empty. */
struct str flow_arg(struct call *c, const char *name);
/* False, and answered, when a required value is empty. */
bool flow_need(struct call *c, struct str value, const char *name);
void flow_missing(struct call *c, const char *name);
/* 400 INVALID_PARAMETER_VALUE. */
void flow_invalid(struct call *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void flow_not_found(struct call *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Each goes on with `next` when it is there and the caller may, else answers. */
void flow_find_run(struct call *c, struct str run_id, enum flow_use use, flow_next *next);
/* Empty or "0": the project's Default. */
void flow_find_experiment(struct call *c, struct str id, enum flow_use use, flow_next *next);
/* The project that the request is in: see README.md. */
void flow_find_project(struct call *c, enum flow_use use, flow_next *next);
/* For jobs: fills own_run; for people nothing. */
void flow_find_own_run(struct call *c, flow_next *next);

/* Sends a writing unit, with the fence of a job's attempt in it. on_fault (may be NULL) is asked
 * when the unit fails; true: it has taken over. */
void flow_write(struct call *c, struct db_unit *u, call_rows_cb *cb, flow_fault *on_fault);

/* The finished JSON in the buffer, which is freed. */
void flow_reply(struct call *c, struct buf *b);
void flow_reply_done(struct call *c); /* {} */
enum { FLOW_REPLY_MAX = 64 << 20 };

#endif
