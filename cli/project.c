/* project, member, retention */
#include "cli/generic.h"
#include "cli/nouns.h"
#include "cli/send.h"

static const char *const ages[] = { "runs", "logs", "artifacts", "windows" };
enum { AGES = sizeof ages / sizeof *ages };

/* True when an age is given; "keep" leaves it out, which keeps things for ever. */
static bool ages_given(const struct cli *c)
{
	for (int i = 0; i < AGES; i++) {
		if (cli_has(c, ages[i]))
			return true;
	}
	return false;
}

/* The ages as they will be: those of the flags, else those of `now`. */
static void send_retention(struct send *s, const struct cli *c, const struct jsn *now)
{
	jsn_key(&s->w, "retention");
	jsn_obj_begin(&s->w);
	for (int i = 0; i < AGES; i++) {
		struct str age = cli_text(c, ages[i]);
		if (age.p == NULL)
			age = jsn_get_str(jsn_get(now, ages[i]));
		if (age.n != 0 && !str_is(age, "keep"))
			send_str(s, ages[i], age);
	}
	jsn_obj_end(&s->w);
}

int cmd_project_create(struct cli *c, struct err *e)
{
	struct api_call q = { .route = c->cmd->route };
	struct send s;

	send_init(&s);
	send_str(&s, "name", cli_arg(c, 0));
	send_flag(&s, c, "description");
	if (ages_given(c))
		send_retention(&s, c, NULL);
	int rc = send_object(&s, c, &q, e);
	send_done(&s);
	return rc;
}

int cmd_project_show(struct cli *c, struct err *e)
{
	if (c->n_args > 0)
		c->project = cli_arg(c, 0);
	return generic_show(c, e);
}

int cmd_project_delete(struct cli *c, struct err *e)
{
	c->project = cli_arg(c, 0);
	return generic_delete(c, e);
}

int cmd_project_retention(struct cli *c, struct err *e)
{
	struct api_call get = { .route = "projects.get" }, q = { .route = c->cmd->route };
	struct api_reply now;
	struct send s;

	if (!ages_given(c))
		return cli_usage(e, "give at least one of --runs, --logs, --artifacts, --windows");
	if (api_do(c, &get, &now, e) < 0)
		return -1;
	send_init(&s);
	send_retention(&s, c, jsn_get(now.root, "retention"));
	q.if_match = now.etag;
	int rc = send_object(&s, c, &q, e);
	send_done(&s);
	api_done(&now);
	return rc;
}

int cmd_member_set(struct cli *c, struct err *e)
{
	struct api_call q = { .route = c->cmd->route, .params = { cli_arg(c, 0) } };
	struct send s;

	send_init(&s);
	send_str(&s, "role", cli_arg(c, 1));
	int rc = send_object(&s, c, &q, e);
	send_done(&s);
	return rc;
}

int cmd_retention_run(struct cli *c, struct err *e)
{
	if (!cli_has(c, "dry-run") && cli_confirm(c, "remove what is past its age", e) < 0)
		return -1;
	return generic_post(c, e);
}
