/* retention.run: a project's retention now, or what would go. */
#include "server/sched/retention.h"

#include "server/rest/handlers.h"

static void retention_on_done(void *arg, const struct retention_report *r, const struct err *e)
{
	struct call *c = arg;

	if (e->code != ERR_OK)
		call_fail(c, e);
	else
		call_reply(c, 200, retention_report_fields, r);
}

static void retention_start(struct call *c)
{
	const struct dry_run_query *q = c->query;

	retention_run(c->app, c->project_id, q->dry_run, retention_on_done, c);
}

const struct binding retention_bindings[] = {
	{ "retention.run", retention_start },
	{ 0 },
};
