#include "server/mlflow/flow.h"

#include "lib/base/num.h"
#include "lib/db/group.h"
#include "lib/json/json_read.h"
#include "server/rest/flow_error.h"
#include "server/store/auth_store.h"
#include "server/store/constraint.h"
#include "server/store/tracking_store.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT_MAX = 4096, VALUE_SHOWN = 200, NAME_SHOWN = 160 };
#define SEE_DOCS "See the API docs for more information about request parameters."

struct flow *flow_of(struct call *c)
{
	if (c->state == NULL)
		c->state = arena_new_of(c->arena, struct flow);
	return c->state;
}

static void fail_text(struct call *c, int status, const char *code, const char *fmt, va_list ap)
	__attribute__((format(printf, 4, 0)));
static void fail_text(struct call *c, int status, const char *code, const char *fmt, va_list ap)
{
	char *text = arena_alloc(c->arena, TEXT_MAX);

	(void)vsnprintf(text, TEXT_MAX, fmt, ap);
	flow_error_reply_as(c->req, status, code, text);
}

void flow_invalid(struct call *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail_text(c, 400, "INVALID_PARAMETER_VALUE", fmt, ap);
	va_end(ap);
}

void flow_not_found(struct call *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail_text(c, 404, "RESOURCE_DOES_NOT_EXIST", fmt, ap);
	va_end(ap);
}

void flow_missing(struct call *c, const char *name)
{
	flow_invalid(c, "Missing value for required parameter '%s'. " SEE_DOCS, name);
}

bool flow_need(struct call *c, struct str value, const char *name)
{
	if (value.n != 0)
		return true;
	flow_missing(c, name);
	return false;
}

struct str flow_arg(struct call *c, const char *name)
{
	struct str v = http_arg(c->req, name, 0);

	return v.p != NULL ? v : STR("");
}

/* ---- the message ---- */

/* "/metrics/3/value" as MLflow writes it: metrics[3].value. */
static void parameter_name(char out[NAME_SHOWN], const char *pointer)
{
	struct str rest = str_c(pointer[0] == '/' ? pointer + 1 : pointer), part;
	uint64_t index;
	struct buf b;

	buf_init(&b, NAME_SHOWN - 1);
	while (str_next(&rest, '/', &part)) {
		if (num_parse_u64(part, 0, UINT32_MAX, &index))
			buf_addf(&b, "[%.*s]", STR_ARG(part));
		else
			buf_addf(&b, "%s%.*s", b.n != 0 ? "." : "", STR_ARG(part));
	}
	(void)str_print(out, NAME_SHOWN, "%.*s", STR_ARG(buf_str(&b)));
	buf_done(&b);
}

static void fail_decode(struct call *c, struct str body, const struct err *e)
{
	char name[NAME_SHOWN];
	struct jsn_doc *doc = NULL;
	struct err ignored;
	struct buf value;

	if (e->code == ERR_MALFORMED) {
		flow_invalid(c, "invalid JSON: %s", e->msg);
		return;
	}
	if (e->field[0] == '\0') {
		flow_invalid(c, "%s", e->msg);
		return;
	}
	parameter_name(name, e->field);
	if (jsn_parse(body, &doc, &ignored) < 0) { /* a NUL: the value cannot be shown */
		flow_invalid(c, "Invalid value for parameter '%s' supplied: %s. " SEE_DOCS, name,
			e->msg);
		return;
	}
	buf_init(&value, 1 << 20);
	jsn_write(jsn_find(jsn_root(doc), e->field), &value);
	flow_invalid(c, "Invalid value %.*s for parameter '%s' supplied: %s. " SEE_DOCS,
		STR_ARG(str_slice(buf_str(&value), 0, VALUE_SHOWN)), name, e->msg);
	buf_done(&value);
	jsn_doc_free(doc);
}

static bool type_ok(struct call *c)
{
	struct str rest = http_header(c->req, "Content-Type"), first;

	if (rest.p == NULL) {
		flow_invalid(c, "Bad Request. Content-Type header is missing.");
		return false;
	}
	if (str_next(&rest, ';', &first) && str_eq_nocase(str_trim(first), STR("application/json")))
		return true;
	flow_invalid(c, "Bad Request. Content-Type must be one of ['application/json'].");
	return false;
}

void *flow_body(struct call *c, const struct field *t, size_t size)
{
	struct flow *f = flow_of(c);
	struct str body = c->req->body.n != 0 ? c->req->body : STR("{}");
	struct err e;

	if (!type_ok(c))
		return NULL;
	f->in = arena_alloc(c->arena, size);
	if (field_decode_loose(t, body, c->arena, f->in, &e) == 0)
		return f->in;
	fail_decode(c, body, &e);
	return NULL;
}

/* ---- what it is about ---- */

static bool is_job(const struct call *c)
{
	return c->who.kind == CREDENTIAL_JOB;
}

static bool may_see(const struct call *c, struct str project_id, struct str role)
{
	if (is_job(c))
		return str_eq(c->who.project_id, project_id);
	return call_role(c, project_id, role) >= ROLE_VIEWER;
}

static bool may_write(const struct call *c, struct str project_id, struct str role)
{
	return is_job(c) || call_role(c, project_id, role) >= ROLE_CI;
}

static void forbidden(struct call *c, const char *text)
{
	flow_error_reply_as(c->req, 403, "PERMISSION_DENIED", text);
}

static void run_on_row(void *arg, const struct db_rows *r, size_t row, const struct err *e)
{
	struct call *c = arg;
	struct flow *f = flow_of(c);
	bool found = row != DB_NO_ROW;
	struct str role = found ? db_str(r, row, db_col(r, "role")) : STR_NONE;

	if (e->code != ERR_OK) {
		call_fail(c, e);
		return;
	}
	if (found)
		f->run = (struct flow_run){ .id = db_int(r, row, db_col(r, "id")),
			.experiment_id = db_int(r, row, db_col(r, "experiment_id")),
			.made = db_date(r, row, db_col(r, "made")),
			.run_id = f->wanted,
			.project_id = arena_str(c->arena, db_str(r, row, db_col(r, "project_id"))),
			.artifact_uri =
				arena_str(c->arena, db_str(r, row, db_col(r, "artifact_uri"))) };
	if (!found || !may_see(c, f->run.project_id, role))
		flow_not_found(
			c, "Run with id=%.*s not found", STR_ARG(str_slice(f->wanted, 0, 260)));
	else if (f->use == FLOW_READ)
		f->next(c);
	else if (!may_write(c, f->run.project_id, role))
		forbidden(c, "Writing to this run needs the role \"ci\" in its project.");
	else if (is_job(c) && !db_bool(r, row, db_col(r, "own")))
		forbidden(c, "A job writes to the run of its own step and to its children only.");
	else if (!str_is(db_str(r, row, db_col(r, "lifecycle")), "active"))
		flow_invalid(c,
			"The run %.*s must be in the 'active' state. Current state is deleted.",
			STR_ARG(f->wanted));
	else
		f->next(c);
}

void flow_find_run(struct call *c, struct str run_id, enum flow_use use, flow_next *next)
{
	struct flow *f = flow_of(c);
	struct err e;

	if (!flow_need(c, run_id, "run_id"))
		return;
	f->wanted = run_id;
	f->use = use;
	f->next = next;
	f->asked =
		(struct run_asked){ c->who.principal_id, c->who.attempt_id, run_id, run_on_row, c };
	if (run_access_ask(c->app->run_access, &f->asked, &e) < 0)
		call_fail(c, &e);
}

static void no_experiment(struct call *c, struct str id)
{
	flow_not_found(c, "No Experiment with id=%.*s exists", STR_ARG(str_slice(id, 0, 100)));
}

static void experiment_on_row(struct call *c, const struct db_rows *rows)
{
	const struct db_rows *r = &rows[0];
	struct flow *f = flow_of(c);
	struct flow_experiment *x = &f->experiment;
	struct str role = r->n != 0 ? db_str(r, 0, db_col(r, "role")) : STR_NONE;

	if (r->n != 0)
		*x = (struct flow_experiment){ .id = db_int(r, 0, db_col(r, "id")),
			.project_id = arena_str(c->arena, db_str(r, 0, db_col(r, "project_id"))),
			.name = arena_str(c->arena, db_str(r, 0, db_col(r, "name"))),
			.artifact_location =
				arena_str(c->arena, db_str(r, 0, db_col(r, "artifact_location"))),
			.active = str_is(db_str(r, 0, db_col(r, "lifecycle")), "active") };
	if (r->n == 0 || !may_see(c, x->project_id, role))
		no_experiment(c, f->wanted);
	else if (f->use == FLOW_WRITE && !may_write(c, x->project_id, role))
		forbidden(c, "Writing to this experiment needs the role \"ci\" in its project.");
	else if (f->use == FLOW_WRITE && !x->active)
		flow_invalid(c,
			"The experiment %lld must be in the 'active' state. Current state is "
			"deleted.",
			(long long)x->id);
	else
		f->next(c);
}

static void experiment_find(struct call *c, int64_t id)
{
	struct db_unit *u = call_unit(c);

	experiment_store_access(u, c->who.principal_id, id, flow_of(c)->project_id);
	call_send(c, u, DB_READ, experiment_on_row);
}

static void experiment_find_default(struct call *c)
{
	flow_of(c)->next = flow_of(c)->after_project;
	experiment_find(c, 0);
}

void flow_find_experiment(struct call *c, struct str id, enum flow_use use, flow_next *next)
{
	struct flow *f = flow_of(c);
	int64_t number = 0;

	f->wanted = id.n != 0 ? id : STR("0");
	f->use = use;
	f->next = next;
	if (id.n != 0 && !num_parse_i64(id, 0, INT64_MAX, &number)) {
		no_experiment(c, id);
	} else if (number != 0) {
		experiment_find(c, number);
	} else {
		f->after_project = next;
		flow_find_project(c, use, experiment_find_default);
	}
}

static void project_on_row(struct call *c, const struct db_rows *rows)
{
	struct flow *f = flow_of(c);
	struct str role = rows[0].n != 0 ? db_str(&rows[0], 0, 2) : STR_NONE;

	if (rows[0].n != 0)
		f->project_id = arena_str(c->arena, db_str(&rows[0], 0, 0));
	struct str said = http_header(c->req, "X-Tidemill-Project");
	if ((rows[0].n == 0 || !may_see(c, f->project_id, role)) && said.n != 0)
		flow_invalid(c,
			"There is no project %.63s that this token opens. Say which project this "
			"is "
			"about in the header X-Tidemill-Project.",
			arena_dup(c->arena, said));
	else if (rows[0].n == 0 || !may_see(c, f->project_id, role))
		flow_invalid(c,
			"Say which project this is about: use a token that is limited to one, or "
			"send its name in the header X-Tidemill-Project.");
	else if (f->use == FLOW_WRITE && !may_write(c, f->project_id, role))
		forbidden(c, "This needs the role \"ci\" in the project.");
	else
		f->next(c);
}

void flow_find_project(struct call *c, enum flow_use use, flow_next *next)
{
	struct flow *f = flow_of(c);
	struct str name = http_header(c->req, "X-Tidemill-Project");

	f->use = use;
	f->next = next;
	if (is_job(c)) {
		f->project_id = c->who.project_id;
		next(c);
		return;
	}
	if (c->who.project.n != 0)
		name = c->who.project;
	struct db_unit *u = call_unit(c);
	auth_store_access_project(u, c->who.principal_id, name.n != 0 ? name : STR("default"));
	call_send(c, u, DB_READ, project_on_row);
}

static void own_run_on_row(struct call *c, const struct db_rows *rows)
{
	struct flow *f = flow_of(c);

	if (rows[0].n != 0)
		f->own_run = arena_str(c->arena, db_str(&rows[0], 0, 0));
	f->next(c);
}

void flow_find_own_run(struct call *c, flow_next *next)
{
	flow_of(c)->next = next;
	if (!is_job(c)) {
		next(c);
		return;
	}
	struct db_unit *u = call_unit(c);
	tracking_store_of_attempt(u, c->who.attempt_id);
	call_send(c, u, DB_READ, own_run_on_row);
}

/* ---- writing and answering ---- */

static void flow_on_written(void *arg, const struct db_rows *rows, const struct err *e)
{
	struct call *c = arg;
	struct flow *f = flow_of(c);
	struct err said = *e;

	if (e->code == ERR_OK) {
		app_changed(c->app);
		f->on_rows(c, rows);
		return;
	}
	if (f->on_fault != NULL && f->on_fault(c, rows))
		return;
	constraint_explain(rows, &said);
	call_fail(c, &said);
}

void flow_write(struct call *c, struct db_unit *u, call_rows_cb *cb, flow_fault *on_fault)
{
	struct flow *f = flow_of(c);

	f->on_rows = cb;
	f->on_fault = on_fault;
	if (is_job(c))
		attempt_store_fence(u, c->who.attempt_id, c->who.epoch);
	db_send(u, DB_WRITE, flow_on_written, c);
}

void flow_reply(struct call *c, struct buf *b)
{
	struct err e;

	if (buf_failed(b)) {
		(void)err_set(&e, ERR_TOO_LARGE, "the answer would be larger than %d bytes",
			FLOW_REPLY_MAX);
		call_fail(c, &e);
	} else {
		http_reply_json(c->req, 200, buf_str(b));
	}
	buf_done(b);
}

void flow_reply_done(struct call *c)
{
	http_reply_json(c->req, 200, STR("{}"));
}
