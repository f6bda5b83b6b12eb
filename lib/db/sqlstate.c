#include "lib/db/sqlstate.h"

#include "lib/base/str.h"

/* The first row whose prefix fits decides; most special first. */
static const struct {
	const char *prefix;
	enum err_code code;
	enum sqlstate_action action;
	const char *text;
} rows[] = {
	{ "21000", ERR_INVALID, SQLSTATE_FAIL, "The same key is there twice" },
	{ "23505", ERR_CONFLICT, SQLSTATE_FAIL, "It exists already" },
	{ "23P01", ERR_CONFLICT, SQLSTATE_FAIL, "It overlaps with one that exists already" },
	{ "23503", ERR_NOT_FOUND, SQLSTATE_FAIL, "It refers to something that does not exist" },
	{ "23514", ERR_INVALID, SQLSTATE_FAIL, "A value is not allowed" },
	{ "23", ERR_INTERNAL, SQLSTATE_FAIL, "A stored object would not be whole" },
	{ "22", ERR_INVALID, SQLSTATE_FAIL, "A value is not valid" },
	{ "40001", ERR_UNAVAILABLE, SQLSTATE_RESEND,
		"Others are changing the same data; try again" },
	{ "40P01", ERR_UNAVAILABLE, SQLSTATE_RESEND,
		"Others are changing the same data; try again" },
	{ "55P03", ERR_UNAVAILABLE, SQLSTATE_FAIL, "Others are holding the same data; try again" },
	{ "57014", ERR_TIMEOUT, SQLSTATE_FAIL, "The database took too long" },
	{ "25006", ERR_DATABASE, SQLSTATE_RECONNECT, "The database takes no writes now" },
	{ "26000", ERR_DATABASE, SQLSTATE_RESEND, "The database session has been replaced" },
	/* After DDL: "cached plan must not change result type". */
	{ "0A000", ERR_INTERNAL, SQLSTATE_RENEW, "The database refused a statement" },
	{ "53100", ERR_NO_SPACE, SQLSTATE_FAIL, "The database has no space left" },
	{ "53", ERR_DATABASE, SQLSTATE_FAIL, "The database is short of resources" },
	{ "57", ERR_DATABASE, SQLSTATE_RECONNECT, "The database is shutting down or starting" },
	{ "58", ERR_DATABASE, SQLSTATE_FAIL, "The database has a system error" },
	{ "08", ERR_DATABASE, SQLSTATE_RECONNECT, "The database connection failed" },
	{ "", ERR_INTERNAL, SQLSTATE_FAIL, "The database refused a statement" },
};

enum sqlstate_action sqlstate_read(const char *state, const char *primary, struct err *e)
{
	struct str s = str_c(state), says = str_c(primary);
	size_t i = 0;

	if (str_is(s, "23503") && str_starts(says, STR("update or delete"))) {
		(void)err_set(e, ERR_CONFLICT, "It is still in use");
		return SQLSTATE_FAIL;
	}
	while (!str_starts(s, str_c(rows[i].prefix)))
		i++;
	(void)err_set(e, rows[i].code, "%s", rows[i].text);
	return rows[i].action;
}

bool sqlstate_is_odd(const char *state)
{
	struct str s = str_c(state);

	return !str_starts(s, STR("23")) && !str_starts(s, STR("22")) &&
	       !str_starts(s, STR("40")) && !str_is(s, "57014");
}
