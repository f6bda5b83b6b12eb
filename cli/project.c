/* project, member, retention, quota */
#include "cli/generic.h"
#include "cli/nouns.h"
#include "cli/send.h"
#include "lib/base/num.h"

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
	if (!cli_has(c, "dry-run"))
		return generic_delete(c, e);
	struct api_call q = generic_call(c);
	return generic_object(c, &q, e);
}

int cmd_project_retention(struct cli *c, struct err *e)
{
	struct api_call get = { .route = "projects.get" }, q = { .route = c->cmd->route };
	struct api_reply now;
	struct send s;

	if (!ages_given(c))
		return generic_object(c, &get, e);
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

/* ---- quotas ---------------------------------------------------------------------------------- */

int cmd_quota_show(struct cli *c, struct err *e)
{
	return cmd_project_show(c, e);
}

/* "gpus": {"nominal": 8, "borrow": 2}, by the flags, else as it is; left out without a limit. */
static int send_limit(
	struct send *s, const struct cli *c, const struct jsn *now, const char *name, struct err *e)
{
	const char *borrow_flag = arena_printf(c->arena, "%s-borrow", name).p;
	const struct jsn *was = jsn_get(now, name);
	struct str nominal = cli_text(c, name), borrow = cli_text(c, borrow_flag);
	int64_t granted = jsn_get_int(jsn_get(was, "nominal"), -1);
	int64_t beyond = jsn_get_int(jsn_get(was, "borrow"), 0);

	if (str_is(nominal, "none"))
		granted = -1;
	else if (nominal.p != NULL && !num_parse_i64(nominal, 0, INT64_MAX, &granted))
		return cli_usage(e, "--%s must be a number or 'none'", name);
	if (borrow.p != NULL && !num_parse_i64(borrow, 0, INT64_MAX, &beyond))
		return cli_usage(e, "--%s must be a number", borrow_flag);
	if (granted < 0 && borrow.p != NULL)
		return cli_usage(e, "--%s needs --%s: without a limit there is nothing to borrow",
			borrow_flag, name);
	if (granted < 0)
		return 0;
	jsn_key(&s->w, name);
	jsn_obj_begin(&s->w);
	jsn_key(&s->w, "nominal");
	jsn_int(&s->w, granted);
	jsn_key(&s->w, "borrow");
	jsn_int(&s->w, beyond);
	jsn_obj_end(&s->w);
	return 0;
}

int cmd_quota_set(struct cli *c, struct err *e)
{
	struct api_call get = { .route = "quotas.get" }, q = { .route = c->cmd->route };
	struct str weight = cli_text(c, "weight");
	struct api_reply now;
	struct send s;
	double number = 0;

	c->project = cli_arg(c, 0);
	if (weight.p != NULL && !num_parse_double(weight, &number))
		return cli_usage(e, "--weight must be a number");
	if (api_do(c, &get, &now, e) < 0)
		return -1;
	send_init(&s);
	jsn_key(&s.w, "weight");
	jsn_real(&s.w, weight.p != NULL ? number : jsn_get_real(jsn_get(now.root, "weight"), 1));
	int rc = send_limit(&s, c, now.root, "gpus", e);
	if (rc == 0)
		rc = send_limit(&s, c, now.root, "steps", e);
	if (rc == 0)
		rc = send_object(&s, c, &q, e);
	send_done(&s);
	api_done(&now);
	return rc;
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* "public,internal", or as it is. */
static void send_words(struct send *s, struct str given, const struct jsn *now)
{
	bool keeps = given.p == NULL;
	struct str word;

	if (keeps && now == NULL)
		return;
	jsn_key(&s->w, "sensitivity");
	jsn_list_begin(&s->w);
	while (str_next(&given, ',', &word))
		jsn_str(&s->w, str_trim(word));
	for (size_t i = 0; keeps && i < jsn_count(now); i++)
		jsn_str(&s->w, jsn_get_str(jsn_at(now, i)));
	jsn_list_end(&s->w);
}

static void send_word(struct send *s, const struct cli *c, const char *name, const struct jsn *now)
{
	struct str given = cli_text(c, name);

	if (given.p == NULL && jsn_get(now, name) != NULL)
		given = jsn_get_str(jsn_get(now, name));
	send_str(s, name, given);
}

/* A pool that has no worker yet may be set, too. */
int cmd_pool_set(struct cli *c, struct err *e)
{
	struct api_call get = { .route = "pools.get", .params = { cli_arg(c, 0) } };
	struct api_call q = { .route = c->cmd->route, .params = { cli_arg(c, 0) } };
	struct api_reply now = { .root = NULL };
	struct send s;
	bool there = api_do(c, &get, &now, e) == 0;

	if (!there && e->code != ERR_NOT_FOUND)
		return -1;
	const struct jsn *root = there ? now.root : NULL;
	send_init(&s);
	send_word(&s, c, "policy", root);
	send_word(&s, c, "preemption", root);
	send_words(&s, cli_text(c, "sensitivity"), jsn_get(root, "sensitivity"));
	q.if_match = there ? now.etag : STR("\"0\"");
	int rc = send_object(&s, c, &q, e);
	send_done(&s);
	if (there)
		api_done(&now);
	return rc;
}
