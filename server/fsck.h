/* `tidemill-server fsck`: whether what must hold does. Reads only; may run beside a server. */
#ifndef SERVER_FSCK_H
#define SERVER_FSCK_H
#include "lib/base/err.h"
#include "server/settings.h"

/* Prints each fault, and how much was looked at. `deep` reads all logs and all bytes of the
 * store and compares their digests. ERR_CORRUPT when something does not hold. */
int command_fsck(const struct settings *conf, bool deep, struct err *e) MUST_CHECK;

#endif
