#include "server/rest/call.h"

#include "api/page.h"
#include "lib/base/log.h"
#include "lib/base/num.h"
#include "lib/crypto/hash.h"
#include "lib/json/json_write.h"
#include "server/rest/cursor.h"
#include "server/rest/flow_error.h"
#include "server/store/auth_store.h"
#include "server/store/constraint.h"

#include <stdarg.h>
#include <stdio.h>

/* A page that holds so much is full, however few its items are. */
enum { REPLY_MAX = 64 << 20, KEY_MAX = 255, PAGE_BYTES = 16 << 20 };

struct str call_param(const struct call *c, const char *name)
{
	return http_param(c->req, name);
}

struct str call_id(struct call *c, const char *prefix)
{
	char id[ID_MAX];

	return arena_str(c->arena, str_c(id_new(id, prefix, c->app->clock)));
}

struct str call_actor(const struct call *c)
{
	if (c->who.principal_id.n != 0)
		return c->who.principal_id;
	return c->who.worker_id.n != 0 ? c->who.worker_id : c->who.attempt_id;
}

struct db_unit *call_unit(struct call *c)
{
	return db_unit(c->app->db, c->arena);
}

#define KEY_HEADER "Idempotency-Key"

/* Where a fault stands, by the first part of its pointer: what the body's table knows is in the
 * body, and so is what nobody knows. */
static const char *fault_in(const struct call *c, const struct err *e)
{
	struct str rest = str_c(e->field), name = STR("");
	char segment[sizeof e->field + 4];

	(void)str_next(&rest, '/', &name); /* before the first slash */
	(void)str_next(&rest, '/', &name);
	if (c->query_bad)
		return "query";
	if (str_is(name, KEY_HEADER))
		return "header";
	if (name.n == 0 || (c->route->in != NULL && field_find(c->route->in, name) != NULL))
		return "body";
	if (c->route->query != NULL && field_find(c->route->query, name) != NULL)
		return "query";
	(void)str_print(segment, sizeof segment, "{%.*s}", STR_ARG(name));
	return strstr(c->route->path, segment) != NULL ? "path" : "body";
}

/* Which file it was, and where, is for those who run the server: they find it in its log. */
static const struct err *without_paths(const struct err *e, struct err *room)
{
	if (e->code == ERR_NO_SPACE)
		(void)err_set(
			room, ERR_NO_SPACE, "The server has no space left; nothing was stored");
	else if (e->code == ERR_IO)
		(void)err_set(room, ERR_IO, "The server cannot read or write its files");
	else
		return e;
	return room;
}

void call_fail(struct call *c, const struct err *why)
{
	struct err room;
	const struct err *e = without_paths(why, &room);

	if (e != why)
		log_error("request failed", LOG_S("request", c->req->id),
			LOG_S("operation", c->route->id), LOG_E(why));
	if (e->code == ERR_INTERNAL || e->code == ERR_CORRUPT)
		log_error("request failed", LOG_S("request", c->req->id),
			LOG_S("operation", c->route->id), LOG_E(e), LOG_S("file", e->file),
			LOG_I("line", e->line));
	if (c->route->flags & ROUTE_MLFLOW)
		flow_error_reply(c->req, e);
	else if (e->code == ERR_INVALID)
		http_reply_fault(c->req, e, fault_in(c, e));
	else
		http_reply_err(c->req, e);
}

void call_not_found(struct call *c, const char *what)
{
	struct err e;

	(void)err_set(&e, ERR_NOT_FOUND, "there is no such %s", what);
	call_fail(c, &e);
}

bool call_version(struct call *c, const char *what, int64_t *ret)
{
	struct str text = call_param(c, "number");

	*ret = 0;
	if (str_is(text, "latest") || num_parse_i64(text, 1, INT64_MAX, ret))
		return true;
	call_not_found(c, what);
	return false;
}

void call_invalid(struct call *c, const char *pointer, const char *fmt, ...)
{
	struct err e;
	char msg[sizeof e.msg];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	(void)err_field(&e, pointer, "%s", msg);
	call_fail(c, &e);
}

static void fail_on_rows(struct call *c, const struct db_rows *rows, const struct err *e)
{
	struct err said = *e;

	constraint_explain(rows, &said);
	call_fail(c, &said);
}

static void call_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;

	if (e->code != ERR_OK)
		fail_on_rows(c, rows, e);
	else
		c->on_rows(c, rows);
}

static void call_on_written(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;

	if (e->code == ERR_OK)
		app_changed(c->app);
	call_on_rows(arg, rows, e);
}

void call_send(struct call *c, struct db_unit *u, enum db_lane lane, call_rows_cb *cb)
{
	c->on_rows = cb;
	db_send(u, lane, lane == DB_READ ? call_on_rows : call_on_written, c);
}

/* What the key stands for: the operation, where, and the body, byte for byte. */
static struct str request_hash(struct call *c)
{
	struct hash *h = hash_new();
	unsigned char *out = arena_alloc(c->arena, HASH_SIZE);

	hash_add(h, str_c(c->route->id));
	hash_add(h, c->req->path);
	hash_add(h, (struct str){ "", 1 });
	hash_add(h, c->req->body);
	hash_end(h, out);
	hash_free(h);
	return (struct str){ (const char *)out, HASH_SIZE };
}

/* The error that a repeated request met is only told when its key is not known. */
static void replay_on_row(struct call *c, const struct db_rows *rows)
{
	struct err e;

	if (rows[0].n == 0) {
		if (c->create_error != NULL)
			call_fail(c, c->create_error);
		else
			c->go_on(c);
		return;
	}
	if (!str_eq(db_str(&rows[0], 0, 0), request_hash(c))) {
		(void)err_field(
			&e, "/" KEY_HEADER, "Idempotency-Key was used before for another request");
		call_fail(c, &e);
		return;
	}
	c->object_id = arena_str(c->arena, db_str(&rows[0], 0, 1));
	(void)http_reply_header(c->req, "Idempotency-Replayed", STR("true"));
	c->replay(c);
}

void call_replay(struct call *c, const struct err *e, call_handler *replay)
{
	c->replay = replay;
	c->create_error = arena_new_of(c->arena, struct err);
	*c->create_error = *e;
	struct db_unit *u = call_unit(c);
	auth_store_idempotency_get(u, call_actor(c), http_header(c->req, KEY_HEADER));
	call_send(c, u, DB_READ, replay_on_row);
}

/* A repeated request conflicts with what the first one made, whichever constraint says so first. */
static void create_on_done(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;

	if (e->code != ERR_CONFLICT) {
		call_on_written(arg, rows, e);
		return;
	}
	if (c->on_conflict != NULL && c->on_conflict(c, rows))
		return;
	struct err said = *e;
	constraint_explain(rows, &said);
	call_replay(c, &said, c->replay);
}

static bool key_ok(struct str key)
{
	for (size_t i = 0; i < key.n; i++)
		if (key.p[i] < 0x20 || key.p[i] > 0x7e)
			return false;
	return key.n >= 1 && key.n <= KEY_MAX;
}

static void fail_key(struct call *c)
{
	struct err e;

	(void)err_field(&e, "/" KEY_HEADER,
		"Idempotency-Key must be 1 to %d printable ASCII characters", KEY_MAX);
	call_fail(c, &e);
}

bool call_key_ok(struct call *c, bool *ret_given)
{
	struct str key = http_header(c->req, KEY_HEADER);

	*ret_given = key.p != NULL;
	if (key.p == NULL || key_ok(key))
		return true;
	fail_key(c);
	return false;
}

void call_key_add(struct call *c, struct db_unit *u, struct str object_id)
{
	auth_store_idempotency_add(
		u, call_actor(c), http_header(c->req, KEY_HEADER), request_hash(c), object_id);
}

static void create_without_key_on_done(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;

	if (e->code != ERR_CONFLICT || c->on_conflict == NULL || !c->on_conflict(c, rows))
		call_on_written(arg, rows, e);
}

void call_replay_first(struct call *c, call_handler *go_on, call_handler *replay)
{
	bool given;

	c->go_on = go_on;
	c->replay = replay;
	if (!call_key_ok(c, &given))
		return;
	if (!given) {
		go_on(c);
		return;
	}
	struct db_unit *u = call_unit(c);
	auth_store_idempotency_get(u, call_actor(c), http_header(c->req, KEY_HEADER));
	call_send(c, u, DB_READ, replay_on_row);
}

void call_create(struct call *c, struct db_unit *u, struct str object_id, call_rows_cb *cb,
	call_handler *replay)
{
	bool given;

	c->object_id = object_id;
	c->on_rows = cb;
	c->replay = replay;
	if (!call_key_ok(c, &given)) {
		db_unit_free(u);
		return;
	}
	if (given)
		call_key_add(c, u, object_id);
	db_send(u, DB_WRITE, given ? create_on_done : create_without_key_on_done, c);
}

static void reply_buf(struct call *c, int status, struct buf *b)
{
	struct err e;

	if (buf_failed(b)) {
		(void)err_set(&e, ERR_TOO_LARGE,
			"the answer would be larger than %d bytes; ask for less", REPLY_MAX);
		call_fail(c, &e);
	} else {
		http_reply_json(c->req, status, buf_str(b));
	}
	buf_done(b);
}

void call_reply(struct call *c, int status, const struct field *t, const void *object)
{
	struct buf b;

	buf_init(&b, REPLY_MAX);
	field_encode(t, object, &b);
	reply_buf(c, status, &b);
}

void call_reply_row(struct call *c, int status, const struct db_rows *rows, const char *what)
{
	void *object = arena_alloc(c->arena, c->route->out_size);
	struct err e;

	if (rows->n == 0) {
		call_not_found(c, what);
		return;
	}
	if (db_row_decode(rows, 0, c->route->out, c->arena, object, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (db_has_col(rows, "version"))
		(void)http_reply_header(c->req, "ETag",
			arena_printf(c->arena, "\"%lld\"",
				(long long)db_int(rows, 0, db_col(rows, "version"))));
	call_reply(c, status, c->route->out, object);
}

void call_reply_empty(struct call *c)
{
	http_reply_empty(c->req, 204);
}

/* Every query struct with a cursor begins with its page. */
static const struct page_query *page_of(const struct call *c)
{
	return &((const struct list_query *)c->query)->page;
}

int call_page_check(struct call *c, struct err *e)
{
	struct str key;

	if (c->query == NULL || field_find(c->route->query, STR("cursor")) == NULL ||
		page_of(c)->cursor.n == 0 || cursor_key(c, page_of(c)->cursor, &key))
		return 0;
	return err_field(e, "/cursor", "must be the next_cursor of a page of this list");
}

struct str call_page_after(struct call *c, const char *first)
{
	struct str key;

	return cursor_key(c, page_of(c)->cursor, &key) ? key : str_c(first);
}

int64_t call_page_count(const struct call *c)
{
	return page_of(c)->limit + 1;
}

static void put_cursor(const struct call *c, struct jsn_out *w, struct str key)
{
	struct buf b;

	if (key.n == 0)
		return;
	buf_init(&b, PAGE_CURSOR_MAX);
	cursor_put(c, key, &b);
	BUG_ON(buf_failed(&b));
	jsn_key(w, "next_cursor");
	jsn_str(w, buf_str(&b));
	buf_done(&b);
}

void call_reply_items(struct call *c, const void *items, size_t n, size_t size, struct str next_key)
{
	struct buf b;

	buf_init(&b, REPLY_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "items");
	jsn_list_begin(&w);
	for (size_t i = 0; i < n; i++) {
		struct buf one;
		buf_init(&one, REPLY_MAX);
		field_encode(c->route->out, (const char *)items + i * size, &one);
		jsn_raw(&w, buf_str(&one));
		b.failed |= one.failed;
		buf_done(&one);
	}
	jsn_list_end(&w);
	put_cursor(c, &w, next_key);
	jsn_obj_end(&w);
	reply_buf(c, 200, &b);
}

int call_decode(struct call *c, const struct db_rows *rows, const struct field *t, size_t size,
	struct list *ret, struct err *e)
{
	char *items = arena_array(c->arena, rows->n + 1, size);
	size_t before = arena_used(c->arena);

	for (size_t i = 0; i < rows->n; i++) {
		if (db_row_decode(rows, i, t, c->arena, items + i * size, e) < 0)
			return -1;
		if (arena_used(c->arena) - before > REPLY_MAX)
			return err_set(e, ERR_TOO_LARGE, "the answer would be larger than %d bytes",
				REPLY_MAX);
	}
	*ret = (struct list){ items, rows->n };
	return 0;
}

void call_reply_list(struct call *c, const struct db_rows *rows)
{
	size_t limit = c->query != NULL ? (size_t)page_of(c)->limit : rows->n;
	size_t n = rows->n < limit ? rows->n : limit, size = c->route->out_size;
	char *items = arena_array(c->arena, n + 1, size);
	size_t before = arena_used(c->arena);
	struct str next = STR_NONE;
	struct err e;

	for (size_t i = 0; i < n; i++) {
		if (db_row_decode(rows, i, c->route->out, c->arena, items + i * size, &e) < 0) {
			call_fail(c, &e);
			return;
		}
		if (arena_used(c->arena) - before > PAGE_BYTES)
			n = i + 1; /* the next page goes on there */
	}
	if (rows->n > n)
		next = db_str(rows, n - 1, db_col(rows, "page_key"));
	call_reply_items(c, items, n, size, next);
}

bool call_if_match(struct call *c, int64_t *ret_version)
{
	struct str tag = http_header(c->req, "If-Match");
	struct err e;

	if (tag.p == NULL) {
		(void)err_set(
			&e, ERR_PRECONDITION_REQUIRED, "send If-Match with the object's ETag");
	} else if (tag.n < 3 || tag.p[0] != '"' || tag.p[tag.n - 1] != '"' ||
		   !num_parse_i64(str_slice(tag, 1, tag.n - 2), 1, INT64_MAX, ret_version)) {
		(void)err_set(
			&e, ERR_PRECONDITION_FAILED, "If-Match is not an ETag of this object");
	} else {
		return true;
	}
	call_fail(c, &e);
	return false;
}

int call_role(const struct call *c, struct str project_id, struct str role)
{
	const struct caller *who = &c->who;
	int member = -1;

	if (who->project_id.n != 0 && !str_eq(who->project_id, project_id))
		return -1;
	if (who->admin)
		return ROLE_OWNER;
	for (int i = 0; i < ROLE_COUNT; i++)
		if (str_is(role, role_names[i]))
			member = i;
	return member < who->role ? member : who->role;
}
