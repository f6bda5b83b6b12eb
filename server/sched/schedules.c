#include "server/sched/schedules.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/db/row.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "lib/loop/work.h"
#include "server/app.h"
#include "server/sched/hub.h"
#include "server/sched/launch.h"
#include "server/sched/sched.h"
#include "server/sched/trigger_rules.h"
#include "server/store/schedule_store.h"

enum { TICK_MS = 1000, AT_ONCE = 20, OWED_ARENA = 256 << 20, ROUND_ARENA = 1 << 20 };
#define SWEEP_US   CLOCK_MINUTE
#define TAKEN_US   (2 * CLOCK_MINUTE) /* longer than making a run takes, mostly */
#define FIRST_US   (10 * CLOCK_SECOND)
#define LONGEST_US (10 * CLOCK_MINUTE)
#define GIVE_UP_US CLOCK_DAY
#define KEEP_US    CLOCK_DAY

struct schedules {
	struct app *app;
	struct hub_listener *listener;
	struct loop_timer tick;
	size_t on_the_way; /* callbacks that will come */
	size_t launching;
	int64_t sweep_at; /* loop_now() */
	bool looking, settling, taking, closing;
	bool upstream, datasets; /* such triggers exist */
};

/* What has been reached, on its way through a thread. */
struct reached {
	struct str pipeline_id, cron, timezone;
	struct schedule schedule;
	int64_t settled, passed, now;
	bool paused;
	struct schedule_due due;
};
struct round {
	struct schedules *s;
	struct arena *arena;
	struct reached *all;
	size_t n;
};

/* A run that is owed, on its way to being made. */
struct owed {
	struct schedules *s;
	struct arena *arena;
	struct trigger_key key;
	int64_t due_at, tries;
	struct launch launch;
};

static void on_tick(void *arg);
static void on_event(void *arg, const struct event *ev, struct str project_id);
static void look(struct schedules *s);
static void on_look(void *arg, const struct db_rows *rows, const struct err *e);
static void settle_all(void *arg);
static void on_settled(void *arg);
static void on_written(void *arg, const struct db_rows *rows, const struct err *e);
static void on_taken(void *arg, const struct db_rows *rows, const struct err *e);
static void on_launched(
	void *arg, const struct launched *made, const struct db_rows *rows, const struct err *e);
static void on_noted(void *arg, const struct db_rows *rows, const struct err *e);

struct schedules *schedules_new(struct app *app)
{
	struct schedules *s = mem_new_of(struct schedules);

	s->app = app;
	s->listener = hub_listen(app->hub, on_event, s);
	loop_timer_init(&s->tick, app->loop, on_tick, s);
	loop_timer_every(&s->tick, TICK_MS);
	return s;
}

static void gone(struct schedules *s)
{
	if (s->closing && s->on_the_way == 0)
		mem_free(s);
}

void schedules_free(struct schedules *s)
{
	if (s == NULL)
		return;
	hub_unlisten(s->listener);
	loop_timer_cancel(&s->tick);
	s->closing = true;
	gone(s);
}

static void send(struct schedules *s, struct db_unit *u, enum db_lane lane, db_cb *cb, void *arg)
{
	s->on_the_way++;
	db_send(u, lane, cb, arg);
}

/* ---- what there is to do ---- */

static void on_tick(void *arg)
{
	struct schedules *s = arg;
	int64_t now = clock_now(s->app->clock), at = loop_now(s->app->loop);

	if (!sched_leading(s->app->sched))
		return;
	if ((s->upstream || s->datasets) && at >= s->sweep_at) {
		struct db_unit *u = db_unit(s->app->db, NULL);
		s->sweep_at = at + SWEEP_US;
		trigger_store_upstream_missed(u, now);
		trigger_store_dataset_missed(u, now);
		trigger_store_forget(u, now - KEEP_US);
		send(s, u, DB_WRITE, on_noted, s);
	}
	look(s);
}

static void on_event(void *arg, const struct event *ev, struct str project_id)
{
	struct schedules *s = arg;

	(void)project_id;
	bool version = str_is(ev->type, "dataset.version_created");
	bool end = s->upstream &&
		   (str_is(ev->type, "run.succeeded") || str_is(ev->type, "run.failed") ||
			   str_is(ev->type, "run.cancelled"));
	if ((!version && !end) || !sched_leading(s->app->sched))
		return;
	struct db_unit *u = db_unit(s->app->db, NULL);
	if (version)
		trigger_store_dataset(u, ev->subject, clock_now(s->app->clock));
	else
		trigger_store_upstream(u, ev->subject, clock_now(s->app->clock));
	send(s, u, DB_WRITE, on_noted, s);
}

static void look(struct schedules *s)
{
	int64_t now = clock_now(s->app->clock);
	struct db_unit *u;

	if (s->looking || s->closing)
		return;
	s->looking = true;
	u = db_unit(s->app->db, NULL);
	schedule_store_reached(u, now);
	trigger_store_look(u, now);
	send(s, u, DB_READ, on_look, s);
}

static struct str text(const struct db_rows *r, size_t row, const char *column, struct arena *a)
{
	return arena_str(a, db_str(r, row, db_col(r, column)));
}

static bool read_reached(struct reached *ret, const struct db_rows *r, size_t row, struct arena *a)
{
	struct schedule_trigger t = { 0 };
	struct err e;

	*ret = (struct reached){ .pipeline_id = text(r, row, "pipeline_id", a),
		.cron = text(r, row, "cron", a),
		.timezone = text(r, row, "timezone", a),
		.settled = db_time(r, row, db_col(r, "settled_at")),
		.passed = db_time(r, row, db_col(r, "passed")),
		.paused = db_bool(r, row, db_col(r, "paused")) };
	if (db_row_decode(r, row, schedule_trigger_fields, a, &t, &e) == 0 &&
		trigger_schedule(&t, &ret->schedule, &e) == 0)
		return true;
	log_error("a schedule cannot be read", LOG_STR("pipeline", ret->pipeline_id), LOG_E(&e));
	return false;
}

/* Years of minutes are counted in a thread. */
static void begin_settling(struct schedules *s, const struct db_rows *r)
{
	struct arena *a = arena_new(ROUND_ARENA);
	struct round *round = arena_new_of(a, struct round);
	int64_t now = clock_now(s->app->clock);
	struct err e;

	*round = (struct round){
		.s = s, .arena = a, .all = arena_array_of(a, struct reached, r->n)
	};
	for (size_t i = 0; i < r->n; i++) {
		struct reached *one = &round->all[round->n];
		if (read_reached(one, r, i, a)) {
			one->now = now;
			round->n++;
			continue;
		}
		struct db_unit *u = db_unit(s->app->db, NULL);
		schedule_store_later(
			u, one->pipeline_id, one->cron, one->timezone, now + CLOCK_HOUR);
		send(s, u, DB_WRITE, on_noted, s);
	}
	if (work_submit(s->app->loop, settle_all, on_settled, round, &e) < 0) {
		arena_drop(a);
		return;
	}
	s->settling = true;
	s->on_the_way++;
}

static void on_look(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct schedules *s = arg;

	s->on_the_way--;
	s->looking = false;
	if (e->code == ERR_OK && !s->closing) {
		s->upstream = db_bool(&rows[1], 0, db_col(&rows[1], "upstream"));
		s->datasets = db_bool(&rows[1], 0, db_col(&rows[1], "datasets"));
		if (rows[0].n != 0 && !s->settling)
			begin_settling(s, &rows[0]);
		if (db_int(&rows[1], 0, db_col(&rows[1], "owed")) != 0 && !s->taking &&
			s->launching < AT_ONCE) {
			struct db_unit *u = db_unit(s->app->db, NULL);
			int64_t now = clock_now(s->app->clock);
			s->taking = true;
			trigger_store_take(
				u, now, now + TAKEN_US, (int64_t)(AT_ONCE - s->launching));
			send(s, u, DB_WRITE, on_taken, s);
		}
	}
	gone(s);
}

/* ---- instants that have come ---- */

static void settle_all(void *arg)
{
	struct round *round = arg;

	for (size_t i = 0; i < round->n; i++) {
		struct reached *r = &round->all[i];
		schedule_settle(&r->schedule, r->passed, r->now, &r->due);
		if (r->paused) {
			r->due.n = 0;
			r->due.missed = 0;
		}
	}
}

static void on_settled(void *arg)
{
	struct round *round = arg;
	struct schedules *s = round->s;

	s->on_the_way--;
	s->settling = false;
	if (!s->closing && round->n != 0) {
		struct db_unit *u = db_unit(s->app->db, NULL);
		for (size_t i = 0; i < round->n; i++) {
			const struct reached *r = &round->all[i];
			schedule_store_settle(u, r->pipeline_id, r->cron, r->timezone, r->settled,
				&r->due, r->now);
		}
		send(s, u, DB_WRITE, on_written, s);
	}
	arena_drop(round->arena);
	gone(s);
}

static void on_written(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct schedules *s = arg;

	(void)rows;
	s->on_the_way--;
	if (e->code == ERR_OK && !s->closing) {
		app_changed(s->app);
		look(s);
	}
	gone(s);
}

/* ---- runs that are owed ---- */

static void add_made(void *arg, struct db_unit *u, struct str run_id)
{
	const struct owed *o = arg;

	(void)run_id;
	trigger_store_made(u, &o->key);
}

static void make_run(struct schedules *s, const struct db_rows *r, size_t row)
{
	struct arena *a = arena_new(OWED_ARENA);
	struct owed *o = arena_new_of(a, struct owed);

	*o = (struct owed){ .s = s,
		.arena = a,
		.key = { text(r, row, "pipeline_id", a), text(r, row, "trigger", a),
			text(r, row, "key", a) },
		.due_at = db_time(r, row, db_col(r, "due_at")),
		.tries = db_int(r, row, db_col(r, "tries")) };
	o->launch = (struct launch){ .project_id = text(r, row, "project_id", a),
		.pipeline = text(r, row, "name", a),
		.trigger = o->key.trigger.p,
		.trigger_key = o->key.key,
		.add = add_made,
		.add_arg = o };
	s->launching++;
	s->on_the_way++;
	launch_start(s->app, a, &o->launch, on_launched, o);
}

static void on_taken(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct schedules *s = arg;

	s->on_the_way--;
	s->taking = false;
	for (size_t i = 0; e->code == ERR_OK && !s->closing && i < rows[0].n; i++)
		make_run(s, &rows[0], i);
	gone(s);
}

static int64_t pause_after(int64_t tries)
{
	int64_t wait = FIRST_US;

	for (int64_t i = 0; i < tries && wait < LONGEST_US; i++)
		wait *= 2;
	return wait < LONGEST_US ? wait : LONGEST_US;
}

/* What stands in the way for good: the run is there already, or its group refuses it. */
static void note_failure(struct owed *o, const struct err *e)
{
	struct schedules *s = o->s;
	struct db_unit *u = db_unit(s->app->db, NULL);
	int64_t now = clock_now(s->app->clock);
	bool over = e->code == ERR_CONFLICT || now > o->due_at + GIVE_UP_US;
	char said[sizeof e->msg + sizeof e->field + 8];

	(void)str_print(
		said, sizeof said, "%s%s%s", e->field, e->field[0] != '\0' ? ": " : "", e->msg);
	log_warn(over ? "a trigger's run is given up" : "a trigger could not start its run",
		LOG_STR("pipeline", o->launch.pipeline), LOG_STR("key", o->key.key), LOG_E(e));
	if (over)
		trigger_store_refused(u, &o->key, str_c(said));
	else
		trigger_store_failed(u, &o->key, now + pause_after(o->tries), str_c(said));
	send(s, u, DB_WRITE, on_noted, s);
}

static void on_launched(
	void *arg, const struct launched *made, const struct db_rows *rows, const struct err *e)
{
	struct owed *o = arg;
	struct schedules *s = o->s;

	(void)rows;
	s->on_the_way--;
	s->launching--;
	if (e->code == ERR_OK)
		log_info("a trigger started a run", LOG_STR("run", made->run.id),
			LOG_STR("pipeline", o->launch.pipeline), LOG_STR("key", o->key.key));
	else if (!s->closing)
		note_failure(o, e);
	arena_drop(o->arena);
	gone(s);
}

static void on_noted(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct schedules *s = arg;

	(void)rows;
	s->on_the_way--;
	if (e->code == ERR_OK && !s->closing)
		look(s);
	gone(s);
}
