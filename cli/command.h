/*
 * The table of commands: what dispatch, help, completion and the tests read. A command is a name of
 * one to three words, its positional arguments, its flags and a function. Commands that only call
 * one operation of the API name it in `route` and share the functions of generic.h.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H
#include "lib/base/err.h"
#include "lib/base/str.h"

#include <stdbool.h>

struct cli;
struct view;

enum flag_type {
	FLAG_BOOL,
	FLAG_TEXT,
	FLAG_LIST, /* may come again */
	FLAG_INT, /* a whole number, not negative */
	FLAG_SPAN, /* "30s"; no months */
};

struct flag {
	const char *name; /* "pipeline", given as --pipeline */
	enum flag_type type;
	bool query; /* sent by generic commands as a query parameter, with '_' for '-' */
	char letter; /* 'f', given as -f; 0: none */
	const char *arg; /* what help calls the value */
	const char *doc;
};

/* The exit code, or -1 with *e filled in. */
typedef int command_fn(struct cli *c, struct err *e);

struct command {
	const char *name; /* "run submit" */
	const char *args; /* "RUN [STEP] FILE..."; "" for none */
	const struct flag *flags; /* ends with name NULL; NULL: only the global ones */
	command_fn *fn;
	const char *route; /* operation id of api/routes.c */
	const struct view *view; /* how its objects are shown */
	const char *doc;
};

extern const struct command commands[]; /* ends with name NULL */
extern const struct flag global_flags[];

/* The command whose words begin argv, the longest one; *ret_words says how many they are. NULL when
 * there is none. */
const struct command *command_find(int argc, const char *const *argv, int *ret_words);
/* The name of the command or group that these words may have been meant to be, or STR_NONE. */
struct str command_suggest(int argc, const char *const *argv);
/* Least and greatest number of positional arguments; *ret_max is -1 for no end. */
void command_arity(const struct command *cmd, int *ret_min, int *ret_max);
/* By name or by letter, among the command's flags and the global ones; NULL: neither has it. `cmd`
 * may be NULL. */
const struct flag *command_flag(const struct command *cmd, struct str name);
const struct flag *command_letter(const struct command *cmd, char letter);

#endif
