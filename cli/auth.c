/* auth, token, principal */
#include "cli/config.h"
#include "cli/generic.h"
#include "cli/nouns.h"
#include "cli/send.h"
#include "cli/view.h"

#include <stdio.h>

/* The first administrator's token for a bootstrap token, which is used up by that. */
static int exchange_bootstrap(struct cli *c, struct err *e)
{
	struct api_call q = { .route = "auth.bootstrap", .once = true };
	struct api_reply r;
	struct str token;

	if (api_do(c, &q, &r, e) < 0)
		return -1;
	token = arena_str(c->arena, jsn_get_str(jsn_get(r.root, "token")));
	api_done(&r);
	if (token.n == 0)
		return err_set(e, ERR_NETWORK, "the server's answer has no token");
	c->token = token;
	api_close(c); /* the next call takes the new token */
	return 0;
}

static int check_project(struct cli *c, struct err *e)
{
	struct api_call q = { .route = "projects.get" };
	struct api_reply r;

	if (c->project.n == 0 || !cli_has(c, "project"))
		return 0;
	if (api_do(c, &q, &r, e) == 0) {
		api_done(&r);
		return 0;
	}
	if (e->code != ERR_NOT_FOUND)
		return -1;
	cli_say(c, "note: there is no project %.*s yet, or it is not ours to see",
		STR_ARG(c->project));
	return 0;
}

int cmd_auth_login(struct cli *c, struct err *e)
{
	struct api_call q = { .route = "auth.self" };
	struct config f;
	struct api_reply r;

	if (!cli_has(c, "token-stdin") && config_read_token(c, "Token", &c->token, e) < 0)
		return -1;
	c->token_from = "stdin";
	c->token_is_variable = false;
	if (config_read(c, &f, e) < 0)
		return -1;
	if (cli_has(c, "bootstrap") && exchange_bootstrap(c, e) < 0)
		return -1;
	if (api_do(c, &q, &r, e) < 0)
		return -1;
	f.server = c->server;
	f.token = c->token;
	f.insecure_http = c->insecure_http;
	if (c->project.n != 0)
		f.project = c->project;
	if (c->ca_file.n != 0)
		f.ca_file = c->ca_file;
	int rc = config_write(c, &f, e);
	if (rc == 0)
		rc = check_project(c, e);
	if (rc == 0) {
		cli_say(c, "Logged in to %.*s as %.*s; kept in %s.", STR_ARG(c->server),
			STR_ARG(jsn_get_str(jsn_get(r.root, "name"))), config_path(c));
		if (c->output != OUTPUT_TABLE)
			rc = view_object(c, c->cmd->view, r.body, r.root, e);
	}
	api_done(&r);
	return rc;
}

/* The public part of tdm_<kind>_<id>_<secret>. */
static struct str token_id(struct str token)
{
	struct str rest = token, piece = STR_NONE;

	for (int i = 0; i < 3; i++) {
		if (rest.p == NULL || !str_next(&rest, '_', &piece))
			return STR_NONE;
	}
	return piece;
}

static int say_logout(struct cli *c, bool forgotten, bool revoked, struct err *e)
{
	struct send s;

	send_init(&s);
	send_str(&s, "server", c->server);
	jsn_key(&s.w, "forgotten");
	jsn_bool(&s.w, forgotten);
	jsn_key(&s.w, "revoked");
	jsn_bool(&s.w, revoked);
	int rc = send_print(&s, c, c->server, e);
	send_done(&s);
	return rc;
}

int cmd_auth_logout(struct cli *c, struct err *e)
{
	struct config f;
	struct api_reply r;

	if (config_read(c, &f, e) < 0)
		return -1;
	if (f.token.n == 0) {
		cli_say(c, "Not logged in.");
		return say_logout(c, false, false, e);
	}
	if (cli_has(c, "revoke")) {
		struct api_call q = { .route = "tokens.revoke", .params = { token_id(f.token) } };
		c->token = f.token;
		if (api_do(c, &q, &r, e) < 0)
			return -1;
		api_done(&r);
	}
	f.token = STR_NONE;
	if (config_write(c, &f, e) < 0)
		return -1;
	cli_say(c, "The token is forgotten%s.", cli_has(c, "revoke") ? " and revoked" : "");
	return say_logout(c, true, cli_has(c, "revoke"), e);
}

int cmd_auth_status(struct cli *c, struct err *e)
{
	struct api_call q = generic_call(c);

	if (c->token.n == 0)
		return err_set(e, ERR_UNAUTHENTICATED,
			"not logged in: run 'tidemill auth login --server URL'");
	cli_say(c, "%.*s", STR_ARG(c->server));
	return generic_object(c, &q, e);
}

/* A token is data: alone on stdout, so that it can be piped. */
static int show_token(struct cli *c, const struct api_call *q, struct err *e)
{
	struct api_reply r;

	if (c->output != OUTPUT_TABLE)
		return generic_object(c, q, e);
	if (api_do(c, q, &r, e) < 0)
		return -1;
	struct str token = jsn_get_str(jsn_get(r.root, "token"));
	(void)printf("%.*s\n", STR_ARG(token));
	cli_say(c, "It is shown this once; it expires at %.*s.",
		STR_ARG(jsn_get_str(jsn_get(r.root, "expires_at"))));
	api_done(&r);
	return EXIT_DONE;
}

int cmd_token_create(struct cli *c, struct err *e)
{
	struct str whose = cli_text(c, "for");
	struct api_call q = { .route = whose.p != NULL ? "principals.token" : "tokens.create",
		.params = { whose } };
	struct send s;

	send_init(&s);
	send_str(&s, "name", cli_arg(c, 0));
	send_flag(&s, c, "kind");
	send_flag(&s, c, "role");
	send_str(&s, "project", cli_text(c, "only-project"));
	send_flag(&s, c, "expires-in");
	q.body = send_end(&s);
	int rc = show_token(c, &q, e);
	send_done(&s);
	return rc;
}

int cmd_worker_join_token(struct cli *c, struct err *e)
{
	struct api_call q = { .route = "workers.join_token" };
	struct send s;
	int rc;

	send_init(&s);
	send_flag(&s, c, "pool");
	send_flag(&s, c, "expires-in");
	rc = send_labels(&s, c, e);
	if (rc == 0) {
		q.body = send_end(&s);
		rc = show_token(c, &q, e);
	}
	send_done(&s);
	return rc;
}

int cmd_principal_create(struct cli *c, struct err *e)
{
	struct api_call q = { .route = c->cmd->route };
	struct send s;

	send_init(&s);
	send_str(&s, "name", cli_arg(c, 0));
	if (cli_has(c, "admin")) {
		jsn_key(&s.w, "admin");
		jsn_bool(&s.w, true);
	}
	int rc = send_object(&s, c, &q, e);
	send_done(&s);
	return rc;
}
