#include "cli/manual.h"

#include "cli/help.h"

/* Text as roff: what it would take for its own is escaped. */
static void add(const char *text, struct buf *out)
{
	if (*text == '.' || *text == '\'')
		buf_adds(out, "\\&");
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			buf_adds(out, "\\e");
		else if (*text == '-')
			buf_adds(out, "\\-");
		else
			buf_addc(out, *text);
	}
}

static void add_line(const char *before, const char *text, struct buf *out)
{
	buf_adds(out, before);
	add(text, out);
	buf_addc(out, '\n');
}

static void add_flags(const struct flag *flags, struct buf *out)
{
	for (const struct flag *f = flags; f != NULL && f->name != NULL; f++) {
		buf_adds(out, ".TP\n.B ");
		if (f->letter != 0)
			buf_addf(out, "\\-%c, ", f->letter);
		buf_adds(out, "\\-\\-");
		add(f->name, out);
		if (f->type != FLAG_BOOL)
			buf_addf(out, " \\fI%s\\fR%s", f->arg, f->type == FLAG_LIST ? " …" : "");
		add_line("\n", f->doc, out);
	}
}

static void add_commands(struct buf *out)
{
	buf_adds(out, ".SH COMMANDS\n");
	for (const struct command *cmd = commands; cmd->name != NULL; cmd++) {
		buf_adds(out, ".SS ");
		add(cmd->name, out);
		if (cmd->args[0] != '\0') {
			buf_adds(out, " \\fI");
			add(cmd->args, out);
			buf_adds(out, "\\fR");
		}
		add_line("\n", cmd->doc, out);
		buf_adds(out, ".\n");
		add_flags(cmd->flags, out);
	}
}

static void add_notes(const char *head, const struct help_note *notes, struct buf *out)
{
	buf_addf(out, ".SH %s\n", head);
	for (; notes->name != NULL; notes++) {
		add_line(".TP\n.B ", notes->name, out);
		add_line("", notes->doc, out);
	}
}

void manual_print(struct buf *out)
{
	buf_addf(out,
		".TH TIDEMILL 1 \"\" \"Tidemill %s\" \"User Commands\"\n"
		".SH NAME\ntidemill \\- train, watch and retrain models on a Tidemill server\n"
		".SH SYNOPSIS\n.B tidemill\n.I COMMAND\n[\\fIARGUMENTS\\fR] [\\fIFLAGS\\fR]\n"
		".SH DESCRIPTION\n"
		"Data goes to standard output, everything else to standard error. Objects are "
		"shown as a table on a terminal, separated by tabs when not, and with \\fB\\-o "
		"json\\fR as the API gives them.\n",
		TIDEMILL_VERSION);
	add_commands(out);
	buf_adds(out, ".SH OPTIONS\nof every command:\n");
	add_flags(global_flags, out);
	add_notes("EXIT STATUS", help_exit_codes, out);
	add_notes("ENVIRONMENT", help_environment, out);
}
