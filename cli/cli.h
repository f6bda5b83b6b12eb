/*
 * One invocation of the program: what was asked for, where the server is, and how to answer. Data
 * goes to stdout, everything else to stderr. Functions return 0 or -1 with *e; commands return the
 * exit code of cli/exit.h or -1.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H
#include "cli/command.h"
#include "lib/base/arena.h"
#include "lib/base/buf.h"

#include <signal.h>
#include <stdint.h>
#include <termios.h>

/* Exit codes; `tidemill help exit-codes` prints them. */
enum cli_exit {
	EXIT_DONE = 0,
	EXIT_OTHER = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_FOUND = 3,
	EXIT_DENIED = 4,
	EXIT_CONFLICT = 5,
	EXIT_UNREACHABLE = 6,
	EXIT_TIMEOUT = 7,
	EXIT_RUN_FAILED = 10,
	EXIT_RUN_CANCELLED = 11,
	EXIT_GATE = 12,
	EXIT_RUN_LOST = 13,
	EXIT_INTERRUPTED = 130
};

enum cli_output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_JSONL, OUTPUT_NAME };

struct cli_value {
	const struct flag *flag;
	struct str text; /* NUL-terminated */
};

struct cli {
	struct arena *arena; /* everything that lives as long as the command */
	const struct command *cmd;
	struct cli_value *values; /* flags in the order given */
	size_t n_values;
	const char **args; /* positional arguments */
	int n_args;

	enum cli_output output;
	bool tty, color, quiet; /* tty: stdout is a terminal */
	int width; /* columns of the terminal */

	struct str server, token, project, ca_file; /* settled by config_load() */
	const char *token_from; /* where it was found, in words; where there is none, the file */
	bool token_is_variable; /* and that was a variable */
	bool insecure_http;
	struct loop *loop;
	struct fetch_client *client;
	char request_id[64]; /* of the last reply that was an error */
	int status; /* of the last reply; 0: none */
	bool waits; /* what the server is asked again for has been said */
	const char *volatile note; /* printed when the user interrupts */
	/* While a secret is typed: how the terminal was, for when the user interrupts. */
	volatile sig_atomic_t hidden;
	struct termios shown;
};

/* The whole program but for exit(): reads the arguments, runs the command, prints its error. */
int cli_main(struct cli *c, int argc, const char *const *argv);

/* Flags of the running command by name; a name that it does not have is a bug. */
bool cli_has(const struct cli *c, const char *name);
struct str cli_text(const struct cli *c, const char *name); /* the last one; STR_NONE */
int64_t cli_int(const struct cli *c, const char *name, int64_t otherwise);
int64_t cli_span(const struct cli *c, const char *name, int64_t otherwise); /* microseconds */
/* All of a FLAG_LIST; start with *at = 0. */
bool cli_next(const struct cli *c, const char *name, size_t *at, struct str *ret);
struct str cli_arg(const struct cli *c, int i); /* STR_NONE when not given */

/* A line on stderr, unless --quiet. */
void cli_say(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* ERR_INVALID for a mistake on the command line. Returns -1. */
#define cli_usage(e, ...) err_set((e), ERR_INVALID, __VA_ARGS__)
/* "key=value" from a flag. */
int cli_split(struct str pair, const char *flag, struct str *ret_key, struct str *ret_value,
	struct err *e) MUST_CHECK;
/* A file that the user has named, for reading. Only regular files: a pipe would be waited for and a
 * device has no end. Anything else, and what is not there, is ERR_INVALID. */
int cli_open(const char *path, int64_t *ret_size, int *ret_fd, struct err *e) MUST_CHECK;
/* The whole of such a file, or of stdin for "-"; up to 4 MiB. */
int cli_read(const char *path, struct buf *out, struct err *e) MUST_CHECK;
/* 0 after "y" at the terminal or with --yes; without a terminal --yes is needed. `what` is what
 * would be done: "delete the run run_1". */
int cli_confirm(const struct cli *c, const char *what, struct err *e) MUST_CHECK;
int cli_exit_code(const struct cli *c, const struct err *e);

#endif
