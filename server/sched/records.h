/*
 * Rows of a table as a stream: CSV with a header row, or NDJSON (one object a line). The reader is
 * told which columns it is to find and gives their cells as text, in that order; other columns are
 * passed over. An empty cell and a JSON null are missing; numbers and booleans of JSON come as
 * text.
 *
 * Errors are ERR_INVALID and name line and column, in words and by their pointer ("/3/price"), as
 * far as there is one. Memory is bounded by the limits of
 * lib/base/csv.h.
 */
#ifndef SERVER_SCHED_RECORDS_H
#define SERVER_SCHED_RECORDS_H
#include "lib/base/csv.h"

enum records_format { RECORDS_CSV, RECORDS_NDJSON };
/* By media type ("text/csv", "application/x-ndjson", "application/jsonl"); false: another one. */
bool records_format_of(struct str media_type, enum records_format *ret);

struct records_column {
	struct str name; /* empty: never found */
	bool required; /* the header must have it (CSV), each row must (NDJSON) */
};

/* cells[i]: of columns[i]; p is NULL when it is missing. Lent for the call. */
typedef int records_cb(void *arg, const struct str *cells, uint64_t line, struct err *e);

struct records;
/* The columns are the caller's and outlive the reader. */
struct records *records_new(enum records_format format, const struct records_column *columns,
	size_t n, records_cb *fn, void *arg);
void records_free(struct records *r); /* NULL is fine */
int records_add(struct records *r, struct str bytes, struct err *e) MUST_CHECK;
/* An empty CSV file without a header is an error; a header without rows is none. */
int records_end(struct records *r, struct err *e) MUST_CHECK;

/* A number as these tables have them: JSON's grammar, also with leading '+' or zeros, "nan"
 * (missing: NaN) and "inf" in any case. A missing cell is NaN. */
bool records_number(struct str cell, double *ret);
/* ERR_INVALID: line and column, and what it must be. Returns -1. */
int records_bad(struct err *e, uint64_t line, struct str column, const char *must, struct str cell);

#endif
