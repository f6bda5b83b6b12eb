/*
 * One API request on its way. The dispatcher has checked the caller's permission, found the
 * project, and decoded query and body by the route's tables before a handler sees it; the helpers
 * below are how a handler talks to the database and answers. A handler is usually two functions:
 * one that fills a unit, and one that runs when it is done:
 *
 *     static void dataset_get(struct call *c)
 *     {
 *             struct db_unit *u = call_unit(c);
 *             dataset_store_get(u, c->project_id, call_param(c, "dataset"));
 *             call_send(c, u, DB_READ, dataset_get_on_row);
 *     }
 *
 *     static void dataset_get_on_row(struct call *c, const struct db_rows *rows)
 *     {
 *             call_reply_row(c, 200, &rows[0], "data set");
 *     }
 *
 * A unit that fails answers by itself (call_send), so continuations see successful units only.
 */
#ifndef SERVER_REST_CALL_H
#define SERVER_REST_CALL_H
#include "api/route.h"
#include "lib/db/row.h"
#include "lib/http/reply.h"
#include "lib/http/req.h"
#include "server/app.h"
#include "server/rest/auth.h"

struct call;
typedef void call_handler(struct call *c);
typedef void call_rows_cb(struct call *c, const struct db_rows *rows);

struct call {
	struct http_req *req;
	struct app *app;
	struct arena *arena;
	const struct route *route;
	call_handler *handler;
	struct caller who;
	struct str project_id, project; /* of the path, or of the object in the path */
	int role; /* the caller's in that project: enum role */
	uint64_t grants; /* grants_changes(), when the role was asked for */
	void *in, *query; /* structs of the route's tables; NULL without */
	void *state; /* the handler's own, between its steps */
	struct str object_id; /* call_create */
	call_rows_cb *on_rows;
	call_handler *replay;
	/* call_create: asked when the unit met a conflict; true when the handler starts over. */
	bool (*on_conflict)(struct call *c, const struct db_rows *rows);
	call_handler *go_on; /* call_replay_first */
	struct err *create_error; /* what a creation met, until its key has been looked up */
	bool query_bad; /* what fails is the query */
};

/* Which handler serves an operation. Each file of server/rest gives such a table, ended by id NULL;
 * rest.c lists the tables. */
struct binding {
	const char *id;
	call_handler *handler;
};

struct str call_param(const struct call *c, const char *name);
/* A new id with the prefix, in the arena. */
struct str call_id(struct call *c, const char *prefix);
struct str call_actor(const struct call *c); /* who, for events and created_by */

/* {number} of the path: digits, or "latest", which is 0; answers 404 and returns false for anything
 * else. */
bool call_version(struct call *c, const char *what, int64_t *ret);

struct db_unit *call_unit(struct call *c);
/* Sends the unit; cb runs with its rows when it has succeeded. On failure the call is answered: a
 * violated constraint by the words of the store's table, anything else by its code. */
void call_send(struct call *c, struct db_unit *u, enum db_lane lane, call_rows_cb *cb);
/* For creating POSTs: the same on DB_WRITE, with the request's Idempotency-Key in the same
 * transaction. A key that was used for the same request leads to `replay` with c->object_id of what
 * the first request made; for another request it is refused. */
void call_create(struct call *c, struct db_unit *u, struct str object_id, call_rows_cb *cb,
	call_handler *replay);

/* For creations that must look at the present state before they write, where the first request has
 * left its mark: answers by `replay` when the Idempotency-Key is known, else goes on. */
void call_replay_first(struct call *c, call_handler *go_on, call_handler *replay);

/* The parts of call_create, for handlers whose unit is sent by somebody else. call_key_ok: false
 * when the key is malformed, and the call is answered. call_replay: after a conflict with a key
 * given. */
bool call_key_ok(struct call *c, bool *ret_given);
void call_key_add(struct call *c, struct db_unit *u, struct str object_id);
void call_replay(struct call *c, const struct err *e, call_handler *replay);

/* What is not valid is named: by a pointer into the body, or as "/NAME", a parameter of path or
 * query; which of them it is, the route's tables say. */
void call_fail(struct call *c, const struct err *e);
void call_not_found(struct call *c, const char *what); /* "run": "There is no such run" */
void call_invalid(struct call *c, const char *pointer, const char *fmt, ...) PRINTF_LIKE(3, 4);
void call_reply(struct call *c, int status, const struct field *t, const void *object);
/* The first row through the route's `out` table; ETag from a column `version`; 404 without a row.
 */
void call_reply_row(struct call *c, int status, const struct db_rows *rows, const char *what);
void call_reply_empty(struct call *c);

/* Lists: `after` is the decoded cursor, or `first` on the first page ("" ascending, "~"
 * descending); ask the database for call_page_count() rows with a column page_key. */
struct str call_page_after(struct call *c, const char *first);
/* Refuses a cursor that no page can have given; the dispatcher asks before the handler runs. */
int call_page_check(struct call *c, struct err *e) MUST_CHECK;
int64_t call_page_count(const struct call *c);
void call_reply_list(struct call *c, const struct db_rows *rows);
/* All rows as objects of a table; ERR_TOO_LARGE when they are more than an answer holds. */
int call_decode(struct call *c, const struct db_rows *rows, const struct field *t, size_t size,
	struct list *ret, struct err *e) MUST_CHECK;
/* Objects that a handler has made itself. page_key of the last one when there is more, else empty.
 */
void call_reply_items(
	struct call *c, const void *items, size_t n, size_t size, struct str next_key);

/* If-Match: the number in the quoted tag; answers 428 or 400 and returns false without a good one.
 */
bool call_if_match(struct call *c, int64_t *ret_version);

/* The caller's role in a project, or -1; for handlers that find the project themselves. */
int call_role(const struct call *c, struct str project_id, struct str role);

#endif
