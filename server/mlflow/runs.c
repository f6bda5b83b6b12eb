/*
 * Tracking runs: create, get, update.
 *
 *     create → (experiment) → (the job's own run) → write → on_done → read → reply
 */
#include "lib/base/id.h"
#include "server/mlflow/handlers.h"
#include "server/mlflow/pairs.h"
#include "server/mlflow/wire.h"

#define RUN_NAME_TAG "mlflow.runName"
#define PARENT_TAG   "mlflow.parentRunId"

struct run_start {
	struct str experiment_id, user_id, run_name;
	int64_t start_time;
	bool has_start_time;
	struct list tags; /* struct flow_pair */
};
static const struct field run_start_fields[] = {
	MESSAGE_TEXT(struct run_start, experiment_id),
	MESSAGE_TEXT(struct run_start, user_id),
	MESSAGE_TEXT(struct run_start, run_name),
	MESSAGE_INT(struct run_start, start_time, has_start_time),
	MESSAGE_PAIRS(struct run_start, tags),
	{ 0 },
};

struct run_change {
	struct str run_id, run_uuid, run_name;
	int status;
	bool has_status, has_end_time;
	int64_t end_time;
};
/* By name or by number, which counts from 1. */
static const char *const statuses[] = { "", "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED",
	NULL };
static const struct field run_change_fields[] = {
	MESSAGE_TEXT(struct run_change, run_id),
	MESSAGE_TEXT(struct run_change, run_uuid),
	MESSAGE_TEXT(struct run_change, run_name),
	{ "status", FIELD_ENUM, 0, offsetof(struct run_change, status),
		FIELD_HAS(struct run_change, has_status), .names = statuses },
	MESSAGE_INT(struct run_change, end_time, has_end_time),
	{ 0 },
};

static void create_on_experiment(struct call *c);
static void create_on_own_run(struct call *c);
static void create_on_done(struct call *c, const struct db_rows *rows);
static void read_run(struct call *c);

/* "calm-otter-417": what a run is called that nobody has named. */
static struct str random_name(struct call *c)
{
	static const char *const first[] = { "calm", "brave", "clever", "quiet", "swift", "bright",
		"gentle", "proud", "sunny", "bold", "merry", "keen", "noble", "lucky", "wise",
		"fresh" };
	static const char *const second[] = { "otter", "heron", "badger", "finch", "lynx", "trout",
		"marten", "raven", "beaver", "stork", "hare", "newt", "falcon", "vole", "crane",
		"moth" };
	unsigned char r[4];

	id_random(r, sizeof r);
	return arena_printf(c->arena, "%s-%s-%d", first[r[0] % 16], second[r[1] % 16],
		(r[2] << 8 | r[3]) % 1000);
}

/* Argument and tag say the same, whichever was given. False when it has been answered. */
static bool settle_name(struct call *c, struct run_start *in, struct pair_columns *tags)
{
	struct str tag = pairs_find(tags, RUN_NAME_TAG);

	if (in->run_name.n != 0 && tag.n != 0 && !str_eq(in->run_name, tag)) {
		flow_invalid(c,
			"Both 'run_name' argument and '" RUN_NAME_TAG
			"' tag are specified, but with different values "
			"(run_name='%.*s', " RUN_NAME_TAG "='%.*s').",
			STR_ARG(in->run_name), STR_ARG(tag));
		return false;
	}
	if (in->run_name.n == 0)
		in->run_name = tag.n != 0 ? tag : random_name(c);
	if (!limit_length(c, in->run_name, LIMIT_RUN_NAME, "run_name"))
		return false;
	if (tag.p == NULL)
		pairs_add(tags, STR(RUN_NAME_TAG), in->run_name);
	return true;
}

static void create(struct call *c)
{
	struct run_start *in = flow_body(c, run_start_fields, sizeof *in);
	struct pair_columns *tags = arena_new_of(c->arena, struct pair_columns);
	struct pair_rules rules = { "tags", LIMIT_TAG_VALUE, false };

	if (in == NULL || !pairs_take(c, &in->tags, rules, 1, tags) || !settle_name(c, in, tags))
		return;
	if (in->has_start_time && in->start_time < 0) {
		flow_invalid(c,
			"Invalid value %lld for parameter 'start_time' supplied: it must "
			"not be negative.",
			(long long)in->start_time);
		return;
	}
	flow_of(c)->mine = tags;
	flow_find_experiment(c, in->experiment_id, FLOW_WRITE, create_on_experiment);
}

static void create_on_experiment(struct call *c)
{
	flow_find_own_run(c, create_on_own_run);
}

static void create_on_own_run(struct call *c)
{
	struct flow *f = flow_of(c);
	const struct run_start *in = f->in;
	const struct pair_columns *tags = f->mine;
	char id[ID_HEX + 1];

	f->run.run_id = arena_str(c->arena, str_c(id_hex(id)));
	struct db_unit *u = call_unit(c);
	tracking_store_add(u,
		&(struct tracking_new){ .run_id = f->run.run_id,
			.parent_run = f->own_run.n != 0 ? f->own_run : pairs_find(tags, PARENT_TAG),
			.name = in->run_name,
			.user_name = in->user_id.n != 0 ? in->user_id : c->who.name,
			.experiment_id = f->experiment.id,
			.start_time = in->start_time,
			.has_start_time = in->has_start_time,
			.tags = *tags });
	flow_write(c, u, create_on_done, NULL);
}

static void create_on_done(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	read_run(c);
}

/* ---- reading ---- */

static void read_on_rows(struct call *c, const struct db_rows *rows)
{
	struct buf b;

	if (rows[0].n == 0) { /* removed meanwhile */
		flow_not_found(c, "Run with id=%.*s not found", STR_ARG(flow_of(c)->run.run_id));
		return;
	}
	buf_init(&b, FLOW_REPLY_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "run");
	wire_run(&w, rows);
	jsn_obj_end(&w);
	flow_reply(c, &b);
}

static void read_run(struct call *c)
{
	struct db_unit *u = call_unit(c);

	tracking_store_get(u, flow_of(c)->run.run_id);
	call_send(c, u, DB_READ, read_on_rows);
}

static void get(struct call *c)
{
	struct str id = flow_arg(c, "run_id");

	flow_find_run(c, id.n != 0 ? id : flow_arg(c, "run_uuid"), FLOW_READ, read_run);
}

/* ---- updating ---- */

static void update_on_rows(struct call *c, const struct db_rows *rows)
{
	struct buf b;

	if (rows[0].n == 0) {
		flow_not_found(c, "Run with id=%.*s not found", STR_ARG(flow_of(c)->run.run_id));
		return;
	}
	buf_init(&b, FLOW_REPLY_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "run_info");
	wire_run_info(&w, &rows[0]);
	jsn_obj_end(&w);
	flow_reply(c, &b);
}

static void update_on_done(struct call *c, const struct db_rows *rows)
{
	struct db_unit *u = call_unit(c);

	(void)rows;
	tracking_store_info(u, flow_of(c)->run.run_id);
	call_send(c, u, DB_READ, update_on_rows);
}

static void update_on_run(struct call *c)
{
	const struct run_change *in = flow_of(c)->in;
	const struct str key = STR(RUN_NAME_TAG);
	struct db_unit *u = call_unit(c);

	tracking_store_update(u, flow_of(c)->run.id,
		&(struct tracking_change){ .status = in->status != 0 ? statuses[in->status] : NULL,
			.name = in->run_name,
			.end_time = in->end_time,
			.has_end_time = in->has_end_time });
	if (in->run_name.n != 0)
		tag_store_put(
			u, flow_of(c)->run.id, &(struct pair_columns){ &key, &in->run_name, 1 });
	flow_write(c, u, update_on_done, NULL);
}

static void update(struct call *c)
{
	struct run_change *in = flow_body(c, run_change_fields, sizeof *in);

	if (in != NULL && limit_length(c, in->run_name, LIMIT_RUN_NAME, "run_name"))
		flow_find_run(c, in->run_id.n != 0 ? in->run_id : in->run_uuid, FLOW_WRITE,
			update_on_run);
}

const struct binding mlflow_run_bindings[] = {
	{ "mlflow.runs.create", create },
	{ "mlflow.runs.get", get },
	{ "mlflow.runs.update", update },
	{ 0 },
};
