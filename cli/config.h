/*
 * Where the server is and who we are: flag, else environment, else $XDG_CONFIG_HOME/tidemill/config
 * (~/.config/tidemill/config; TIDEMILL_CONFIG names another), lines of `name = value`. The file
 * may hold a token and is refused when others can read it.
 */
#ifndef CLI_CONFIG_H
#define CLI_CONFIG_H
#include "cli/cli.h"

struct config {
	struct str server, token, project, ca_file;
	bool insecure_http;
};

/* Fills server, token, project, ca_file and insecure_http of c. */
int config_load(struct cli *c, struct err *e) MUST_CHECK;
/* The file alone; a missing one is empty. */
int config_read(struct cli *c, struct config *ret, struct err *e) MUST_CHECK;
int config_write(struct cli *c, const struct config *f, struct err *e) MUST_CHECK;
const char *config_path(struct cli *c); /* "" when there is no home */
/* http only for loopback addresses, unless c->insecure_http. */
int config_check_server(const struct cli *c, struct str server, struct err *e) MUST_CHECK;
/* A secret from stdin: up to the first line's end; not echoed by a terminal. */
int config_read_token(struct cli *c, const char *prompt, struct str *ret, struct err *e) MUST_CHECK;

#endif
