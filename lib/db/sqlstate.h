/* From PostgreSQL's error codes to ours. The only place that reads them. For lib/db only. */
#ifndef LIB_DB_SQLSTATE_H
#define LIB_DB_SQLSTATE_H
#include "lib/base/err.h"

#include <stdbool.h>

enum sqlstate_action {
	SQLSTATE_FAIL, /* the unit's own fault, or nothing to be done */
	SQLSTATE_RESEND, /* lost against others: the same again may pass */
	SQLSTATE_RENEW, /* may pass in a new session: the prepared statements are out of date */
	SQLSTATE_RECONNECT /* this server cannot do the work now, another session may */
};

/* Sets code and message for `state` ("23505"); `primary` is the server's own first sentence. */
enum sqlstate_action sqlstate_read(const char *state, const char *primary, struct err *e);
/* Worth a warning: neither a user's mistake nor a lost race. */
bool sqlstate_is_odd(const char *state);

#endif
