/* cache_look → (what the keys are made of) look_on_facts → (steps that have the same)
 * look_on_found → the callback. */
#include "server/sched/cache_look.h"

#include "api/pipeline.h"
#include "lib/db/row.h"
#include "server/app.h"
#include "server/sched/cache_key.h"

enum { NEED_FILES_MAX = 100000 }; /* of what a step needs; one that needs more is always run */

struct cache_flow {
	struct app *app;
	struct arena *arena;
	struct plan_run *run;
	const struct list *wants;
	cache_look_cb *cb;
	void *arg;
	struct plan_cached **asked; /* those that are looked up, */
	struct str *keys, *images; /* and by what */
	int64_t *ages;
	size_t n;
};

static void look_on_facts(void *arg, const struct db_rows *rows, const struct err *e);
static void look_on_found(void *arg, const struct db_rows *rows, const struct err *e);

static const struct plan_cache_want *want_at(const struct cache_flow *f, size_t i)
{
	return list_at(f->wants, struct plan_cache_want, i);
}

void cache_look(struct app *app, struct arena *a, struct plan_run *run, const struct list *wants,
	cache_look_cb *cb, void *arg)
{
	struct cache_flow *f = arena_new_of(a, struct cache_flow);
	struct str *ids = arena_array_of(a, struct str, wants->n);
	struct str *images = arena_array_of(a, struct str, wants->n);
	size_t n = wants->n;

	*f = (struct cache_flow){ .app = app,
		.arena = a,
		.run = run,
		.wants = wants,
		.cb = cb,
		.arg = arg,
		.asked = arena_array_of(a, struct plan_cached *, n),
		.keys = arena_array_of(a, struct str, n),
		.images = arena_array_of(a, struct str, n),
		.ages = arena_array_of(a, int64_t, n) };
	for (size_t i = 0; i < n; i++) {
		ids[i] = run->steps[want_at(f, i)->step].id;
		images[i] = want_at(f, i)->spec->image;
	}
	struct db_unit *u = db_unit(app->db, a);
	engine_store_cache_facts(u, run->id, ids, images, n, NEED_FILES_MAX);
	db_send(u, DB_READ, look_on_facts, f);
}

static struct str column(
	struct cache_flow *f, const struct db_rows *r, size_t row, const char *name)
{
	return arena_str(f->arena, db_str(r, row, db_col(r, name)));
}

/* Its key, and by what it is looked up; not at all in a run that wants none, and when it is not
 * known which image exactly it will run in. */
static void ask_for(struct cache_flow *f, const struct db_rows *r, size_t row)
{
	const struct plan_cache_want *want = want_at(f, row);
	struct plan_step *s = &f->run->steps[want->step];
	struct plan_cached *c = arena_new_of(f->arena, struct plan_cached);
	unsigned char *key = arena_array_of(f->arena, unsigned char, HASH_SIZE);
	const struct cache_facts facts = { .matrix = column(f, r, row, "matrix"),
		.repository = column(f, r, row, "repository"),
		.commit = column(f, r, row, "commit"),
		.datasets = column(f, r, row, "datasets"),
		.models = column(f, r, row, "models"),
		.inputs = column(f, r, row, "inputs") };
	struct str image;

	s->cached = c;
	if (cache_counts(want->spec, CACHE_INPUTS) && db_bool(r, row, db_col(r, "many")))
		return;
	cache_key(want->spec, s->name, &facts, f->arena, key);
	c->key = (struct str){ (const char *)key, HASH_SIZE };
	if (f->run->takes_none || db_bool(r, row, db_col(r, "no_cache")) ||
		!cache_image(want->spec, column(f, r, row, "image_ref"), &image))
		return;
	f->asked[f->n] = c;
	f->keys[f->n] = c->key;
	f->images[f->n] = image;
	f->ages[f->n++] = clock_add(0, want->spec->cache.max_age.span, 1);
}

static void look_on_facts(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct cache_flow *f = arg;
	struct err ok = { .code = ERR_OK };

	if (e->code != ERR_OK) {
		f->cb(f->arg, e);
		return;
	}
	f->run->cache_looked = true;
	for (size_t i = 0; i < rows[0].n; i++)
		ask_for(f, &rows[0], i);
	if (f->n == 0) {
		f->cb(f->arg, &ok);
		return;
	}
	struct db_unit *u = db_unit(f->app->db, f->arena);
	engine_store_cache_find(u, f->run->project_id, f->keys, f->images, f->ages, f->n);
	db_send(u, DB_READ, look_on_found, f);
}

static void look_on_found(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct cache_flow *f = arg;

	for (size_t i = 0; e->code == ERR_OK && i < rows[0].n; i++) {
		struct plan_cached *c = f->asked[db_int(&rows[0], i, db_col(&rows[0], "ord")) - 1];
		c->step = column(f, &rows[0], i, "id");
		c->run = column(f, &rows[0], i, "run_id");
		c->rows = db_int(&rows[0], i, db_col(&rows[0], "rows"));
	}
	f->cb(f->arg, e);
}
