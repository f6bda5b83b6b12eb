/* Projects and members. */
#include "server/rest/grants.h"
#include "server/rest/handlers.h"
#include "server/sched/sched.h"
#include "server/store/event_store.h"
#include "server/store/project_store.h"

static void add_event(struct call *c, struct db_unit *u, const char *type, struct str id)
{
	event_store_add(
		u, &(struct event_new){
			   .project_id = id, .type = type, .subject = id, .actor = call_actor(c) });
}

static void project_get_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, c->route->ok, &rows[0], "project");
}

static void project_get_created(struct call *c)
{
	struct db_unit *u = call_unit(c);

	project_store_get(u, c->object_id);
	call_send(c, u, DB_READ, project_get_on_row);
}

static void project_create_on_done(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	project_get_created(c);
}

static void project_create(struct call *c)
{
	struct str id = call_id(c, "prj");
	struct db_unit *u = call_unit(c);

	project_store_add(u, id, c->in, c->who.principal_id);
	add_event(c, u, "project.created", id);
	call_create(c, u, id, project_create_on_done, project_get_created);
}

static void project_get(struct call *c)
{
	c->object_id = c->project_id;
	project_get_created(c);
}

static void project_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	project_store_list(u, c->who.principal_id, c->who.admin, c->who.project_id,
		call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

static void stale(struct call *c)
{
	struct err e;

	(void)err_set(&e, ERR_PRECONDITION_FAILED, "the project has changed since; read it again");
	call_fail(c, &e);
}

static void project_update_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		stale(c);
	else
		call_reply_row(c, 200, &rows[0], "project");
}

static void project_update(struct call *c)
{
	int64_t version;

	if (!call_if_match(c, &version))
		return;
	struct db_unit *u = call_unit(c);
	project_store_update(u, c->project_id, version, c->in, call_actor(c));
	call_send(c, u, DB_WRITE, project_update_on_row);
}

static void project_delete_on_row(struct call *c, const struct db_rows *rows)
{
	int64_t active = db_int(&rows[0], 0, 0);
	struct err e;

	grants_clear(c->app->grants);
	if (rows[1].n != 0) {
		call_reply_empty(c);
	} else if (active == 0) {
		stale(c);
	} else {
		(void)err_set(&e, ERR_CONFLICT,
			"%lld of the project's runs have not ended; cancel them first",
			(long long)active);
		call_fail(c, &e);
	}
}

static void project_content_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "project");
}

static void project_delete(struct call *c)
{
	const struct dry_run_query *q = c->query;
	int64_t version;

	if (q->dry_run) {
		struct db_unit *look = call_unit(c);
		project_store_content(look, c->project_id);
		call_send(c, look, DB_READ, project_content_on_row);
		return;
	}
	if (!call_if_match(c, &version))
		return;
	struct db_unit *u = call_unit(c);
	project_store_delete(u, c->project_id, version, call_actor(c));
	call_send(c, u, DB_BULK, project_delete_on_row); /* it may hold much */
}

/* ---- quotas ---- */

static void quota_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "project");
}

static void quota_get(struct call *c)
{
	struct db_unit *u = call_unit(c);

	quota_store_get(u, c->project_id);
	call_send(c, u, DB_READ, quota_on_row);
}

static void quota_on_put(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	sched_rules_changed(c->app->sched);
	quota_get(c);
}

static void quota_put(struct call *c)
{
	struct db_unit *u = call_unit(c);

	quota_store_put(u, c->project_id, c->in, call_actor(c));
	call_send(c, u, DB_WRITE, quota_on_put);
}

static void quota_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	quota_store_list(u, call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

/* ---- members ---- */

static void member_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	member_store_list(u, c->project_id, call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

static void member_put_on_row(struct call *c, const struct db_rows *rows)
{
	grants_clear(c->app->grants);
	call_reply_row(c, 200, &rows[0], "principal");
}

static void member_put(struct call *c)
{
	const struct member_put *in = c->in;
	struct db_unit *u = call_unit(c);

	member_store_put(u, c->project_id, call_param(c, "principal"), in->role, call_actor(c));
	call_send(c, u, DB_WRITE, member_put_on_row);
}

static void member_delete_on_row(struct call *c, const struct db_rows *rows)
{
	grants_clear(c->app->grants);
	if (rows[0].n == 0)
		call_not_found(c, "member");
	else
		call_reply_empty(c);
}

static void member_delete(struct call *c)
{
	struct db_unit *u = call_unit(c);

	member_store_delete(u, c->project_id, call_param(c, "principal"), call_actor(c));
	call_send(c, u, DB_WRITE, member_delete_on_row);
}

const struct binding project_bindings[] = {
	{ "projects.create", project_create },
	{ "projects.get", project_get },
	{ "projects.list", project_list },
	{ "projects.update", project_update },
	{ "projects.delete", project_delete },
	{ "quotas.list", quota_list },
	{ "quotas.get", quota_get },
	{ "quotas.put", quota_put },
	{ "members.list", member_list },
	{ "members.put", member_put },
	{ "members.delete", member_delete },
	{ 0 },
};
