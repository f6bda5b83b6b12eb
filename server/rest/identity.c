/* Bootstrap, sessions, tokens and principals. A secret is in the answer to its creation only. */
#include "lib/json/json_read.h"
#include "server/rest/handlers.h"
#include "server/rest/minted.h"
#include "server/store/auth_store.h"
#include "server/store/credential.h"
#include "server/store/event_store.h"

enum { SESSION_HOURS = 24, BOOTSTRAP_DAYS = 90, NAME_TAIL = 8 };

static void add_event(struct call *c, struct db_unit *u, const char *type, struct str subject)
{
	event_store_add(
		u, &(struct event_new){ .type = type, .subject = subject, .actor = call_actor(c) });
}

/* ---- tokens ---- */

static void token_insert(struct call *c, struct str principal_id, struct str project_id)
{
	const struct credential_new *in = c->in;
	int64_t ends;

	if (!minted_end(c, &in->expires_in, in->has_expires_in, &ends))
		return;
	struct credential_row row = credential_mint(
		c->app->pepper, in->kind == 0 ? CREDENTIAL_PAT : CREDENTIAL_CI, c->arena);
	struct db_unit *u = call_unit(c);
	auth_store_token_add(u, &(struct token_row){ .id = row.id,
					.kind = row.kind,
					.mac = row.mac,
					.name = in->name,
					.principal_id = principal_id,
					.project_id = project_id,
					.created_by = call_actor(c),
					.role = in->has_role ? role_names[in->role] : NULL,
					.expires_at = ends });
	add_event(c, u, "token.created", row.id);
	minted_create(c, u, &row);
}

static bool ci_has_project(struct call *c)
{
	const struct credential_new *in = c->in;

	if (in->kind != 1 || in->project.n != 0)
		return true;
	call_invalid(c, "/project", "a ci token needs a project");
	return false;
}

/* A token may do no more than its maker's: same project or narrower, same role or lower. */
static bool token_allowed(struct call *c, struct credential_new *in)
{
	const struct caller *who = &c->who;

	if (who->project.n != 0 && in->project.n == 0)
		in->project = who->project;
	if (who->project.n != 0 && !str_eq(who->project, in->project)) {
		call_invalid(c, "/project", "the caller's token opens the project %.*s only",
			STR_ARG(who->project));
		return false;
	}
	if (who->role < ROLE_OWNER && (!in->has_role || in->role > who->role)) {
		if (in->has_role) {
			call_invalid(c, "/role", "the caller's token goes no further than %s",
				role_names[who->role]);
			return false;
		}
		in->has_role = true;
		in->role = who->role;
	}
	return ci_has_project(c);
}

static void token_on_project(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0 || call_role(c, db_str(&rows[0], 0, 0), db_str(&rows[0], 0, 2)) < 0)
		call_invalid(c, "/project", "there is no such project");
	else
		token_insert(c, c->who.principal_id, arena_str(c->arena, db_str(&rows[0], 0, 0)));
}

static void token_create(struct call *c)
{
	struct credential_new *in = c->in;

	if (!token_allowed(c, in))
		return;
	if (in->project.n == 0) {
		token_insert(c, c->who.principal_id, STR_NONE);
		return;
	}
	struct db_unit *u = call_unit(c);
	auth_store_access_project(u, c->who.principal_id, in->project);
	call_send(c, u, DB_READ, token_on_project);
}

static void token_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	auth_store_token_list(u, c->who.principal_id, call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

static void token_revoke_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0) {
		call_not_found(c, "token");
		return;
	}
	auth_forget(c->app->auth, call_param(c, "token"));
	call_reply_empty(c);
}

static void token_revoke(struct call *c)
{
	struct db_unit *u = call_unit(c);

	auth_store_token_revoke(
		u, call_param(c, "token"), c->who.principal_id, c->who.admin, call_actor(c));
	call_send(c, u, DB_WRITE, token_revoke_on_row);
}

/* ---- bootstrap: one use, only while there is no administrator, or to recover ---- */

/* Made by `bootstrap --recover`: another administrator beside those that are. */
static bool is_recovery(const struct caller *who)
{
	struct jsn_doc *doc;
	struct err e;

	if (jsn_parse(who->data, &doc, &e) < 0)
		return false;
	bool yes = jsn_get_bool(jsn_get(jsn_root(doc), "recover"), false);
	jsn_doc_free(doc);
	return yes;
}

static void bootstrap_on_used(struct call *c, const struct db_rows *rows)
{
	bool recovery = is_recovery(&c->who);

	if (rows[0].n == 0 || (db_int(&rows[1], 0, 0) > 0 && !recovery)) {
		call_not_found(c, "bootstrap");
		return;
	}
	struct str id = call_id(c, "usr"), name = STR("admin");
	struct db_unit *u = call_unit(c);

	if (recovery)
		name = arena_printf(c->arena, "admin-%s", id.p + id.n - NAME_TAIL);
	auth_forget(c->app->auth, c->who.token_id);
	auth_store_principal_add(u, id, name, true);
	struct credential_row row = credential_mint(c->app->pepper, CREDENTIAL_PAT, c->arena);
	auth_store_token_add(
		u, &(struct token_row){ .id = row.id,
			   .kind = row.kind,
			   .mac = row.mac,
			   .name = STR("bootstrap"),
			   .principal_id = id,
			   .expires_at = clock_now(c->app->clock) + BOOTSTRAP_DAYS * CLOCK_DAY });
	add_event(c, u, "principal.created", id);
	minted_send(c, u, &row);
}

static void bootstrap(struct call *c)
{
	struct db_unit *u = call_unit(c);

	auth_store_token_use(u, c->who.token_id);
	auth_store_admin_count(u);
	call_send(c, u, DB_WRITE, bootstrap_on_used);
}

/* ---- who am I ---- */

static void self_get(struct call *c)
{
	const struct caller *who = &c->who;
	struct self self = { .principal = who->principal_id,
		.name = who->name,
		.project = who->project,
		.kind = who->session ? STR("session") : str_c(credential_kind_names[who->kind]),
		.admin = who->admin,
		.expires_at = who->expires_at };

	call_reply(c, 200, self_fields, &self);
}

/* ---- sessions ---- */

struct login {
	struct session_row row;
	int64_t expires_at;
};

static void session_on_inserted(struct call *c, const struct db_rows *rows)
{
	const struct login *login = c->state;
	struct session s = { .csrf = login->row.csrf, .expires_at = login->expires_at };
	bool secure = c->req->tls || c->app->conf.behind_tls_proxy;

	(void)rows;
	(void)http_reply_header(c->req, "Set-Cookie",
		arena_printf(c->arena, "tidemill_session=%.*s; Path=/; HttpOnly; SameSite=Strict%s",
			STR_ARG(login->row.cookie), secure ? "; Secure" : ""));
	call_reply(c, 201, session_fields, &s);
}

static void session_on_caller(void *arg, const struct caller *who, const struct err *e)
{
	struct call *c = arg;
	struct err refused;

	if (e->code != ERR_OK) {
		call_fail(c, e);
		return;
	}
	if (who->kind != CREDENTIAL_PAT) {
		(void)err_set(&refused, ERR_FORBIDDEN, "only a personal token opens the dashboard");
		call_fail(c, &refused);
		return;
	}
	struct login *login = arena_new_of(c->arena, struct login);
	login->row = auth_session_new(c->app->auth, c->arena);
	login->expires_at = clock_now(c->app->clock) + SESSION_HOURS * CLOCK_HOUR;
	if (login->expires_at > who->expires_at)
		login->expires_at = who->expires_at;
	c->state = login;
	struct db_unit *u = call_unit(c);
	auth_store_session_add(u, login->row.mac, who->token_id, login->expires_at);
	call_send(c, u, DB_WRITE, session_on_inserted);
}

static void session_create(struct call *c)
{
	const struct session_new *in = c->in;
	struct str site = http_header(c->req, "Sec-Fetch-Site");
	struct err e;

	if (site.p != NULL && !str_is(site, "same-origin") && !str_is(site, "none")) {
		(void)err_set(&e, ERR_FORBIDDEN, "log in from Tidemill's own page");
		call_fail(c, &e);
		return;
	}
	auth_check_text(c->app->auth, in->token, c->arena, session_on_caller, c);
}

static void session_on_deleted(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	(void)http_reply_header(c->req, "Set-Cookie",
		STR("tidemill_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"));
	call_reply_empty(c);
}

static void session_delete(struct call *c)
{
	struct str mac = auth_session_mac(c->app->auth, c->req, c->arena);
	struct db_unit *u = call_unit(c);

	if (mac.p != NULL)
		auth_store_session_delete(u, mac);
	call_send(c, u, DB_WRITE, session_on_deleted);
}

/* ---- principals ---- */

static void principal_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, c->route->ok, &rows[0], "principal");
}

static void principal_reply(struct call *c)
{
	struct db_unit *u = call_unit(c);

	auth_store_principal_get(u, c->object_id);
	call_send(c, u, DB_READ, principal_on_row);
}

static void principal_on_inserted(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	principal_reply(c);
}

static void principal_create(struct call *c)
{
	const struct principal_new *in = c->in;
	struct str id = call_id(c, "usr");
	struct db_unit *u = call_unit(c);

	auth_store_principal_add(u, id, in->name, in->admin);
	add_event(c, u, "principal.created", id);
	call_create(c, u, id, principal_on_inserted, principal_reply);
}

static void principal_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	auth_store_principal_list(u, call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

static void principal_token_on_rows(struct call *c, const struct db_rows *rows)
{
	const struct credential_new *in = c->in;

	if (rows[0].n == 0)
		call_not_found(c, "principal");
	else if (in->project.n != 0 && rows[1].n == 0)
		call_invalid(c, "/project", "there is no such project");
	else
		token_insert(c, arena_str(c->arena, db_str(&rows[0], 0, db_col(&rows[0], "id"))),
			in->project.n != 0 ? arena_str(c->arena, db_str(&rows[1], 0, 0))
					   : STR_NONE);
}

static void principal_token(struct call *c)
{
	const struct credential_new *in = c->in;

	if (!ci_has_project(c))
		return;
	struct db_unit *u = call_unit(c);
	auth_store_principal_get(u, call_param(c, "principal"));
	if (in->project.n != 0)
		auth_store_access_project(u, c->who.principal_id, in->project);
	call_send(c, u, DB_READ, principal_token_on_rows);
}

static void principal_disable_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		call_not_found(c, "principal");
	else
		call_reply_empty(c);
}

static void principal_disable(struct call *c)
{
	struct str name = call_param(c, "principal");
	struct err e;

	if (str_eq(name, c->who.principal_id) || str_eq(name, c->who.name)) {
		(void)err_set(&e, ERR_CONFLICT, "the caller cannot shut itself out");
		call_fail(c, &e);
		return;
	}
	struct db_unit *u = call_unit(c);
	auth_store_principal_disable(u, name, call_actor(c));
	call_send(c, u, DB_WRITE, principal_disable_on_row);
}

const struct binding auth_bindings[] = {
	{ "auth.bootstrap", bootstrap },
	{ "auth.self", self_get },
	{ "sessions.create", session_create },
	{ "sessions.delete", session_delete },
	{ "tokens.list", token_list },
	{ "tokens.create", token_create },
	{ "tokens.revoke", token_revoke },
	{ "principals.list", principal_list },
	{ "principals.create", principal_create },
	{ "principals.token", principal_token },
	{ "principals.disable", principal_disable },
	{ 0 },
};
