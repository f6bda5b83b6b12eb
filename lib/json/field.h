/*
 * Field tables: one table per message says how it is decoded, checked, encoded and described.
 *
 *     struct thing { struct str name; int64_t n; bool has_n; struct list tags; };
 *     const struct field thing_fields[] = {
 *         { "name", FIELD_STR, FIELD_REQUIRED | FIELD_NAME, offsetof(struct thing, name),
 *           .doc = "Unique in its project" },
 *         { "n", FIELD_INT, 0, offsetof(struct thing, n), FIELD_HAS(struct thing, has_n),
 *           .min = 1, .max = 100 },
 *         { "tags", FIELD_LIST, 0, offsetof(struct thing, tags), .item = FIELD_STR, .item_max = 63,
 *           .max = 20 },
 *         { 0 } };
 *
 * A table ends with a row whose name is NULL. Tables are constant data, structs are plain C; the
 * decoder zeroes the struct first; after a failure its contents mean nothing. All bytes of the
 * result (strings, lists) are copies in the arena and strings are NUL-terminated there. No input
 * can take the arena past its limit: what does not fit is ERR_TOO_LARGE.
 *
 * Failures: ERR_MALFORMED when the text does not parse (the message has line and column),
 * ERR_INVALID when a value breaks its rule; in both, e->field is the JSON pointer of the culprit.
 * Limits on any text: 32 levels, 50,000 values (ERR_INVALID). Nothing here blocks or logs; no
 * state.
 */
#ifndef LIB_JSON_FIELD_H
#define LIB_JSON_FIELD_H
#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

enum field_type {
	FIELD_BOOL, /* bool */
	FIELD_INT, /* int64_t */
	FIELD_REAL, /* double; finite unless FIELD_NONFINITE */
	FIELD_STR, /* struct str: valid UTF-8, no NUL */
	FIELD_ENUM, /* int: the index in names */
	FIELD_TIME, /* int64_t: RFC 3339 <-> microseconds */
	FIELD_DATE, /* int64_t: "2001-01-31" <-> its midnight in UTC, in microseconds */
	FIELD_SPAN, /* struct field_span: "30m", "1q" */
	FIELD_SIZE, /* int64_t: bytes, as a number or "1GiB"; encoded as a number */
	FIELD_OBJ, /* the struct of `sub`, embedded */
	FIELD_LIST, /* struct list: structs of `sub` and `size`, or without sub scalars of `item` */
	FIELD_MAP, /* struct list of struct field_pair: string -> string, in the order written */
	FIELD_DICT, /* struct list of structs of `sub` and `size` whose first member is the key, a
		       struct str that has no row in `sub`; in the order written */
	FIELD_RAW, /* struct str: the compact JSON text of any value */
	FIELD_TYPE_COUNT
};
/* A value with several forms: taken as text, interpreted by the caller. */
#define FIELD_ANY FIELD_RAW

enum {
	FIELD_REQUIRED = 1,
	FIELD_READONLY = 2, /* refused in requests, present in replies */
	FIELD_WRITEONLY = 4, /* never encoded */
	FIELD_NULLABLE = 8, /* null is accepted, and encoded when the value is absent */
	/* Not encoded when the value is absent, a list without items, or a string of no bytes whose
	 * row has no `has`. Without this flag and without NULLABLE, an absent STR is encoded as ""
	 * when its row has no `has`, and any other absent value is left out. */
	FIELD_OMIT_EMPTY = 16,
	FIELD_NAME = 32, /* str_is_name(): of a STR, of the strings in a LIST, of the keys in a MAP
			    or DICT */
	FIELD_TEXT = 64, /* \n and \t are allowed; other control characters never are */
	FIELD_NONFINITE = 128, /* REAL also takes "NaN", "Infinity", "-Infinity"; encoded so */
};

struct field {
	const char *name;
	enum field_type type;
	unsigned flags;
	size_t off;
	/* FIELD_HAS(struct x, has_y): a bool that says whether the value is there. Without one, a
	 * value is absent when: STR p is NULL; RAW, SPAN n is 0; TIME is 0; others are never
	 * absent. */
	size_t has;
	/* The same for a bool that tells an explicit null from a missing member (merge patches). */
	size_t null;
	/* INT, SIZE, TIME, DATE: bounds of the value; SPAN: in microseconds, a month being 30 days.
	 * min = max = 0 is no bound, max = 0 < min is no upper bound.
	 * STR: length in code points; RAW: in bytes of compact text; LIST, MAP, DICT: number of
	 * items. max = 0 is the default limit of the type, below. */
	int64_t min, max;
	double rmin, rmax; /* REAL; 0, 0 is no bound, rmax = 0 < rmin is no upper bound */
	const char *const *names; /* ENUM: NULL-terminated */
	const struct field *sub; /* OBJ, DICT, LIST of objects */
	size_t size; /* sizeof the struct of sub; LIST and DICT */
	enum field_type item; /* LIST without sub: BOOL INT REAL STR ENUM TIME DATE SIZE RAW */
	int64_t item_min, item_max; /* bounds of each item of a LIST, or of each value of a MAP */
	int64_t key_max; /* bytes of a key of MAP and DICT; 0: 255. Keys are never empty */
	const char *doc;
	/* The value of a missing member, as plain text ("10m", "true", "0.1"); has stays false. */
	const char *fallback;
	/* RAW: the JSON text of its schema. When it begins with {"type":"object" requests must
	 * give an object; the rest of a schema only describes. */
	const char *schema;
};
#define FIELD_HAS(type, member) (offsetof(type, member) + 1)

enum {
	FIELD_STR_MAX = 1024, /* default limits */
	FIELD_LIST_MAX = 1000,
	FIELD_MAP_MAX = 64,
	FIELD_RAW_MAX = 65536,
	FIELD_KEY_MAX = 255,
	FIELD_SPAN_YEARS = 1000, /* also of rows with a limit of their own: what no date can take */
	FIELD_DEPTH_MAX = 32, /* limits of any text */
	FIELD_NODES_MAX = 50000,
	FIELD_ROWS_MAX = 256, /* of a table */
};

struct field_pair {
	struct str key, value;
};

struct field_span {
	struct clock_span span;
	struct str text; /* as it was written */
};

/* What a table's reader may expect. */
enum field_mode {
	FIELD_STRICT, /* requests and files: unknown members are refused, with a suggestion */
	FIELD_REPLY, /* other programs' replies: unknown members ignored, READONLY ones decoded */
	/* MLflow's requests: unknown members ignored, null is absent, whole numbers as strings and
	 * strings as whole numbers, ENUM by number too, "nan" and "inf", any control character in a
	 * TEXT. */
	FIELD_LAX,
};

/* The text must be one JSON object. */
int field_decode(const struct field *t, struct str json_text, struct arena *a, void *out,
	struct err *e) MUST_CHECK;
int field_decode_reply(const struct field *t, struct str json_text, struct arena *a, void *out,
	struct err *e) MUST_CHECK;
int field_decode_loose(const struct field *t, struct str json_text, struct arena *a, void *out,
	struct err *e) MUST_CHECK;
/* Scalars from text: query parameters, settings, command-line options. Each value is read by its
 * row's type; a LIST of scalars is separated by commas. A key may come once. */
int field_decode_pairs(const struct field *t, const struct field_pair *pairs, size_t n,
	struct arena *a, void *out, struct err *e) MUST_CHECK;

/* The compact JSON object. Cannot fail but by the ceiling of `out`. */
void field_encode(const struct field *t, const void *in, struct buf *out);

/* JSON Schema 2020-12 of the object, without "$schema". READONLY and WRITEONLY become readOnly and
 * writeOnly. Required are the members that a request must have, and of READONLY ones those that
 * every reply has: neither OMIT_EMPTY nor, unless NULLABLE, with a `has`. */
void field_schema(const struct field *t, struct buf *out);
/* The schema of one row alone: what a query parameter of that row takes. */
void field_schema_row(const struct field *f, struct buf *out);

/* The members that may be given, for people: a Markdown table, those of embedded objects by a
 * dotted name; objects in lists and dictionaries have tables of their own below, headed by their
 * place
 * ("steps.NAME"). `place` "" has no head. */
void field_doc(const struct field *t, const char *place, struct buf *out);

/* Finds what is wrong in a table itself and those below it: rows that are there twice, sizes too
 * small for their table, a missing table or list of names, bounds that cross, a fallback that
 * breaks its own rule, a schema that is not JSON. `size` is that of the struct. For tests; the
 * decoder takes tables as they are.
 */
int field_table_check(const struct field *t, size_t size, struct err *e) MUST_CHECK;

/* The row with this name, or NULL. */
const struct field *field_find(const struct field *t, struct str name);
/* The name of the row that `name` may have been meant to be, or NULL. */
const char *field_suggest(const struct field *t, struct str name);

#endif
