/* apply, pipeline register: make or change what a file describes, and say what changed. */
#include "cli/document.h"
#include "cli/generic.h"
#include "cli/nouns.h"
#include "cli/send.h"
#include "cli/view.h"

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

/* What is there under this name; root NULL when nothing is. */
static int get(
	struct cli *c, const char *route, struct str name, struct api_reply *ret, struct err *e)
{
	struct api_call q = { .route = route, .params = { name } };

	if (api_do(c, &q, ret, e) == 0)
		return 0;
	*ret = (struct api_reply){ .status = 404 };
	return e->code == ERR_NOT_FOUND ? 0 : -1;
}

static void get_done(struct api_reply *r)
{
	if (r->root != NULL)
		api_done(r);
}

/* Puts, and tells the difference to what was there. The caller frees the reply. */
static int put(struct cli *c, const char *kind, const struct jsn *was, struct api_call *q,
	struct api_reply *ret, struct err *e)
{
	if (api_do(c, q, ret, e) < 0)
		return -1;
	say_what_changed(c, kind, q->params[0], was, ret->root);
	return 0;
}

static int show(struct cli *c, const struct view *view, const struct api_reply *r, struct err *e)
{
	return c->output != OUTPUT_TABLE ? view_object(c, view, r->body, r->root, e) : 0;
}

/* Where the pipeline comes from, when that is a repository; a file that was given and is another
 * one than the repository's changes nothing, which nobody would guess. */
static void say_source(const struct cli *c, struct str file, struct str text, const struct jsn *is)
{
	struct str repository = jsn_get_str(jsn_get(is, "repository"));
	struct str commit = jsn_get_str(jsn_get(is, "commit"));

	if (repository.n == 0)
		return;
	cli_say(c, "  from %.*s, %.*s at %.*s (commit %.*s)", STR_ARG(repository),
		STR_ARG(jsn_get_str(jsn_get(is, "path"))), STR_ARG(jsn_get_str(jsn_get(is, "ref"))),
		commit.n > 12 ? 12 : (int)commit.n, commit.p);
	if (text.p != NULL && !str_eq(text, jsn_get_str(jsn_get(is, "source"))))
		cli_say(c,
			"  note: %.*s differs from the file there, which is the one that runs: "
			"commit and push it, or give --detach to use the file itself",
			STR_ARG(file));
}

/* What a pipeline is to be read from; STR_NONE where the command says nothing. */
struct source {
	struct str repository, path, file, text;
	bool detach;
	bool sent; /* whether the text went to the server */
};

/* The body of a put. Without --repository and --detach, a pipeline keeps the source it has. */
static int write_put(struct send *s, const struct cli *c, struct source *from,
	const struct jsn *was, struct err *e)
{
	bool keeps = jsn_get_str(jsn_get(was, "repository")).n != 0 && !from->detach;

	if (from->repository.p != NULL || keeps) {
		send_str(s, "repository", from->repository);
		send_flag(s, c, "ref");
		send_str(s, "path", from->path);
		return 0;
	}
	if (from->path.p != NULL || cli_has(c, "ref"))
		return cli_usage(e, "--ref and --path are of a repository: give --repository, too");
	if (from->detach) {
		jsn_key(&s->w, "repository");
		jsn_null(&s->w);
	}
	send_str(s, "source", from->text);
	from->sent = true;
	return 0;
}

static int put_pipeline(struct cli *c, struct str name, struct source *from, struct err *e)
{
	struct api_call q = { .route = "pipelines.put", .params = { name } };
	struct api_reply was, is;
	struct send s;

	if (get(c, "pipelines.get", name, &was, e) < 0)
		return -1;
	send_init(&s);
	int rc = write_put(&s, c, from, was.root, e);
	if (rc == 0) {
		q.body = send_end(&s);
		rc = put(c, "pipeline", was.root, &q, &is, e);
	}
	send_done(&s);
	if (rc == 0) {
		say_source(c, from->file, from->text, is.root);
		rc = show(c, &view_pipeline, &is, e);
		api_done(&is);
	}
	get_done(&was);
	return rc;
}

static struct str base_name(struct str path)
{
	size_t n = path.n;

	while (n > 0 && path.p[n - 1] != '/')
		n--;
	return str_slice(path, n, path.n);
}

/* What the flags say of every pipeline among the files. */
static int check_flags(const struct cli *c, struct err *e)
{
	if (cli_has(c, "repository") && cli_has(c, "detach"))
		return cli_usage(e, "give --repository or --detach, not both");
	return 0;
}

/* Names the file for what the server said of it. Returns -1. */
static int fail(const struct cli *c, const struct document *d, bool sent, struct err *e)
{
	if (c->status < 400 || err_retryable(e->code) || e->code == ERR_UNAUTHENTICATED)
		return -1;
	return sent ? document_fail(d, e) : document_name(d, e);
}

static int apply_pipeline(struct cli *c, const struct document *d, struct str name, struct err *e)
{
	struct source from = { .repository = cli_text(c, "repository"),
		.path = cli_text(c, "path"),
		.file = d->file,
		.text = d->text,
		.detach = cli_has(c, "detach") };

	if (from.repository.p != NULL && from.path.p == NULL && str_is(d->file, "stdin"))
		return cli_usage(
			e, "with a file from stdin give --path, where it is in the repository");
	if (from.repository.p != NULL && from.path.p == NULL)
		from.path = base_name(d->file);
	return put_pipeline(c, name, &from, e) < 0 ? fail(c, d, from.sent, e) : 0;
}

static int apply_monitor(struct cli *c, const struct document *d, struct str name, struct err *e)
{
	struct api_call q = { .route = "monitors.put",
		.params = { name },
		.body = d->text,
		.content_type = "application/yaml" };
	struct api_reply was, is;

	if (get(c, "monitors.get", name, &was, e) < 0)
		return fail(c, d, true, e);
	int rc = put(c, "monitor", was.root, &q, &is, e);
	if (rc < 0) {
		(void)fail(c, d, true, e);
	} else {
		rc = show(c, &view_monitor, &is, e);
		api_done(&is);
	}
	get_done(&was);
	return rc;
}

static struct str kind_of(const struct document *d)
{
	return jsn_get_str(jsn_get(jsn_root(d->tree), "kind"));
}

static struct str name_of(const struct document *d)
{
	return jsn_get_str(jsn_find(jsn_root(d->tree), "/metadata/name"));
}

/* What must be right before the first of the documents is sent. */
static int check_document(struct document *d, struct err *e)
{
	int rc = 0;

	if (document_parse(d, e) < 0)
		return -1;
	if (!str_is(kind_of(d), "Pipeline") && !str_is(kind_of(d), "Monitor"))
		rc = err_field(
			e, "/kind", "must be Pipeline or Monitor, not '%.*s'", STR_ARG(kind_of(d)));
	else if (name_of(d).n == 0)
		rc = err_field(e, "/metadata/name", "is missing");
	return rc < 0 ? document_fail(d, e) : 0;
}

static int apply_document(struct cli *c, const struct document *d, struct err *e)
{
	return str_is(kind_of(d), "Pipeline") ? apply_pipeline(c, d, name_of(d), e)
					      : apply_monitor(c, d, name_of(d), e);
}

int cmd_apply(struct cli *c, struct err *e)
{
	struct list l = { arena_array_of(c->arena, struct document, DOCUMENTS_MAX), 0 };
	struct str file;
	size_t at = 0;
	int rc = 0;

	if (!cli_has(c, "file"))
		return cli_usage(e, "which file? Give --file");
	if (check_flags(c, e) < 0)
		return -1;
	while (rc == 0 && cli_next(c, "file", &at, &file))
		rc = document_read(c, file, &l, e);
	for (size_t i = 0; i < l.n && rc == 0; i++)
		rc = check_document(list_at(&l, struct document, i), e);
	for (size_t i = 0; i < l.n && rc == 0; i++)
		rc = apply_document(c, list_at(&l, struct document, i), e);
	for (size_t i = 0; i < l.n; i++)
		jsn_doc_free(list_at(&l, struct document, i)->tree);
	return rc < 0 ? -1 : EXIT_DONE;
}

int cmd_pipeline_register(struct cli *c, struct err *e)
{
	struct source from = { .repository = cli_arg(c, 1), .path = cli_text(c, "path") };

	return put_pipeline(c, cli_arg(c, 0), &from, e);
}

/* The file alone with --source, so that it can be edited and applied again. */
int cmd_pipeline_show(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);
	struct api_reply r;

	if (!cli_has(c, "source"))
		return generic_show(c, e);
	if (api_do(c, &q, &r, e) < 0)
		return -1;
	int rc = view_print(jsn_get_str(jsn_get(r.root, "source")), e);
	api_done(&r);
	return rc < 0 ? -1 : view_flush(e);
}
