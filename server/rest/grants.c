#include "server/rest/grants.h"

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"
#include "server/app.h"
#include "server/sched/hub.h"

enum { KEPT_US = 5 * 1000000, KEPT_MAX = 10000, ENTRY_ARENA = 16384, KEY_MAX = 512 };

struct entry {
	struct arena *arena;
	struct grant grant;
	int64_t until; /* loop_now() */
};

struct grants {
	struct app *app;
	struct map *entries; /* "principal project" -> struct entry */
	struct hub_listener *listener;
	uint64_t changes;
};

static void on_event(void *arg, const struct event *ev, struct str project_id)
{
	(void)project_id;
	if (str_starts(ev->type, STR("project.")))
		grants_clear(arg);
}

struct grants *grants_new(struct app *app)
{
	struct grants *g = mem_new_of(struct grants);

	g->app = app;
	g->entries = map_new();
	g->listener = hub_listen(app->hub, on_event, g);
	return g;
}

void grants_stop(struct grants *g)
{
	if (g == NULL)
		return;
	hub_unlisten(g->listener);
	g->listener = NULL;
}

static void drop_all(struct grants *g)
{
	size_t at = 0;
	struct str key;
	void *value;

	while (map_next(g->entries, &at, &key, &value))
		arena_drop(((struct entry *)value)->arena);
	map_free(g->entries);
}

void grants_free(struct grants *g)
{
	if (g == NULL)
		return;
	drop_all(g);
	mem_free(g);
}

void grants_clear(struct grants *g)
{
	drop_all(g);
	g->entries = map_new();
	g->changes++;
}

uint64_t grants_changes(const struct grants *g)
{
	return g->changes;
}

/* No id holds a blank. False when they are too long to be anybody's. */
static bool key_of(char key[KEY_MAX], struct str principal_id, struct str project, struct str *ret)
{
	size_t n = principal_id.n + 1 + project.n;

	if (n > KEY_MAX || principal_id.n == 0 || project.n == 0)
		return false;
	memcpy(key, principal_id.p, principal_id.n);
	key[principal_id.n] = ' ';
	memcpy(key + principal_id.n + 1, project.p, project.n);
	*ret = (struct str){ key, n };
	return true;
}

bool grants_get(
	const struct grants *g, struct str principal_id, struct str project, struct grant *ret)
{
	const struct entry *e;
	char text[KEY_MAX];
	struct str key;

	if (!key_of(text, principal_id, project, &key))
		return false;
	e = map_get(g->entries, key);
	if (e == NULL || e->until <= loop_now(g->app->loop))
		return false;
	*ret = e->grant;
	return true;
}

void grants_put(
	struct grants *g, uint64_t changes, struct str principal_id, const struct grant *grant)
{
	char text[KEY_MAX];
	struct str key;

	if (changes != g->changes || !key_of(text, principal_id, grant->project, &key))
		return;
	if (map_count(g->entries) >= KEPT_MAX)
		grants_clear(g);
	struct arena *a = arena_new(ENTRY_ARENA);
	struct entry *e = arena_new_of(a, struct entry), *old;
	*e = (struct entry){ .arena = a,
		.grant = { arena_str(a, grant->project_id), arena_str(a, grant->project),
			arena_str(a, grant->role) },
		.until = loop_now(g->app->loop) + KEPT_US };
	old = map_put(g->entries, key, e);
	if (old != NULL)
		arena_drop(old->arena);
}
