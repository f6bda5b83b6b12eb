/* Credentials, sessions, principals, access and idempotency keys. */
#ifndef SERVER_STORE_AUTH_STORE_H
#define SERVER_STORE_AUTH_STORE_H
#include "api/auth.h"
#include "lib/db/row.h"

/* Lookups of the auth check; columns as in schema/queries/auth.sql. */
void auth_store_token(struct db_unit *u, struct str token_id);
void auth_store_session(struct db_unit *u, struct str mac);
void auth_store_used(
	struct db_unit *u, const struct str *token_ids, const struct str *ips, size_t n);
void auth_store_session_seen(struct db_unit *u, struct str mac);

/* One row: id, name, role of the project that the path names, or that owns an object. */
void auth_store_access_project(struct db_unit *u, struct str principal_id, struct str name);
void auth_store_access_object(
	struct db_unit *u, struct str principal_id, const char *kind, struct str id);

void auth_store_idempotency_add(struct db_unit *u, struct str principal_id, struct str key,
	struct str hash, struct str object_id);
void auth_store_idempotency_get(struct db_unit *u, struct str principal_id, struct str key);
void auth_store_expire(struct db_unit *u); /* old keys and sessions */

struct token_row {
	struct str id, kind, mac, name, principal_id, project_id, worker_id, attempt_id, data,
		created_by;
	const char *role; /* NULL: none of its own */
	int64_t epoch, expires_at;
};
void auth_store_token_add(struct db_unit *u, const struct token_row *t);
void auth_store_token_use(struct db_unit *u, struct str id); /* one row when it was unused */
void auth_store_token_get(struct db_unit *u, struct str id);
void auth_store_token_list(
	struct db_unit *u, struct str principal_id, struct str after, int64_t count);
/* Revoking and shutting out add their event when there is somebody: one row, else none. */
void auth_store_token_revoke(
	struct db_unit *u, struct str id, struct str principal_id, bool admin, struct str actor);

void auth_store_session_add(
	struct db_unit *u, struct str mac, struct str token_id, int64_t expires_at);
void auth_store_session_delete(struct db_unit *u, struct str mac);
/* For open streams: rows with ord (from 1) of the callers that may still read in their projects. */
void auth_store_still(struct db_unit *u, const struct str *tokens, const struct str *projects,
	const struct str *macs, const bool *no_mac, size_t n);

void auth_store_admin_count(struct db_unit *u);
void auth_store_principal_add(struct db_unit *u, struct str id, struct str name, bool admin);
void auth_store_principal_get(struct db_unit *u, struct str id_or_name);
void auth_store_principal_list(struct db_unit *u, struct str after, int64_t count);
void auth_store_principal_disable(struct db_unit *u, struct str id_or_name, struct str actor);

#endif
