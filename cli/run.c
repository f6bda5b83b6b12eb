/* run submit, run wait: what was asked for, and how it ended. */
#include "cli/document.h"
#include "cli/generic.h"
#include "cli/logs.h"
#include "cli/nouns.h"
#include "cli/send.h"
#include "cli/view.h"
#include "cli/waits.h"
#include "lib/base/clock.h"

#include <stdio.h>

enum { LAST_LINES = 30 };
#define WAIT_ONCE_S    20
#define PATIENCE       (10 * CLOCK_MINUTE) /* with a server that cannot be reached */
#define WAIT_TEXT      "20s"
#define INTERRUPT_NOTE "\nInterrupted. The run goes on; see 'tidemill run show'.\n"

/* ---- inputs ---------------------------------------------------------------------------------- */

/* The value as JSON: by the type that the pipeline gives the input, else by its looks. */
static void put_input(struct jsn_out *w, struct str value, struct str type)
{
	struct jsn_doc *doc = NULL;
	struct err ignored;
	bool text = str_is(type, "string") || str_is(type, "date");

	if (!text && jsn_parse(value, &doc, &ignored) == 0) {
		enum jsn_type t = jsn_type(jsn_root(doc));
		text = t != JSN_INT && t != JSN_REAL && t != JSN_BOOL;
	} else {
		text = true;
	}
	if (text)
		jsn_str(w, value);
	else
		jsn_raw(w, value);
	jsn_doc_free(doc);
}

static int put_inputs(struct send *s, const struct cli *c, const struct jsn *spec, struct err *e)
{
	struct str pair, key, value;
	size_t at = 0;

	if (!cli_has(c, "input"))
		return 0;
	jsn_key(&s->w, "inputs");
	jsn_obj_begin(&s->w);
	while (cli_next(c, "input", &at, &pair)) {
		if (cli_split(pair, "input", &key, &value, e) < 0)
			return -1;
		const struct jsn *rule = jsn_get(jsn_get(spec, "inputs"), arena_dup(c->arena, key));
		jsn_key_str(&s->w, key);
		put_input(&s->w, value, jsn_get_str(jsn_get(rule, "type")));
	}
	jsn_obj_end(&s->w);
	return 0;
}

/* ---- how it ended ---------------------------------------------------------------------------- */

struct failure {
	struct str id, name, message;
	struct arena *arena;
};

static int on_failed_step(void *arg, const struct jsn *step, struct err *e)
{
	struct failure *f = arg;

	(void)e;
	if (f->id.n != 0 || !str_is(jsn_get_str(jsn_get(step, "state")), "failed"))
		return 0;
	f->id = arena_str(f->arena, jsn_get_str(jsn_get(step, "id")));
	f->name = arena_str(f->arena, jsn_get_str(jsn_get(step, "name")));
	f->message = arena_str(f->arena, jsn_get_str(jsn_get(step, "message")));
	return 0;
}

/* The step that failed, the end of its log, and what to run to see more. */
static void explain_failure(struct cli *c, struct str run, bool logs_shown)
{
	struct api_call q = { .route = "steps.list", .params = { run } };
	struct failure f = { .arena = c->arena };
	struct str more;
	char of[32] = "";
	int64_t rank;
	struct err e;

	if (c->quiet || api_each(c, &q, 0, on_failed_step, &f, &more, &e) < 0 || f.id.n == 0)
		return;
	cli_say(c, "Step %.*s failed: %.*s", STR_ARG(f.name), STR_ARG(f.message));
	if (logs_shown)
		return;
	if (logs_last(c, f.id, LAST_LINES, &rank, &e) < 0)
		return;
	if (rank >= 0)
		(void)str_print(of, sizeof of, " --rank %lld", (long long)rank);
	cli_say(c, "The whole log: tidemill logs %.*s --step %.*s%s", STR_ARG(run), STR_ARG(f.name),
		of);
}

/* The gate's word on the version that the run registered. */
static int gate_outcome(struct cli *c, struct str model_version, struct err *e)
{
	ptrdiff_t slash = str_find_char(model_version, '/');
	struct api_reply r;
	int rc = EXIT_DONE;

	if (slash <= 0)
		return EXIT_DONE;
	struct api_call q = { .route = "model_versions.get",
		.params = { str_slice(model_version, 0, (size_t)slash),
			str_slice(model_version, (size_t)slash + 1, model_version.n) } };
	if (api_do(c, &q, &r, e) < 0)
		return -1;
	struct str verdict = jsn_get_str(jsn_get(r.root, "verdict"));
	cli_say(c, "Model %.*s: %.*s. %.*s", STR_ARG(model_version), STR_ARG(verdict),
		STR_ARG(jsn_get_str(jsn_get(r.root, "verdict_reason"))));
	if (cli_has(c, "fail-on-refused") && !str_is(verdict, "promoted") &&
		!str_is(verdict, "none"))
		rc = EXIT_GATE;
	api_done(&r);
	return rc;
}

static int outcome(
	struct cli *c, struct str run, const struct jsn *object, bool logs_shown, struct err *e)
{
	struct str state = jsn_get_str(jsn_get(object, "state"));
	struct str reason = jsn_get_str(jsn_get(object, "reason"));
	struct str message = jsn_get_str(jsn_get(object, "message"));

	cli_say(c, "Run %.*s %.*s%s%.*s", STR_ARG(run), STR_ARG(state), message.n != 0 ? ": " : "",
		STR_ARG(message));
	if (str_is(state, "succeeded"))
		return gate_outcome(c, jsn_get_str(jsn_get(object, "model_version")), e);
	if (str_is(state, "cancelled"))
		return EXIT_RUN_CANCELLED;
	explain_failure(c, run, logs_shown);
	return str_is(reason, "worker_lost") ? EXIT_RUN_LOST : EXIT_RUN_FAILED;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Asks until the run has ended. A server that cannot be reached is waited for. */
static int wait_ended(
	struct cli *c, struct str run, int64_t until, struct api_reply *ret, struct err *e)
{
	struct api_call q = {
		.route = "runs.get", .params = { run }, .timeout = (WAIT_ONCE_S + 30) * CLOCK_SECOND
	};
	struct str said = STR_NONE;
	int64_t failing = 0;
	char text[24];

	for (;;) {
		int64_t now = clock_elapsed(&clock_real);
		int64_t left = until != 0 ? (until - now) / CLOCK_SECOND : WAIT_ONCE_S;
		(void)str_print(text, sizeof text, "%llds",
			(long long)(left < 1             ? 1
				    : left < WAIT_ONCE_S ? left
							 : WAIT_ONCE_S));
		q.query[0] = (struct api_pair){ "wait", str_c(text) };
		if (api_do(c, &q, ret, e) == 0) {
			failing = 0;
			if (jsn_type(jsn_get(ret->root, "ended_at")) == JSN_STR)
				return 0;
			waits_say(c, ret->root, &said);
			api_done(ret);
		} else {
			failing = failing == 0 ? now : failing;
			if (!err_retryable(e->code) || now - failing > PATIENCE)
				return -1;
		}
		if (until != 0 && clock_elapsed(&clock_real) >= until)
			return err_set(e, ERR_TIMEOUT, "the time is up");
	}
}

static int wait_run(struct cli *c, struct str run, bool follow, struct err *e)
{
	int64_t timeout = cli_span(c, "timeout", 0);
	struct log_options o = { .follow = true,
		.tail = -1,
		.until = timeout != 0 ? clock_elapsed(&clock_real) + timeout : 0 };
	struct api_reply r;

	c->note = INTERRUPT_NOTE;
	int rc = follow ? logs_run(c, run, &o, e) : 0;
	if (rc == 0)
		rc = wait_ended(c, run, o.until, &r, e);
	c->note = NULL;
	if (rc < 0 && o.until != 0 && clock_elapsed(&clock_real) >= o.until) {
		cli_say(c, "The time is up; the run %.*s goes on.", STR_ARG(run));
		return EXIT_TIMEOUT;
	}
	if (rc < 0)
		return -1;
	bool show = !follow || c->output != OUTPUT_TABLE;
	rc = show ? view_object(c, &view_run, r.body, r.root, e) : 0;
	if (rc == 0)
		rc = outcome(c, run, r.root, follow, e);
	api_done(&r);
	return rc;
}

int cmd_run_wait(struct cli *c, struct err *e)
{
	return wait_run(c, cli_arg(c, 0), cli_has(c, "follow"), e);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

/* How a run has ended before anybody cancelled it. */
static void say_ended(const struct cli *c, const struct jsn *run)
{
	struct str message = jsn_get_str(jsn_get(run, "message"));
	struct buf age;
	int64_t at;

	buf_init(&age, 64);
	if (clock_parse(jsn_get_str(jsn_get(run, "ended_at")), &at))
		cell_add_age(at, clock_now(&clock_real), &age);
	cli_say(c, "The run had ended already: %.*s %.*s%s%.*s",
		STR_ARG(jsn_get_str(jsn_get(run, "state"))), STR_ARG(buf_str(&age)),
		message.n != 0 ? ": " : "", STR_ARG(message));
	buf_done(&age);
}

int cmd_run_cancel(struct cli *c, struct err *e)
{
	struct api_call get = { .route = "runs.get", .params = { cli_arg(c, 0) } };
	struct api_call q = generic_call(c);
	struct api_reply was, is;

	if (api_do(c, &get, &was, e) < 0)
		return -1;
	bool ended = jsn_type(jsn_get(was.root, "ended_at")) == JSN_STR;
	api_done(&was);
	if (api_do(c, &q, &is, e) < 0)
		return -1;
	struct str state = jsn_get_str(jsn_get(is.root, "state"));
	if (ended || str_is(state, "succeeded") || str_is(state, "failed"))
		say_ended(c, is.root);
	else if (!str_is(state, "cancelled"))
		cli_say(c, "cancelling: what runs has 10 seconds to end; see tidemill run wait");
	int rc = view_object(c, c->cmd->view, is.body, is.root, e);
	api_done(&is);
	return rc;
}

/* ---- submit, rerun
 * ---------------------------------------------------------------------------------- */

static bool waits(const struct cli *c)
{
	return cli_has(c, "wait") || cli_has(c, "follow");
}

/* The pipeline's spec, to know the types of inputs; none is fine. */
static int find_spec(struct cli *c, struct str pipeline, struct api_reply *ret, struct err *e)
{
	struct api_call q = { .route = "pipelines.get", .params = { pipeline } };

	*ret = (struct api_reply){ .status = 0 };
	return cli_has(c, "input") ? api_do(c, &q, ret, e) : 0;
}

/* The new run is shown, or only named when its end is. */
static int make_run(struct cli *c, const struct api_call *q, struct str *ret_run, struct err *e)
{
	struct api_reply r;
	int rc = 0;

	if (api_do(c, q, &r, e) < 0)
		return -1;
	struct str commit = jsn_get_str(jsn_get(r.root, "commit"));
	*ret_run = arena_str(c->arena, jsn_get_str(jsn_get(r.root, "id")));
	if (waits(c))
		cli_say(c, "Run %.*s%s%.*s", STR_ARG(*ret_run), commit.n != 0 ? " at commit " : "",
			STR_ARG(commit));
	else
		rc = view_object(c, c->cmd->view, r.body, r.root, e);
	api_done(&r);
	return rc;
}

static int send_run(
	struct cli *c, struct send *s, const struct jsn *spec, struct str *ret_run, struct err *e)
{
	struct api_call q = { .route = "runs.create" };

	send_flag(s, c, "ref");
	if (cli_has(c, "no-cache")) {
		jsn_key(&s->w, "no_cache");
		jsn_bool(&s->w, true);
	}
	if (put_inputs(s, c, spec, e) < 0 || send_labels(s, c, e) < 0)
		return -1;
	q.body = send_end(s);
	return make_run(c, &q, ret_run, e);
}

/* From the text of a file, which holds one pipeline. */
static int submit_file(struct cli *c, struct str path, struct str *ret_run, struct err *e)
{
	struct list l = { arena_array_of(c->arena, struct document, DOCUMENTS_MAX), 0 };
	struct document *d = list_at(&l, struct document, 0);
	struct send s;

	if (document_read(c, path, &l, e) < 0)
		return -1;
	if (l.n > 1)
		return cli_usage(
			e, "%.160s holds %zu documents; a run is of one pipeline", d->file.p, l.n);
	if (document_parse(d, e) < 0)
		return -1;
	send_init(&s);
	send_str(&s, "source", d->text);
	int rc = send_run(c, &s, jsn_get(jsn_root(d->tree), "spec"), ret_run, e);
	send_done(&s);
	if (rc < 0 && c->status >= 400 && !err_retryable(e->code) && e->code != ERR_UNAUTHENTICATED)
		(void)document_fail(d, e);
	jsn_doc_free(d->tree);
	return rc;
}

static int submit_pipeline(struct cli *c, struct str pipeline, struct str *ret_run, struct err *e)
{
	struct api_reply known;
	struct send s;

	if (find_spec(c, pipeline, &known, e) < 0)
		return -1;
	send_init(&s);
	send_str(&s, "pipeline", pipeline);
	int rc = send_run(c, &s, jsn_get(known.root, "spec"), ret_run, e);
	send_done(&s);
	api_done(&known);
	return rc;
}

int cmd_run_submit(struct cli *c, struct err *e)
{
	struct str file = cli_text(c, "file"), pipeline = cli_arg(c, 0), run = STR_NONE;

	if (pipeline.p != NULL && cli_has(c, "pipeline"))
		return cli_usage(e, "the pipeline is named twice");
	if (pipeline.p == NULL)
		pipeline = cli_text(c, "pipeline");
	if ((file.p == NULL) == (pipeline.p == NULL))
		return cli_usage(e, "name a PIPELINE or give --file, one of the two");
	int rc = file.p != NULL ? submit_file(c, file, &run, e)
				: submit_pipeline(c, pipeline, &run, e);
	return rc < 0 || !waits(c) ? rc : wait_run(c, run, cli_has(c, "follow"), e);
}

int cmd_run_rerun(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);
	struct str run = STR_NONE;
	struct send s;

	send_init(&s);
	send_flag(&s, c, "from");
	q.body = send_end(&s);
	int rc = make_run(c, &q, &run, e);
	send_done(&s);
	return rc < 0 || !waits(c) ? rc : wait_run(c, run, cli_has(c, "follow"), e);
}

/* ---- artifacts ------------------------------------------------------------------------------- */

struct tracked {
	struct str step, tracking_run;
	struct arena *arena;
	struct buf names; /* of all steps */
	int n; /* that could be meant */
};

static int on_tracked_step(void *arg, const struct jsn *step, struct err *e)
{
	struct tracked *t = arg;
	struct str name = jsn_get_str(jsn_get(step, "name"));

	(void)e;
	buf_addf(&t->names, "%s%.*s", t->names.n != 0 ? ", " : "", STR_ARG(name));
	if (t->step.p != NULL && !str_eq(t->step, name))
		return 0;
	t->n++;
	t->tracking_run = arena_str(t->arena, jsn_get_str(jsn_get(step, "tracking_run")));
	return 0;
}

/* The tracking run of the run's only step, or of the one that --step names. */
static int find_tracking_run(struct cli *c, struct str run, struct str *ret, struct err *e)
{
	struct api_call q = { .route = "steps.list", .params = { run } };
	struct tracked t = { .step = cli_text(c, "step"), .arena = c->arena };
	struct str more;

	buf_init(&t.names, 4096);
	int rc = api_each(c, &q, 0, on_tracked_step, &t, &more, e);
	if (rc == 0 && t.n == 0)
		rc = err_set(e, ERR_NOT_FOUND, "the run has no step %.*s, only: %.*s",
			STR_ARG(t.step), STR_ARG(buf_str(&t.names)));
	else if (rc == 0 && t.n > 1)
		rc = cli_usage(e, "of which step? Give --step with one of: %.*s",
			STR_ARG(buf_str(&t.names)));
	buf_done(&t.names);
	*ret = t.tracking_run;
	return rc;
}

int cmd_run_artifacts(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);
	bool is_run = str_starts(cli_arg(c, 0), STR("run_"));

	if (!is_run && cli_has(c, "step"))
		return cli_usage(e, "--step is for a run, and '%s' is none", c->args[0]);
	if (is_run && find_tracking_run(c, cli_arg(c, 0), &q.params[0], e) < 0)
		return -1;
	return generic_items(c, &q, e);
}
