/*
 * Who is calling: reads the credential of a request and looks it up, in a cache or in the database.
 * What the cache says is at most five seconds old: by the clock, or, for workers, of which there
 * are many, because the outbox would have told of a change. Secrets are compared as HMACs in
 * constant time; an unknown token costs the same as a wrong one. The pepper lives in a file below
 * data-dir (0600), never in the database.
 */
#ifndef SERVER_REST_AUTH_H
#define SERVER_REST_AUTH_H
#include "api/auth.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

struct app;
struct auth;
struct http_req;

struct caller {
	enum credential_kind kind;
	struct str token_id, principal_id, name;
	bool admin; /* of the instance, and the token is not limited */
	struct str project_id, project; /* the only project that the token opens, or "" */
	int role; /* the most that the token allows: enum role */
	struct str worker_id, attempt_id;
	int64_t epoch;
	struct str data; /* JSON of a join token */
	int64_t expires_at;
	bool session; /* came by cookie */
};

struct auth *auth_new(struct app *app) __attribute__((returns_nonnull)); /* after the hub */
void auth_stop(struct auth *a); /* before hub and database go; NULL is fine */
void auth_free(struct auth *a);

/* Looks the request's credential up; the callback runs once, from the loop or at once when it is
 * cached; `who` is lent for it. On failure e is ERR_UNAUTHENTICATED, or ERR_FORBIDDEN for a
 * cross-site request. */
typedef void auth_cb(void *arg, const struct caller *who, const struct err *e);
void auth_check(struct auth *a, struct http_req *q, auth_cb *cb, void *arg);

/* Forgets what is cached of a token (revoked, used up). */
void auth_forget(struct auth *a, struct str token_id);

/* Sessions: the cookie's value, its MAC for the store, and the CSRF token that goes with it. */
struct session_row {
	struct str cookie, mac, csrf;
};
struct session_row auth_session_new(struct auth *a, struct arena *arena);
/* The MAC of the request's session cookie; p is NULL when it has none. */
struct str auth_session_mac(struct auth *a, const struct http_req *q, struct arena *arena);
/* Verifies the text of a token in a body; the callback as for auth_check. */
void auth_check_text(struct auth *a, struct str text, struct arena *arena, auth_cb *cb, void *arg);

#endif
