/* Help, made of the table of commands. */
#ifndef CLI_HELP_H
#define CLI_HELP_H
#include "cli/cli.h"

/* Of the program without words, of a group ("model", "model alias"), of a command, or of a topic
 * ("exit-codes", "environment", "man": the manual page). False for other words. */
bool help_words(int n, const char *const *words, struct buf *out);
void help_command(const struct command *cmd, struct buf *out);
/* ERR_INVALID that says that there is no such command, and which one may have been meant. */
int help_unknown(int n, const char *const *words, struct err *e);

/* What stands under a topic; ends with name NULL. The codes are those of enum cli_exit. */
struct help_note {
	const char *name, *doc;
};
extern const struct help_note help_exit_codes[], help_environment[];

#endif
