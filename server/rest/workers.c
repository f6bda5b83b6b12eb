/* Workers as operators see them, and their enrolment. */
#include "lib/json/json_write.h"
#include "server/rest/handlers.h"
#include "server/rest/minted.h"
#include "server/sched/sched.h"
#include "server/store/auth_store.h"
#include "server/store/credential.h"
#include "server/store/event_store.h"
#include "server/store/worker_store.h"

enum { WORKER_TOKEN_DAYS = 365 };

static void worker_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, c->route->ok, &rows[0], "worker");
}

static void worker_get(struct call *c)
{
	struct db_unit *u = call_unit(c);

	worker_store_get(u, call_param(c, "worker"), c->app->conf.worker_lost_after);
	call_send(c, u, DB_READ, worker_on_row);
}

static void worker_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	worker_store_list(
		u, call_page_after(c, ""), call_page_count(c), c->app->conf.worker_lost_after);
	call_send(c, u, DB_READ, call_reply_list);
}

static void state_on_row(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	worker_get(c);
}

static void drain_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n != 0)
		sched_worker_closed(c->app->sched, db_str(&rows[0], 0, 0));
	worker_get(c);
}

static void worker_drain(struct call *c)
{
	struct db_unit *u = call_unit(c);

	worker_store_set_state(u, call_param(c, "worker"), WORKER_DRAINING, call_actor(c));
	call_send(c, u, DB_WRITE, drain_on_row);
}

static void worker_resume(struct call *c)
{
	struct db_unit *u = call_unit(c);

	worker_store_set_state(u, call_param(c, "worker"), WORKER_ACTIVE, call_actor(c));
	call_send(c, u, DB_WRITE, state_on_row);
}

static void exists_on_row(struct call *c, const struct db_rows *rows)
{
	struct err e;

	if (rows[0].n == 0) {
		call_not_found(c, "worker");
		return;
	}
	(void)err_set(
		&e, ERR_CONFLICT, "the worker holds attempts; drain it and wait for their end");
	call_fail(c, &e);
}

static void delete_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n != 0) {
		sched_worker_closed(c->app->sched, db_str(&rows[0], 0, 0));
		call_reply_empty(c);
		return;
	}
	struct db_unit *u = call_unit(c);
	worker_store_get(u, call_param(c, "worker"), c->app->conf.worker_lost_after);
	call_send(c, u, DB_READ, exists_on_row);
}

static void worker_delete(struct call *c)
{
	struct db_unit *u = call_unit(c);

	worker_store_delete(u, call_param(c, "worker"), call_actor(c));
	call_send(c, u, DB_WRITE, delete_on_row);
}

/* ---- enrolment ---- */

struct join {
	struct credential_row row;
	int64_t expires_at;
};

static struct str join_data(struct call *c, const struct join_token_new *in)
{
	struct buf b;

	buf_init(&b, 65536);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "pool");
	jsn_str(&w, in->pool);
	jsn_key(&w, "labels");
	jsn_obj_begin(&w);
	for (size_t i = 0; i < in->labels.n; i++) {
		jsn_key_str(&w, list_at(&in->labels, struct field_pair, i)->key);
		jsn_str(&w, list_at(&in->labels, struct field_pair, i)->value);
	}
	jsn_obj_end(&w);
	jsn_obj_end(&w);
	return buf_keep(&b, c->arena);
}

static void join_token(struct call *c)
{
	const struct join_token_new *in = c->in;
	int64_t ends;

	if (!minted_end(c, &in->expires_in, in->has_expires_in, &ends))
		return;
	struct credential_row row = credential_mint(c->app->pepper, CREDENTIAL_JOIN, c->arena);
	struct db_unit *u = call_unit(c);
	auth_store_token_add(u, &(struct token_row){ .id = row.id,
					.kind = row.kind,
					.mac = row.mac,
					.name = STR("join"),
					.data = join_data(c, in),
					.created_by = call_actor(c),
					.expires_at = ends });
	event_store_add(
		u, &(struct event_new){
			   .type = "token.created", .subject = row.id, .actor = call_actor(c) });
	minted_create(c, u, &row);
}

static void enroll_on_done(struct call *c, const struct db_rows *rows)
{
	const struct join *j = c->state;
	struct err e;

	if (rows[0].n == 0) {
		(void)err_set(&e, ERR_UNAUTHENTICATED, "the join token was used already");
		call_fail(c, &e);
		return;
	}
	auth_forget(c->app->auth, c->who.token_id);
	struct enrolled out = { .worker_id = db_str(&rows[0], 0, 0),
		.pool = db_str(&rows[0], 0, 1),
		.token = j->row.text,
		.expires_at = j->expires_at };
	call_reply(c, 201, enrolled_fields, &out);
}

static void worker_enroll(struct call *c)
{
	const struct enroll *in = c->in;
	struct join *j = arena_new_of(c->arena, struct join);
	struct str id = call_id(c, "wk");
	struct db_unit *u = call_unit(c);

	j->row = credential_mint(c->app->pepper, CREDENTIAL_WORKER, c->arena);
	j->expires_at = clock_now(c->app->clock) + WORKER_TOKEN_DAYS * CLOCK_DAY;
	c->state = j;
	worker_store_enroll(u, c->who.token_id, id, in->name);
	worker_store_add_token(u, j->row.id, j->row.mac, id, j->expires_at);
	event_store_add(
		u, &(struct event_new){ .type = "worker.enrolled", .subject = id, .actor = id });
	call_send(c, u, DB_WRITE, enroll_on_done);
}

const struct binding worker_bindings[] = {
	{ "workers.list", worker_list },
	{ "workers.get", worker_get },
	{ "workers.drain", worker_drain },
	{ "workers.resume", worker_resume },
	{ "workers.delete", worker_delete },
	{ "workers.join_token", join_token },
	{ "workers.enroll", worker_enroll },
	{ 0 },
};
