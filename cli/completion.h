/* Scripts that let shells complete our words, made of the table of commands. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H
#include "lib/base/buf.h"

/* Of bash, zsh or fish; false for another shell. */
bool completion_print(struct str shell, struct buf *out);

#endif
