/*
 * HTTP/1.1 messages as a server reads them (RFC 9112), strictly: whatever two parsers could
 * understand differently is refused. Pure and incremental: feeding the same bytes in any pieces
 * gives the same result. Nothing is allocated; places in the head are offsets, so that the buffer
 * may move between calls.
 *
 * Refused, among others: bare LF and CR, obs-fold, space before a colon, NUL and other control
 * characters, lower-case methods, any version but 1.0 and 1.1, a missing, second or odd Host, a
 * second Content-Length even when equal, Content-Length with Transfer-Encoding, any coding but
 * chunked, space behind either value, either in the trailers, chunk sizes with sign, prefix or
 * space. One CRLF before a request line is skipped.
 */
#ifndef LIB_HTTP_H1_H
#define LIB_HTTP_H1_H
#include "lib/base/err.h"
#include "lib/base/str.h"

enum { H1_FIELDS_MAX = 64, H1_LEADING_MAX = 2 };
enum { H1_CHUNK_EXT_MAX = 256, H1_TRAILERS_MAX = 8192 };
#define H1_BODY_MAX ((uint64_t)INT64_MAX)

enum h1_status { H1_MORE, H1_DONE, H1_BAD };

struct h1_limits {
	size_t line, header, head, fields; /* as in struct http_limits; fields <= H1_FIELDS_MAX */
};

struct h1_span {
	uint32_t at, n;
};

struct h1_field {
	struct h1_span name, value;
};

enum h1_framing { H1_BODY_NONE, H1_BODY_LENGTH, H1_BODY_CHUNKED };

struct h1_head {
	struct h1_limits limits;
	uint32_t scan, line, fields_at; /* next byte to look at, start of its line, of the fields */
	bool in_fields;
	/* Valid after H1_DONE. */
	uint32_t size; /* bytes of the head with its empty line */
	struct h1_span method, target; /* target as sent */
	struct h1_span path, query; /* of the target, in origin form; query without '?' */
	struct h1_span host; /* of Host; the authority of an absolute target is equal to it */
	int minor; /* HTTP/1.minor */
	struct h1_field fields[H1_FIELDS_MAX];
	size_t n_fields;
	enum h1_framing framing;
	uint64_t length; /* of H1_BODY_LENGTH */
	bool keep_alive, expect_continue;
	/* Valid after H1_BAD. */
	enum err_code code; /* MALFORMED, URI_TOO_LONG, HEADERS_TOO_LARGE or NOT_IMPLEMENTED */
	const char *why;
};

void h1_head_init(struct h1_head *h, const struct h1_limits *limits);
/* p is everything since the start of the head, as before plus what has come since. */
enum h1_status h1_head_feed(struct h1_head *h, struct str p);
static inline struct str h1_span_str(struct str p, struct h1_span s)
{
	return (struct str){ p.p + s.at, s.n };
}

struct h1_body {
	int state; /* private */
	uint64_t left; /* bytes of the body, or of this chunk, still to come */
	uint32_t count; /* of digits, of extension bytes, of trailer bytes */
	bool token, colon; /* what this trailer line has had */
	uint8_t like_length, like_coding; /* letters of a framing field's name that it has had */
	enum h1_framing framing;
	const char *why;
};

void h1_body_init(struct h1_body *b, enum h1_framing framing, uint64_t length);
/* Takes some bytes of p: *ret_used of them, of which *ret_data (may be empty) is body. Call again
 * with the rest until H1_DONE, or until all is used up. H1_BAD: the framing is broken, see why. */
enum h1_status h1_body_feed(
	struct h1_body *b, struct str p, size_t *ret_used, struct str *ret_data);

#endif
