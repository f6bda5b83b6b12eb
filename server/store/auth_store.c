#include "server/store/auth_store.h"

#include "gen/sql.h"

static struct db_arg optional(struct str s)
{
	return db_opt(s.n != 0, DB_TEXT(s));
}

void auth_store_token(struct db_unit *u, struct str token_id)
{
	db_stmt(u, SQL_AUTH_TOKEN, DB_TEXT(token_id));
}

void auth_store_session(struct db_unit *u, struct str mac)
{
	db_stmt(u, SQL_AUTH_SESSION, DB_BYTES(mac));
}

void auth_store_used(
	struct db_unit *u, const struct str *token_ids, const struct str *ips, size_t n)
{
	db_stmt(u, SQL_AUTH_TOKENS_USED, DB_TEXTS(token_ids, n), DB_TEXTS(ips, n));
}

void auth_store_session_seen(struct db_unit *u, struct str mac)
{
	db_stmt(u, SQL_AUTH_SESSION_SEEN, DB_BYTES(mac));
}

void auth_store_access_project(struct db_unit *u, struct str principal_id, struct str name)
{
	db_stmt(u, SQL_ACCESS_PROJECT, DB_TEXT(principal_id), DB_TEXT(name));
}

void auth_store_access_object(
	struct db_unit *u, struct str principal_id, const char *kind, struct str id)
{
	db_stmt(u, SQL_ACCESS_OBJECT, DB_TEXT(principal_id), DB_TEXTZ(kind), DB_TEXT(id));
}

void auth_store_idempotency_add(struct db_unit *u, struct str principal_id, struct str key,
	struct str hash, struct str object_id)
{
	db_stmt(u, SQL_IDEMPOTENCY_INSERT, DB_TEXT(principal_id), DB_TEXT(key), DB_BYTES(hash),
		DB_TEXT(object_id));
}

void auth_store_idempotency_get(struct db_unit *u, struct str principal_id, struct str key)
{
	db_stmt(u, SQL_IDEMPOTENCY_GET, DB_TEXT(principal_id), DB_TEXT(key));
}

void auth_store_expire(struct db_unit *u)
{
	db_add(u, SQL_IDEMPOTENCY_EXPIRE, NULL, 0);
	db_add(u, SQL_SESSION_EXPIRE, NULL, 0);
}

void auth_store_token_add(struct db_unit *u, const struct token_row *t)
{
	struct str data = t->data.n != 0 ? t->data : STR("{}");

	db_stmt(u, SQL_TOKEN_INSERT, DB_TEXT(t->id), DB_TEXT(t->kind), DB_BYTES(t->mac),
		DB_TEXT(t->name), optional(t->principal_id), optional(t->project_id),
		DB_TEXTZ(t->role), optional(t->worker_id), optional(t->attempt_id),
		db_opt(t->epoch != 0, DB_INT(t->epoch)), DB_JSON(data), optional(t->created_by),
		DB_TIME(t->expires_at));
}

void auth_store_token_use(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_TOKEN_USE, DB_TEXT(id));
}

void auth_store_token_get(struct db_unit *u, struct str id)
{
	db_stmt(u, SQL_TOKEN_GET, DB_TEXT(id));
}

void auth_store_token_list(
	struct db_unit *u, struct str principal_id, struct str after, int64_t count)
{
	db_stmt(u, SQL_TOKEN_LIST, DB_TEXT(principal_id), DB_TEXT(after), DB_INT(count));
}

void auth_store_token_revoke(
	struct db_unit *u, struct str id, struct str principal_id, bool admin, struct str actor)
{
	db_stmt(u, SQL_TOKEN_REVOKE, DB_TEXT(id), DB_TEXT(principal_id), DB_BOOL(admin),
		DB_TEXT(actor));
}

void auth_store_session_add(
	struct db_unit *u, struct str mac, struct str token_id, int64_t expires_at)
{
	db_stmt(u, SQL_SESSION_INSERT, DB_BYTES(mac), DB_TEXT(token_id), DB_TIME(expires_at));
}

void auth_store_session_delete(struct db_unit *u, struct str mac)
{
	db_stmt(u, SQL_SESSION_DELETE, DB_BYTES(mac));
}

void auth_store_admin_count(struct db_unit *u)
{
	db_add(u, SQL_ADMIN_COUNT, NULL, 0);
}

void auth_store_principal_add(struct db_unit *u, struct str id, struct str name, bool admin)
{
	db_stmt(u, SQL_PRINCIPAL_INSERT, DB_TEXT(id), DB_TEXT(name), DB_BOOL(admin));
}

void auth_store_principal_get(struct db_unit *u, struct str id_or_name)
{
	db_stmt(u, SQL_PRINCIPAL_GET, DB_TEXT(id_or_name));
}

void auth_store_principal_list(struct db_unit *u, struct str after, int64_t count)
{
	db_stmt(u, SQL_PRINCIPAL_LIST, DB_TEXT(after), DB_INT(count));
}

void auth_store_principal_disable(struct db_unit *u, struct str id_or_name, struct str actor)
{
	db_stmt(u, SQL_PRINCIPAL_DISABLE, DB_TEXT(id_or_name), DB_TEXT(actor));
}

void auth_store_still(struct db_unit *u, const struct str *tokens, const struct str *projects,
	const struct str *macs, const bool *no_mac, size_t n)
{
	db_stmt(u, SQL_AUTH_STILL, DB_TEXTS(tokens, n), DB_TEXTS(projects, n),
		db_with_nulls(DB_BLOBS(macs, n), no_mac));
}
