#include "server/rest/sync_group.h"

#include "lib/base/mem.h"
#include "lib/db/group.h"
#include "lib/loop/loop.h"
#include "server/app.h"
#include "server/sched/fleet.h"
#include "server/store/worker_store.h"

enum { SIGHTINGS_MAX = 200 };

struct sync_group {
	struct db_group *sightings, *details;
};

static void sightings_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	static const int64_t now[SIGHTINGS_MAX];
	struct str ids[SIGHTINGS_MAX];

	(void)arg;
	for (size_t i = 0; i < n; i++) {
		struct sync_asked *asked = items[i];
		ids[i] = asked->worker_id;
		asked->at = loop_now(asked->app->loop);
	}
	worker_store_seen(u, ids, now, n);
}

static void sightings_done(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	const struct sync_asked *asked = item;

	(void)arg, (void)row;
	if (e->code == ERR_OK)
		fleet_note_stored(asked->app->fleet, asked->worker_id, asked->at);
	asked->cb(asked->arg, rows, e);
}

/* First, and durable: what is not known to be delivered may be given up, and is not read then. */
static void details_build(void *arg, struct db_unit *u, void *const *items, size_t n)
{
	struct str ids[SYNC_GROUP_MAX] = { 0 };
	size_t all = 0;

	(void)arg;
	for (size_t i = 0; i < n; i++) {
		struct sync_asked *asked = items[i];
		BUG_ON(asked->n > SYNC_GROUP_MAX - all);
		asked->first = 1 + all;
		for (size_t k = 0; k < asked->n; k++)
			ids[all++] = asked->attempts[k];
	}
	worker_store_delivered(u, ids, all);
	for (size_t i = 0; i < all; i++)
		worker_store_assignment(u, ids[i]);
}

static void details_done(
	void *arg, void *item, const struct db_rows *rows, size_t row, const struct err *e)
{
	const struct sync_asked *asked = item;

	(void)arg, (void)row;
	asked->cb(asked->arg, e->code == ERR_OK ? rows + asked->first : rows, e);
}

struct sync_group *sync_group_new(struct app *app)
{
	struct sync_group *g = mem_new_of(struct sync_group);

	g->sightings = db_group_new(app->loop, app->db,
		&(struct db_group_conf){ .lane = DB_RELAXED,
			.build = sightings_build,
			.done = sightings_done,
			.result = -1,
			.batch_max = SIGHTINGS_MAX });
	g->details = db_group_new(app->loop, app->db,
		&(struct db_group_conf){ .lane = DB_WRITE,
			.build = details_build,
			.done = details_done,
			.result = -1,
			.bytes_max = SYNC_GROUP_MAX });
	return g;
}

void sync_group_free(struct sync_group *g)
{
	if (g == NULL)
		return;
	db_group_free(g->sightings);
	db_group_free(g->details);
	mem_free(g);
}

int sync_group_sight(struct sync_group *g, struct sync_asked *asked, struct err *e)
{
	return db_group_add(g->sightings, asked, 1, e);
}

/* The bytes of the group are attempts. */
int sync_group_details(struct sync_group *g, struct sync_asked *asked, struct err *e)
{
	return db_group_add(g->details, asked, asked->n, e);
}
