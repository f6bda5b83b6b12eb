/*
 * Read access to JSON whose form is not known beforehand. A document owns everything that is
 * reached from it; strings are views into it, valid until jsn_doc_free(). Limits and failures are
 * those of lib/json/field.h: strict RFC 8259, no duplicate members, no NUL in strings,
 * whole numbers within int64, 32 levels, 50,000 values.
 */
#ifndef LIB_JSON_JSON_READ_H
#define LIB_JSON_JSON_READ_H
#include "lib/json/field.h"

enum jsn_type { JSN_NULL, JSN_BOOL, JSN_INT, JSN_REAL, JSN_STR, JSN_LIST, JSN_OBJ };

struct jsn_doc;
struct jsn; /* a value within a document */

int jsn_parse(struct str text, struct jsn_doc **ret_doc, struct err *e) MUST_CHECK;
/*
 * For what our own server answers: strings may hold U+0000 (a line of a log may), and whole numbers
 * beyond int64 are read as reals (PostgreSQL's jsonb writes 1e300 with all its digits).
 */
int jsn_parse_answer(struct str text, struct jsn_doc **ret_doc, struct err *e) MUST_CHECK;
void jsn_doc_free(struct jsn_doc *d); /* NULL is fine */
const struct jsn *jsn_root(const struct jsn_doc *d);

/* All of these take NULL for a value that is not there, so that lookups can be chained. */
enum jsn_type jsn_type(const struct jsn *v); /* JSN_NULL for NULL */
const char *jsn_type_name(enum jsn_type t); /* "a string" */
const struct jsn *jsn_get(const struct jsn *v, const char *name); /* NULL when not there */
const struct jsn *jsn_at(const struct jsn *v, size_t i); /* item or member; NULL past the end */
size_t jsn_count(const struct jsn *v); /* items or members */
struct str jsn_name(const struct jsn *v); /* the key of a member */
/* By JSON pointer (RFC 6901), "" being the value itself. */
const struct jsn *jsn_find(const struct jsn *v, const char *pointer);

/* The value, or the default when it is not there or of another type. */
struct str jsn_get_str(const struct jsn *v); /* STR_NONE */
int64_t jsn_get_int(const struct jsn *v, int64_t otherwise);
double jsn_get_real(const struct jsn *v, double otherwise); /* whole numbers too */
bool jsn_get_bool(const struct jsn *v, bool otherwise);

/* Compact text of a value, members in the order written. */
void jsn_write(const struct jsn *v, struct buf *out);

/* Decodes a part by a field table. The pointers in errors start at this value. */
int jsn_decode(const struct jsn *v, const struct field *t, enum field_mode mode, struct arena *a,
	void *out, struct err *e) MUST_CHECK;

#endif
