/*
 * One error value for the whole tree: by value, no heap, safe to keep across callbacks.
 *
 * Functions that can fail return 0 or -1 and take `struct err *e` last. The table below is the only
 * list of error codes: it makes the enum, the stable API code, the HTTP status, the title shown to
 * users, docs/errors.md and the enumeration in openapi.json. Expected outcomes (not found,
 * conflict, bad input) are errors; bugs are BUG_ON; out of memory ends the process.
 */
#ifndef LIB_BASE_ERR_H
#define LIB_BASE_ERR_H
#include <stddef.h>

/*  name                  code                      http retry title */
#define ERR_TABLE(X)                                                                               \
	X(OK, "ok", 200, 0, "OK")                                                                  \
	X(MALFORMED, "malformed", 400, 0, "The request cannot be parsed")                          \
	X(INVALID, "invalid", 422, 0, "The request is not valid")                                  \
	X(UNAUTHENTICATED, "unauthenticated", 401, 0, "A valid token is needed")                   \
	X(FORBIDDEN, "forbidden", 403, 0, "Not allowed")                                           \
	X(NOT_FOUND, "not_found", 404, 0, "Not found")                                             \
	X(METHOD_NOT_ALLOWED, "method_not_allowed", 405, 0, "Method not allowed")                  \
	X(NOT_ACCEPTABLE, "not_acceptable", 406, 0, "Not acceptable")                              \
	X(REQUEST_TIMEOUT, "request_timeout", 408, 1, "The request took too long")                 \
	X(CONFLICT, "conflict", 409, 0, "Conflict with the current state")                         \
	X(SUPERSEDED, "superseded", 409, 0, "A newer attempt has taken over")                      \
	X(IN_PROGRESS, "in_progress", 409, 1, "The same request is being processed")               \
	X(GONE, "gone", 410, 0, "Gone")                                                            \
	X(LENGTH_REQUIRED, "length_required", 411, 0, "A length is needed")                        \
	X(PRECONDITION_FAILED, "precondition_failed", 412, 0, "The object has changed")            \
	X(TOO_LARGE, "too_large", 413, 0, "The request is too large")                              \
	X(URI_TOO_LONG, "uri_too_long", 414, 0, "The request target is too long")                  \
	X(UNSUPPORTED_MEDIA, "unsupported_media_type", 415, 0, "Unsupported media type")           \
	X(RANGE, "range_not_satisfiable", 416, 0, "The range cannot be satisfied")                 \
	X(MISDIRECTED, "misdirected", 421, 0, "Unknown host name")                                 \
	X(PRECONDITION_REQUIRED, "precondition_required", 428, 0, "If-Match is needed")            \
	X(RATE_LIMITED, "rate_limited", 429, 1, "Too many requests")                               \
	X(HEADERS_TOO_LARGE, "headers_too_large", 431, 0, "The header section is too large")       \
	X(CANCELLED, "cancelled", 499, 0, "Cancelled")                                             \
	X(INTERNAL, "internal", 500, 0, "Internal error")                                          \
	X(IO, "io", 500, 1, "Input or output failed")                                              \
	X(CORRUPT, "corrupt", 500, 0, "Stored data does not match its digest")                     \
	X(NOT_IMPLEMENTED, "not_implemented", 501, 0, "Not implemented")                           \
	X(NETWORK, "network", 502, 1, "A peer cannot be reached")                                  \
	X(UNAVAILABLE, "unavailable", 503, 1, "Not ready")                                         \
	X(DATABASE, "database_unavailable", 503, 1, "The database cannot be reached")              \
	X(TIMEOUT, "timeout", 504, 1, "A peer did not answer in time")                             \
	X(NO_SPACE, "no_space", 507, 1, "No space left")

enum err_code {
#define X(name, code, http, retry, title) ERR_##name,
	ERR_TABLE(X)
#undef X
		ERR_COUNT
};

struct err {
	enum err_code code;
	char field[128]; /* JSON pointer of the culprit ("/spec/steps/train/run"), or "" */
	char msg[320]; /* a sentence for the user; never SQL, never a secret */
	const char *file;
	int line;
};

#define MUST_CHECK             __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* The stable API code ("not_found"), its HTTP status, its title, and whether a retry may help. */
const char *err_name(enum err_code c);
int err_http(enum err_code c);
const char *err_title(enum err_code c);
int err_retryable(enum err_code c);

/* Sets code and message and clears the field; returns -1 so that a caller fails in one statement.
 */
int err_set_at(struct err *e, const char *file, int line, enum err_code c, const char *fmt, ...)
	PRINTF_LIKE(5, 6);
#define err_set(e, c, ...) err_set_at((e), __FILE__, __LINE__, (c), __VA_ARGS__)

/* The same with the JSON pointer of the culprit. */
int err_field_at(struct err *e, const char *file, int line, const char *pointer, const char *fmt,
	...) PRINTF_LIKE(5, 6);
#define err_field(e, pointer, ...) err_field_at((e), __FILE__, __LINE__, (pointer), __VA_ARGS__)

/* Puts `segment` (escaped by RFC 6901) before the pointer in e->field: built from the inside out.
 */
void err_field_prefix(struct err *e, const char *segment);
void err_field_index(struct err *e, size_t i); /* the same with the place in a list */

/* ERR_IO or ERR_NO_SPACE from errno, with the verb and object that failed. Returns -1. */
int err_errno_at(struct err *e, const char *file, int line, const char *verb, const char *what);
#define err_errno(e, verb, what) err_errno_at((e), __FILE__, __LINE__, (verb), (what))

/* A broken invariant: prints where and aborts, in release builds too. */
_Noreturn void bug_at(const char *file, int line, const char *what);
#define BUG_ON(cond)                                                                               \
	do {                                                                                       \
		if (__builtin_expect(!!(cond), 0))                                                 \
			bug_at(__FILE__, __LINE__, #cond);                                         \
	} while (0)

#endif
