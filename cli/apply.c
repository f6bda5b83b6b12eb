/* apply, pipeline register: make or change what a file describes, and say what changed. */
#include "cli/generic.h"
#include "cli/nouns.h"
#include "cli/send.h"
#include "cli/view.h"
#include "lib/json/yaml.h"

#include <stdio.h>

enum { CHANGES_MAX = 40, POINTER_MAX = 512, TEXT_MAX = 4 << 20 };

/* ---- what changed ---------------------------------------------------------------------------- */

struct diff {
	const struct cli *c;
	char pointer[POINTER_MAX];
	int n;
};

static void say_value(const struct jsn *v, struct buf *out)
{
	if (v == NULL)
		buf_adds(out, "(nothing)");
	else
		jsn_write(v, out);
}

static void say_change(struct diff *d, const struct jsn *was, const struct jsn *is)
{
	struct buf a, b;

	if (++d->n > CHANGES_MAX)
		return;
	buf_init(&a, TEXT_MAX);
	buf_init(&b, TEXT_MAX);
	say_value(was, &a);
	say_value(is, &b);
	cli_say(d->c, "  %s: %.100s -> %.100s", d->pointer, buf_str(&a).p, buf_str(&b).p);
	buf_done(&a);
	buf_done(&b);
}

static bool same(const struct jsn *was, const struct jsn *is)
{
	struct buf a, b;

	if ((was == NULL) != (is == NULL))
		return false;
	buf_init(&a, TEXT_MAX);
	buf_init(&b, TEXT_MAX);
	jsn_write(was, &a);
	jsn_write(is, &b);
	bool equal = str_eq(buf_str(&a), buf_str(&b));
	buf_done(&a);
	buf_done(&b);
	return equal;
}

static void compare(struct diff *d, const struct jsn *was, const struct jsn *is);

static void compare_member(
	struct diff *d, struct str name, const struct jsn *was, const struct jsn *is)
{
	size_t n = strlen(d->pointer);

	if (str_print(d->pointer + n, sizeof d->pointer - n, "/%.*s", STR_ARG(name)))
		compare(d, was, is);
	d->pointer[n] = '\0';
}

static void compare(struct diff *d, const struct jsn *was, const struct jsn *is)
{
	if (same(was, is))
		return;
	if (jsn_type(was) != JSN_OBJ || jsn_type(is) != JSN_OBJ) {
		say_change(d, was, is);
		return;
	}
	for (size_t i = 0; i < jsn_count(was); i++) {
		const struct jsn *m = jsn_at(was, i);
		compare_member(d, jsn_name(m), m, jsn_get(is, jsn_name(m).p));
	}
	for (size_t i = 0; i < jsn_count(is); i++) {
		const struct jsn *m = jsn_at(is, i);
		if (jsn_get(was, jsn_name(m).p) == NULL)
			compare_member(d, jsn_name(m), NULL, m);
	}
}

static void say_what_changed(struct cli *c, const char *kind, struct str name,
	const struct jsn *was, const struct jsn *is)
{
	static const char *const members[] = { "repository", "ref", "path", "commit", "spec" };
	struct diff d = { .c = c };
	const char *word = "created";

	if (was != NULL) {
		bool text = same(jsn_get(was, "source"), jsn_get(is, "source"));
		word = text ? "unchanged" : "changed in its text only";
		for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
			if (!same(jsn_get(was, members[i]), jsn_get(is, members[i])))
				word = "changed";
		}
	}
	cli_say(c, "%s %.*s %s", kind, STR_ARG(name), word);
	if (was == NULL)
		return;
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		compare_member(
			&d, str_c(members[i]), jsn_get(was, members[i]), jsn_get(is, members[i]));
	if (d.n > CHANGES_MAX)
		cli_say(c, "  and %d more", d.n - CHANGES_MAX);
}

/* ---- putting --------------------------------------------------------------------------------- */

/* Gets what is there, puts, and tells the difference. */
static int put(struct cli *c, const char *kind, const char *get_route, struct api_call *q,
	const struct view *view, struct err *e)
{
	struct api_call get = { .route = get_route, .params = { q->params[0] } };
	struct api_reply was, is;

	if (api_do(c, &get, &was, e) < 0) {
		if (e->code != ERR_NOT_FOUND)
			return -1;
		was = (struct api_reply){ .status = 404 };
	}
	int rc = api_do(c, q, &is, e);
	if (rc == 0) {
		say_what_changed(c, kind, q->params[0], was.root, is.root);
		if (c->output != OUTPUT_TABLE)
			rc = view_object(c, view, is.body, is.root, e);
		api_done(&is);
	}
	if (was.root != NULL)
		api_done(&was);
	return rc;
}

static int put_repository(
	struct cli *c, struct str name, struct str repository, struct str path, struct err *e)
{
	struct api_call q = { .route = "pipelines.put", .params = { name } };
	struct send s;

	send_init(&s);
	send_str(&s, "repository", repository);
	send_flag(&s, c, "ref");
	send_str(&s, "path", path);
	q.body = send_end(&s);
	int rc = put(c, "pipeline", "pipelines.get", &q, &view_pipeline, e);
	send_done(&s);
	return rc;
}

static int put_source(struct cli *c, struct str name, struct str text, struct err *e)
{
	struct api_call q = { .route = "pipelines.put", .params = { name } };
	struct send s;

	send_init(&s);
	send_str(&s, "source", text);
	q.body = send_end(&s);
	int rc = put(c, "pipeline", "pipelines.get", &q, &view_pipeline, e);
	send_done(&s);
	return rc;
}

static struct str base_name(struct str path)
{
	size_t n = path.n;

	while (n > 0 && path.p[n - 1] != '/')
		n--;
	return str_slice(path, n, path.n);
}

static int apply_pipeline(
	struct cli *c, struct str file, struct str name, struct str text, struct err *e)
{
	struct str repository = cli_text(c, "repository"), path = cli_text(c, "path");

	if (repository.p == NULL)
		return put_source(c, name, text, e);
	if (path.p == NULL && str_is(file, "-"))
		return cli_usage(
			e, "with a file from stdin give --path, where it is in the repository");
	return put_repository(c, name, repository, path.p != NULL ? path : base_name(file), e);
}

static int apply_monitor(struct cli *c, struct str name, struct str text, struct err *e)
{
	struct api_call q = { .route = "monitors.put",
		.params = { name },
		.body = text,
		.content_type = "application/yaml" };

	return put(c, "monitor", "monitors.get", &q, &view_monitor, e);
}

static int apply_text(struct cli *c, struct str file, struct str text, struct err *e)
{
	struct jsn_doc *doc;
	int rc;

	if (yaml_parse(text, &doc, e) < 0) {
		char why[sizeof e->msg];
		(void)str_print(why, sizeof why, "%s", e->msg);
		return err_set(e, ERR_INVALID, "%.*s: %s", STR_ARG(file), why);
	}
	struct str kind = jsn_get_str(jsn_get(jsn_root(doc), "kind"));
	struct str name = jsn_get_str(jsn_find(jsn_root(doc), "/metadata/name"));
	if (name.n == 0)
		rc = cli_usage(e, "%.*s: /metadata/name is missing", STR_ARG(file));
	else if (str_is(kind, "Pipeline"))
		rc = apply_pipeline(c, file, name, text, e);
	else if (str_is(kind, "Monitor"))
		rc = apply_monitor(c, name, text, e);
	else
		rc = cli_usage(e, "%.*s: /kind must be Pipeline or Monitor, not '%.*s'",
			STR_ARG(file), STR_ARG(kind));
	jsn_doc_free(doc);
	return rc;
}

int cmd_apply(struct cli *c, struct err *e)
{
	struct str file;
	struct buf text;
	size_t at = 0;

	if (!cli_has(c, "file"))
		return cli_usage(e, "which file? Give --file");
	while (cli_next(c, "file", &at, &file)) {
		if (cli_read(file.p, &text, e) < 0)
			return -1;
		int rc = apply_text(c, file, buf_str(&text), e);
		buf_done(&text);
		if (rc < 0)
			return -1;
	}
	return EXIT_DONE;
}

int cmd_pipeline_register(struct cli *c, struct err *e)
{
	return put_repository(c, cli_arg(c, 0), cli_arg(c, 1), cli_text(c, "path"), e);
}
