/* The registry: models, versions with their files, aliases. */
#include "server/core/filepath.h"
#include "server/core/names.h"
#include "server/rest/download.h"
#include "server/rest/handlers.h"
#include "server/sched/monitor_rules.h"
#include "server/store/event_store.h"
#include "server/store/model_store.h"
#include "server/store/monitor_store.h"

static struct model_key key_of(const struct call *c)
{
	return (struct model_key){ c->project_id, call_param(c, "model") };
}

static void model_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	model_store_list(u, c->project_id, call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

static void model_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "model");
}

static void model_get(struct call *c)
{
	struct db_unit *u = call_unit(c);

	model_store_get(u, key_of(c));
	call_send(c, u, DB_READ, model_on_row);
}

static void model_delete_on_done(struct call *c, const struct db_rows *rows)
{
	if (rows[1].n == 0)
		call_not_found(c, "model");
	else
		call_reply_empty(c);
}

static void model_delete(struct call *c)
{
	struct db_unit *u = call_unit(c);

	model_store_delete(u, key_of(c), call_actor(c));
	call_send(c, u, DB_BULK, model_delete_on_done);
}

/* ---- versions ---- */

/* Lists below a model answer 404 when the model is not there: the first statement looks. */
static void list_below_on_rows(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		call_not_found(c, "model");
	else
		call_reply_list(c, &rows[1]);
}

static void version_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	model_store_get(u, key_of(c));
	model_version_store_list(u, key_of(c), call_page_after(c, "~"), call_page_count(c));
	call_send(c, u, DB_READ, list_below_on_rows);
}

static void version_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "version of the model");
}

static void version_get(struct call *c)
{
	int64_t number;

	if (!call_version(c, "version of the model", &number))
		return;
	struct db_unit *u = call_unit(c);
	model_version_store_get(u, key_of(c), number);
	call_send(c, u, DB_READ, version_on_row);
}

static void files_on_rows(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		call_not_found(c, "version of the model");
	else
		call_reply_list(c, &rows[1]);
}

static void version_files(struct call *c)
{
	int64_t number;

	if (!call_version(c, "version of the model", &number))
		return;
	struct db_unit *u = call_unit(c);
	model_version_store_get(u, key_of(c), number);
	model_file_store_list(u, key_of(c), number, call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, files_on_rows);
}

static void file_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0) {
		call_not_found(c, "file in this version of the model");
		return;
	}
	download_send(c,
		&(struct download){ .id = download_id(&rows[0], 0),
			.name = filepath_base(call_param(c, "path")),
			.type = "application/octet-stream" },
		NULL);
}

static void version_file(struct call *c)
{
	int64_t number;

	if (!call_version(c, "version of the model", &number))
		return;
	struct db_unit *u = call_unit(c);
	model_file_store_get(u, key_of(c), number, call_param(c, "path"));
	call_send(c, u, DB_READ, file_on_row);
}

/* ---- aliases ---- */

static void alias_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "alias of the model");
}

/* The version that had it then; its ETag would mislead, so there is none. */
static void alias_as_of_on_row(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0 || db_is_null(&rows[0], 0, db_col(&rows[0], "version_id")))
		call_not_found(c, "alias of the model at that time");
	else
		call_reply_row(c, 200, &rows[0], "alias of the model");
}

static void alias_get(struct call *c)
{
	const struct as_of_query *q = c->query;
	struct db_unit *u = call_unit(c);

	if (q->as_of != 0)
		alias_store_as_of(u, key_of(c), call_param(c, "alias"), q->as_of);
	else
		alias_store_get(u, key_of(c), call_param(c, "alias"));
	call_send(c, u, DB_READ, q->as_of != 0 ? alias_as_of_on_row : alias_on_row);
}

static void alias_reply(struct call *c, const struct db_rows *rows)
{
	(void)rows;
	struct db_unit *u = call_unit(c);
	alias_store_get(u, key_of(c), call_param(c, "alias"));
	call_send(c, u, DB_READ, alias_on_row);
}

static void alias_event(struct call *c, struct db_unit *u, struct str model_id, const char *type)
{
	event_store_add(u, &(struct event_new){ .project_id = c->project_id,
				   .type = type,
				   .subject = model_id,
				   .actor = call_actor(c) });
}

static void alias_put_failed(struct call *c, const struct db_rows *rows, const struct err *e)
{
	struct err said = *e;

	if (store_changed(rows))
		(void)err_set(&said, ERR_PRECONDITION_FAILED,
			"the alias, or a monitor that watches it, has been changed meanwhile; "
			"read it again");
	call_fail(c, &said);
}

static void alias_put_on_moved(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;

	if (e->code != ERR_OK) {
		alias_put_failed(c, rows, e);
		return;
	}
	app_changed(c->app);
	alias_reply(c, rows);
}

/* If-Match is needed when the alias exists, and must be its version. */
static bool alias_may_move(struct call *c, int64_t current)
{
	struct err e;
	int64_t version;

	if (current == 0)
		return true;
	if (!call_if_match(c, &version))
		return false;
	if (version == current)
		return true;
	(void)err_set(&e, ERR_PRECONDITION_FAILED, "the alias has been moved since; read it again");
	call_fail(c, &e);
	return false;
}

/* The monitors that watch the alias start over with the new version: a promotion by hand. */
static int add_monitors(struct call *c, struct db_unit *u, const struct db_rows *r, struct err *e)
{
	for (size_t i = 0; i < r->n; i++) {
		struct str id = db_str(r, i, db_col(r, "id"));
		struct monitor_spec spec;
		struct policy_state state;
		if (monitor_spec_read(db_str(r, i, db_col(r, "spec")), c->arena, &spec, e) < 0 ||
			policy_state_read(db_str(r, i, db_col(r, "policy_state")), &state, e) < 0)
			return -1;
		struct policy_rules rules = monitor_rules(&spec);
		bool open = state.open; /* a retraining that runs goes on */
		policy_promoted(&rules, &state, false, 0);
		state.open = open;
		monitor_store_advance(u, id, db_int(r, i, db_col(r, "version")));
		finish_store_monitor_state(u, id, policy_state_write(&state, c->arena));
	}
	return 0;
}

/* What a gate has refused takes its alias only when somebody says why; or one that is watched. */
static bool alias_gate_allows(struct call *c, const struct db_rows *rows, const char **ret_cause)
{
	const struct alias_put *in = c->in;
	const struct db_rows *r = &rows[0];
	struct err e;

	*ret_cause = "api";
	if (!db_bool(r, 0, db_col(r, "refused")) ||
		(!db_bool(r, 0, db_col(r, "gated")) && rows[1].n == 0))
		return true;
	*ret_cause = "override";
	if (in->force)
		return true;
	(void)err_set(&e, ERR_CONFLICT,
		"the gate has refused version %lld: only force, with a note that says why, gives "
		"it %.*s. The gate said: %.*s",
		(long long)in->version, STR_ARG(call_param(c, "alias")),
		STR_ARG(db_str(r, 0, db_col(r, "verdict_reason"))));
	(void)str_print(e.field, sizeof e.field, "/version");
	call_fail(c, &e);
	return false;
}

static void alias_put_on_target(struct call *c, const struct db_rows *rows)
{
	const struct alias_put *in = c->in;
	const struct db_rows *r = &rows[0];

	if (r->n == 0) {
		call_not_found(c, "model");
		return;
	}
	struct str model_id = arena_str(c->arena, db_str(r, 0, db_col(r, "model_id")));
	struct alias_move move = { .alias = call_param(c, "alias"),
		.target = arena_str(c->arena, db_str(r, 0, db_col(r, "version_id"))),
		.expected = arena_str(c->arena, db_str(r, 0, db_col(r, "current_id"))),
		.note = in->note,
		.actor = call_actor(c) };
	if (move.target.n == 0) {
		call_invalid(
			c, "/version", "the model has no version %lld", (long long)in->version);
		return;
	}
	if (!alias_may_move(c, db_int(r, 0, db_col(r, "current_version"))))
		return;
	if (str_eq(move.target, move.expected)) {
		alias_reply(c, rows);
		return;
	}
	if (!alias_gate_allows(c, rows, &move.cause))
		return;
	struct db_unit *u = call_unit(c);
	struct err e;
	if (add_monitors(c, u, &rows[1], &e) < 0) {
		db_unit_free(u);
		call_fail(c, &e);
		return;
	}
	alias_store_move(u, model_id, &move);
	alias_event(c, u, model_id, "model.alias_moved");
	db_send(u, DB_WRITE, alias_put_on_moved, c);
}

static bool is_blank(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\n')
			return false;
	return true;
}

static void alias_put(struct call *c)
{
	const struct alias_put *in = c->in;

	struct err e;

	if (names_alias_check(call_param(c, "alias"), "/alias", &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (in->force && is_blank(in->note)) {
		call_invalid(c, "/note", "must say why, when force is given");
		return;
	}
	struct db_unit *u = call_unit(c);
	alias_store_target(u, key_of(c), call_param(c, "alias"), in->version);
	finish_store_monitors(u, key_of(c), call_param(c, "alias"), STR(""));
	call_send(c, u, DB_READ, alias_put_on_target);
}

static void alias_delete_on_done(struct call *c, const struct db_rows *rows)
{
	struct err e;

	if (rows[0].n == 0) {
		call_not_found(c, "alias of the model");
	} else if (db_str(&rows[0], 0, 0).n != 0) {
		(void)err_set(&e, ERR_CONFLICT,
			"the monitor %.*s watches what has this alias: remove the monitor, or let "
			"it watch another alias, first",
			STR_ARG(db_str(&rows[0], 0, 0)));
		call_fail(c, &e);
	} else {
		call_reply_empty(c);
	}
}

static void alias_delete(struct call *c)
{
	struct db_unit *u = call_unit(c);

	alias_store_delete(u, key_of(c), call_param(c, "alias"), call_actor(c));
	call_send(c, u, DB_WRITE, alias_delete_on_done);
}

static void alias_history(struct call *c)
{
	struct db_unit *u = call_unit(c);

	model_store_get(u, key_of(c));
	alias_store_history(u, key_of(c), call_page_after(c, "~"), call_page_count(c));
	call_send(c, u, DB_READ, list_below_on_rows);
}

const struct binding model_bindings[] = {
	{ "models.list", model_list },
	{ "models.get", model_get },
	{ "models.delete", model_delete },
	{ "model_versions.list", version_list },
	{ "model_versions.get", version_get },
	{ "model_versions.files", version_files },
	{ "model_versions.file", version_file },
	{ "aliases.get", alias_get },
	{ "aliases.put", alias_put },
	{ "aliases.delete", alias_delete },
	{ "aliases.history", alias_history },
	{ 0 },
};
