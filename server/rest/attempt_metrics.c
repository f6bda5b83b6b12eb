/*
 * What attempts use of their hosts, as their workers see it: points of the step's tracking run,
 * which join those of all other callers (metric_group.h). A worker writes such metrics only, and
 * only under the epoch of an attempt that it holds.
 */
#include "api/worker.h"
#include "lib/base/clock.h"
#include "server/rest/handlers.h"
#include "server/store/metric_group.h"
#include "server/store/worker_store.h"

enum { MS = 1000 /* microseconds */ };

static void metrics_on_held(struct call *c, const struct db_rows *rows);
static void metrics_on_joined(void *arg, const struct err *e);

/* What MLflow's clients accept as a name, below our own prefix. */
static bool key_ok(struct str key)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-./";

	if (!str_starts(key, STR(SYSTEM_METRIC)) || key.p[key.n - 1] == '/' ||
		str_find(key, STR("//")) >= 0 || str_find(key, STR("/.")) >= 0)
		return false;
	for (size_t i = 0; i < key.n; i++)
		if (strchr(allowed, key.p[i]) == NULL || key.p[i] == '\0')
			return false;
	return true;
}

static bool keys_ok(struct call *c)
{
	const struct attempt_metrics *in = c->in;
	char pointer[64];

	for (size_t i = 0; i < in->metrics.n; i++) {
		const struct attempt_metric *m = list_at(&in->metrics, struct attempt_metric, i);
		if (key_ok(m->key))
			continue;
		(void)str_print(pointer, sizeof pointer, "/metrics/%zu/key", i);
		call_invalid(c, pointer,
			"a worker's metrics are called " SYSTEM_METRIC
			"…, of letters, digits and _-./");
		return false;
	}
	return true;
}

/* The step is the whole second since the run began, so that the attempts of a step, and a worker
 * that begins anew, go on where others were, and what is sent again is the same point. */
static struct point_columns columns(struct call *c, int64_t start)
{
	const struct attempt_metrics *in = c->in;
	size_t n = in->metrics.n;
	struct str *keys = arena_array_of(c->arena, struct str, n + 1);
	int64_t *steps = arena_array_of(c->arena, int64_t, n + 1);
	int64_t *times = arena_array_of(c->arena, int64_t, n + 1);
	double *values = arena_array_of(c->arena, double, n + 1);
	bool *nans = arena_array_of(c->arena, bool, n + 1);

	for (size_t i = 0; i < n; i++) {
		const struct attempt_metric *m = list_at(&in->metrics, struct attempt_metric, i);
		keys[i] = m->key;
		values[i] = m->value;
		times[i] = m->time / MS;
		steps[i] = times[i] > start ? (times[i] - start) / 1000 : 0;
		nans[i] = false;
	}
	return (struct point_columns){ keys, steps, times, values, nans, n };
}

static void attempt_metrics(struct call *c)
{
	const struct attempt_metrics *in = c->in;

	if (!keys_ok(c))
		return;
	struct db_unit *u = call_unit(c);
	attempt_store_tracking(u, call_param(c, "attempt"), c->who.worker_id, in->epoch);
	call_send(c, u, DB_READ, metrics_on_held);
}

static void metrics_on_held(struct call *c, const struct db_rows *rows)
{
	const struct attempt_metrics *in = c->in;
	const struct db_rows *r = &rows[0];
	struct err e;

	if (r->n == 0) {
		(void)err_set(&e, ERR_SUPERSEDED,
			"the attempt is not held by this worker under this epoch");
		call_fail(c, &e);
		return;
	}
	if (in->metrics.n == 0 || db_is_null(r, 0, db_col(r, "id"))) {
		http_reply_empty(c->req, 204);
		return;
	}
	struct metric_item *item = arena_new_of(c->arena, struct metric_item);
	*item = (struct metric_item){ .tracking_id = db_int(r, 0, db_col(r, "id")),
		.made_day = db_date(r, 0, db_col(r, "made")),
		.points = columns(c, db_int(r, 0, db_col(r, "start_time"))),
		.attempt_id = call_param(c, "attempt"),
		.epoch = in->epoch,
		.done = metrics_on_joined,
		.arg = c };
	if (metric_group_add(c->app->points, item, &e) < 0)
		call_fail(c, &e);
}

static void metrics_on_joined(void *arg, const struct err *e)
{
	struct call *c = arg;

	if (e->code != ERR_OK)
		call_fail(c, e);
	else
		http_reply_empty(c->req, 204);
}

const struct binding attempt_metrics_bindings[] = {
	{ "attempts.metrics", attempt_metrics },
	{ 0 },
};
