#include "cli/help.h"

#include "cli/manual.h"

#include <stdio.h>

static struct str first_word(const char *name)
{
	struct str rest = str_c(name), word = STR_NONE;

	(void)str_next(&rest, ' ', &word);
	return word;
}

/* Spaces from `start` on up to a column. */
static void pad(struct buf *out, size_t start, size_t want)
{
	size_t have = str_utf8_count(str_slice(buf_str(out), start, out->n));

	do
		buf_addc(out, ' ');
	while (++have < want);
}

static void add_flags(const struct flag *flags, struct buf *out)
{
	for (const struct flag *f = flags; f != NULL && f->name != NULL; f++) {
		size_t start = out->n;
		if (f->letter != 0)
			buf_addf(out, "  -%c, ", f->letter);
		else
			buf_adds(out, "      ");
		buf_addf(out, "--%s%s%s%s", f->name, f->type != FLAG_BOOL ? " " : "",
			f->type != FLAG_BOOL ? f->arg : "", f->type == FLAG_LIST ? " …" : "");
		pad(out, start, 30);
		buf_addf(out, "%s\n", f->doc);
	}
}

static void add_line(const struct command *cmd, size_t width, struct buf *out)
{
	size_t start = out->n;

	buf_addf(out, "  %s%s%s", cmd->name, cmd->args[0] != '\0' ? " " : "", cmd->args);
	pad(out, start, width);
	buf_addf(out, "%s\n", cmd->doc);
}

static void help_program(struct buf *out)
{
	struct str last = STR_NONE;

	buf_adds(out, "usage: tidemill COMMAND [ARGUMENTS] [FLAGS]\n");
	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		struct str noun = first_word(cmd->name);
		if (!str_eq(noun, last))
			buf_addc(out, '\n');
		last = noun;
		add_line(cmd, 44, out);
	}
	buf_adds(out, "\nFlags of every command:\n");
	add_flags(global_flags, out);
	buf_adds(out, "\n'tidemill help COMMAND' tells more, 'tidemill help exit-codes' and "
		      "'tidemill help environment' what those are.\n");
}

/* Whether the name begins with all of these words. */
static bool is_below(const char *name, int n, const char *const *words)
{
	struct str rest = str_c(name), word;

	for (int i = 0; i < n; i++) {
		if (!str_next(&rest, ' ', &word) || !str_is(word, words[i]))
			return false;
	}
	return true;
}

static bool help_group(int n, const char *const *words, struct buf *out)
{
	bool found = false;

	buf_adds(out, "usage: tidemill");
	for (int i = 0; i < n; i++)
		buf_addf(out, " %s", words[i]);
	buf_adds(out, " …\n\n");
	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		if (is_below(cmd->name, n, words)) {
			add_line(cmd, 44, out);
			found = true;
		}
	}
	buf_addf(out, "\n'tidemill help %s COMMAND' tells more.\n", words[0]);
	return found;
}

void help_command(const struct command *cmd, struct buf *out)
{
	buf_addf(out, "%s.\n\nusage: tidemill %s%s%s%s\n", cmd->doc, cmd->name,
		cmd->args[0] != '\0' ? " " : "", cmd->args, cmd->flags != NULL ? " [FLAGS]" : "");
	if (cmd->flags != NULL) {
		buf_addc(out, '\n');
		add_flags(cmd->flags, out);
	}
	buf_adds(out, "\nFlags of every command:\n");
	add_flags(global_flags, out);
	if (cmd->route != NULL)
		buf_addf(out, "\nOperation of the API: %s\n", cmd->route);
}

const struct help_note help_exit_codes[] = {
	{ "0", "done; of a wait: the run succeeded" },
	{ "1", "another failure" },
	{ "2", "a mistake in the command, a flag or a file" },
	{ "3", "not found" },
	{ "4", "not logged in, or not allowed" },
	{ "5", "conflict: the name is taken, the object has changed" },
	{ "6", "the server cannot be reached or fails" },
	{ "7", "--timeout has passed; the run goes on" },
	{ "10", "the run failed" },
	{ "11", "the run was cancelled" },
	{ "12", "the gate refused the model (with --fail-on-refused)" },
	{ "13", "the run failed because its worker was lost" },
	{ "130", "interrupted; a run goes on" },
	{ 0 },
};

const struct help_note help_environment[] = {
	{ "TIDEMILL_SERVER", "address of the server, as --server" },
	{ "TIDEMILL_TOKEN", "the token" },
	{ "TIDEMILL_TOKEN_FILE", "a file that holds it" },
	{ "TIDEMILL_PROJECT", "the project, as --project" },
	{ "TIDEMILL_CA_FILE", "certificates to trust, as --ca-file" },
	{ "TIDEMILL_INSECURE_HTTP", "1: send the token over plain HTTP to other hosts" },
	{ "TIDEMILL_CONFIG", "the settings file, which 'auth login' writes; else it is "
			     "$XDG_CONFIG_HOME/tidemill/config" },
	{ "NO_COLOR", "no colours, when it is not empty" },
	{ 0 },
};

static void add_notes(const struct help_note *notes, struct buf *out)
{
	size_t width = 0;

	for (const struct help_note *n = notes; n->name != NULL; n++)
		width = strlen(n->name) > width ? strlen(n->name) : width;
	for (const struct help_note *n = notes; n->name != NULL; n++)
		buf_addf(out, notes == help_exit_codes ? "  %*s  %s\n" : "  %-*s  %s\n", (int)width,
			n->name, n->doc);
}

bool help_words(int n, const char *const *words, struct buf *out)
{
	int used = 0;
	const struct command *cmd = command_find(n, words, &used);

	if (n == 0)
		help_program(out);
	else if (cmd != NULL && used == n)
		help_command(cmd, out);
	else if (n == 1 && strcmp(words[0], "exit-codes") == 0)
		add_notes(help_exit_codes, out);
	else if (n == 1 && strcmp(words[0], "environment") == 0)
		add_notes(help_environment, out);
	else if (n == 1 && strcmp(words[0], "man") == 0)
		manual_print(out);
	else if (help_group(n, words, out))
		return true;
	else
		buf_clear(out);
	return out->n != 0;
}

/* The verbs of a group: ", only: submit, list, show". */
static void add_verbs(int n, const char *const *words, struct buf *out)
{
	struct str last = STR_NONE;

	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		struct str rest = str_c(cmd->name), word;
		if (!is_below(cmd->name, n, words))
			continue;
		for (int i = 0; i <= n; i++)
			word = str_next(&rest, ' ', &word) ? word : STR_NONE;
		if (word.n != 0 && !str_eq(word, last))
			buf_addf(out, "%s%.*s", out->n != 0 ? ", " : ", only: ", STR_ARG(word));
		last = word;
	}
}

int help_unknown(int n, const char *const *words, struct err *e)
{
	struct str near = command_suggest(n, words);
	struct buf given, hint;

	buf_init(&given, 200);
	buf_init(&hint, 4096);
	for (int i = 0; i < n && i < 3; i++)
		buf_addf(&given, "%s%.60s", i > 0 ? " " : "", words[i]);
	if (near.n != 0)
		buf_addf(&hint, ", did you mean '%.*s'?", STR_ARG(near));
	for (int known = n - 1; known > 0 && hint.n == 0; known--)
		add_verbs(known, words, &hint);
	(void)cli_usage(e, "there is no command '%.*s'%.*s; see 'tidemill help'",
		STR_ARG(buf_str(&given)), STR_ARG(buf_str(&hint)));
	buf_done(&given);
	buf_done(&hint);
	return -1;
}
