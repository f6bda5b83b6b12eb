/* What keeps a run or a step waiting, in words. */
#ifndef CLI_WAITS_H
#define CLI_WAITS_H
#include "cli/cli.h"
#include "lib/json/json_read.h"

/* To stderr: what a run waits for that nothing runs of, or that no worker can ever take; once, and
 * again when that changes. `said` begins as STR_NONE. */
void waits_say(struct cli *c, const struct jsn *run, struct str *said);

#endif
