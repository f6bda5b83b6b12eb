#include "cli/help.h"

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
	buf_adds(out, "\n'tidemill help COMMAND' tells more, 'tidemill help exit-codes' what the "
		      "exit codes mean.\n");
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

static void help_exit_codes(struct buf *out)
{
	static const struct {
		enum cli_exit code;
		const char *meaning;
	} rows[] = {
		{ EXIT_DONE, "done; of a wait: the run succeeded" },
		{ EXIT_OTHER, "another failure" },
		{ EXIT_USAGE, "a mistake in the command, a flag or a file" },
		{ EXIT_NOT_FOUND, "not found" },
		{ EXIT_DENIED, "not logged in, or not allowed" },
		{ EXIT_CONFLICT, "conflict: the name is taken, the object has changed" },
		{ EXIT_UNREACHABLE, "the server cannot be reached or fails" },
		{ EXIT_TIMEOUT, "--timeout has passed; the run goes on" },
		{ EXIT_RUN_FAILED, "the run failed" },
		{ EXIT_RUN_CANCELLED, "the run was cancelled" },
		{ EXIT_GATE, "the gate refused the model (with --fail-on-refused)" },
		{ EXIT_RUN_LOST, "the run failed because its worker was lost" },
		{ EXIT_INTERRUPTED, "interrupted; a run goes on" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		buf_addf(out, "%4d  %s\n", (int)rows[i].code, rows[i].meaning);
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
		help_exit_codes(out);
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

/* ---- completion ------------------------------------------------------------------------------ */

static void add_flag_words(const struct flag *flags, struct buf *out)
{
	for (const struct flag *f = flags; f != NULL && f->name != NULL; f++)
		buf_addf(out, " --%s", f->name);
}

/* Which words may come after `prefix`, each once. */
static void add_next_words(struct str prefix, struct buf *out)
{
	struct str last = STR_NONE;

	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		struct str name = str_c(cmd->name), word;
		if (prefix.n != 0 && (!str_starts(name, prefix) || name.n <= prefix.n ||
					     name.p[prefix.n] != ' '))
			continue;
		if (prefix.n != 0)
			name = str_slice(name, prefix.n + 1, name.n);
		(void)str_next(&name, ' ', &word);
		if (!str_eq(word, last))
			buf_addf(out, " %.*s", STR_ARG(word));
		last = word;
	}
}

static void add_case(struct str prefix, struct buf *out)
{
	buf_addf(out, "\t\"%.*s\") words=\"", STR_ARG(prefix));
	add_next_words(prefix, out);
	buf_adds(out, "\" ;;\n");
}

/* The words before the last of each name of several words, as they first come up. */
static void add_prefixes(struct buf *out)
{
	struct str last = STR_NONE, before = STR_NONE;

	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		struct str name = str_c(cmd->name);
		size_t end = name.n;
		while (end > 0 && name.p[end - 1] != ' ')
			end--;
		struct str prefix = str_slice(name, 0, end > 0 ? end - 1 : 0);
		struct str noun = first_word(cmd->name);
		if (prefix.n != 0 && !str_eq(noun, before))
			add_case(noun, out);
		if (prefix.n > noun.n && !str_eq(prefix, last))
			add_case(prefix, out);
		last = prefix;
		before = prefix.n != 0 ? noun : before;
	}
}

void help_completion(struct buf *out)
{
	buf_adds(out, "# bash completion of tidemill: source <(tidemill completion bash)\n"
		      "_tidemill() {\n"
		      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} path='' i words='' flags=''\n"
		      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		      "\t\t[[ ${COMP_WORDS[i]} == -* ]] || path+=\"${path:+ }${COMP_WORDS[i]}\"\n"
		      "\tdone\n"
		      "\tcase $path in\n");
	add_case(STR(""), out);
	add_prefixes(out);
	buf_adds(out, "\tesac\n\tcase $path in\n");
	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		if (cmd->flags == NULL)
			continue;
		buf_addf(out, "\t\"%s\"*) flags=\"", cmd->name);
		add_flag_words(cmd->flags, out);
		buf_adds(out, "\" ;;\n");
	}
	buf_adds(out, "\tesac\n\tflags+=\"");
	add_flag_words(global_flags, out);
	buf_adds(out, "\"\n"
		      "\tif [[ $cur == -* ]]; then\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$cur\")\n"
		      "\telif [[ -n $words ]]; then\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
		      "\telse\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
		      "\tfi\n"
		      "}\n"
		      "complete -F _tidemill tidemill\n");
}
