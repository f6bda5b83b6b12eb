/*
 * The route table: what the server answers to, written once. server/rest and server/mlflow bind a
 * handler to each operation id; openapi.json, the permission sweep and docs/api.md are made from
 * it.
 */
#ifndef API_ROUTE_H
#define API_ROUTE_H
#include "lib/base/err.h"
#include "lib/json/field.h"

/* What a caller must hold. Project permissions are looked up on the project that the path names, or
 * that owns the object in the path; an object that the caller may not see is "not found". */
enum permission {
	PERM_PUBLIC, /* no token */
	PERM_SELF, /* any valid token of a person or a CI system */
	PERM_READ, /* project: viewer and above */
	PERM_SUBMIT, /* project: ci and above */
	PERM_OPERATE, /* project: operator and above */
	PERM_OWN, /* project: owner */
	PERM_ADMIN, /* instance */
	PERM_WORKER, /* a worker's credential */
	PERM_JOIN, /* a join token */
	PERM_BOOTSTRAP, /* a bootstrap token */
	PERM_TRACK_READ, /* tracking: PERM_READ, or a job token of the project */
	PERM_TRACK_WRITE, /* tracking: PERM_SUBMIT, or the job token of the run or its children */
	PERM_COUNT
};

enum route_body {
	BODY_NONE,
	BODY_JSON, /* one object of `in` */
	BODY_YAML, /* one document of `in`, YAML or JSON by Content-Type */
	BODY_STREAM, /* bytes of any length, read as they come */
	BODY_ROWS, /* the same, CSV or NDJSON by Content-Type */
};

enum route_reply {
	REPLY_OBJECT, /* one object of `out` */
	REPLY_LIST, /* {"items": [out…], "next_cursor": …} */
	REPLY_EMPTY,
	REPLY_DRY, /* the same, but one object of `out` with 200 for a dry run */
	REPLY_STREAM, /* bytes, text or server-sent events */
	REPLY_RAW, /* JSON written by hand */
};

enum {
	ROUTE_IDEMPOTENT = 1, /* takes Idempotency-Key */
	ROUTE_IF_MATCH = 2, /* needs If-Match */
	ROUTE_WAIT = 4, /* takes ?wait= */
	ROUTE_MLFLOW = 8, /* MLflow's own wire rules */
	ROUTE_BATCH = 16, /* takes Idempotency-Key as the identity of the batch */
};

struct route {
	const char *id; /* operation id, "runs.create": resource, verb */
	const char *method, *path; /* "{name}" is one segment, "{name*}" the rest of the path */
	enum permission perm;
	unsigned flags;
	int ok; /* HTTP status of success */
	enum route_body body;
	const struct field *in;
	size_t in_size;
	size_t in_max; /* bytes; 0: the default of 256 KiB */
	const struct field *query;
	size_t query_size;
	enum route_reply reply;
	const struct field *out;
	size_t out_size;
	const char *doc;
	const char *types[3]; /* media types of a REPLY_STREAM; none: any bytes */
};

extern const struct route routes[]; /* ends with id NULL */
extern const size_t routes_count;
const struct route *route_find(const char *id); /* NULL when there is none */
const char *permission_name(enum permission p);
/* The media types that a body may have, ended by NULL; without any: none is looked at, the bytes
 * are taken as they are. */
const char *const *route_body_types(enum route_body b);

#endif
