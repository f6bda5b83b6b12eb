/*
 * Calls of the API, by the operation ids of api/routes.c. Requests that may be repeated safely are
 * repeated when the network or the server fails: reads, PUT, DELETE, and POSTs that carry an
 * Idempotency-Key. What the table says of a route is done here: the key, {project} in the path.
 */
#ifndef CLI_API_H
#define CLI_API_H
#include "cli/cli.h"
#include "lib/fetch/fetch.h"
#include "lib/json/json_read.h"

enum { API_PARAMS = 4, API_QUERY = 12, API_PAGE = 100 };

struct api_pair {
	const char *name;
	struct str value; /* p NULL: left out */
};

struct api_call {
	const char *route; /* "runs.create" */
	struct str params[API_PARAMS]; /* values of the path's {…} in order, without {project} */
	struct api_pair query[API_QUERY];
	struct str body;
	const char *content_type; /* NULL: application/json */
	struct str if_match; /* an ETag, with its quotes */
	bool has_fd; /* body from a file of this length */
	int fd;
	int64_t length;
	bool to_fd; /* the reply's bytes go there */
	int out_fd;
	fetch_push_cb *push; /* or there */
	void *arg;
	bool once; /* never repeated */
	bool repeatable; /* a POST that does no harm when it comes twice */
	int64_t timeout; /* microseconds; 0: 60 s; -1: none */
	int64_t idle; /* microseconds without a byte; 0: none */
	const char *accept; /* NULL: any */
	struct str last_event; /* Last-Event-ID */
};

struct api_reply {
	int status;
	struct str body, etag;
	const struct jsn *root; /* of JSON replies; NULL otherwise */
	struct jsn_doc *doc;
	struct buf memory;
};

/* Statuses from 400 on are failures. After success free with api_done(). */
int api_do(
	struct cli *c, const struct api_call *q, struct api_reply *ret, struct err *e) MUST_CHECK;
void api_done(struct api_reply *r);
/* Method and address by hand, for `tidemill api`: never repeated, statuses are no failures. */
int api_raw(struct cli *c, const char *method, const char *path, struct str body,
	struct api_reply *ret, struct err *e) MUST_CHECK;

/* Every item of a list, over all pages, up to `limit` (0: all). *ret_more is the cursor of the rest
 * or STR_NONE. -1 from fn ends it with its error. */
typedef int api_item_cb(void *arg, const struct jsn *item, struct err *e);
int api_each(struct cli *c, const struct api_call *q, int64_t limit, api_item_cb *fn, void *arg,
	struct str *ret_more, struct err *e) MUST_CHECK;

/* The path of a route with its parameters filled in and escaped. Pure. */
int api_path(const char *pattern, struct str project, const struct str *params, struct buf *out,
	struct err *e) MUST_CHECK;
void api_query(const struct api_pair *pairs, size_t n, struct buf *out);
/* The client, made at the first call. */
int api_open(struct cli *c, struct err *e) MUST_CHECK;
void api_close(struct cli *c);
/* Blocks for so many microseconds. */
void api_sleep(int64_t us);

#endif
