#include "cli/config.h"

#include "lib/base/fs.h"
#include "lib/base/ip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_MAX = 65536, TOKEN_MAX = 4096 };

static struct str variable(const char *name)
{
	const char *v = getenv(name);

	return v != NULL && *v != '\0' ? str_c(v) : STR_NONE;
}

const char *config_path(struct cli *c)
{
	struct str named = variable("TIDEMILL_CONFIG"), xdg = variable("XDG_CONFIG_HOME"),
		   home = variable("HOME");

	if (named.n != 0)
		return named.p;
	if (xdg.n != 0)
		return arena_printf(c->arena, "%s/tidemill/config", xdg.p).p;
	if (home.n != 0)
		return arena_printf(c->arena, "%s/.config/tidemill/config", home.p).p;
	return "";
}

/* ---- the file -------------------------------------------------------------------------------- */

static int set_line(struct cli *c, struct config *f, struct str name, struct str value)
{
	const struct {
		const char *name;
		struct str *to;
	} rows[] = { { "server", &f->server }, { "token", &f->token }, { "project", &f->project },
		{ "ca_file", &f->ca_file } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (str_is(name, rows[i].name)) {
			*rows[i].to = arena_str(c->arena, value);
			return 0;
		}
	}
	if (!str_is(name, "insecure_http"))
		return -1;
	f->insecure_http = str_is(value, "true");
	return 0;
}

static int check_mode(const char *path, const struct config *f, struct err *e)
{
	struct stat st;

	if (f->token.n == 0 || stat(path, &st) < 0 || (st.st_mode & 077) == 0)
		return 0;
	return err_set(e, ERR_INVALID,
		"%s holds a token and others may read it: chmod 600 it, or log in again", path);
}

int config_read(struct cli *c, struct config *ret, struct err *e)
{
	const char *path = config_path(c);
	struct config f = { .insecure_http = false };
	struct str rest, line;
	struct buf text;
	int number = 0, rc = 0;

	if (*path == '\0' || access(path, F_OK) < 0) {
		*ret = f;
		return 0;
	}
	buf_init(&text, CONFIG_MAX);
	rc = fs_read(path, &text, e);
	rest = rc == 0 && text.n != 0 ? buf_str(&text) : STR("");
	while (rc == 0 && str_next(&rest, '\n', &line)) {
		number++;
		line = str_trim(line);
		ptrdiff_t equals = str_find_char(line, '=');
		if (line.n == 0 || line.p[0] == '#')
			continue;
		if (equals <= 0 ||
			set_line(c, &f, str_trim(str_slice(line, 0, (size_t)equals)),
				str_trim(str_slice(line, (size_t)equals + 1, line.n))) < 0)
			rc = err_set(e, ERR_INVALID,
				"%s, line %d: must be server, token, project, ca_file or "
				"insecure_http = value",
				path, number);
	}
	buf_done(&text);
	if (rc == 0)
		rc = check_mode(path, &f, e);
	if (rc == 0)
		*ret = f;
	return rc;
}

static void add_line(struct buf *out, const char *name, struct str value)
{
	if (value.n != 0)
		buf_addf(out, "%s = %.*s\n", name, STR_ARG(value));
}

int config_write(struct cli *c, const struct config *f, struct err *e)
{
	const char *path = config_path(c);
	struct str folder = str_c(path);
	struct buf text;

	if (*path == '\0')
		return err_set(e, ERR_INVALID, "no home: set XDG_CONFIG_HOME or TIDEMILL_CONFIG");
	while (folder.n > 0 && folder.p[folder.n - 1] != '/')
		folder.n--;
	if (folder.n > 1 &&
		fs_mkdirs(arena_dup(c->arena, str_slice(folder, 0, folder.n - 1)), 0700, e) < 0)
		return -1;
	buf_init(&text, CONFIG_MAX);
	buf_adds(&text, "# Written by `tidemill auth login`.\n");
	add_line(&text, "server", f->server);
	add_line(&text, "token", f->token);
	add_line(&text, "project", f->project);
	add_line(&text, "ca_file", f->ca_file);
	if (f->insecure_http)
		add_line(&text, "insecure_http", STR("true"));
	int rc = buf_failed(&text) ? err_set(e, ERR_TOO_LARGE,
					     "the settings have more than %d bytes", CONFIG_MAX)
				   : fs_write_atomic(path, buf_str(&text), 0600, e);
	buf_done(&text);
	return rc;
}

/* ---- the token ------------------------------------------------------------------------------- */

static int read_line(struct buf *out, struct err *e)
{
	ssize_t got = 1;

	while (got > 0) {
		char *room = buf_room(out, 512);
		if (room == NULL)
			return err_set(e, ERR_TOO_LARGE, "the token on stdin is too long");
		do
			got = read(STDIN_FILENO, room, 512);
		while (got < 0 && errno == EINTR);
		if (got > 0)
			buf_grew(out, (size_t)got);
		if (str_find_char(buf_str(out), '\n') >= 0)
			break;
	}
	return got < 0 ? err_errno(e, "read", "stdin") : 0;
}

int config_read_token(struct cli *c, const char *prompt, struct str *ret, struct err *e)
{
	bool is_terminal = tcgetattr(STDIN_FILENO, &c->shown) == 0;
	struct termios quiet;
	struct str rest, line = STR_NONE;
	struct buf text;

	if (is_terminal) {
		(void)fprintf(stderr, "%s: ", prompt);
		quiet = c->shown;
		quiet.c_lflag &= ~(tcflag_t)ECHO;
		c->hidden = 1;
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
	}
	buf_init(&text, TOKEN_MAX);
	int rc = read_line(&text, e);
	if (is_terminal) {
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &c->shown);
		c->hidden = 0;
		(void)fputc('\n', stderr);
	}
	rest = text.n != 0 ? buf_str(&text) : STR("");
	if (rc == 0 && (!str_next(&rest, '\n', &line) || str_trim(line).n == 0))
		rc = cli_usage(e, "there is no token on stdin");
	if (rc == 0)
		*ret = arena_str(c->arena, str_trim(line));
	buf_done(&text);
	return rc;
}

/* ---- who wins -------------------------------------------------------------------------------- */

/* The first line of the file that the variable names. */
static int load_token_file(struct cli *c, struct str file, struct err *e)
{
	struct str rest, line = STR_NONE;
	char why[sizeof e->msg];
	struct buf text;

	buf_init(&text, TOKEN_MAX);
	int rc = fs_read(file.p, &text, e);
	if (rc == 0) {
		rest = text.n != 0 ? buf_str(&text) : STR("");
		(void)str_next(&rest, '\n', &line);
		c->token = arena_str(c->arena, str_trim(line));
	} else {
		(void)str_print(why, sizeof why, "%s", e->msg);
		(void)cli_usage(e, "TIDEMILL_TOKEN_FILE: %s", why);
	}
	buf_done(&text);
	return rc;
}

static int load_token(struct cli *c, const struct config *f, struct err *e)
{
	struct str file = variable("TIDEMILL_TOKEN_FILE");

	c->token_from = config_path(c);
	if (cli_has(c, "token-stdin")) {
		c->token_from = "stdin (--token-stdin)";
		return config_read_token(c, "Token", &c->token, e);
	}
	c->token = variable("TIDEMILL_TOKEN");
	c->token_is_variable = c->token.n != 0 || file.n != 0;
	if (c->token.n != 0) {
		c->token_from = "the variable TIDEMILL_TOKEN";
		return 0;
	}
	if (file.n != 0) {
		c->token_from = arena_printf(c->arena, "%s (TIDEMILL_TOKEN_FILE)", file.p).p;
		if (load_token_file(c, file, e) < 0)
			return -1;
		if (c->token.n == 0)
			return cli_usage(e, "TIDEMILL_TOKEN_FILE: %.160s is empty", file.p);
		return 0;
	}
	c->token = f->token;
	return 0;
}

static struct str choose(struct cli *c, const char *flag, const char *env, struct str file)
{
	struct str v = cli_text(c, flag);

	if (v.p == NULL)
		v = variable(env);
	return v.p != NULL ? v : file;
}

int config_load(struct cli *c, struct err *e)
{
	struct str insecure = variable("TIDEMILL_INSECURE_HTTP");
	struct config f;

	if (config_read(c, &f, e) < 0 || load_token(c, &f, e) < 0)
		return -1;
	c->server = choose(c, "server", "TIDEMILL_SERVER", f.server);
	c->project = choose(c, "project", "TIDEMILL_PROJECT", f.project);
	c->ca_file = choose(c, "ca-file", "TIDEMILL_CA_FILE", f.ca_file);
	c->insecure_http = cli_has(c, "insecure-http") || f.insecure_http ||
			   str_is(insecure, "1") || str_is(insecure, "true");
	return 0;
}

int config_check_server(const struct cli *c, struct str server, struct err *e)
{
	struct str host;
	struct ip ip;

	if (str_starts(server, STR("https://")))
		return 0;
	if (!str_starts(server, STR("http://")))
		return cli_usage(e, "the server must be an http:// or https:// address, not '%.*s'",
			STR_ARG(server));
	host = str_slice(server, 7, server.n);
	if (host.n != 0 && host.p[0] == '[') {
		ptrdiff_t end = str_find_char(host, ']');
		host = str_slice(host, 1, end > 0 ? (size_t)end - 1 : 0);
	} else {
		size_t n = 0;
		while (n < host.n && host.p[n] != ':' && host.p[n] != '/')
			n++;
		host.n = n;
	}
	if (c->insecure_http || str_is(host, "localhost") ||
		(ip_parse(host, &ip) && ip_is_loopback(&ip)))
		return 0;
	return cli_usage(e,
		"%.*s is plain HTTP to another host, where the token can be read on the way: use "
		"https, or give --insecure-http",
		STR_ARG(server));
}
