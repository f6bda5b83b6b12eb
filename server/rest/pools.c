/* Pools of workers. */
#include "server/app.h"
#include "server/rest/handlers.h"
#include "server/sched/sched.h"
#include "server/store/pool_store.h"

static void pool_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "pool");
}

static void pool_get(struct call *c)
{
	struct db_unit *u = call_unit(c);

	pool_store_get(u, call_param(c, "pool"));
	call_send(c, u, DB_READ, pool_on_row);
}

static void pool_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	pool_store_list(u, call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

static void pool_on_put(struct call *c, const struct db_rows *rows)
{
	struct err e;

	if (rows[0].n == 0) {
		(void)err_set(
			&e, ERR_PRECONDITION_FAILED, "the pool has changed since; read it again");
		call_fail(c, &e);
		return;
	}
	sched_rules_changed(c->app->sched);
	pool_get(c);
}

/* What nobody has set has the ETag "0", which may be asked for, too. */
static void pool_put(struct call *c)
{
	struct str tag = http_header(c->req, "If-Match");
	int64_t expected = str_is(tag, "\"0\"") ? 0 : -1;
	struct str name = call_param(c, "pool");
	struct err e;

	if (tag.p != NULL && expected < 0 && !call_if_match(c, &expected))
		return;
	if (!str_is_name(name)) {
		(void)err_field(&e, "/pool", "must be the name of a pool");
		call_fail(c, &e);
		return;
	}
	struct db_unit *u = call_unit(c);
	pool_store_put(u, name, c->in, expected, call_actor(c));
	call_send(c, u, DB_WRITE, pool_on_put);
}

static void pool_on_gone(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0) {
		call_not_found(c, "pool");
		return;
	}
	sched_rules_changed(c->app->sched);
	call_reply_empty(c);
}

static void pool_delete(struct call *c)
{
	struct db_unit *u = call_unit(c);

	pool_store_delete(u, call_param(c, "pool"), call_actor(c));
	call_send(c, u, DB_WRITE, pool_on_gone);
}

const struct binding pool_bindings[] = {
	{ "pools.list", pool_list },
	{ "pools.get", pool_get },
	{ "pools.put", pool_put },
	{ "pools.delete", pool_delete },
	{ 0 },
};
