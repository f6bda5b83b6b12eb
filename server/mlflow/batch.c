/*
 * What is logged: metrics, params and tags. A single one is a batch of one. Everything is checked
 * first; then one transaction writes all of it, by statements over arrays in sorted order, so that
 * concurrent batches cannot block each other in a circle. Sending the same batch again changes
 * nothing.
 *
 *     log_… → check → (run) → on_run → [params: clash?] → write → {}
 *                                |         ↑__ a param was written meanwhile __|
 *                                `→ points alone: join the group → on_joined → {}
 */
#include "server/mlflow/handlers.h"
#include "server/mlflow/pairs.h"
#include "server/store/metric_group.h"

#include <math.h>

struct metric_put {
	struct str key;
	double value;
	int64_t timestamp, step;
	bool has_value, has_timestamp, has_step;
};
#define METRIC_ROWS(type)                                                                          \
	MESSAGE_TEXT(type, key),                                                                   \
		{ "value", FIELD_REAL, FIELD_NONFINITE, offsetof(type, value),                     \
			FIELD_HAS(type, has_value) },                                              \
		MESSAGE_INT(type, timestamp, has_timestamp), MESSAGE_INT(type, step, has_step)
static const struct field metric_put_fields[] = {
	METRIC_ROWS(struct metric_put),
	{ 0 },
};

struct batch_put {
	struct str run_id, run_uuid;
	struct list metrics, params, tags;
};
static const struct field batch_put_fields[] = {
	MESSAGE_TEXT(struct batch_put, run_id),
	MESSAGE_TEXT(struct batch_put, run_uuid),
	{ "metrics", FIELD_LIST, 0, offsetof(struct batch_put, metrics), .sub = metric_put_fields,
		.size = sizeof(struct metric_put), .max = MESSAGE_LIST_MAX },
	MESSAGE_PAIRS(struct batch_put, params),
	MESSAGE_PAIRS(struct batch_put, tags),
	{ 0 },
};

/* A lone metric, param or tag beside its run. */
struct metric_one {
	struct str run_id, run_uuid, key;
	double value;
	int64_t timestamp, step;
	bool has_value, has_timestamp, has_step;
};
static const struct field metric_one_fields[] = {
	MESSAGE_TEXT(struct metric_one, run_id),
	MESSAGE_TEXT(struct metric_one, run_uuid),
	METRIC_ROWS(struct metric_one),
	{ 0 },
};
struct pair_one {
	struct str run_id, run_uuid, key, value;
};
static const struct field pair_one_fields[] = {
	MESSAGE_TEXT(struct pair_one, run_id),
	MESSAGE_TEXT(struct pair_one, run_uuid),
	MESSAGE_TEXT(struct pair_one, key),
	MESSAGE_TEXT(struct pair_one, value),
	{ 0 },
};

struct batch {
	struct str run_id;
	struct point_columns points;
	struct pair_columns params, tags;
	bool lone; /* a single param: its conflict has another text */
	struct metric_item item;
};

static void batch_on_run(struct call *c);
static void batch_on_joined(void *arg, const struct err *e);
static void batch_check_params(struct call *c);
static void batch_on_clash(struct call *c, const struct db_rows *rows);
static void batch_write(struct call *c);
static bool batch_on_fault(struct call *c, const struct db_rows *rows);
static void batch_on_done(struct call *c, const struct db_rows *rows);

/* ---- checking ---- */

static bool metric_ok(struct call *c, const struct metric_put *m, struct limit_name at)
{
	char name[LIMIT_NAME_TEXT];
	struct limit_name value = { at.list, at.index, "value" };
	struct limit_name time = { at.list, at.index, "timestamp" };

	if (!limit_key(c, m->key, at))
		return false;
	if (!m->has_value)
		flow_missing(c, limit_name_text(name, value));
	else if (!m->has_timestamp)
		flow_missing(c, limit_name_text(name, time));
	else if (m->timestamp < 0)
		flow_invalid(c,
			"Invalid value %lld for parameter '%s' supplied: Timestamp must be a "
			"nonnegative long (64-bit integer).",
			(long long)m->timestamp, limit_name_text(name, time));
	else
		return true;
	return false;
}

static bool points_take(
	struct call *c, const struct metric_put *m, size_t n, const char *list, struct batch *b)
{
	struct str *keys = arena_array_of(c->arena, struct str, n + 1);
	int64_t *steps = arena_array_of(c->arena, int64_t, n + 1);
	int64_t *times = arena_array_of(c->arena, int64_t, n + 1);
	double *values = arena_array_of(c->arena, double, n + 1);
	bool *nans = arena_array_of(c->arena, bool, n + 1);

	for (size_t i = 0; i < n; i++) {
		if (!metric_ok(c, &m[i],
			    (struct limit_name){ list, i, list != NULL ? "name" : "key" }))
			return false;
		keys[i] = m[i].key;
		steps[i] = m[i].step;
		times[i] = m[i].timestamp;
		nans[i] = isnan(m[i].value);
		values[i] = nans[i] ? 0 : m[i].value;
	}
	b->points = (struct point_columns){ keys, steps, times, values, nans, n };
	return true;
}

static bool count_ok(struct call *c, size_t n, size_t max, const char *what)
{
	if (n <= max)
		return true;
	flow_invalid(c,
		"A batch logging request can contain at most %zu %s. Got %zu %s. Please split up "
		"%s "
		"across multiple requests and try again.",
		max, what, n, what, what);
	return false;
}

static bool batch_take(struct call *c, const struct batch_put *in, struct batch *b)
{
	struct pair_rules params = { "params", LIMIT_PARAM_VALUE, false };
	struct pair_rules tags = { "tags", LIMIT_TAG_VALUE, false };
	size_t all = in->metrics.n + in->params.n + in->tags.n;

	if (!count_ok(c, in->metrics.n, LIMIT_METRICS, "metrics") ||
		!count_ok(c, in->params.n, LIMIT_PARAMS, "params") ||
		!count_ok(c, in->tags.n, LIMIT_TAGS, "tags") ||
		!count_ok(c, all, LIMIT_BATCH, "metrics, params, and tags") ||
		!points_take(c, in->metrics.items, in->metrics.n, "metrics", b) ||
		!pairs_take(c, &in->params, params, 0, &b->params) ||
		!pairs_take(c, &in->tags, tags, 0, &b->tags))
		return false;
	if (b->params.n == in->params.n)
		return true;
	flow_invalid(c,
		"Duplicate parameter keys have been submitted: [%.*s]. Please ensure the request "
		"contains only one param value per param key.",
		STR_ARG(pairs_duplicates(c, &in->params)));
	return false;
}

static struct str run_of(struct str run_id, struct str run_uuid)
{
	return run_id.n != 0 ? run_id : run_uuid;
}

static void batch_start(struct call *c, struct batch *b)
{
	flow_of(c)->mine = b;
	flow_find_run(c, b->run_id, FLOW_WRITE, batch_on_run);
}

static void log_batch(struct call *c)
{
	struct batch_put *in = flow_body(c, batch_put_fields, sizeof *in);
	struct batch *b = arena_new_of(c->arena, struct batch);

	if (in == NULL)
		return;
	b->run_id = run_of(in->run_id, in->run_uuid);
	if (flow_need(c, b->run_id, "run_id") && batch_take(c, in, b))
		batch_start(c, b);
}

static void log_metric(struct call *c)
{
	struct metric_one *in = flow_body(c, metric_one_fields, sizeof *in);
	struct batch *b = arena_new_of(c->arena, struct batch);

	if (in == NULL)
		return;
	struct metric_put m = { .key = in->key,
		.value = in->value,
		.timestamp = in->timestamp,
		.step = in->step,
		.has_value = in->has_value,
		.has_timestamp = in->has_timestamp };
	b->run_id = run_of(in->run_id, in->run_uuid);
	if (flow_need(c, b->run_id, "run_id") && points_take(c, &m, 1, NULL, b))
		batch_start(c, b);
}

/* A lone param or tag. */
static struct batch *pair_take(struct call *c, size_t value_max, struct pair_columns *ret)
{
	struct pair_one *in = flow_body(c, pair_one_fields, sizeof *in);
	struct str *copy = arena_array_of(c->arena, struct str, 2);
	struct batch *b = arena_new_of(c->arena, struct batch);

	if (in == NULL)
		return NULL;
	b->run_id = run_of(in->run_id, in->run_uuid);
	b->lone = true;
	if (!flow_need(c, b->run_id, "run_id") ||
		!limit_key(c, in->key, (struct limit_name){ NULL, 0, "key" }))
		return NULL;
	copy[0] = in->key;
	copy[1] = limit_cut(in->value.p != NULL ? in->value : STR(""), value_max);
	*ret = (struct pair_columns){ &copy[0], &copy[1], 1 };
	return b;
}

static void log_parameter(struct call *c)
{
	struct pair_columns one;
	struct batch *b = pair_take(c, LIMIT_PARAM_VALUE, &one);

	if (b == NULL)
		return;
	b->params = one;
	batch_start(c, b);
}

static void set_tag(struct call *c)
{
	struct pair_columns one;
	struct batch *b = pair_take(c, LIMIT_TAG_VALUE, &one);

	if (b == NULL)
		return;
	b->tags = one;
	batch_start(c, b);
}

/* ---- writing ---- */

/* Points alone go together with those of other callers. */
static void batch_join(struct call *c)
{
	const struct flow *f = flow_of(c);
	struct batch *b = f->mine;
	bool job = c->who.kind == CREDENTIAL_JOB;
	struct err e;

	b->item = (struct metric_item){ .tracking_id = f->run.id,
		.made_day = f->run.made,
		.points = b->points,
		.attempt_id = job ? c->who.attempt_id : STR_NONE,
		.epoch = c->who.epoch,
		.done = batch_on_joined,
		.arg = c };
	if (metric_group_add(c->app->points, &b->item, &e) < 0)
		call_fail(c, &e);
}

static void batch_on_joined(void *arg, const struct err *e)
{
	struct call *c = arg;

	if (e->code != ERR_OK) {
		call_fail(c, e);
		return;
	}
	app_changed(c->app);
	flow_reply_done(c);
}

static void batch_on_run(struct call *c)
{
	const struct batch *b = flow_of(c)->mine;

	if (b->points.n + b->params.n + b->tags.n == 0)
		flow_reply_done(c);
	else if (b->params.n + b->tags.n == 0)
		batch_join(c);
	else if (b->params.n != 0)
		batch_check_params(c);
	else
		batch_write(c);
}

static void batch_check_params(struct call *c)
{
	const struct batch *b = flow_of(c)->mine;
	struct db_unit *u = call_unit(c);

	param_store_clash(u, b->run_id, &b->params);
	call_send(c, u, DB_READ, batch_on_clash);
}

static void batch_on_clash(struct call *c, const struct db_rows *rows)
{
	const struct db_rows *r = &rows[0];
	const struct batch *b = flow_of(c)->mine;
	struct str text = STR("");

	if (r->n == 0) {
		batch_write(c);
		return;
	}
	if (b->lone) {
		flow_invalid(c,
			"Changing param values is not allowed. Param with key='%.*s' was already "
			"logged with value='%.*s' for run ID='%.*s'. Attempted logging new value "
			"'%.*s'.",
			STR_ARG(db_str(r, 0, 0)), STR_ARG(str_slice(db_str(r, 0, 1), 0, 500)),
			STR_ARG(b->run_id), STR_ARG(str_slice(db_str(r, 0, 2), 0, 500)));
		return;
	}
	for (size_t i = 0; i < r->n && i < 10; i++)
		text = arena_printf(c->arena,
			"%.*s%s{'key': '%.*s', 'old_value': '%.*s', 'new_value': '%.*s'}",
			STR_ARG(text), i != 0 ? ", " : "", STR_ARG(db_str(r, i, 0)),
			STR_ARG(str_slice(db_str(r, i, 1), 0, 200)),
			STR_ARG(str_slice(db_str(r, i, 2), 0, 200)));
	flow_invalid(c,
		"Changing param values is not allowed. Params were already logged='[%.*s]' for run "
		"ID='%.*s'.",
		STR_ARG(text), STR_ARG(b->run_id));
}

static void batch_write(struct call *c)
{
	const struct flow *f = flow_of(c);
	const struct batch *b = f->mine;
	struct db_unit *u = call_unit(c);
	struct str name = pairs_find(&b->tags, "mlflow.runName");

	if (b->points.n != 0)
		metric_store_put(u, f->run.id, f->run.made, &b->points);
	if (b->params.n != 0)
		param_store_put(u, f->run.id, &b->params);
	if (b->tags.n != 0)
		tag_store_put(u, f->run.id, &b->tags);
	if (name.n != 0)
		tracking_store_update(u, f->run.id,
			&(struct tracking_change){ .name = limit_cut(name, LIMIT_RUN_NAME) });
	flow_write(c, u, batch_on_done, batch_on_fault);
}

/* Another writer has set a param since the check: look again, which says which. */
static bool batch_on_fault(struct call *c, const struct db_rows *rows)
{
	if (!param_is_clash(rows))
		return false;
	batch_check_params(c);
	return true;
}

static void batch_on_done(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	flow_reply_done(c);
}

const struct binding mlflow_batch_bindings[] = {
	{ "mlflow.runs.log_batch", log_batch },
	{ "mlflow.runs.log_metric", log_metric },
	{ "mlflow.runs.log_parameter", log_parameter },
	{ "mlflow.runs.set_tag", set_tag },
	{ 0 },
};
