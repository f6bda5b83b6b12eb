#include "server/rest/auth.h"

#include "lib/base/fs.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/crypto/token.h"
#include "lib/db/group.h"
#include "lib/db/row.h"
#include "lib/http/req.h"
#include "lib/loop/loop.h"
#include "server/app.h"
#include "server/sched/hub.h"
#include "server/store/auth_store.h"
#include "server/store/credential.h"

enum {
	CACHE_MAX = 20000,
	CACHE_US = 5 * 1000000,
	TOLD_US = 60 * 1000000, /* while the hub tells of changes */
	USED_US = 60 * 1000000,
	USED_BATCH = 200,
	COOKIE_BYTES = 32,
	ENTRY_ARENA = 65536
};

static const char cookie_name[] = "tidemill_session";

/* What a lookup found. */
struct entry {
	struct arena *arena;
	struct caller who;
	unsigned char mac[HMAC_SIZE];
	bool alive;
	int64_t born; /* loop_now() */
};

struct auth {
	struct app *app;
	struct map *cache; /* token id -> struct entry */
	struct db_group *uses;
	struct hub_listener *listener;
	uint64_t changes; /* moves when anything is forgotten */
};

/* The use of a token, to be noted. */
struct use {
	char token[TOKEN_ID + 1], peer[64];
};

/* One lookup on its way. */
struct check {
	struct auth *auth;
	struct arena *arena;
	struct token_text token;
	bool has_token; /* else by session */
	uint64_t changes; /* of the cache, when the lookup began */
	struct str token_id, session_mac;
	auth_cb *cb;
	void *arg;
	const char *peer;
};

static void entry_free(struct entry *en)
{
	if (en != NULL)
		arena_drop(en->arena);
}

static void cache_clear(struct auth *a)
{
	size_t at = 0;
	struct str key;
	void *value;

	while (map_next(a->cache, &at, &key, &value))
		entry_free(value);
	map_free(a->cache);
}

static void forget_all(struct auth *a)
{
	cache_clear(a);
	a->cache = map_new();
	a->changes++;
}

static void uses_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	struct str ids[USED_BATCH], peers[USED_BATCH];

	(void)arg;
	for (size_t i = 0; i < n; i++) {
		const struct use *use = items[i];
		ids[i] = str_c(use->token);
		peers[i] = str_c(use->peer);
	}
	auth_store_used(u, ids, peers, n);
}

static void uses_done(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	(void)arg, (void)rows, (void)row, (void)e;
	mem_free(item);
}

/* Of the changes that the cache must hear of; those of this server's own requests are forgotten by
 * their handlers at once. */
static void auth_on_event(void *arg, const struct event *ev, struct str project_id)
{
	(void)project_id;
	if (str_is(ev->type, "token.revoked"))
		auth_forget(arg, ev->subject);
	else if (str_is(ev->type, "worker.deleted") || str_is(ev->type, "principal.disabled"))
		forget_all(arg);
}

struct auth *auth_new(struct app *app)
{
	struct auth *a = mem_new_of(struct auth);

	a->app = app;
	a->cache = map_new();
	a->listener = hub_listen(app->hub, auth_on_event, a);
	a->uses = db_group_new(app->loop, app->db,
		&(struct db_group_conf){ .lane = DB_RELAXED,
			.build = uses_build,
			.done = uses_done,
			.result = -1,
			.batch_max = USED_BATCH });
	return a;
}

void auth_stop(struct auth *a)
{
	if (a == NULL)
		return;
	hub_unlisten(a->listener);
	db_group_free(a->uses);
}

void auth_free(struct auth *a)
{
	if (a == NULL)
		return;
	cache_clear(a);
	mem_free(a);
}

void auth_forget(struct auth *a, struct str token_id)
{
	entry_free(map_remove(a->cache, token_id));
	a->changes++;
}

static void refuse(const struct check *c, const char *why)
{
	struct err e;

	(void)err_set(&e, ERR_UNAUTHENTICATED, "%s", why);
	c->cb(c->arg, NULL, &e);
}

/* Tail of every lookup: the entry is right or the token is refused, in the same words. Returns
 * which; the request may have been answered by then. */
static bool finish(struct check *c, const struct entry *en)
{
	static const struct err ok = { .code = ERR_OK };
	bool right = !c->has_token || credential_verify(c->auth->app->pepper, &c->token,
					      en != NULL ? en->mac : NULL);

	token_text_wipe(&c->token);
	if (en == NULL || !right || !en->alive ||
		en->who.expires_at <= clock_now(c->auth->app->clock)) {
		refuse(c, "the token is not known, has ended, or was revoked");
		return false;
	}
	struct caller who = en->who;
	who.session = !c->has_token;
	c->cb(c->arg, &who, &ok);
	return true;
}

static int role_of(struct str role)
{
	for (int i = 0; i < ROLE_COUNT; i++)
		if (str_is(role, role_names[i]))
			return i;
	return ROLE_OWNER; /* no limit of its own */
}

static enum credential_kind kind_of(struct str kind)
{
	for (int i = 0; i < CREDENTIAL_KIND_COUNT; i++)
		if (str_is(kind, credential_kind_names[i]))
			return (enum credential_kind)i;
	return CREDENTIAL_KIND_COUNT;
}

static struct str copy(struct arena *a, const struct db_rows *r, const char *column)
{
	return arena_str(a, db_str(r, 0, db_col(r, column)));
}

static struct entry *entry_new(struct auth *a, const struct db_rows *r)
{
	struct arena *arena = arena_new(ENTRY_ARENA);
	struct entry *en = arena_new_of(arena, struct entry);
	struct str mac = db_str(r, 0, db_col(r, "mac"));

	en->arena = arena;
	en->who = (struct caller){
		.kind = kind_of(db_str(r, 0, db_col(r, "kind"))),
		.token_id = copy(arena, r, "id"),
		.principal_id = copy(arena, r, "principal_id"),
		.name = copy(arena, r, "name"),
		.admin = db_bool(r, 0, db_col(r, "admin")),
		.project_id = copy(arena, r, "project_id"),
		.project = copy(arena, r, "project"),
		.role = role_of(db_str(r, 0, db_col(r, "role"))),
		.worker_id = copy(arena, r, "worker_id"),
		.attempt_id = copy(arena, r, "attempt_id"),
		.epoch = db_int(r, 0, db_col(r, "epoch")),
		.data = copy(arena, r, "data"),
		.expires_at = db_time(r, 0, db_col(r, "expires_at")),
	};
	if (mac.n == HMAC_SIZE)
		memcpy(en->mac, mac.p, HMAC_SIZE);
	en->alive = mac.n == HMAC_SIZE && db_bool(r, 0, db_col(r, "alive")) &&
		    !db_bool(r, 0, db_col(r, "dead")) && !db_bool(r, 0, db_col(r, "disabled"));
	en->born = loop_now(a->app->loop);
	return en;
}

static void remember(struct auth *a, struct entry *en)
{
	if (map_count(a->cache) >= CACHE_MAX)
		forget_all(a);
	entry_free(map_put(a->cache, en->who.token_id, en));
}

/* At most five seconds old. A worker's token changes by events only. */
static bool is_fresh(const struct auth *a, const struct entry *en)
{
	int64_t now = loop_now(a->app->loop), age = now - en->born;

	if (age <= CACHE_US)
		return true;
	return en->who.kind == CREDENTIAL_WORKER && age <= TOLD_US &&
	       now - hub_told_until(a->app->hub) <= CACHE_US;
}

/* Noted to the minute; when it cannot be, it is left out. */
static void note_use(const struct check *c, const struct db_rows *r)
{
	int64_t last = db_time(r, 0, db_col(r, "last_used_at"));
	struct err e;

	if (clock_now(c->auth->app->clock) - last < USED_US)
		return;
	struct use *use = mem_new_of(struct use);
	(void)str_print(use->token, sizeof use->token, "%.*s", STR_ARG(c->token_id));
	(void)str_print(use->peer, sizeof use->peer, "%s", c->peer);
	if (db_group_add(c->auth->uses, use, sizeof *use, &e) < 0)
		mem_free(use);
}

static void check_on_token(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct check *c = arg;

	if (e->code != ERR_OK) {
		c->cb(c->arg, NULL, e);
		return;
	}
	if (rows[0].n == 0) {
		(void)finish(c, NULL);
		return;
	}
	struct entry *en = entry_new(c->auth, &rows[0]);
	bool kept = c->changes == c->auth->changes; /* nothing was forgotten since it was read */
	if (kept)
		remember(c->auth, en);
	if (finish(c, en)) /* whoever only knows the id has not used the token */
		note_use(c, &rows[0]);
	if (!kept)
		entry_free(en);
}

static void look_up_token(struct check *c)
{
	struct entry *en = map_get(c->auth->cache, c->token_id);

	if (en != NULL && is_fresh(c->auth, en)) {
		(void)finish(c, en);
		return;
	}
	struct db_unit *u = db_unit(c->auth->app->db, c->arena);
	c->changes = c->auth->changes;
	auth_store_token(u, c->token_id);
	db_send(u, DB_READ, check_on_token, c);
}

static void check_on_session(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct check *c = arg;

	if (e->code != ERR_OK) {
		c->cb(c->arg, NULL, e);
		return;
	}
	if (rows[0].n == 0) {
		refuse(c, "the session has ended");
		return;
	}
	c->token_id = arena_str(c->arena, db_str(&rows[0], 0, db_col(&rows[0], "token_id")));
	look_up_token(c);
}

static void look_up_session(struct check *c)
{
	struct db_unit *u = db_unit(c->auth->app->db, c->arena);

	auth_store_session(u, c->session_mac);
	db_send(u, DB_READ, check_on_session, c);
	u = db_unit(c->auth->app->db, NULL);
	auth_store_session_seen(u, c->session_mac);
	db_send(u, DB_RELAXED, NULL, NULL);
}

static struct check *check_new(struct auth *a, struct arena *arena, auth_cb *cb, void *arg)
{
	struct check *c = arena_new_of(arena, struct check);

	*c = (struct check){ .auth = a, .arena = arena, .cb = cb, .arg = arg, .peer = "" };
	return c;
}

void auth_check_text(struct auth *a, struct str text, struct arena *arena, auth_cb *cb, void *arg)
{
	struct check *c = check_new(a, arena, cb, arg);

	if (!token_text_parse(text, &c->token)) {
		refuse(c, "this is not a token of Tidemill");
		return;
	}
	c->has_token = true;
	c->token_id = arena_str(arena, str_c(c->token.id));
	look_up_token(c);
}

/* The value of one cookie of the Cookie header. */
static struct str cookie_value(const struct http_req *q)
{
	struct str rest = http_header(q, "Cookie"), pair;

	while (str_next(&rest, ';', &pair)) {
		pair = str_trim(pair);
		ptrdiff_t eq = str_find_char(pair, '=');
		if (eq > 0 && str_is(str_slice(pair, 0, (size_t)eq), cookie_name))
			return str_slice(pair, (size_t)eq + 1, pair.n);
	}
	return STR_NONE;
}

static struct str hex(struct str bytes, struct arena *arena)
{
	char *out = arena_alloc(arena, 2 * bytes.n + 1);

	for (size_t i = 0; i < bytes.n; i++)
		(void)str_print(out + 2 * i, 3, "%02x", (unsigned char)bytes.p[i]);
	return (struct str){ out, 2 * bytes.n };
}

struct str auth_session_mac(struct auth *a, const struct http_req *q, struct arena *arena)
{
	struct str cookie = cookie_value(q);

	return cookie.n == 2 * COOKIE_BYTES
		       ? credential_keyed(a->app->pepper, "session:", cookie, arena)
		       : STR_NONE;
}

struct session_row auth_session_new(struct auth *a, struct arena *arena)
{
	unsigned char random[COOKIE_BYTES];

	id_random(random, sizeof random);
	struct str cookie = hex((struct str){ (const char *)random, sizeof random }, arena);
	return (struct session_row){ cookie,
		credential_keyed(a->app->pepper, "session:", cookie, arena),
		hex(credential_keyed(a->app->pepper, "csrf:", cookie, arena), arena) };
}

static bool is_safe(struct str method)
{
	return str_is(method, "GET") || str_is(method, "HEAD");
}

/* A browser sends the cookie by itself, so unsafe requests must prove that our page made them. */
static bool same_site(struct auth *a, const struct http_req *q, struct arena *arena)
{
	struct str site = http_header(q, "Sec-Fetch-Site"), given = http_header(q, "X-CSRF");
	struct str want =
		hex(credential_keyed(a->app->pepper, "csrf:", cookie_value(q), arena), arena);

	return (site.p == NULL || str_is(site, "same-origin")) && hmac_equal(given, want);
}

void auth_check(struct auth *a, struct http_req *q, auth_cb *cb, void *arg)
{
	struct check *c = check_new(a, q->arena, cb, arg);
	struct str header = http_header(q, "Authorization");
	struct err e;

	c->peer = q->peer;
	if (http_header_count(q, "Authorization") > 1) {
		(void)err_set(&e, ERR_MALFORMED, "more than one Authorization header");
		cb(arg, NULL, &e);
		return;
	}
	if (header.p != NULL) {
		if (!str_starts(header, STR("Bearer ")) ||
			!token_text_parse(str_slice(header, 7, header.n), &c->token)) {
			refuse(c, "Authorization must be: Bearer tdm_…");
			return;
		}
		c->has_token = true;
		c->token_id = arena_str(q->arena, str_c(c->token.id));
		look_up_token(c);
		return;
	}
	c->session_mac = auth_session_mac(a, q, q->arena);
	if (c->session_mac.p == NULL) {
		refuse(c, "a token is needed");
		return;
	}
	if (!is_safe(q->method) && !same_site(a, q, q->arena)) {
		(void)err_set(&e, ERR_FORBIDDEN, "X-CSRF is missing or not the session's");
		cb(arg, NULL, &e);
		return;
	}
	look_up_session(c);
}
