/* Help and completion, made of the table of commands. */
#ifndef CLI_HELP_H
#define CLI_HELP_H
#include "cli/cli.h"

void help_program(struct buf *out);
void help_noun(struct str noun, struct buf *out);
void help_command(const struct command *cmd, struct buf *out);
void help_exit_codes(struct buf *out);
void help_completion(struct buf *out);
/* Whether some command begins with this word. */
bool help_is_noun(struct str word);

#endif
