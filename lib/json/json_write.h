/*
 * Streaming writer of compact JSON into a struct buf: no tree, no allocation of its own. Commas are
 * put by the writer; nesting that does not match is a bug and aborts. Failure is that of the buffer
 * (its ceiling). The prefix is jsn_ because json_ is jansson's.
 *
 *     struct jsn_out w = jsn_out(&buf);
 *     jsn_obj_begin(&w); jsn_key(&w, "n"); jsn_int(&w, 7); jsn_obj_end(&w);
 */
#ifndef LIB_JSON_JSON_WRITE_H
#define LIB_JSON_JSON_WRITE_H
#include "lib/base/buf.h"

struct jsn_out {
	struct buf *buf;
	unsigned depth; /* up to 63 */
	uint64_t more, object; /* a bit per level: has members, is an object */
	bool keyed; /* a key has been written, its value not yet */
};

struct jsn_out jsn_out(struct buf *b);
void jsn_obj_begin(struct jsn_out *w);
void jsn_obj_end(struct jsn_out *w);
void jsn_list_begin(struct jsn_out *w);
void jsn_list_end(struct jsn_out *w);
void jsn_key(struct jsn_out *w, const char *name);
void jsn_key_str(struct jsn_out *w, struct str name);
void jsn_str(struct jsn_out *w, struct str s); /* bytes that are not UTF-8 become U+FFFD */
void jsn_text(struct jsn_out *w, const char *z); /* NULL is null */
void jsn_int(struct jsn_out *w, int64_t v);
void jsn_real(struct jsn_out *w, double v); /* "NaN", "Infinity", "-Infinity" as strings */
void jsn_bool(struct jsn_out *w, bool v);
void jsn_null(struct jsn_out *w);
void jsn_time(struct jsn_out *w, int64_t us); /* RFC 3339 */
void jsn_raw(struct jsn_out *w, struct str json_text); /* trusted JSON text, copied as it is */

/* The pieces without a writer: a quoted and escaped string, a real number. */
void jsn_put_str(struct buf *b, struct str s);
void jsn_put_real(struct buf *b, double v);

#endif
