/*
 * CSV by RFC 4180, read as a stream in pieces of any size: comma, double quotes ("" is a quote
 * within quotes, which may hold commas and line breaks), lines ended by LF or CRLF, an optional
 * UTF-8 byte order mark. Empty lines are skipped. Every row must be valid UTF-8 without NUL.
 *
 * Errors are ERR_INVALID and name the line, also as their pointer ("/3"). Memory is bounded by the
 * limits below, which the reader grows into.
 */
#ifndef LIB_BASE_CSV_H
#define LIB_BASE_CSV_H
#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { CSV_CELLS_MAX = 4096, CSV_ROW_MAX = 4 << 20 };

struct csv_row {
	const struct str *cells; /* lent for the call */
	size_t n;
	uint64_t line; /* where it begins, from 1 */
};
/* -1 with *e stops the reading. */
typedef int csv_row_cb(void *arg, const struct csv_row *row, struct err *e);

/* ERR_INVALID at a line, which the pointer names; the message is to say it as well. Returns -1. */
#define csv_fault(e, line, ...) csv_fault_at((e), __FILE__, __LINE__, (line), STR_NONE, __VA_ARGS__)
/* The same for a column of it: "/3/price". */
#define csv_fault_in(e, line, column, ...)                                                         \
	csv_fault_at((e), __FILE__, __LINE__, (line), (column), __VA_ARGS__)
int csv_fault_at(struct err *e, const char *file, int at, uint64_t line, struct str column,
	const char *fmt, ...) PRINTF_LIKE(6, 7);

struct csv { /* private */
	struct buf text; /* cells of the row so far, one after another */
	size_t *ends;
	struct str *cells;
	size_t n, room;
	uint64_t line, row_line;
	int state;
	unsigned mark; /* bytes of the byte order mark seen; 3: past the place for one */
	bool started; /* the row has begun */
};

void csv_init(struct csv *c);
void csv_done(struct csv *c);
int csv_add(struct csv *c, struct str bytes, csv_row_cb *fn, void *arg, struct err *e) MUST_CHECK;
/* The last row may lack its line end. */
int csv_end(struct csv *c, csv_row_cb *fn, void *arg, struct err *e) MUST_CHECK;

#endif
