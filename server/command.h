/* The local commands of tidemill-server: they talk to the database directly and exit. */
#ifndef SERVER_COMMAND_H
#define SERVER_COMMAND_H
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "server/settings.h"

/* Applies what is missing of the migrations that are compiled in; *ret_version: the last of them.
 */
int command_migrate(const struct settings *conf, int64_t *ret_version, struct err *e) MUST_CHECK;
/* Prints a bootstrap token, which makes the first administrator: one use, one hour. With `recover`
 * also when there are administrators. */
int command_bootstrap(const struct settings *conf, bool recover, struct err *e) MUST_CHECK;
/* Prints what the scheduler would see and decide now, for command_replay. */
int command_snapshot(const struct settings *conf, struct err *e) MUST_CHECK;
/* Decides a recorded snapshot anew and says how that compares with what was recorded, and why the
 * step (may be NULL) waits. Fails when it differs. Needs no database. */
int command_replay(const char *file, const char *step, struct err *e) MUST_CHECK;
/* Prints a join token for one worker of the pool. */
int command_join_token(const struct settings *conf, const char *pool, struct err *e) MUST_CHECK;

#endif
