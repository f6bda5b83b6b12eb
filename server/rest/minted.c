#include "server/rest/minted.h"

#include "server/store/auth_store.h"

bool minted_end(struct call *c, const struct field_span *life, bool given, int64_t *ret_ends)
{
	const struct caller *who = &c->who;
	int64_t now = clock_now(c->app->clock), ends = clock_add(now, life->span, 1);
	bool free = who->admin && who->expires_at - now >= CLOCK_DAY;
	char until[CLOCK_TEXT_MAX];

	if (!free && ends > who->expires_at && given) {
		call_invalid(c, "/expires_in",
			"the token would outlive the one that makes it, which ends at %s; an "
			"administrator can make a longer one",
			clock_format(until, who->expires_at));
		return false;
	}
	*ret_ends = free || ends < who->expires_at ? ends : who->expires_at;
	return true;
}

struct minted {
	struct str secret;
};

static void minted_on_row(struct call *c, const struct db_rows *rows)
{
	struct credential *t = arena_new_of(c->arena, struct credential);
	const struct minted *m = c->state;
	struct err e;

	if (rows[0].n == 0) {
		call_not_found(c, "token");
		return;
	}
	if (db_row_decode(&rows[0], 0, credential_fields, c->arena, t, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (m != NULL)
		t->token = m->secret;
	call_reply(c, c->route->ok, credential_fields, t);
}

static void minted_reply(struct call *c)
{
	struct db_unit *u = call_unit(c);

	auth_store_token_get(u, c->object_id);
	call_send(c, u, DB_READ, minted_on_row);
}

static void minted_replay(struct call *c)
{
	c->state = NULL;
	minted_reply(c);
}

static void minted_on_inserted(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	minted_reply(c);
}

static void minted_keep(struct call *c, const struct credential_row *row)
{
	struct minted *m = arena_new_of(c->arena, struct minted);

	m->secret = row->text;
	c->state = m;
	c->object_id = row->id;
}

void minted_create(struct call *c, struct db_unit *u, const struct credential_row *row)
{
	minted_keep(c, row);
	call_create(c, u, row->id, minted_on_inserted, minted_replay);
}

void minted_send(struct call *c, struct db_unit *u, const struct credential_row *row)
{
	minted_keep(c, row);
	call_send(c, u, DB_WRITE, minted_on_inserted);
}
