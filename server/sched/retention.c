#include "server/sched/retention.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/loop/loop.h"
#include "lib/loop/timer.h"
#include "server/app.h"
#include "server/sched/blob_gc.h"
#include "server/sched/sched.h"
#include "server/store/auth_store.h"
#include "server/store/event_store.h"
#include "server/store/retention_store.h"

enum { TICK_MS = 60000, EVENT_BATCH = 5000, DATA_MAX = 512, PROJECTS_MAX = 100000 };
#define DAY_US (24 * 3600 * INT64_C(1000000))

/* So many are taken in one transaction; a run or log may hold thousands of rows. */
static const int64_t batch[RETENTION_KINDS] = { 20, 50, 1000, 5 };

/* ---- one project ---- */

struct pass {
	struct app *app;
	char project_id[ID_MAX];
	bool dry_run, collect;
	enum retention_kind kind;
	struct retention_report report;
	retention_cb *cb;
	void *arg;
};

static void pass_step(struct pass *p);
static void pass_on_row(void *arg, const struct db_rows *rows, const struct err *e);
static void pass_collect(struct pass *p);
static void pass_on_collected(void *arg, const struct blob_gc_report *r, const struct err *e);

static void pass_end(struct pass *p, const struct err *e)
{
	p->cb(p->arg, &p->report, e);
	mem_free(p);
}

static void retention_start(struct app *app, struct str project_id, bool dry_run, bool collect,
	retention_cb *cb, void *arg)
{
	struct pass *p = mem_new_of(struct pass);

	*p = (struct pass){ .app = app,
		.dry_run = dry_run,
		.collect = collect,
		.report = { .dry_run = dry_run },
		.cb = cb,
		.arg = arg };
	(void)str_print(p->project_id, sizeof p->project_id, "%.*s", STR_ARG(project_id));
	pass_step(p);
}

void retention_run(
	struct app *app, struct str project_id, bool dry_run, retention_cb *cb, void *arg)
{
	retention_start(app, project_id, dry_run, true, cb, arg);
}

static void pass_step(struct pass *p)
{
	struct db_unit *u = db_unit(p->app->db, NULL);
	struct str id = str_c(p->project_id);

	if (p->dry_run)
		retention_store_count(u, p->kind, id);
	else
		retention_store_remove(u, p->kind, id, batch[p->kind]);
	db_send(u, DB_BULK, pass_on_row, p);
}

static int64_t *count_of(struct pass *p)
{
	switch (p->kind) {
	case RETENTION_RUNS: return &p->report.runs;
	case RETENTION_LOGS: return &p->report.logs;
	case RETENTION_ARTIFACTS: return &p->report.artifacts;
	case RETENTION_WINDOWS:
	case RETENTION_KINDS: break;
	}
	return &p->report.windows;
}

static void pass_on_row(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct pass *p = arg;
	struct err why = *e;

	if (e->code == ERR_OK && p->app->draining)
		(void)err_set(&why, ERR_CANCELLED, "the server is going down");
	if (why.code != ERR_OK) {
		pass_end(p, &why);
		return;
	}
	int64_t n = db_int(&rows[0], 0, 0);
	*count_of(p) += n;
	if ((p->dry_run || n < batch[p->kind]) && ++p->kind == RETENTION_KINDS)
		pass_collect(p);
	else
		pass_step(p);
}

/* One event says what went. */
static void pass_tell(struct pass *p)
{
	const struct retention_report *r = &p->report;
	struct db_unit *u;
	char data[DATA_MAX];

	if (p->dry_run || r->runs + r->logs + r->artifacts + r->windows == 0)
		return;
	(void)str_print(data, sizeof data,
		"{\"runs\":%lld,\"logs\":%lld,\"artifacts\":%lld,\"windows\":%lld}",
		(long long)r->runs, (long long)r->logs, (long long)r->artifacts,
		(long long)r->windows);
	log_info("retention", LOG_S("project", p->project_id), LOG_I("runs", r->runs),
		LOG_I("logs", r->logs), LOG_I("artifacts", r->artifacts),
		LOG_I("windows", r->windows));
	u = db_unit(p->app->db, NULL);
	event_store_add(u, &(struct event_new){ .project_id = str_c(p->project_id),
				   .type = "project.retention_applied",
				   .subject = str_c(p->project_id),
				   .data = str_c(data) });
	db_send(u, DB_WRITE, NULL, NULL);
}

static void pass_collect(struct pass *p)
{
	static const struct err ok = { .code = ERR_OK };

	pass_tell(p);
	if (p->collect)
		blob_gc_run(p->app, p->dry_run, pass_on_collected, p);
	else
		pass_end(p, &ok);
}

static void pass_on_collected(void *arg, const struct blob_gc_report *r, const struct err *e)
{
	struct pass *p = arg;

	p->report.blobs = r->blobs;
	p->report.bytes = r->bytes;
	if (!p->dry_run)
		app_changed(p->app);
	pass_end(p, e);
}

/* ---- once a day, by the leader ---- */

struct retention_daily {
	struct app *app;
	struct loop_timer timer;
	bool running, closing;
	int64_t last; /* loop_now() of the last pass, 0: none */
	char (*projects)[ID_MAX];
	size_t n, next;
};

static void daily_on_projects(void *arg, const struct db_rows *rows, const struct err *e);
static void daily_next(struct retention_daily *r);
static void daily_on_project(void *arg, const struct retention_report *report, const struct err *e);
static void daily_events(struct retention_daily *r);
static void daily_on_events(void *arg, const struct db_rows *rows, const struct err *e);
static void daily_on_partitions(void *arg, const struct db_rows *rows, const struct err *e);

static void daily_end(struct retention_daily *r)
{
	mem_free(r->projects);
	r->projects = NULL;
	r->running = false;
	if (r->closing)
		mem_free(r);
}

/* True when the pass has to end here. */
static bool daily_is_over(struct retention_daily *r, const struct err *e, const char *what)
{
	if (e->code == ERR_OK && !r->closing && !r->app->draining)
		return false;
	if (e->code != ERR_OK && e->code != ERR_CANCELLED)
		log_warn("retention has stopped", LOG_S("at", what), LOG_E(e));
	daily_end(r);
	return true;
}

static void daily_on_timer(void *arg)
{
	struct retention_daily *r = arg;
	int64_t now = loop_now(r->app->loop);

	if (r->running || r->app->draining || !sched_leading(r->app->sched) ||
		(r->last != 0 && now - r->last < DAY_US))
		return;
	r->last = now;
	r->running = true;
	struct db_unit *u = db_unit(r->app->db, NULL);
	retention_store_partitions(u);
	auth_store_expire(u);
	retention_store_projects(u);
	db_send(u, DB_BULK, daily_on_projects, r);
}

struct retention_daily *retention_daily_new(struct app *app)
{
	struct retention_daily *r = mem_new_of(struct retention_daily);

	r->app = app;
	loop_timer_init(&r->timer, app->loop, daily_on_timer, r);
	loop_timer_every(&r->timer, TICK_MS);
	return r;
}

void retention_daily_free(struct retention_daily *r)
{
	if (r == NULL)
		return;
	loop_timer_cancel(&r->timer);
	r->closing = true;
	if (!r->running)
		mem_free(r);
}

static void daily_on_projects(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct retention_daily *r = arg;

	if (daily_is_over(r, e, "projects"))
		return;
	const struct db_rows *ids = &rows[3];
	r->n = ids->n < PROJECTS_MAX ? ids->n : PROJECTS_MAX;
	r->next = 0;
	r->projects = mem_new(r->n + 1, sizeof *r->projects);
	for (size_t i = 0; i < r->n; i++)
		(void)str_print(
			r->projects[i], sizeof r->projects[i], "%.*s", STR_ARG(db_str(ids, i, 0)));
	daily_next(r);
}

static void daily_next(struct retention_daily *r)
{
	if (r->next == r->n)
		daily_events(r);
	else
		retention_start(
			r->app, str_c(r->projects[r->next++]), false, false, daily_on_project, r);
}

static void daily_on_project(void *arg, const struct retention_report *report, const struct err *e)
{
	(void)report;
	if (!daily_is_over(arg, e, "a project"))
		daily_next(arg);
}

static void daily_events(struct retention_daily *r)
{
	struct db_unit *u = db_unit(r->app->db, NULL);

	retention_store_events(u, EVENT_BATCH);
	db_send(u, DB_BULK, daily_on_events, r);
}

static void daily_on_events(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct retention_daily *r = arg;

	if (daily_is_over(r, e, "events"))
		return;
	if (db_int(&rows[0], 0, 0) == EVENT_BATCH) {
		daily_events(r);
		return;
	}
	struct db_unit *u = db_unit(r->app->db, NULL);
	retention_store_log_partitions(u);
	db_send(u, DB_BULK, daily_on_partitions, r);
}

static void daily_on_partitions(void *arg, const struct db_rows *rows, const struct err *e)
{
	(void)rows;
	if (!daily_is_over(arg, e, "partitions"))
		daily_end(arg);
}
