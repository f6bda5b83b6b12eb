/* events, api, version, completion, help */
#include "cli/completion.h"
#include "cli/config.h"
#include "cli/follow.h"
#include "cli/generic.h"
#include "cli/help.h"
#include "cli/nouns.h"
#include "cli/view.h"
#include "lib/base/clock.h"

#include <ctype.h>
#include <stdio.h>

enum { VERSION_WAIT_S = 5 };

/* ---- events ---------------------------------------------------------------------------------- */

struct event_sink {
	struct cli *c;
	struct buf line;
	bool headed;
};

static int on_event(void *arg, const struct sse_message *m, struct err *e)
{
	static const struct {
		const char *pointer;
		enum column_kind kind;
	} columns[] = { { "/at", COLUMN_TIME }, { "/type", COLUMN_TEXT },
		{ "/subject", COLUMN_TEXT }, { "/parent", COLUMN_TEXT },
		{ "/data", COLUMN_PAIRS } };
	struct event_sink *s = arg;
	struct jsn_doc *doc;

	if (s->c->output == OUTPUT_JSON || s->c->output == OUTPUT_JSONL) {
		if (view_print(m->data, e) < 0 || view_print(STR("\n"), e) < 0)
			return -1;
		return view_flush(e);
	}
	if (jsn_parse_answer(m->data, &doc, e) < 0)
		return -1;
	buf_clear(&s->line);
	const struct jsn *event = jsn_root(doc);
	if (s->c->output == OUTPUT_NAME) {
		cell_add(CELL_EXACT, COLUMN_TEXT, jsn_get(event, "id"), &s->line);
	} else {
		for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
			if (i > 0)
				buf_adds(&s->line, s->c->tty ? "  " : "\t");
			const struct jsn *v = jsn_find(event, columns[i].pointer);
			cell_add(s->c->tty ? CELL_LINE : CELL_EXACT, columns[i].kind, v, &s->line);
		}
	}
	buf_addc(&s->line, '\n');
	jsn_doc_free(doc);
	return view_print(buf_str(&s->line), e) < 0 ? -1 : view_flush(e);
}

int cmd_events(struct cli *c, struct err *e)
{
	struct event_sink sink = { .c = c };
	struct follow f = { .route = "events.stream",
		.on_message = on_event,
		.arg = &sink,
		.forever = cli_has(c, "follow") };
	struct buf topics;
	struct str topic;
	size_t at = 0;

	buf_init(&topics, 4096);
	while (cli_next(c, "topic", &at, &topic))
		buf_addf(&topics, "%s%.*s", topics.n != 0 ? "," : "", STR_ARG(topic));
	buf_init(&sink.line, 4 << 20);
	if (topics.n != 0)
		f.query[0] = (struct api_pair){ "topic", buf_str(&topics) };
	f.query[1] = (struct api_pair){ "from", cli_text(c, "from") };
	int rc = follow(c, &f, e);
	buf_done(&sink.line);
	buf_done(&topics);
	return rc;
}

/* ---- api ------------------------------------------------------------------------------------- */

int cmd_api_call_raw(struct cli *c, struct err *e)
{
	struct str data = cli_text(c, "data"), file = cli_text(c, "file");
	char *method = arena_dup(c->arena, cli_arg(c, 0));
	struct buf body;
	struct api_reply r;

	for (char *p = method; *p != '\0'; p++)
		*p = (char)toupper((unsigned char)*p);
	if (data.p != NULL && file.p != NULL)
		return cli_usage(e, "give --data or --file, not both");
	if (file.p == NULL)
		buf_init(&body, 1);
	else if (cli_read(file.p, &body, e) < 0)
		return -1;
	int rc = api_raw(c, method, c->args[1], file.p != NULL ? buf_str(&body) : data, &r, e);
	buf_done(&body);
	if (r.body.n != 0) {
		struct err ignored;
		int printed = view_print(r.body, rc == 0 ? e : &ignored);
		if (r.body.p[r.body.n - 1] != '\n')
			(void)putchar('\n');
		rc = rc == 0 ? printed : rc;
	}
	api_done(&r);
	return rc;
}

/* ---- version, completion, help --------------------------------------------------------------- */

static void print_versions(const struct cli *c, const struct api_reply *r)
{
	(void)printf("tidemill %s\n", TIDEMILL_VERSION);
	if (r->root != NULL)
		(void)printf("server %.*s, API %.*s, at %.*s\n",
			STR_ARG(jsn_get_str(jsn_get(r->root, "server"))),
			STR_ARG(jsn_get_str(jsn_get(r->root, "api"))), STR_ARG(c->server));
}

/* Our own version is known in any case; without the server's it says why. */
int cmd_version(struct cli *c, struct err *e)
{
	struct api_call q = {
		.route = "server.version", .once = true, .timeout = VERSION_WAIT_S * CLOCK_SECOND
	};
	struct api_reply r = { .status = 0 };
	struct err why;
	bool reached = api_do(c, &q, &r, &why) == 0;

	if (c->output == OUTPUT_JSON || c->output == OUTPUT_JSONL)
		(void)printf("{\"client\":\"%s\",\"server\":%.*s}\n", TIDEMILL_VERSION,
			STR_ARG(reached ? r.body : STR("null")));
	else
		print_versions(c, &r);
	if (!reached)
		cli_say(c, "The server's version is not known: %s", why.msg);
	api_done(&r);
	return view_flush(e);
}

static int print_text(struct buf *text, struct err *e)
{
	int rc = view_print(buf_str(text), e);

	buf_done(text);
	return rc;
}

int cmd_completion(struct cli *c, struct err *e)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	if (completion_print(cli_arg(c, 0), &text))
		return print_text(&text, e);
	buf_done(&text);
	return cli_usage(e, "there is a completion of bash, zsh and fish, not of '%s'", c->args[0]);
}

int cmd_help(struct cli *c, struct err *e)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	if (help_words(c->n_args, c->args, &text))
		return print_text(&text, e);
	buf_done(&text);
	return help_unknown(c->n_args, c->args, e);
}
