#include "server/sched/triggers.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json_read.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "server/app.h"
#include "server/sched/hub.h"
#include "server/sched/launch.h"
#include "server/sched/sched.h"
#include "server/store/pipeline_store.h"

/* A launch of its own takes as much as one that was asked for by a request. */
enum { TICK_MS = 10000, FIRE_ARENA = 256 << 20 };

struct triggers {
	struct app *app;
	struct hub_listener *listener;
	struct loop_timer tick;
	size_t on_the_way;
	bool closing;
};

/* A version on its way to the pipelines that it starts, and then to one of them. */
struct firing {
	struct triggers *triggers;
	struct arena *arena;
	struct str project_id, dataset, version_id;
};

static void triggers_on_event(void *arg, const struct event *ev, struct str project_id);
static void fire_on_pipelines(void *arg, const struct db_rows *rows, const struct err *e);
static void fire_on_launched(
	void *arg, const struct launched *made, const struct db_rows *rows, const struct err *e);
static void triggers_on_tick(void *arg);
static void missed_on_rows(void *arg, const struct db_rows *rows, const struct err *e);

struct triggers *triggers_new(struct app *app)
{
	struct triggers *t = mem_new_of(struct triggers);

	t->app = app;
	t->listener = hub_listen(app->hub, triggers_on_event, t);
	loop_timer_init(&t->tick, app->loop, triggers_on_tick, t);
	loop_timer_every(&t->tick, TICK_MS);
	return t;
}

static void triggers_gone(struct triggers *t)
{
	if (t->closing && t->on_the_way == 0)
		mem_free(t);
}

void triggers_free(struct triggers *t)
{
	if (t == NULL)
		return;
	hub_unlisten(t->listener);
	loop_timer_cancel(&t->tick);
	t->closing = true;
	triggers_gone(t);
}

static struct firing *firing_new(struct triggers *t, struct str project_id, struct str version_id)
{
	struct arena *a = arena_new(FIRE_ARENA);
	struct firing *f = arena_new_of(a, struct firing);

	*f = (struct firing){ .triggers = t,
		.arena = a,
		.project_id = arena_str(a, project_id),
		.version_id = arena_str(a, version_id) };
	return f;
}

static void triggers_on_event(void *arg, const struct event *ev, struct str project_id)
{
	struct triggers *t = arg;
	struct jsn_doc *doc;
	struct err e;

	if (!str_is(ev->type, "dataset.version_created") || !sched_leading(t->app->sched) ||
		jsn_parse(ev->data, &doc, &e) < 0)
		return;
	struct firing *f = firing_new(t, project_id, ev->subject);
	f->dataset = arena_str(f->arena, jsn_get_str(jsn_get(jsn_root(doc), "dataset")));
	jsn_doc_free(doc);
	struct db_unit *u = db_unit(t->app->db, f->arena);
	t->on_the_way++;
	pipeline_store_triggered(u, f->project_id, f->dataset);
	db_send(u, DB_READ, fire_on_pipelines, f);
}

static void launch_one(
	struct triggers *t, struct str project_id, struct str version_id, struct str pipeline)
{
	struct firing *f = firing_new(t, project_id, version_id);
	struct launch *l = arena_new_of(f->arena, struct launch);

	*l = (struct launch){ .project_id = f->project_id,
		.pipeline = arena_str(f->arena, pipeline),
		.trigger = "dataset",
		.trigger_key = f->version_id };
	t->on_the_way++;
	launch_start(t->app, f->arena, l, fire_on_launched, f);
}

static void fire_on_pipelines(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct firing *f = arg;
	struct triggers *t = f->triggers;

	t->on_the_way--;
	for (size_t i = 0; !t->closing && e->code == ERR_OK && i < rows[0].n; i++)
		launch_one(t, f->project_id, f->version_id, db_str(&rows[0], i, 0));
	arena_drop(f->arena);
	triggers_gone(t);
}

/* That the trigger has fired before is how repeats end; anything else is worth a line. */
static void fire_on_launched(
	void *arg, const struct launched *made, const struct db_rows *rows, const struct err *e)
{
	struct firing *f = arg;
	struct triggers *t = f->triggers;

	(void)rows;
	if (e->code == ERR_OK)
		log_info("a data set's version started a run", LOG_STR("run", made->run.id),
			LOG_STR("version", f->version_id));
	else if (e->code != ERR_CONFLICT)
		log_warn("a trigger could not start its run", LOG_STR("version", f->version_id),
			LOG_E(e));
	arena_drop(f->arena);
	t->on_the_way--;
	triggers_gone(t);
}

static void triggers_on_tick(void *arg)
{
	struct triggers *t = arg;

	if (!sched_leading(t->app->sched))
		return;
	struct db_unit *u = db_unit(t->app->db, NULL);
	t->on_the_way++;
	pipeline_store_missed(u);
	db_send(u, DB_READ, missed_on_rows, t);
}

static void missed_on_rows(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct triggers *t = arg;

	t->on_the_way--;
	for (size_t i = 0; !t->closing && e->code == ERR_OK && i < rows[0].n; i++)
		launch_one(
			t, db_str(&rows[0], i, 0), db_str(&rows[0], i, 2), db_str(&rows[0], i, 3));
	triggers_gone(t);
}
