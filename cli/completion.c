/*
 * All three scripts do the same: the words before the cursor that are no flags are the place where
 * we are. At the place of a group its verbs follow, at that of a command files and its flags.
 */
#include "cli/completion.h"

#include "cli/command.h"

typedef void place_fn(struct str place, struct buf *out);

static struct str first_word(struct str name)
{
	struct str word = STR_NONE;

	(void)str_next(&name, ' ', &word);
	return word;
}

/* "model alias set" -> "model alias" */
static struct str without_last(struct str name)
{
	while (name.n > 0 && name.p[name.n - 1] != ' ')
		name.n--;
	return str_slice(name, 0, name.n > 0 ? name.n - 1 : 0);
}

static bool is_below(struct str name, struct str place)
{
	return place.n == 0 ||
	       (str_starts(name, place) && name.n > place.n && name.p[place.n] == ' ');
}

/* The word of a name that follows a place. */
static struct str next_word(struct str name, struct str place)
{
	return first_word(place.n == 0 ? name : str_slice(name, place.n + 1, name.n));
}

/* Once for every place that has words below it: "", each group, and each group in a group. */
static void each_place(place_fn *fn, struct buf *out)
{
	struct str group = STR_NONE, sub = STR_NONE;

	fn(STR(""), out);
	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		struct str name = str_c(cmd->name), place = without_last(name);
		struct str first = place.n != 0 ? first_word(name) : group;
		if (!str_eq(first, group))
			fn(first, out);
		group = first;
		if (place.n > group.n && !str_eq(place, sub))
			fn(place, out);
		sub = place.n > group.n ? place : sub;
	}
}

static void add_flag_words(const struct flag *flags, struct buf *out)
{
	for (const struct flag *f = flags; f != NULL && f->name != NULL; f++)
		buf_addf(out, " --%s", f->name);
}

/* ---- bash and zsh ---------------------------------------------------------------------------- */

static void add_words(struct str place, struct buf *out)
{
	struct str last = STR_NONE;

	buf_addf(out, "\t'%.*s') verbs='", STR_ARG(place));
	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		if (!is_below(str_c(cmd->name), place))
			continue;
		struct str word = next_word(str_c(cmd->name), place);
		if (!str_eq(word, last))
			buf_addf(out, " %.*s", STR_ARG(word));
		last = word;
	}
	buf_adds(out, "' ;;\n");
}

/* Sets `verbs` and `flags` by `place`, in words that both shells know. */
static void add_cases(struct buf *out)
{
	buf_adds(out, "\tcase $place in\n");
	each_place(add_words, out);
	buf_adds(out, "\tesac\n\tcase $place in\n");
	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		if (cmd->flags == NULL)
			continue;
		buf_addf(out, "\t'%s' | '%s '*) flags='", cmd->name, cmd->name);
		add_flag_words(cmd->flags, out);
		buf_adds(out, "' ;;\n");
	}
	buf_adds(out, "\tesac\n\tflags+='");
	add_flag_words(global_flags, out);
	buf_adds(out, "'\n");
}

static void print_bash(struct buf *out)
{
	buf_adds(out, "# bash completion of tidemill: source <(tidemill completion bash)\n"
		      "_tidemill() {\n"
		      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} place='' i verbs='' flags=''\n"
		      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
		      "\t\t[[ ${COMP_WORDS[i]} == -* ]] || place+=\"${place:+ }${COMP_WORDS[i]}\"\n"
		      "\tdone\n");
	add_cases(out);
	buf_adds(out, "\tif [[ $cur == -* ]]; then\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$cur\")\n"
		      "\telif [[ -n $verbs ]]; then\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$verbs\" -- \"$cur\")\n"
		      "\telse\n"
		      "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
		      "\tfi\n"
		      "}\n"
		      "complete -o filenames -F _tidemill tidemill\n");
}

static void print_zsh(struct buf *out)
{
	buf_adds(out,
		"#compdef tidemill\n"
		"# zsh completion of tidemill: source <(tidemill completion zsh) after compinit, "
		"or as _tidemill\n# in a folder of $fpath\n"
		"_tidemill() {\n"
		"\tlocal place='' verbs='' flags='' i\n"
		"\tfor ((i = 2; i < CURRENT; i++)); do\n"
		"\t\t[[ ${words[i]} == -* ]] || place+=\"${place:+ }${words[i]}\"\n"
		"\tdone\n");
	add_cases(out);
	buf_adds(out, "\tif [[ ${words[CURRENT]} == -* ]]; then\n"
		      "\t\tcompadd -- ${=flags}\n"
		      "\telif [[ -n $verbs ]]; then\n"
		      "\t\tcompadd -- ${=verbs}\n"
		      "\telse\n"
		      "\t\t_files\n"
		      "\tfi\n"
		      "}\n"
		      "if [[ $funcstack[1] == _tidemill ]]; then _tidemill; else compdef _tidemill "
		      "tidemill; "
		      "fi\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void add_quoted(const char *text, struct buf *out)
{
	buf_addc(out, '\'');
	for (; *text != '\0'; text++) {
		if (*text == '\'' || *text == '\\')
			buf_addc(out, '\\');
		buf_addc(out, *text);
	}
	buf_addc(out, '\'');
}

static void add_fish_words(struct str place, struct buf *out)
{
	struct str last = STR_NONE;

	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		struct str name = str_c(cmd->name);
		if (!is_below(name, place))
			continue;
		struct str word = next_word(name, place);
		bool whole = name.n == word.n + place.n + (place.n != 0 ? 1 : 0);
		if (str_eq(word, last))
			continue;
		last = word;
		buf_addf(out, "complete -c tidemill -f -n '__tidemill_at \"%.*s\"' -a %.*s",
			STR_ARG(place), STR_ARG(word));
		if (whole) {
			buf_adds(out, " -d ");
			add_quoted(cmd->doc, out);
		}
		buf_addc(out, '\n');
	}
}

static void add_fish_flags(const char *command, const struct flag *flags, struct buf *out)
{
	for (const struct flag *f = flags; f != NULL && f->name != NULL; f++) {
		buf_adds(out, "complete -c tidemill");
		if (command != NULL)
			buf_addf(out, " -n '__tidemill_in \"%s\"'", command);
		buf_addf(out, " -l %s", f->name);
		if (f->letter != 0)
			buf_addf(out, " -s %c", f->letter);
		buf_adds(out, f->type != FLAG_BOOL ? " -r -d " : " -d ");
		add_quoted(f->doc, out);
		buf_addc(out, '\n');
	}
}

static void print_fish(struct buf *out)
{
	buf_adds(out, "# fish completion of tidemill: tidemill completion fish | source\n"
		      "function __tidemill_place\n"
		      "\tset -l given (commandline -opc)\n"
		      "\tset -e given[1]\n"
		      "\tstring match -v -- '-*' $given | string join ' '\n"
		      "end\n"
		      "function __tidemill_at\n"
		      "\tset -l place (__tidemill_place)\n"
		      "\ttest \"$place\" = $argv[1]\n"
		      "end\n"
		      "function __tidemill_in\n"
		      "\tset -l place (__tidemill_place)\n"
		      "\tstring match -q -- \"$argv[1] *\" \"$place \"\n"
		      "end\n");
	each_place(add_fish_words, out);
	for (const struct command *cmd = commands; cmd->name != NULL; cmd++)
		add_fish_flags(cmd->name, cmd->flags, out);
	add_fish_flags(NULL, global_flags, out);
}

bool completion_print(struct str shell, struct buf *out)
{
	static const struct {
		const char *name;
		void (*print)(struct buf *out);
	} rows[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!str_is(shell, rows[i].name))
			continue;
		rows[i].print(out);
		return true;
	}
	return false;
}
