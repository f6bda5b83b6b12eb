/*
 * apply, pipeline register: make or change what a file describes, and say what changed. Several
 * documents are all sent as dry runs before the first is sent in earnest, so that one that is
 * refused leaves nothing half done. What the server cannot know then, because an earlier document
 * makes it, is found out here: which pipelines are there, and which start each other.
 */
#include "cli/document.h"
#include "cli/generic.h"
#include "cli/nouns.h"
#include "cli/send.h"
#include "cli/view.h"
#include "lib/base/map.h"

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
	bool detach, dry;
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

static void set_dry(struct api_call *q)
{
	q->query[0] = (struct api_pair){ "dry_run", STR("true") };
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
		if (from->dry)
			set_dry(&q);
		rc = from->dry ? api_do(c, &q, &is, e) : put(c, "pipeline", was.root, &q, &is, e);
	}
	send_done(&s);
	if (rc == 0) {
		if (!from->dry) {
			say_source(c, from->file, from->text, is.root);
			rc = show(c, &view_pipeline, &is, e);
		}
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

static bool is_pipeline(const struct document *d)
{
	return str_is(kind_of(d), "Pipeline");
}

/* *ret_sent: whether the server was sent the text. */
static int put_document(
	struct cli *c, const struct document *d, bool dry, bool *ret_sent, struct err *e)
{
	struct source from = { .repository = cli_text(c, "repository"),
		.path = cli_text(c, "path"),
		.file = d->file,
		.text = d->text,
		.detach = cli_has(c, "detach"),
		.dry = dry };

	if (from.repository.p != NULL && from.path.p == NULL && str_is(d->file, "stdin"))
		return cli_usage(
			e, "with a file from stdin give --path, where it is in the repository");
	if (from.repository.p != NULL && from.path.p == NULL)
		from.path = base_name(d->file);
	int rc = put_pipeline(c, name_of(d), &from, e);
	*ret_sent = from.sent;
	return rc;
}

static int apply_pipeline(struct cli *c, const struct document *d, struct err *e)
{
	bool sent = false;

	return put_document(c, d, false, &sent, e) < 0 ? fail(c, d, sent, e) : 0;
}

static struct api_call monitor_call(const struct document *d)
{
	return (struct api_call){ .route = "monitors.put",
		.params = { name_of(d) },
		.body = d->text,
		.content_type = "application/yaml" };
}

static int apply_monitor(struct cli *c, const struct document *d, struct err *e)
{
	struct api_call q = monitor_call(d);
	struct api_reply was, is;

	if (get(c, "monitors.get", name_of(d), &was, e) < 0)
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

/* ---- the dry run ----------------------------------------------------------------------------- */

/* Documents up to the one at `at`, as if those before it were there already. */
struct ahead {
	struct cli *c;
	const struct list *documents;
	size_t at;
	struct map *seen; /* pipelines */
};

/* The last document of a pipeline among the first n. */
static const struct document *find_pipeline(const struct ahead *a, struct str name, size_t n)
{
	while (n-- > 0) {
		const struct document *d = list_at(a->documents, struct document, n);
		if (is_pipeline(d) && str_eq(name_of(d), name))
			return d;
	}
	return NULL;
}

static int leads_to(struct ahead *a, struct str from, struct str to, bool *ret, struct err *e);

/* Whether one of the pipelines whose ends start this one does; *ret_i is its trigger. */
static int triggers_lead_to(struct ahead *a, const struct jsn *triggers, struct str to,
	size_t *ret_i, bool *ret, struct err *e)
{
	for (size_t i = 0; i < jsn_count(triggers) && !*ret; i++) {
		struct str name = jsn_get_str(jsn_find(jsn_at(triggers, i), "/pipeline/name"));
		*ret_i = i;
		if (name.n != 0 && leads_to(a, name, to, ret, e) < 0)
			return -1;
	}
	return 0;
}

static int leads_to(struct ahead *a, struct str from, struct str to, bool *ret, struct err *e)
{
	const struct document *d = find_pipeline(a, from, a->at);
	struct api_reply r;
	size_t i;

	*ret = str_eq(from, to);
	if (*ret || map_put(a->seen, from, a) != NULL)
		return 0;
	if (d != NULL)
		return triggers_lead_to(
			a, jsn_find(jsn_root(d->tree), "/spec/triggers"), to, &i, ret, e);
	if (!str_is_name(from))
		return 0;
	if (get(a->c, "pipelines.get", from, &r, e) < 0)
		return -1;
	int rc = triggers_lead_to(a, jsn_find(r.root, "/spec/triggers"), to, &i, ret, e);
	get_done(&r);
	return rc;
}

/* What the server refuses as well, once the documents before this one are there. */
static int check_circle(struct ahead *a, const struct document *d, struct err *e)
{
	const struct jsn *triggers = jsn_find(jsn_root(d->tree), "/spec/triggers");
	bool circle = false;
	char at[64];
	size_t i = 0;

	a->seen = map_new();
	int rc = triggers_lead_to(a, triggers, name_of(d), &i, &circle, e);
	map_free(a->seen);
	if (rc < 0 || !circle)
		return rc;
	struct str name = jsn_get_str(jsn_find(jsn_at(triggers, i), "/pipeline/name"));
	(void)str_print(at, sizeof at, "/spec/triggers/%zu/pipeline/name", i);
	(void)err_field(e, at,
		"runs of %.*s start at the end of this pipeline's, and would start each other for "
		"ever",
		STR_ARG(name));
	return document_fail(d, e);
}

/* A refusal of who starts the pipeline, where that is another one: it is a part of a circle. The
 * server says "/source/spec/…" of a text. */
static bool is_of_circle(const struct document *d, struct str field)
{
	const struct jsn *name = NULL;

	if (str_starts(field, STR("/source/")))
		field = str_slice(field, 7, field.n);
	if (str_starts(field, STR("/spec/triggers/")) && str_ends(field, STR("/pipeline/name")))
		name = jsn_find(jsn_root(d->tree), field.p);
	return str_is_name(jsn_get_str(name)) && !str_eq(jsn_get_str(name), name_of(d));
}

/* A refusal that the documents before may take away: a circle that one of them has opened, which
 * check_circle() tells, or what a monitor's retraining wants of a pipeline that one of them makes.
 */
static bool may_pass(const struct ahead *a, const struct document *d, const struct err *e)
{
	struct str field = str_c(e->field);
	struct str pipeline = jsn_get_str(jsn_find(jsn_root(d->tree), "/spec/retrain/pipeline"));

	if (a->c->status != err_http(ERR_INVALID))
		return false;
	if (is_pipeline(d))
		return is_of_circle(d, field);
	return str_starts(field, STR("/spec/retrain/")) &&
	       find_pipeline(a, pipeline, a->at) != NULL;
}

static int try_document(struct ahead *a, const struct document *d, struct err *e)
{
	struct api_call q = monitor_call(d);
	struct api_reply r;
	bool sent = true;
	int rc;

	if (is_pipeline(d)) {
		rc = put_document(a->c, d, true, &sent, e);
	} else {
		set_dry(&q);
		rc = api_do(a->c, &q, &r, e);
		if (rc == 0)
			api_done(&r);
	}
	if (rc < 0 && !may_pass(a, d, e))
		return fail(a->c, d, sent, e);
	return is_pipeline(d) ? check_circle(a, d, e) : 0;
}

static int try_all(struct cli *c, const struct list *documents, struct err *e)
{
	struct ahead a = { .c = c, .documents = documents };

	for (; a.at < documents->n; a.at++) {
		if (try_document(&a, list_at(documents, struct document, a.at), e) < 0)
			return -1;
	}
	return 0;
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
	if (rc == 0 && l.n > 1)
		rc = try_all(c, &l, e);
	for (size_t i = 0; i < l.n && rc == 0; i++) {
		const struct document *d = list_at(&l, struct document, i);
		rc = is_pipeline(d) ? apply_pipeline(c, d, e) : apply_monitor(c, d, e);
	}
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
