#include "cli/command.h"

const struct flag global_flags[] = {
	{ "server", FLAG_TEXT, .arg = "URL", .doc = "The server (TIDEMILL_SERVER)" },
	{ "project", FLAG_TEXT, .letter = 'p', .arg = "NAME",
		.doc = "The project (TIDEMILL_PROJECT)" },
	{ "token-stdin", FLAG_BOOL,
		.doc = "Read the token from stdin (else TIDEMILL_TOKEN, TIDEMILL_TOKEN_FILE)" },
	{ "ca-file", FLAG_TEXT, .arg = "FILE", .doc = "Certificates to trust (TIDEMILL_CA_FILE)" },
	{ "insecure-http", FLAG_BOOL,
		.doc = "Send the token over plain HTTP to other hosts (TIDEMILL_INSECURE_HTTP)" },
	{ "output", FLAG_TEXT, .letter = 'o', .arg = "FORMAT",
		.doc = "table, json (the API's object unchanged), jsonl or name" },
	{ "no-color", FLAG_BOOL, .doc = "No colours (NO_COLOR)" },
	{ "quiet", FLAG_BOOL, .letter = 'q', .doc = "Only data and errors" },
	{ "help", FLAG_BOOL, .letter = 'h', .doc = "Help" },
	{ "version", FLAG_BOOL, .letter = 'V', .doc = "The program's version" },
	{ 0 },
};

/* How many words of the name argv begins with; 0 unless all of them. */
static int words_matched(const char *name, int argc, const char *const *argv)
{
	struct str rest = str_c(name), word;
	int n = 0;

	while (str_next(&rest, ' ', &word)) {
		if (n >= argc || !str_is(word, argv[n]))
			return 0;
		n++;
	}
	return n;
}

const struct command *command_find(int argc, const char *const *argv, int *ret_words)
{
	const struct command *best = NULL;
	int most = 0;

	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		int n = words_matched(cmd->name, argc, argv);
		if (n > most) {
			best = cmd;
			most = n;
		}
	}
	*ret_words = most;
	return best;
}

enum { WORD_MAX = 64, NEAR = 2, FAR = 3 };

/* Levenshtein's distance, with more than WORD_MAX bytes being far away. */
static int distance(struct str a, struct str b)
{
	int row[WORD_MAX + 1];

	if (a.n > WORD_MAX || b.n > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= b.n; j++)
		row[j] = (int)j;
	for (size_t i = 1; i <= a.n; i++) {
		int diagonal = row[0];
		row[0] = (int)i;
		for (size_t j = 1; j <= b.n; j++) {
			int above = row[j], best = diagonal + (a.p[i - 1] != b.p[j - 1]);
			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
			diagonal = above;
		}
	}
	return row[b.n];
}

/* The distance between the name's words and as many words of argv. */
static int name_distance(const char *name, int argc, const char *const *argv)
{
	struct str rest = str_c(name), word;
	int n = 0, sum = 0;

	while (str_next(&rest, ' ', &word)) {
		sum += n < argc ? distance(word, str_c(argv[n])) : FAR;
		n++;
	}
	return sum;
}

struct str command_suggest(int argc, const char *const *argv)
{
	struct str best = STR_NONE;
	int least = NEAR + 1;

	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		struct str rest = str_c(cmd->name), group;
		int d = name_distance(cmd->name, argc, argv);
		(void)str_next(&rest, ' ', &group);
		if (d < least) {
			best = str_c(cmd->name);
			least = d;
		}
		d = argc == 1 ? distance(group, str_c(argv[0])) : least;
		if (d < least && (size_t)d < group.n) {
			best = group;
			least = d;
		}
	}
	return best;
}

void command_arity(const struct command *cmd, int *ret_min, int *ret_max)
{
	struct str rest = str_c(cmd->args), word;

	*ret_min = 0;
	*ret_max = 0;
	while (rest.n != 0 && str_next(&rest, ' ', &word)) {
		if (word.p[0] != '[')
			(*ret_min)++;
		if (*ret_max >= 0)
			(*ret_max)++;
		if (str_find(word, STR("...")) >= 0)
			*ret_max = -1;
	}
}

static const struct flag *in_table(const struct flag *table, struct str name, char letter)
{
	for (const struct flag *f = table; f != NULL && f->name != NULL; f++) {
		if (letter != 0 ? f->letter == letter : str_is(name, f->name))
			return f;
	}
	return NULL;
}

const struct flag *command_flag(const struct command *cmd, struct str name)
{
	const struct flag *f = cmd != NULL ? in_table(cmd->flags, name, 0) : NULL;

	return f != NULL ? f : in_table(global_flags, name, 0);
}

const struct flag *command_letter(const struct command *cmd, char letter)
{
	const struct flag *f = cmd != NULL ? in_table(cmd->flags, STR_NONE, letter) : NULL;

	return f != NULL ? f : in_table(global_flags, STR_NONE, letter);
}
