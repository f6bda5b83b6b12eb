/*
 * From argv to a command and back to an exit code. Global flags may stand anywhere; the words that
 * are left name the command, then come its arguments.
 */
#include "cli/cli.h"

#include "cli/api.h"
#include "cli/config.h"
#include "cli/help.h"
#include "cli/view.h"
#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/base/num.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARENA_MAX = 1 << 30, READ_MAX = 4 << 20, WIDTH = 80 };

/* ---- flags ----------------------------------------------------------------------------------- */

static const struct flag *known(const struct cli *c, const char *name)
{
	const struct flag *f = command_flag(c->cmd, str_c(name));

	BUG_ON(f == NULL);
	return f;
}

bool cli_has(const struct cli *c, const char *name)
{
	const struct flag *f = known(c, name);

	for (size_t i = 0; i < c->n_values; i++) {
		if (c->values[i].flag == f)
			return true;
	}
	return false;
}

struct str cli_text(const struct cli *c, const char *name)
{
	const struct flag *f = known(c, name);

	for (size_t i = c->n_values; i > 0; i--) {
		if (c->values[i - 1].flag == f)
			return c->values[i - 1].text;
	}
	return STR_NONE;
}

int64_t cli_int(const struct cli *c, const char *name, int64_t otherwise)
{
	struct str s = cli_text(c, name);
	int64_t v = otherwise;

	if (s.p != NULL)
		(void)num_parse_i64(s, 0, INT64_MAX, &v);
	return v;
}

int64_t cli_span(const struct cli *c, const char *name, int64_t otherwise)
{
	struct str s = cli_text(c, name);
	struct clock_span span;

	return s.p != NULL && clock_parse_span(s, &span) ? span.us : otherwise;
}

bool cli_next(const struct cli *c, const char *name, size_t *at, struct str *ret)
{
	const struct flag *f = known(c, name);

	while (*at < c->n_values) {
		const struct cli_value *v = &c->values[(*at)++];
		if (v->flag == f) {
			*ret = v->text;
			return true;
		}
	}
	return false;
}

struct str cli_arg(const struct cli *c, int i)
{
	return i < c->n_args ? str_c(c->args[i]) : STR_NONE;
}

static int check_value(const struct flag *f, struct str text, struct err *e)
{
	struct clock_span span;
	int64_t n;

	if (f->type == FLAG_INT && !num_parse_i64(text, 0, INT64_MAX, &n))
		return cli_usage(
			e, "--%s must be a whole number, not '%.*s'", f->name, STR_ARG(text));
	if (f->type == FLAG_SPAN && (!clock_parse_span(text, &span) || span.months != 0))
		return cli_usage(e, "--%s must be a time like 30s, 10m or 4h, not '%.*s'", f->name,
			STR_ARG(text));
	if (!str_utf8_valid(text))
		return cli_usage(e, "the value of --%s is not UTF-8", f->name);
	return 0;
}

/* Reads the flag at argv[i]; returns how many words it took, or -1. */
static int take_flag(struct cli *c, int argc, const char *const *argv, int i, struct err *e)
{
	struct str word = str_c(argv[i]), value = STR_NONE;
	bool is_long = str_starts(word, STR("--"));
	ptrdiff_t equals = is_long ? str_find_char(word, '=') : -1;
	struct str name = str_slice(word, 2, (equals < 0 ? word.n : (size_t)equals) - 2);
	const struct flag *f =
		is_long ? command_flag(c->cmd, name) : command_letter(c->cmd, word.p[1]);
	int used = 1;

	if (f == NULL)
		return cli_usage(e, "unknown flag '%s'%s%s; see 'tidemill help%s%s'", argv[i],
			c->cmd != NULL ? " of " : "", c->cmd != NULL ? c->cmd->name : "",
			c->cmd != NULL ? " " : "", c->cmd != NULL ? c->cmd->name : "");
	if (equals >= 0)
		value = str_slice(word, (size_t)equals + 1, word.n);
	else if (!is_long && word.n > 2)
		value = str_slice(word, 2, word.n);
	if (f->type == FLAG_BOOL && value.p != NULL)
		return cli_usage(e, "%s takes no value", argv[i]);
	if (f->type != FLAG_BOOL && value.p == NULL) {
		if (i + 1 >= argc)
			return cli_usage(e, "%s needs a value (%s)", argv[i], f->arg);
		value = str_c(argv[i + 1]);
		used = 2;
	}
	if (f->type != FLAG_BOOL && check_value(f, value, e) < 0)
		return -1;
	c->values[c->n_values++] = (struct cli_value){ f, arena_str(c->arena, value) };
	return used;
}

/* Words that name no command, or a group of commands: its flags are unknown, too, and only what any
 * command takes is looked at. */
static int split_unknown(struct cli *c, int argc, const char *const *argv, int i, struct err *e)
{
	while (i < argc) {
		struct str word = str_c(argv[i]);
		if (word.n < 2 || word.p[0] != '-') {
			c->args[c->n_args++] = argv[i++];
			continue;
		}
		struct str name = str_slice(word, 2, word.n);
		ptrdiff_t equals = str_find_char(name, '=');
		name.n = equals >= 0 ? (size_t)equals : name.n;
		bool known = word.p[1] == '-' ? command_flag(NULL, name) != NULL
					      : command_letter(NULL, word.p[1]) != NULL;
		int used = known ? take_flag(c, argc, argv, i, e) : 1;
		if (used < 0)
			return -1;
		i += used;
	}
	return 0;
}

/* Words and flags apart. Before the command is known, only global flags are; so the first pass
 * collects words with the flags' values still among them when the command is not known yet. */
static int split_words(struct cli *c, int argc, const char *const *argv, struct err *e)
{
	int i = 1, words = 0;

	while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
		int used = take_flag(c, argc, argv, i, e);
		if (used < 0)
			return -1;
		i += used;
	}
	c->cmd = command_find(argc - i, argv + i, &words);
	if (c->cmd == NULL)
		return split_unknown(c, argc, argv, i, e);
	bool only_words = false;
	for (i += words; i < argc;) {
		if (!only_words && strcmp(argv[i], "--") == 0) {
			only_words = true;
			i++;
		} else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
			int used = take_flag(c, argc, argv, i, e);
			if (used < 0)
				return -1;
			i += used;
		} else {
			c->args[c->n_args++] = argv[i++];
		}
	}
	return 0;
}

static int check_args(const struct cli *c, struct err *e)
{
	int min, max;

	command_arity(c->cmd, &min, &max);
	if (c->n_args < min || (max >= 0 && c->n_args > max))
		return cli_usage(e, "usage: tidemill %s%s%s%s", c->cmd->name,
			c->cmd->args[0] != '\0' ? " " : "", c->cmd->args,
			c->cmd->flags != NULL ? " [FLAGS]" : "");
	for (int i = 0; i < c->n_args; i++) {
		if (!str_utf8_valid(str_c(c->args[i])))
			return cli_usage(e, "argument %d is not UTF-8", i + 1);
	}
	return 0;
}

static int settle_output(struct cli *c, struct err *e)
{
	static const char *const names[] = { "table", "json", "jsonl", "name" };
	struct str format = cli_text(c, "output");
	struct winsize size;
	bool found = format.p == NULL;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (str_is(format, names[i])) {
			c->output = (enum cli_output)i;
			found = true;
		}
	}
	if (!found)
		return cli_usage(e, "--output must be table, json, jsonl or name, not '%.*s'",
			STR_ARG(format));
	const char *no_color = getenv("NO_COLOR");
	c->tty = isatty(STDOUT_FILENO) == 1;
	c->color = c->tty && !cli_has(c, "no-color") && (no_color == NULL || *no_color == '\0');
	c->quiet = cli_has(c, "quiet");
	c->width = WIDTH;
	if (c->tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
		c->width = size.ws_col;
	return 0;
}

/* ---- what commands share --------------------------------------------------------------------- */

void cli_say(const struct cli *c, const char *fmt, ...)
{
	va_list ap;

	if (c->quiet)
		return;
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
}

int cli_split(struct str pair, const char *flag, struct str *ret_key, struct str *ret_value,
	struct err *e)
{
	ptrdiff_t equals = str_find_char(pair, '=');

	if (equals <= 0)
		return cli_usage(e, "--%s must be NAME=VALUE, not '%.*s'", flag, STR_ARG(pair));
	*ret_key = str_slice(pair, 0, (size_t)equals);
	*ret_value = str_slice(pair, (size_t)equals + 1, pair.n);
	return 0;
}

/* What is no file is the mistake of whoever named it; what fails for another reason is not. */
static int cannot_open(const char *path, struct err *e)
{
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case EACCES:
	case ELOOP:
	case ENAMETOOLONG:
	case ENXIO: /* a socket, or a device that is not there */
		return cli_usage(e, "cannot open %.160s: %s", path, strerror(errno));
	default: return err_errno(e, "open", path);
	}
}

static int open_regular(
	const char *path, bool stdin_too, int64_t *ret_size, int *ret_fd, struct err *e)
{
	/* Without O_NONBLOCK a pipe would be waited for until somebody writes. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return cannot_open(path, e);
	if (fstat(fd, &st) < 0) {
		(void)close(fd);
		return err_errno(e, "look at", path);
	}
	if (!S_ISREG(st.st_mode)) {
		(void)close(fd);
		return cli_usage(e, "%.160s is %s; it must be a regular file%s", path,
			fs_kind(st.st_mode), stdin_too ? ", or '-' for stdin" : "");
	}
	*ret_size = (int64_t)st.st_size;
	*ret_fd = fd;
	return 0;
}

int cli_open(const char *path, int64_t *ret_size, int *ret_fd, struct err *e)
{
	return open_regular(path, false, ret_size, ret_fd, e);
}

static int read_all(int fd, const char *name, struct buf *out, struct err *e)
{
	ssize_t got = 1;

	while (got > 0) {
		char *room = buf_room(out, 65536);
		if (room == NULL)
			return err_set(
				e, ERR_TOO_LARGE, "%.160s has more than %d bytes", name, READ_MAX);
		do
			got = read(fd, room, 65536);
		while (got < 0 && errno == EINTR);
		if (got > 0)
			buf_grew(out, (size_t)got);
	}
	return got < 0 ? err_errno(e, "read", name) : 0;
}

int cli_read(const char *path, struct buf *out, struct err *e)
{
	bool is_stdin = strcmp(path, "-") == 0;
	int fd = STDIN_FILENO;
	int64_t size;

	if (!is_stdin && open_regular(path, true, &size, &fd, e) < 0)
		return -1;
	buf_init(out, READ_MAX);
	int rc = read_all(fd, is_stdin ? "stdin" : path, out, e);
	if (!is_stdin)
		(void)close(fd);
	if (rc < 0)
		buf_done(out);
	return rc;
}

int cli_confirm(const struct cli *c, const char *what, struct err *e)
{
	char answer[16];

	if (cli_has(c, "yes"))
		return 0;
	if (isatty(STDIN_FILENO) != 1)
		return cli_usage(e, "stdin is not a terminal, so give --yes to %s", what);
	(void)fprintf(stderr, "%c%s? [y/N] ", toupper((unsigned char)what[0]), what + 1);
	if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return err_set(e, ERR_CANCELLED, "nothing was done");
}

int cli_exit_code(const struct cli *c, const struct err *e)
{
	switch (e->code) {
	case ERR_INVALID:
	case ERR_MALFORMED: return EXIT_USAGE;
	case ERR_NOT_FOUND:
	case ERR_GONE: return EXIT_NOT_FOUND;
	case ERR_UNAUTHENTICATED:
	case ERR_FORBIDDEN: return EXIT_DENIED;
	case ERR_CONFLICT:
	case ERR_SUPERSEDED:
	case ERR_IN_PROGRESS:
	case ERR_PRECONDITION_FAILED:
	case ERR_PRECONDITION_REQUIRED: return EXIT_CONFLICT;
	case ERR_NETWORK:
	case ERR_TIMEOUT:
	case ERR_RATE_LIMITED:
	case ERR_UNAVAILABLE:
	case ERR_DATABASE: return EXIT_UNREACHABLE;
	default: return c->status >= 500 ? EXIT_UNREACHABLE : EXIT_OTHER;
	}
}

/* ---- the program ----------------------------------------------------------------------------- */

static const char *title_of(const struct cli *c, const struct err *e)
{
	if (c->status < 400 && e->code == ERR_INVALID)
		return "The command is not valid";
	if (c->status < 400 && e->code == ERR_UNAUTHENTICATED)
		return "Not logged in";
	if (c->status < 400 && (e->code == ERR_NETWORK || e->code == ERR_TIMEOUT))
		return "The server cannot be reached";
	return err_title(e->code);
}

/* Which of several tokens the server did not take, and how to come by a good one. */
static void say_token(const struct cli *c)
{
	if (c->token.n != 0)
		cli_say(c, "The token that was sent is that of %s.", c->token_from);
	else
		cli_say(c, "No token was sent: %s has none, and TIDEMILL_TOKEN is not set.",
			c->token_from);
	cli_say(c, "To log in: tidemill auth login --server %.*s%s", STR_ARG(c->server),
		c->token_is_variable ? "; then unset the variable, which goes first" : "");
}

static void print_error(const struct cli *c, const struct err *e)
{
	bool named = e->field[0] != '\0' && str_find(str_c(e->msg), str_c(e->field)) < 0;
	const char *title = title_of(c, e);
	bool titled = strcmp(title, e->msg) != 0;

	(void)fflush(stdout);
	(void)fprintf(stderr, "error: %s%s%s%s%s", titled ? title : "", titled ? ": " : "",
		named ? e->field : "", named ? ": " : "", e->msg);
	if (c->status >= 400 && c->request_id[0] != '\0')
		(void)fprintf(stderr, " (request %s)", c->request_id);
	(void)fputc('\n', stderr);
	if (c->status == 401 && e->code == ERR_UNAUTHENTICATED)
		say_token(c);
}

static int print_text(const struct buf *text, bool asked)
{
	(void)fwrite(text->p, 1, text->n, asked ? stdout : stderr);
	return asked ? EXIT_DONE : EXIT_USAGE;
}

/* Words that name no command: nothing and a group get their help, anything else a suggestion. */
static int unknown_command(const struct cli *c, struct err *e)
{
	bool asked = cli_has(c, "help");
	struct buf text;
	int rc = -1;

	buf_init(&text, 1 << 20);
	if (help_words(c->n_args, c->args, &text))
		rc = print_text(&text, asked);
	else
		(void)help_unknown(c->n_args, c->args, e);
	buf_done(&text);
	return rc;
}

static int run(struct cli *c, int argc, const char *const *argv, struct err *e)
{
	struct buf text;

	if (split_words(c, argc, argv, e) < 0 || settle_output(c, e) < 0)
		return -1;
	if (cli_has(c, "version"))
		return printf("tidemill %s\n", TIDEMILL_VERSION) > 0 ? EXIT_DONE : EXIT_OTHER;
	if (c->cmd == NULL)
		return unknown_command(c, e);
	if (cli_has(c, "help")) {
		buf_init(&text, 1 << 20);
		help_command(c->cmd, &text);
		(void)print_text(&text, true);
		buf_done(&text);
		return EXIT_DONE;
	}
	if (check_args(c, e) < 0 || config_load(c, e) < 0)
		return -1;
	return c->cmd->fn(c, e);
}

int cli_main(struct cli *c, int argc, const char *const *argv)
{
	struct err e = { .code = ERR_OK };
	int rc;

	*c = (struct cli){ .arena = arena_new(ARENA_MAX) };
	c->values = arena_array_of(c->arena, struct cli_value, (size_t)argc + 1);
	c->args = arena_array_of(c->arena, const char *, (size_t)argc + 4);
	rc = run(c, argc, argv, &e);
	if (rc >= 0 && view_flush(&e) < 0)
		rc = -1;
	if (rc < 0) {
		rc = cli_exit_code(c, &e);
		print_error(c, &e);
	}
	api_close(c);
	arena_drop(c->arena);
	return rc;
}
