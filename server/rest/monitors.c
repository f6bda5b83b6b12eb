/* Monitors: their files, mutes, windows, heat and decisions. Rows come in through observations.c.
 */
#include "api/auth.h"
#include "lib/json/json_read.h"
#include "lib/json/json_write.h"
#include "lib/json/yaml.h"
#include "server/rest/handlers.h"
#include "server/sched/monitor_rules.h"
#include "server/sched/spec.h"
#include "server/sched/windows.h"
#include "server/store/constraint.h"
#include "server/store/event_store.h"
#include "server/store/model_store.h"
#include "server/store/monitor_store.h"

enum { SPEC_MAX = 1 << 20, HEAT_MAX = 32 << 20, PUT_TRIES = 3 };

static struct monitor_key key_of(const struct call *c)
{
	return (struct monitor_key){ c->project_id, call_param(c, "monitor") };
}

static void monitor_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	monitor_store_list(u, c->project_id, call_page_after(c, ""), call_page_count(c));
	call_send(c, u, DB_READ, call_reply_list);
}

static void monitor_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "monitor");
}

static void monitor_get(struct call *c)
{
	struct db_unit *u = call_unit(c);

	monitor_store_get(u, key_of(c));
	call_send(c, u, DB_READ, monitor_on_row);
}

/* ---- put ---- */

static int check_file(struct call *c, const struct monitor_file *f, struct err *e)
{
	if (!str_is(f->api_version, "tidemill/v1"))
		return err_field(e, "/apiVersion", "must be tidemill/v1");
	if (!str_eq(f->metadata.name, call_param(c, "monitor")))
		return err_field(e, "/metadata/name", "must be the name in the path");
	if (monitor_spec_check(&f->spec, e) < 0)
		return -1;
	return monitor_inputs_check(&f->spec, STR_NONE, c->arena, e);
}

/* A file that came as text is told where in it. */
static void fail_in_file(struct call *c, struct err *e)
{
	if (str_find(http_header(c->req, "Content-Type"), STR("yaml")) >= 0)
		yaml_locate(c->req->body, e);
	call_fail(c, e);
}

static bool window_is(struct str stored_json, const struct window_spec *w)
{
	struct jsn_doc *doc;
	struct err e;

	if (jsn_parse(stored_json, &doc, &e) < 0)
		return false;
	const struct jsn *v = jsn_root(doc);
	bool same = str_eq(jsn_get_str(jsn_get(v, "size")), w->size.text) &&
		    jsn_get_int(jsn_get(v, "rows"), 0) == w->rows;
	jsn_doc_free(doc);
	return same;
}

/* What the file refers to, and what of the old one must stay. */
static int check_against(
	const struct monitor_spec *spec, const struct db_rows *r, struct arena *a, struct err *e)
{
	bool has_windows = db_bool(r, 0, db_col(r, "has_windows"));

	if (db_is_null(r, 0, db_col(r, "model_id")))
		return err_field(
			e, "/spec/subject/model", "there is no model of this name in the project");
	if (spec->has_retrain && db_is_null(r, 0, db_col(r, "pipeline")))
		return err_field(e, "/spec/retrain/pipeline",
			"there is no pipeline of this name in the project");
	if (spec->has_retrain &&
		monitor_inputs_check(spec, db_str(r, 0, db_col(r, "pipeline")), a, e) < 0)
		return -1;
	if (!has_windows)
		return 0;
	if (!window_is(db_str(r, 0, db_col(r, "window")), &spec->window))
		return err_field(e, "/spec/window",
			"the monitor has windows already, which cannot be cut anew: make another "
			"monitor, or delete this one");
	if (!str_eq(db_str(r, 0, db_col(r, "model_id")), db_str(r, 0, db_col(r, "old_model_id"))))
		return err_field(e, "/spec/subject/model",
			"the monitor has windows of another model: make another monitor");
	return 0;
}

struct monitor_put {
	struct monitor_row row;
	int tries;
};

static void monitor_put_look(struct call *c);

/* Somebody has made or changed it since it was looked at: the same request twice, for one. */
static bool was_overtaken(const struct db_rows *rows)
{
	return store_changed(rows) ||
	       (rows->fault != NULL && strcmp(rows->fault->sqlstate, "23505") == 0);
}

static void monitor_put_on_written(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;
	struct monitor_put *p = c->state;
	struct err said = *e;

	if (e->code == ERR_OK) {
		app_changed(c->app);
		monitor_get(c);
		return;
	}
	if (was_overtaken(rows) && p->tries++ < PUT_TRIES) {
		monitor_put_look(c);
		return;
	}
	if (store_changed(rows))
		(void)err_set(
			&said, ERR_CONFLICT, "the monitor has been changed meanwhile; try again");
	else
		constraint_explain(rows, &said);
	call_fail(c, &said);
}

/* The monitor as it would be; nothing has been written. */
static void monitor_reply_dry(struct call *c, const struct db_rows *rows, bool same)
{
	const struct monitor_row *m = &((const struct monitor_put *)c->state)->row;
	struct monitor is = { .id = STR(""),
		.policy_state = STR("{}"),
		.mutes = STR("[]"),
		.created_at = clock_now(c->app->clock) };
	struct err e;

	if (rows[1].n != 0 && db_row_decode(&rows[1], 0, monitor_fields, c->arena, &is, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (!same) {
		is.name = m->name;
		is.model = ((const struct monitor_file *)c->in)->spec.subject.model;
		is.alias = m->alias;
		is.champion = db_str(&rows[0], 0, db_col(&rows[0], "champion"));
		is.spec = m->spec;
		is.source = m->source;
		is.version++;
	}
	call_reply(c, 200, monitor_fields, &is);
}

static void monitor_put_on_look(struct call *c, const struct db_rows *rows)
{
	const struct monitor_file *f = c->in;
	const struct db_rows *r = &rows[0];
	struct monitor_row *m = &((struct monitor_put *)c->state)->row;
	struct err e;

	if (check_against(&f->spec, r, c->arena, &e) < 0) {
		fail_in_file(c, &e);
		return;
	}
	m->model_id = db_str(r, 0, db_col(r, "model_id"));
	bool same = db_bool(r, 0, db_col(r, "same")) &&
		    str_eq(m->model_id, db_str(r, 0, db_col(r, "old_model_id")));
	if (((const struct dry_put_query *)c->query)->dry_run) {
		monitor_reply_dry(c, rows, same);
		return;
	}
	if (same) {
		call_reply_row(c, 200, &rows[1], "monitor"); /* nothing changes */
		return;
	}
	bool is_new = db_is_null(r, 0, db_col(r, "id"));
	m->id = is_new ? call_id(c, "mon") : db_str(r, 0, db_col(r, "id"));
	struct db_unit *u = call_unit(c);
	if (is_new)
		monitor_store_add(u, m);
	else
		monitor_store_update(u, m, db_int(r, 0, db_col(r, "version")));
	event_store_add(u, &(struct event_new){ .project_id = c->project_id,
				   .type = is_new ? "monitor.created" : "monitor.updated",
				   .subject = m->id,
				   .actor = call_actor(c) });
	db_send(u, DB_WRITE, monitor_put_on_written, c);
}

static void monitor_put_look(struct call *c)
{
	const struct monitor_spec *spec = &((const struct monitor_file *)c->in)->spec;
	const struct monitor_put *p = c->state;
	struct db_unit *u = call_unit(c);

	monitor_store_look(u, &p->row, spec->subject.model, spec->retrain.pipeline);
	monitor_store_get(u, key_of(c));
	call_send(c, u, DB_READ, monitor_put_on_look);
}

static void monitor_put(struct call *c)
{
	const struct monitor_file *f = c->in;
	struct monitor_put *p = arena_new_of(c->arena, struct monitor_put);
	struct err e;
	struct buf b;

	if (check_file(c, f, &e) < 0) {
		fail_in_file(c, &e);
		return;
	}
	buf_init(&b, SPEC_MAX);
	field_encode(monitor_spec_fields, &f->spec, &b);
	if (buf_failed(&b)) {
		buf_done(&b);
		call_invalid(c, "/spec", "has more than %d bytes as JSON", SPEC_MAX);
		return;
	}
	p->row = (struct monitor_row){ .project_id = c->project_id,
		.name = f->metadata.name,
		.spec = buf_keep(&b, c->arena),
		.source = c->req->body,
		.alias = f->spec.subject.alias,
		.created_by = call_actor(c) };
	c->state = p;
	monitor_put_look(c);
}

static void monitor_delete_on_done(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		call_not_found(c, "monitor");
	else
		call_reply_empty(c);
}

static void monitor_delete(struct call *c)
{
	struct db_unit *u = call_unit(c);

	monitor_store_delete(u, key_of(c), call_actor(c));
	call_send(c, u, DB_BULK, monitor_delete_on_done);
}

/* ---- mutes ---- */

static void monitor_mute_on_done(struct call *c, const struct db_rows *rows)
{
	struct err e;

	if (rows[0].n != 0) {
		monitor_get(c);
		return;
	}
	(void)err_set(&e, ERR_CONFLICT, "the monitor has been changed meanwhile; try again");
	call_fail(c, &e);
}

static void monitor_mute_on_row(struct call *c, const struct db_rows *rows)
{
	const struct mute *in = c->in;
	const struct db_rows *r = &rows[0];
	struct policy_state state;
	struct err e;

	if (r->n == 0) {
		call_not_found(c, "monitor");
		return;
	}
	if (policy_state_read(db_str(r, 0, db_col(r, "policy_state")), &state, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (in->feature.n == 0)
		policy_mute(&state, in->until);
	struct monitor_mutes x = { .version = db_int(r, 0, db_col(r, "version")),
		.mutes = monitor_mutes_with(db_str(r, 0, db_col(r, "mutes")), in, c->arena),
		.policy_state = policy_state_write(&state, c->arena) };
	struct str id = arena_str(c->arena, db_str(r, 0, db_col(r, "id")));
	struct db_unit *u = call_unit(c);
	monitor_store_mute(u, key_of(c), &x);
	event_store_add(u, &(struct event_new){ .project_id = c->project_id,
				   .type = "monitor.muted",
				   .subject = id,
				   .actor = call_actor(c) });
	call_send(c, u, DB_WRITE, monitor_mute_on_done);
}

static void monitor_mute(struct call *c)
{
	struct db_unit *u = call_unit(c);

	monitor_store_get(u, key_of(c));
	call_send(c, u, DB_READ, monitor_mute_on_row);
}

/* ---- windows ---- */

/* Lists below a monitor answer 404 when it is not there: the first statement looks. */
static void list_below_on_rows(struct call *c, const struct db_rows *rows)
{
	if (rows[0].n == 0)
		call_not_found(c, "monitor");
	else
		call_reply_list(c, &rows[1]);
}

static void window_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	monitor_store_get(u, key_of(c));
	window_store_list(u, key_of(c), call_page_after(c, "~"), call_page_count(c));
	call_send(c, u, DB_READ, list_below_on_rows);
}

static void window_metrics_on_rows(struct call *c, const struct db_rows *rows)
{
	size_t size = c->route->out_size;
	struct list all;
	struct err e;

	if (rows[0].n == 0)
		call_not_found(c, "window of the monitor");
	else if (call_decode(c, &rows[1], c->route->out, size, &all, &e) < 0)
		call_fail(c, &e);
	else
		call_reply_items(c, all.items, all.n, size, STR_NONE);
}

static void window_metrics(struct call *c)
{
	struct db_unit *u = call_unit(c);

	window_store_exists(u, key_of(c), call_param(c, "window"));
	window_store_metrics(u, key_of(c), call_param(c, "window"));
	call_send(c, u, DB_READ, window_metrics_on_rows);
}

static void window_close_on_done(void *arg, const struct windows_closed *done, const struct err *e)
{
	struct call *c = arg;
	struct window_close_result result = { .closed = done->closed };
	struct str *ids = arena_array_of(c->arena, struct str, done->n + 1);

	for (size_t i = 0; i < done->n; i++)
		ids[i] = arena_str(c->arena, done->decisions[i]);
	result.decisions = (struct list){ ids, done->n };
	if (e->code != ERR_OK)
		call_fail(c, e);
	else
		call_reply(c, 200, window_close_result_fields, &result);
	arena_drop(c->arena);
}

static void window_close_on_row(struct call *c, const struct db_rows *rows)
{
	const struct window_close *in = c->in;

	if (rows[0].n == 0) {
		call_not_found(c, "monitor");
		return;
	}
	struct str id = arena_str(c->arena, db_str(&rows[0], 0, db_col(&rows[0], "id")));
	const struct windows_which which = { .has_start = in->start != 0,
		.has_before = in->before != 0,
		.start = in->start,
		.before = in->before };
	arena_hold(c->arena);
	windows_close(c->app, id, &which, window_close_on_done, c);
}

static void windows_close_now(struct call *c)
{
	const struct window_close *in = c->in;

	if ((in->start != 0) == (in->before != 0)) {
		call_invalid(c, "", "give either start or before");
		return;
	}
	struct db_unit *u = call_unit(c);
	monitor_store_get(u, key_of(c));
	call_send(c, u, DB_READ, window_close_on_row);
}

static void window_delete_on_done(struct call *c, const struct db_rows *rows)
{
	struct window_delete_result result;
	struct err e;

	if (field_decode_reply(window_delete_result_fields, db_str(&rows[0], 0, 0), c->arena,
		    &result, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (result.held_by.n != 0 && !result.dry_run) {
		(void)err_set(&e, ERR_CONFLICT,
			"the decision %.*s has started something: what it rests on stays",
			STR_ARG(result.held_by));
		call_fail(c, &e);
		return;
	}
	call_reply(c, 200, window_delete_result_fields, &result);
}

static void window_delete_on_row(struct call *c, const struct db_rows *rows)
{
	const struct dry_run_query *q = c->query;

	if (rows[0].n == 0) {
		call_not_found(c, "monitor");
		return;
	}
	struct str id = arena_str(c->arena, db_str(&rows[0], 0, db_col(&rows[0], "id")));
	struct db_unit *u = call_unit(c);
	window_store_delete(u, id, c->in, call_actor(c), q->dry_run);
	call_send(c, u, DB_BULK, window_delete_on_done);
}

static void windows_delete(struct call *c)
{
	const struct window_delete *in = c->in;

	if ((in->start != 0) == (in->from != 0 || in->to != 0) ||
		(in->from != 0) != (in->to != 0)) {
		call_invalid(c, "", "give either start, or from and to");
		return;
	}
	if (in->from > in->to) {
		call_invalid(c, "/to", "must not lie before from");
		return;
	}
	struct db_unit *u = call_unit(c);
	monitor_store_get(u, key_of(c));
	call_send(c, u, DB_READ, window_delete_on_row);
}

/* ---- heat: rows come newest window first, and are shown oldest first ---- */

static void heat_windows(struct jsn_out *w, const struct db_rows *r)
{
	jsn_key(w, "windows");
	jsn_list_begin(w);
	for (size_t i = r->n; i-- > 0;) {
		jsn_obj_begin(w);
		jsn_key(w, "id");
		jsn_str(w, db_str(r, i, 0));
		jsn_key(w, "start");
		jsn_time(w, db_time(r, i, 1));
		jsn_key(w, "end");
		jsn_time(w, db_time(r, i, 2));
		jsn_obj_end(w);
	}
	jsn_list_end(w);
}

struct heat {
	const struct db_rows *windows, *values;
	size_t from, to; /* values of one feature, in the order of the windows */
};

static void heat_row(struct jsn_out *w, const struct heat *h, bool drifted)
{
	size_t at = h->from;

	jsn_key(w, drifted ? "drifted" : "values");
	jsn_list_begin(w);
	for (size_t i = h->windows->n; i-- > 0;) {
		bool found =
			at < h->to && str_eq(db_str(h->values, at, 1), db_str(h->windows, i, 0));
		if (drifted)
			jsn_bool(w, found && db_bool(h->values, at, 4));
		else if (found && !db_is_null(h->values, at, 2))
			jsn_real(w, db_real(h->values, at, 2));
		else
			jsn_null(w);
		at += found;
	}
	jsn_list_end(w);
}

static void heat_feature(struct jsn_out *w, const struct heat *h)
{
	size_t last = h->to - 1;

	jsn_obj_begin(w);
	jsn_key(w, "name");
	jsn_str(w, db_str(h->values, h->from, 0));
	jsn_key(w, "threshold");
	if (db_is_null(h->values, last, 3))
		jsn_null(w);
	else
		jsn_real(w, db_real(h->values, last, 3));
	heat_row(w, h, false);
	heat_row(w, h, true);
	jsn_obj_end(w);
}

static void heat_on_rows(struct call *c, const struct db_rows *rows)
{
	struct heat h = { .windows = &rows[1], .values = &rows[2] };
	struct buf b;
	struct err e;

	if (rows[0].n == 0) {
		call_not_found(c, "monitor");
		return;
	}
	buf_init(&b, HEAT_MAX);
	struct jsn_out w = jsn_out(&b);
	jsn_obj_begin(&w);
	heat_windows(&w, h.windows);
	jsn_key(&w, "features");
	jsn_list_begin(&w);
	for (h.from = 0; h.from < h.values->n; h.from = h.to) {
		h.to = h.from + 1;
		while (h.to < h.values->n &&
			str_eq(db_str(h.values, h.to, 0), db_str(h.values, h.from, 0)))
			h.to++;
		heat_feature(&w, &h);
	}
	jsn_list_end(&w);
	jsn_obj_end(&w);
	if (buf_failed(&b)) {
		(void)err_set(
			&e, ERR_TOO_LARGE, "the answer would be too large: ask for fewer windows");
		call_fail(c, &e);
	} else {
		http_reply_json(c->req, 200, buf_str(&b));
	}
	buf_done(&b);
}

static void monitor_heat(struct call *c)
{
	const struct heat_query *q = c->query;
	struct db_unit *u = call_unit(c);

	monitor_store_get(u, key_of(c));
	heat_store_windows(u, key_of(c), q->windows);
	heat_store_values(u, key_of(c), q->windows, test_kind_names[q->metric]);
	call_send(c, u, DB_READ, heat_on_rows);
}

/* ---- decisions ---- */

static void decision_list(struct call *c)
{
	struct db_unit *u = call_unit(c);

	monitor_store_get(u, key_of(c));
	decision_store_list(u, key_of(c), call_page_after(c, "~"), call_page_count(c));
	call_send(c, u, DB_READ, list_below_on_rows);
}

static void decision_on_row(struct call *c, const struct db_rows *rows)
{
	call_reply_row(c, 200, &rows[0], "decision");
}

static void decision_get(struct call *c)
{
	struct db_unit *u = call_unit(c);

	decision_store_get(u, call_param(c, "decision"));
	call_send(c, u, DB_READ, decision_on_row);
}

const struct binding monitor_bindings[] = {
	{ "monitors.list", monitor_list },
	{ "monitors.get", monitor_get },
	{ "monitors.put", monitor_put },
	{ "monitors.delete", monitor_delete },
	{ "monitors.mute", monitor_mute },
	{ "monitors.heat", monitor_heat },
	{ "windows.list", window_list },
	{ "windows.metrics", window_metrics },
	{ "windows.close", windows_close_now },
	{ "windows.delete", windows_delete },
	{ "decisions.list", decision_list },
	{ "decisions.get", decision_get },
	{ 0 },
};
