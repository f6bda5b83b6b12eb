/* Rows and labels as a stream: the body goes straight into server/sched/ingest. */
#include "server/rest/handlers.h"
#include "server/sched/ingest.h"

struct intake {
	struct call *call;
	struct ingest *ingest;
	bool answered;
};

static void intake_on_ready(void *arg);
static void intake_on_body(void *arg, struct str bytes);
static void intake_on_room(void *arg);
static void intake_on_end(void *arg);
static void intake_on_abort(void *arg, const struct err *why);
static void intake_on_done(void *arg, const struct observation_result *result, const struct err *e);

static const struct http_sink sink = { intake_on_body, intake_on_end, intake_on_abort };

static void intake_free(void *arg)
{
	struct intake *in = arg;

	ingest_free(in->ingest);
	in->ingest = NULL;
}

/* One of the two that the route takes. */
static enum records_format read_format(const struct call *c)
{
	struct str rest = http_header(c->req, "Content-Type"), first = STR("");
	enum records_format format = RECORDS_CSV;

	(void)str_next(&rest, ';', &first);
	(void)records_format_of(str_trim(first), &format);
	return format;
}

static bool read_batch(struct call *c, struct str *ret)
{
	const struct observation_query *q = c->query;
	struct str key = http_header(c->req, "Idempotency-Key");

	*ret = q->batch.n != 0 ? q->batch : key;
	if (ret->p == NULL)
		*ret = STR("");
	if (ret->n <= 255 && str_utf8_valid(*ret) && !str_has_control(*ret))
		return true;
	call_invalid(c, "/batch", "must be text of at most 255 bytes");
	return false;
}

static void intake_start(struct call *c, bool labels)
{
	struct intake *in = arena_new_of(c->arena, struct intake);
	struct ingest_spec spec = { .project_id = c->project_id,
		.monitor = call_param(c, "monitor"),
		.labels = labels,
		.on_ready = intake_on_ready,
		.on_room = intake_on_room,
		.on_done = intake_on_done,
		.arg = in };

	spec.format = read_format(c);
	if (!read_batch(c, &spec.batch))
		return;
	in->call = c;
	in->ingest = ingest_new(c->app, &spec);
	arena_defer(c->arena, intake_free, in);
}

static void intake_on_ready(void *arg)
{
	struct intake *in = arg;

	http_body_take(in->call->req, &sink, in);
}

static void intake_on_body(void *arg, struct str bytes)
{
	struct intake *in = arg;

	if (!in->answered && !ingest_add(in->ingest, bytes))
		http_body_pause(in->call->req);
}

static void intake_on_room(void *arg)
{
	struct intake *in = arg;

	if (!in->answered)
		http_body_resume(in->call->req);
}

static void intake_on_end(void *arg)
{
	struct intake *in = arg;

	if (!in->answered)
		ingest_end(in->ingest);
}

static void intake_on_abort(void *arg, const struct err *why)
{
	struct intake *in = arg;

	if (in->answered)
		return;
	in->answered = true;
	intake_free(in);
	call_fail(in->call, why);
}

static void intake_on_done(void *arg, const struct observation_result *result, const struct err *e)
{
	struct intake *in = arg;

	in->answered = true;
	if (e->code != ERR_OK)
		call_fail(in->call, e);
	else
		call_reply(in->call, 200, observation_result_fields, result);
}

static void observation_add(struct call *c)
{
	intake_start(c, false);
}

static void label_add(struct call *c)
{
	intake_start(c, true);
}

const struct binding observation_bindings[] = {
	{ "observations.add", observation_add },
	{ "labels.add", label_add },
	{ 0 },
};
