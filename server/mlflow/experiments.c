/* Experiments: create, get, get by name. */
#include "server/mlflow/handlers.h"
#include "server/mlflow/pairs.h"
#include "server/mlflow/wire.h"
#include "server/rest/flow_error.h"
#include "server/store/event_store.h"

struct experiment_new {
	struct str name, artifact_location;
	struct list tags; /* struct flow_pair */
};
static const struct field experiment_new_fields[] = {
	MESSAGE_TEXT(struct experiment_new, name),
	MESSAGE_TEXT(struct experiment_new, artifact_location),
	MESSAGE_PAIRS(struct experiment_new, tags),
	{ 0 },
};

static void create_on_project(struct call *c);
static void create_on_done(struct call *c, const struct db_rows *rows);

/* A location that clients reach themselves, or ours. Paths of this host are none. */
static bool location_ok(struct call *c, struct str s)
{
	static const char *const schemes[] = { "mlflow-artifacts:", "s3://", "gs://", "abfss://",
		"wasbs://", "hdfs://", "http://", "https://", NULL };
	bool known = false;

	if (s.n == 0)
		return true;
	if (!limit_length(c, s, LIMIT_LOCATION, "artifact_location"))
		return false;
	for (const char *const *scheme = schemes; *scheme != NULL; scheme++)
		known |= str_starts(s, str_c(*scheme));
	if (known && str_find(s, STR("..")) < 0 && str_find_char(s, '#') < 0 &&
		str_find_char(s, '?') < 0 && str_find_char(s, ';') < 0 && !str_has_control(s))
		return true;
	flow_invalid(c,
		"Invalid artifact_location: it must be a URI that clients can reach, without '..', "
		"'#', '?' or ';'; leave it out to keep artifacts on this server.");
	return false;
}

static void create(struct call *c)
{
	struct experiment_new *in = flow_body(c, experiment_new_fields, sizeof *in);
	struct pair_columns *tags = arena_new_of(c->arena, struct pair_columns);
	struct pair_rules rules = { "tags", LIMIT_EXPERIMENT_TAG_VALUE, true };

	if (in == NULL || !flow_need(c, in->name, "name") ||
		!limit_length(c, in->name, LIMIT_EXPERIMENT_NAME, "name") ||
		!location_ok(c, in->artifact_location) || !pairs_take(c, &in->tags, rules, 0, tags))
		return;
	flow_of(c)->mine = tags;
	flow_find_project(c, FLOW_WRITE, create_on_project);
}

static bool create_on_fault(struct call *c, const struct db_rows *rows)
{
	const struct experiment_new *in = flow_of(c)->in;

	if (!db_violated(rows, "experiment_project_id_name_key"))
		return false;
	struct str text =
		arena_printf(c->arena, "Experiment(name=%.*s) already exists.", STR_ARG(in->name));
	flow_error_reply_as(c->req, 400, "RESOURCE_ALREADY_EXISTS", text.p);
	return true;
}

static void create_on_project(struct call *c)
{
	const struct experiment_new *in = flow_of(c)->in;
	struct db_unit *u = call_unit(c);

	experiment_store_add(
		u, flow_of(c)->project_id, in->name, in->artifact_location, flow_of(c)->mine);
	flow_write(c, u, create_on_done, create_on_fault);
}

static void create_on_done(struct call *c, const struct db_rows *rows)
{
	struct buf b;

	buf_init(&b, FLOW_REPLY_MAX);
	buf_addf(&b, "{\"experiment_id\":\"%lld\"}", (long long)db_int(&rows[0], 0, 0));
	flow_reply(c, &b);
}

/* ---- reading ---- */

static void reply_experiment(struct call *c, const struct db_rows *row, const struct db_rows *tags)
{
	struct buf b;

	buf_init(&b, FLOW_REPLY_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	jsn_key(&w, "experiment");
	wire_experiment(&w, row, tags);
	jsn_obj_end(&w);
	flow_reply(c, &b);
}

static void get_on_rows(struct call *c, const struct db_rows *rows)
{
	reply_experiment(c, &rows[0], &rows[1]);
}

static void get_on_experiment(struct call *c)
{
	const struct flow_experiment *x = &flow_of(c)->experiment;
	struct db_unit *u = call_unit(c);

	experiment_store_by_name(u, x->project_id, x->name);
	experiment_store_tags(u, x->id);
	call_send(c, u, DB_READ, get_on_rows);
}

static void get(struct call *c)
{
	struct str id = flow_arg(c, "experiment_id");

	if (flow_need(c, id, "experiment_id"))
		flow_find_experiment(c, id, FLOW_READ, get_on_experiment);
}

static void by_name_on_row(struct call *c, const struct db_rows *rows)
{
	struct flow *f = flow_of(c);
	struct str name = flow_arg(c, "experiment_name");

	if (rows[0].n == 0) {
		flow_not_found(c, "Could not find experiment with name '%.*s'", STR_ARG(name));
		return;
	}
	f->experiment = (struct flow_experiment){
		.id = db_int(&rows[0], 0, db_col(&rows[0], "id")),
		.project_id = f->project_id,
		.name = name,
	};
	get_on_experiment(c);
}

static void by_name_on_project(struct call *c)
{
	struct db_unit *u = call_unit(c);

	experiment_store_by_name(u, flow_of(c)->project_id, flow_arg(c, "experiment_name"));
	call_send(c, u, DB_READ, by_name_on_row);
}

static void by_name(struct call *c)
{
	if (flow_need(c, flow_arg(c, "experiment_name"), "experiment_name"))
		flow_find_project(c, FLOW_READ, by_name_on_project);
}

const struct binding mlflow_experiment_bindings[] = {
	{ "mlflow.experiments.create", create },
	{ "mlflow.experiments.get", get },
	{ "mlflow.experiments.get_by_name", by_name },
	{ 0 },
};
