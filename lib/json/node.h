/* Inside lib/json: the value tree that JSON and YAML are read into. Nodes lie in the document's
 * arena; strings of JSON lie in the jansson tree that the document keeps. */
#ifndef LIB_JSON_NODE_H
#define LIB_JSON_NODE_H
#include "lib/json/json_read.h"

struct jsn {
	enum jsn_type type;
	unsigned line, col; /* YAML only; from 1; of the key for a member */
	struct str key; /* of a member; NUL-terminated */
	union {
		bool b;
		int64_t i;
		double r;
		struct str s;
		struct {
			struct jsn *at;
			size_t n;
		} kids;
	};
};

struct jsn_doc {
	struct arena *a;
	void *tree; /* json_t, or NULL */
	struct jsn root;
	bool any_text, wide; /* strings may hold U+0000; all numbers came as reals */
};

struct jsn_doc *jsn_doc_new(size_t limit);
/* The value at a JSON pointer, or its deepest parent that exists. */
const struct jsn *jsn_nearest(const struct jsn *v, const char *pointer);

/* Optimal string alignment distance (insert, delete, replace, swap neighbours), or more than `max`
 * as soon as that is certain. */
unsigned jsn_distance(struct str a, struct str b, unsigned max);

/* field_scalar.c: one scalar by its row's type into *out. */
struct field_reader {
	struct arena *a;
	enum field_mode mode;
	bool text; /* values came as text: their JSON type says nothing */
	struct err *e;
};
int field_read_scalar(
	struct field_reader *r, const struct field *f, const struct jsn *v, void *out) MUST_CHECK;
/* "must be X, not Y". Returns -1. */
int field_wrong_type(struct field_reader *r, const char *wanted, const struct jsn *v);
/* A copy in the reader's arena; -1 with ERR_TOO_LARGE when it has no room. */
int field_copy(struct field_reader *r, struct str s, struct str *ret) MUST_CHECK;
void *field_take(struct field_reader *r, size_t n, size_t size); /* NULL likewise */
/* The value that this text stands for in a row of this type. */
struct jsn field_text_value(enum field_type type, struct str text);
/* Bytes of a scalar of this type in a struct or a list. */
size_t field_scalar_size(enum field_type type);
/* Length or count against the row's bounds. */
int field_check_count(
	struct field_reader *r, const struct field *f, size_t n, const char *what) MUST_CHECK;

/* Decodes the members of v into the zeroed struct `out`. */
int field_read_object(
	struct field_reader *r, const struct field *t, const struct jsn *v, void *out) MUST_CHECK;
/* The bytes that the rows of a table may write to. */
size_t field_extent(const struct field *t);
/* True when a scalar or list is to be left out or written as null. */
bool field_absent(const struct field *f, const void *in);

#endif
