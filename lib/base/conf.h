/*
 * Settings: one table per program says name, type, bounds, default and meaning. A value comes from
 * the command line (--name=value), else the environment (TIDEMILL_NAME), else the settings file
 * (`name = value` lines, # comments), else the default. A secret is never taken from the command
 * line, where every user of the host could read it, but from NAME_FILE too: a file that holds it.
 *
 * Values land in a plain struct; texts live in the arena. The same table prints --help and the
 * reference in docs/config.md.
 */
#ifndef LIB_BASE_CONF_H
#define LIB_BASE_CONF_H
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

enum conf_type {
	CONF_TEXT, /* struct str */
	CONF_SECRET, /* struct str */
	CONF_INT, /* int64_t */
	CONF_BOOL, /* bool: true or 1, false or 0; --name alone is true */
	CONF_SIZE, /* int64_t: "1GiB" */
	CONF_SPAN, /* int64_t microseconds: "30s"; no months */
	CONF_LIST /* struct list of struct str, separated by commas */
};

struct conf_row {
	const char *name; /* "database-url" */
	enum conf_type type;
	size_t off;
	const char *fallback; /* text of the default; NULL: empty, 0, false */
	int64_t min, max; /* INT, SIZE, SPAN; 0, 0: no bounds */
	const char *doc;
	bool used_up; /* SECRET: needed once; the file that NAME_FILE names may be gone */
};

/* Reads all rows (the table ends with name NULL) into *out. argv holds the options only; what does
 * not begin with "--" ends them, and *ret_used says how many were read. `file` may be NULL; when
 * it is named it must exist. ERR_INVALID names the setting and where its value came from. */
int conf_load(const struct conf_row *rows, const char *file, int argc, const char *const *argv,
	int *ret_used, struct arena *a, void *out, struct err *e) MUST_CHECK;
/* For --help, and as a Markdown table. */
void conf_help(const struct conf_row *rows, struct buf *out);
void conf_markdown(const struct conf_row *rows, struct buf *out);

#endif
