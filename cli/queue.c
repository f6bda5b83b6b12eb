/* queue why, run list, run show: what waits, and why. */
#include "cli/api.h"
#include "cli/ended.h"
#include "cli/generic.h"
#include "cli/nouns.h"
#include "cli/rank.h"
#include "cli/view.h"
#include "cli/waits.h"
#include "lib/base/clock.h"

static struct str text_of(const struct jsn *object, const char *member)
{
	return jsn_get_str(jsn_get(object, member));
}

static bool in_vain(const struct jsn *object)
{
	return jsn_get_bool(jsn_get(object, "unsatisfiable"), false);
}

void waits_say(struct cli *c, const struct jsn *run, struct str *said)
{
	const struct jsn *blocked = jsn_get(run, "blocked");
	struct str message = text_of(blocked, "message");
	bool idle = str_is(text_of(run, "state"), "queued");

	if (message.n == 0 || (!idle && !in_vain(blocked)) || str_eq(message, *said))
		return;
	*said = arena_str(c->arena, message);
	cli_say(c,
		in_vain(blocked) ? "Waits in vain: %.*s. No waiting helps: the fleet or the "
				   "step must change."
				 : "Waits: %.*s",
		STR_ARG(message));
}

/* ---- run show, run list ---------------------------------------------------------------------- */

static void warn_of_run(struct cli *c, const struct jsn *run)
{
	const struct jsn *blocked = jsn_get(run, "blocked");

	if (in_vain(blocked))
		cli_say(c,
			"Warning: its step %.*s waits for what no worker has. See tidemill queue "
			"why %.*s",
			STR_ARG(text_of(blocked, "step")), STR_ARG(text_of(run, "id")));
}

int cmd_run_show(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);
	struct api_reply r;

	if (api_do(c, &q, &r, e) < 0)
		return -1;
	int rc = view_object(c, c->cmd->view, r.body, r.root, e);
	if (rc == 0)
		rc = generic_parts(c, e);
	if (rc == 0)
		rc = rank_show(c, cli_arg(c, 0), e);
	if (rc == 0)
		rc = ended_show(c, r.root, e);
	if (rc == 0)
		warn_of_run(c, r.root);
	api_done(&r);
	return rc;
}

struct runs {
	struct view_list *list;
	size_t in_vain;
};

static int on_run(void *arg, const struct jsn *run, struct err *e)
{
	struct runs *r = arg;

	(void)e;
	r->in_vain += in_vain(jsn_get(run, "blocked"));
	view_list_add(r->list, run);
	return 0;
}

int cmd_run_list(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);
	struct runs r = { .list = view_list_new(c, c->cmd->view) };
	struct str more = STR_NONE;

	if (api_each(c, &q, cli_int(c, "limit", GENERIC_LIMIT), on_run, &r, &more, e) < 0) {
		view_list_free(r.list);
		return -1;
	}
	if (view_list_end(r.list, more, e) < 0)
		return -1;
	if (r.in_vain != 0)
		cli_say(c, "Warning: %zu of these runs %s in vain. See tidemill queue why RUN",
			r.in_vain, r.in_vain == 1 ? "waits" : "wait");
	return EXIT_DONE;
}

/* ---- queue why ------------------------------------------------------------------------------- */

static void add_place(const struct jsn *w, struct buf *out)
{
	const struct jsn *position = jsn_get(w, "position"), *pool = jsn_get(w, "pool");

	if (position != NULL)
		buf_addf(out, ", place %lld of %lld", (long long)jsn_get_int(position, 0),
			(long long)jsn_get_int(jsn_get(w, "of"), 0));
	if (pool != NULL) {
		buf_adds(out, ", pool ");
		cell_add_text(jsn_get_str(pool), out);
		buf_addf(out, ", priority %lld", (long long)jsn_get_int(jsn_get(w, "priority"), 0));
	}
}

static void add_head(const struct jsn *w, struct buf *out)
{
	int64_t number = jsn_get_int(jsn_get(w, "number"), 0);

	cell_add_text(text_of(w, "pipeline"), out);
	if (number != 0)
		buf_addf(out, " %lld", (long long)number);
	buf_adds(out, ", step ");
	cell_add_text(text_of(w, "name"), out);
	buf_addf(
		out, " (%.*s): %.*s", STR_ARG(text_of(w, "step_id")), STR_ARG(text_of(w, "state")));
	if (text_of(w, "queued_at").n != 0) {
		buf_adds(out, " since ");
		cell_add(CELL_FIELD, COLUMN_TIME, jsn_get(w, "queued_at"), out);
	}
	add_place(w, out);
	buf_addc(out, '\n');
}

/* A sentence of its own line, when the member is there. */
static void add_line(const struct jsn *w, const char *member, const char *before, const char *after,
	struct buf *out)
{
	const struct jsn *v = jsn_get(w, member);

	if (jsn_get_str(v).n == 0)
		return;
	buf_adds(out, before);
	cell_add(CELL_FIELD, COLUMN_TIME, v, out);
	buf_adds(out, after);
}

static void add_wait(const struct jsn *w, struct buf *out)
{
	const struct jsn *blockers = jsn_get(w, "blockers");
	struct str change = text_of(jsn_get(w, "start_now"), "message");

	add_head(w, out);
	for (size_t i = 0; i < jsn_count(blockers); i++) {
		buf_adds(out, "  ");
		cell_add_text(text_of(jsn_at(blockers, i), "message"), out);
		buf_addc(out, '\n');
	}
	if (jsn_count(blockers) == 0)
		buf_adds(out, "  it does not wait\n");
	if (in_vain(w))
		buf_adds(out, "  No waiting helps: the fleet or the step must change.\n");
	if (change.n != 0) {
		buf_adds(out, "  What would help: ");
		cell_add_text(change, out);
		buf_addc(out, '\n');
	}
	add_line(w, "earliest_start", "  The time limits of what runs let it start at ",
		" if nothing new comes before it.\n", out);
	add_line(w, "deadline", "  It fails if nobody has taken it by ", ".\n", out);
}

static int on_wait(void *arg, const struct jsn *wait, struct err *e)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	add_wait(wait, &text);
	int rc = view_print(buf_str(&text), e);
	buf_done(&text);
	*(size_t *)arg += 1;
	return rc;
}

static int why_run(struct cli *c, struct err *e)
{
	struct api_call q = { .route = "runs.blockers", .params = { cli_arg(c, 0) } };
	struct str more = STR_NONE;
	size_t n = 0;

	if (c->output != OUTPUT_TABLE)
		return generic_items(c, &q, e);
	if (api_each(c, &q, 0, on_wait, &n, &more, e) < 0)
		return -1;
	if (n == 0)
		cli_say(c, "Nothing of it waits.");
	return view_flush(e);
}

int cmd_queue_why(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);
	struct api_reply r;
	size_t n = 0;

	if (str_starts(cli_arg(c, 0), STR("run_")))
		return why_run(c, e);
	if (c->output != OUTPUT_TABLE)
		return generic_object(c, &q, e);
	if (api_do(c, &q, &r, e) < 0)
		return -1;
	int rc = on_wait(&n, r.root, e);
	api_done(&r);
	return rc < 0 ? -1 : view_flush(e);
}
