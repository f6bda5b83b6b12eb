/*
 * Substitution of ${…} in what users write. A reference is a name (letters, digits, '_', '-', '.'),
 * for dates followed by " + " or " - " and a duration: ${window.start - 3y}. The spaces around the
 * sign are needed, because names may hold a '-'. "$${" stands for a literal "${"; every other '$'
 * is itself. The result is text: it is never passed through a shell here, and never read again.
 *
 * A text that refers to something that is known only later (the outputs of an earlier step) is kept
 * as it was written, after all its references have been checked, and is rendered from there when
 * the time has come. Pure; results live in the arena. Errors are ERR_INVALID with an empty pointer,
 * to be prefixed by the caller.
 */
#ifndef SERVER_CORE_RENDER_H
#define SERVER_CORE_RENDER_H
#include "server/core/names.h"

enum render_kind {
	RENDER_TEXT,
	RENDER_NUMBER, /* as text; no arithmetic */
	RENDER_DATE, /* a day: 2001-01-31; takes whole days, months and years */
	RENDER_TIME, /* an instant: RFC 3339; takes any duration */
	RENDER_LATER /* exists, but has no value yet */
};

struct render_value {
	enum render_kind kind;
	struct str text; /* TEXT, NUMBER */
	int64_t us; /* DATE, TIME */
};

/* Looks a name up; false when it does not exist. Asked twice, it must answer the same. */
typedef bool render_find(const void *arg, struct str name, struct render_value *ret);

struct render_scope {
	render_find *find;
	const void *arg;
	const struct str *names; /* what exists, for "did you mean"; may be empty */
	size_t names_n;
};

/* The plainest scope: names[i] has values[i]. Everything stays the caller's, and is looked through
 * from the first on. */
struct render_list {
	const struct str *names;
	const struct render_value *values;
	size_t n;
};
struct render_scope render_list_scope(const struct render_list *l);

/* max: bytes of the result. *ret_later (may be NULL): something is not known yet, and *ret is the
 * text as it came. */
int render_text(struct str text, const struct render_scope *s, size_t max, struct arena *a,
	struct str *ret, bool *ret_later, struct err *e) MUST_CHECK;
bool render_has_reference(struct str text); /* a "${" that is not escaped */

#endif
