#include "cli/generic.h"

#include "api/route.h"
#include "cli/send.h"
#include "cli/view.h"

enum { PARTS_SHOWN = 10 };

/* "dry-run" -> "dry_run" */
static const char *query_name(const struct cli *c, const char *flag)
{
	char *name = arena_dup(c->arena, str_c(flag));

	for (char *p = name; *p != '\0'; p++) {
		if (*p == '-')
			*p = '_';
	}
	return name;
}

struct api_call generic_call(const struct cli *c)
{
	struct api_call q = { .route = c->cmd->route };
	size_t n = 0;

	for (int i = 0; i < API_PARAMS; i++)
		q.params[i] = cli_arg(c, i);
	for (const struct flag *f = c->cmd->flags; f != NULL && f->name != NULL; f++) {
		if (!f->query || !cli_has(c, f->name))
			continue;
		q.query[n++] = (struct api_pair){ query_name(c, f->name),
			f->type == FLAG_BOOL ? STR("true") : cli_text(c, f->name) };
	}
	return q;
}

static int on_item(void *arg, const struct jsn *item, struct err *e)
{
	(void)e;
	view_list_add(arg, item);
	return 0;
}

static int list(struct cli *c, const struct api_call *q, const struct view *view, int64_t limit,
	struct err *e)
{
	struct view_list *l = view_list_new(c, view);
	struct str more = STR_NONE;

	if (api_each(c, q, limit, on_item, l, &more, e) < 0) {
		view_list_free(l);
		return -1;
	}
	return view_list_end(l, more, e);
}

int generic_items(struct cli *c, const struct api_call *q, struct err *e)
{
	bool limited = command_flag(c->cmd, STR("limit")) != NULL;

	return list(c, q, c->cmd->view, limited ? cli_int(c, "limit", GENERIC_LIMIT) : 0, e);
}

int generic_list(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);

	return generic_items(c, &q, e);
}

int generic_object(struct cli *c, const struct api_call *q, struct err *e)
{
	struct api_reply r;

	if (api_do(c, q, &r, e) < 0)
		return -1;
	int rc = view_object(c, c->cmd->view, r.body, r.root, e);
	api_done(&r);
	return rc;
}

/* What belongs to an object and is listed below it on a terminal, where people want it at once. */
static const struct {
	const char *object, *list;
	const struct view *view;
} parts[] = {
	{ "runs.get", "steps.list", &view_step },
	{ "datasets.get", "dataset_versions.list", &view_dataset_version },
	{ "models.get", "model_versions.list", &view_model_version },
};

int generic_parts(struct cli *c, struct err *e)
{
	if (!c->tty || c->output != OUTPUT_TABLE)
		return 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (strcmp(parts[i].object, c->cmd->route) != 0)
			continue;
		struct api_call q = { .route = parts[i].list, .params = { cli_arg(c, 0) } };
		if (view_print(STR("\n"), e) < 0)
			return -1;
		return list(c, &q, parts[i].view, PARTS_SHOWN, e);
	}
	return 0;
}

int generic_show(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);

	if (generic_object(c, &q, e) < 0)
		return -1;
	return generic_parts(c, e);
}

int generic_post(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);

	return generic_object(c, &q, e);
}

/* The ETag of the object that will go, by the noun's "get". */
static int current_etag(struct cli *c, struct str *ret, struct err *e)
{
	struct str noun = str_c(c->cmd->route);
	struct api_call q = generic_call(c);
	struct api_reply r;

	noun.n = (size_t)str_find_char(noun, '.');
	q.route = arena_printf(c->arena, "%.*s.get", STR_ARG(noun)).p;
	if (api_do(c, &q, &r, e) < 0)
		return -1;
	*ret = arena_str(c->arena, r.etag);
	api_done(&r);
	return 0;
}

/* The last words of a command's name: "remove" and "alias" of "model alias remove". */
struct deed {
	struct str verb, noun;
	const char *past;
};

static struct deed deed_of(const struct command *cmd)
{
	static const struct {
		const char *verb, *past;
	} verbs[] = { { "disable", "disabled" }, { "revoke", "revoked" }, { "remove", "removed" },
		{ "delete", "deleted" } };
	struct str rest = str_c(cmd->name), word;
	struct deed d = { .verb = STR_NONE };

	while (str_next(&rest, ' ', &word)) {
		d.noun = d.verb;
		d.verb = word;
	}
	if (str_is(d.noun, "dataset"))
		d.noun = STR("data set");
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		d.past = str_is(d.verb, verbs[i].verb) ? verbs[i].past : d.past;
	BUG_ON(d.past == NULL);
	return d;
}

static int say_deed(struct cli *c, const struct deed *d, struct str name, bool dry, struct err *e)
{
	struct send s;

	cli_say(c, "%s: %s%s", name.p, dry ? "could be " : "", d->past);
	send_init(&s);
	send_str(&s, "kind", d->noun);
	send_str(&s, "name", name);
	jsn_key(&s.w, d->past);
	jsn_bool(&s.w, !dry);
	jsn_key(&s.w, "dry_run");
	jsn_bool(&s.w, dry);
	int rc = send_print(&s, c, name, e);
	send_done(&s);
	return rc;
}

int generic_delete(struct cli *c, struct err *e)
{
	const struct route *route = route_find(c->cmd->route);
	struct api_call q = generic_call(c);
	struct api_reply r;
	bool dry = command_flag(c->cmd, STR("dry-run")) != NULL && cli_has(c, "dry-run");
	struct str last = cli_arg(c, c->n_args - 1);
	struct deed d = deed_of(c->cmd);
	struct str what = arena_printf(
		c->arena, "%.*s the %.*s %s", STR_ARG(d.verb), STR_ARG(d.noun), last.p);

	BUG_ON(route == NULL);
	if (!dry && cli_confirm(c, what.p, e) < 0)
		return -1;
	if ((route->flags & ROUTE_IF_MATCH) && current_etag(c, &q.if_match, e) < 0)
		return -1;
	if (api_do(c, &q, &r, e) < 0)
		return -1;
	api_done(&r);
	return say_deed(c, &d, last, dry, e);
}
