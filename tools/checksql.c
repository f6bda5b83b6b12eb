/*
 * Prepares statements against a migrated database. Reads what `sqlgen.awk mode=list` writes: for
 * each statement a line "file:line name kind oid,oid,…" and then each line of its text behind a
 * tab, the line's number in the file and a tab.
 * usage: checksql CONNINFO < LIST. Prints "file:line: statement name: what is wrong"; exits 1 then.
 */
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/db/binary.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARAMS_MAX = 100, LINES_MAX = 1000 };

struct statement {
	char where[300], name[64], kind[8];
	Oid types[PARAMS_MAX];
	int n;
	char *text;
	size_t len, nlines;
	long lines[LINES_MAX]; /* the number in the file of each line of the text */
};

static int bad;

static void complain(const struct statement *s, long line, const char *what)
{
	const char *colon = strrchr(s->where, ':');

	(void)printf("%.*s:%ld: statement %s: %s\n", (int)(colon - s->where), s->where, line,
		s->name, what);
	bad = 1;
}

static long first_line(const struct statement *s)
{
	int64_t n = 0;

	(void)num_parse_i64(str_c(strrchr(s->where, ':') + 1), 0, INT32_MAX, &n);
	return (long)n;
}

/* The line of the file in which the server's position stands: a number of characters from 1. */
static long line_of(const struct statement *s, const char *position)
{
	int64_t chars = 0;
	size_t line = 0;

	if (position == NULL || !num_parse_i64(str_c(position), 1, INT32_MAX, &chars))
		return first_line(s);
	for (const char *p = s->text; *p != '\0' && chars > 1; p++) {
		chars -= (p[1] & 0xc0) != 0x80;
		line += *p == '\n';
	}
	return s->lines[line < s->nlines ? line : s->nlines - 1];
}

static void complain_at(const struct statement *s, const PGresult *res)
{
	const char *says = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
	const char *hint = PQresultErrorField(res, PG_DIAG_MESSAGE_HINT);
	char what[600];

	(void)str_print(what, sizeof what, "%s%s%s", says != NULL ? says : "the connection is gone",
		hint != NULL ? " — " : "", hint != NULL ? hint : "");
	complain(s, line_of(s, PQresultErrorField(res, PG_DIAG_STATEMENT_POSITION)), what);
}

static bool uses(const struct statement *s, int number)
{
	char sign[16];
	const char *p = s->text;

	(void)str_print(sign, sizeof sign, "$%d", number);
	while ((p = strstr(p, sign)) != NULL) {
		p += strlen(sign);
		if (*p < '0' || *p > '9')
			return true;
	}
	return false;
}

static void check_columns(const struct statement *s, const PGresult *res)
{
	bool wants_none = strcmp(s->kind, ":exec") == 0;
	int n = PQnfields(res);
	char what[200];

	if (!wants_none && n == 0)
		complain(s, first_line(s), "returns no rows: it should be :exec");
	for (int i = 0; i < n; i++) {
		if (wants_none && PQftype(res, i) != SQL_TYPE_VOID) {
			complain(s, first_line(s), "returns rows: it should be :one or :many");
			return;
		}
		if (!binary_is_known(PQftype(res, i))) {
			(void)str_print(what, sizeof what,
				"the column %s has a type that lib/db does not read (OID %u): cast "
				"it",
				PQfname(res, i), PQftype(res, i));
			complain(s, first_line(s), what);
		}
		for (int k = 0; k < i; k++)
			if (strcmp(PQfname(res, i), PQfname(res, k)) == 0) {
				(void)str_print(what, sizeof what, "two columns are called %s",
					PQfname(res, i));
				complain(s, first_line(s), what);
			}
	}
}

static void check(PGconn *pg, const struct statement *s)
{
	PGresult *res = PQprepare(pg, "", s->text, s->n, s->types);
	char what[100];

	if (PQresultStatus(res) != PGRES_COMMAND_OK) {
		complain_at(s, res);
		PQclear(res);
		return;
	}
	PQclear(res);
	res = PQdescribePrepared(pg, "");
	if (PQnparams(res) > s->n) {
		(void)str_print(what, sizeof what, "uses $%d, but declares %d parameters",
			PQnparams(res), s->n);
		complain(s, first_line(s), what);
	}
	for (int i = 1; i <= s->n; i++)
		if (!uses(s, i)) {
			(void)str_print(what, sizeof what, "declares $%d, but does not use it", i);
			complain(s, first_line(s), what);
		}
	check_columns(s, res);
	PQclear(res);
}

static bool read_types(struct statement *s, struct str list)
{
	struct str one;
	uint64_t oid;

	s->n = 0;
	while (list.n > 0 && str_next(&list, ',', &one)) {
		if (s->n == PARAMS_MAX || !num_parse_u64(one, 1, UINT32_MAX, &oid))
			return false;
		s->types[s->n++] = (Oid)oid;
	}
	return true;
}

static bool read_head(struct statement *s, struct str line)
{
	struct str where = STR_NONE, name = STR_NONE, kind = STR_NONE;

	if (!str_next(&line, ' ', &where) || !str_next(&line, ' ', &name) ||
		!str_next(&line, ' ', &kind) || str_find_char(where, ':') < 0)
		return false;
	s->len = s->nlines = 0;
	return str_print(s->where, sizeof s->where, "%.*s", STR_ARG(where)) &&
	       str_print(s->name, sizeof s->name, "%.*s", STR_ARG(name)) &&
	       str_print(s->kind, sizeof s->kind, "%.*s", STR_ARG(kind)) && read_types(s, line);
}

static bool add_text(struct statement *s, struct str line)
{
	struct str number;
	int64_t n;

	if (!str_next(&line, '\t', &number) || !num_parse_i64(number, 1, INT32_MAX, &n) ||
		s->nlines == LINES_MAX)
		return false;
	s->lines[s->nlines++] = (long)n;
	s->text = mem_resize(s->text, s->len + line.n + 2, 1);
	if (line.n > 0)
		memcpy(s->text + s->len, line.p, line.n);
	s->len += line.n;
	s->text[s->len++] = '\n';
	s->text[s->len] = '\0';
	return true;
}

/* The lines of the list, one by one; false for one that cannot be read. */
static bool take_line(PGconn *pg, struct statement *s, struct str line, int *count)
{
	if (line.n > 0 && line.p[0] == '\t')
		return add_text(s, str_slice(line, 1, line.n));
	if (s->len > 0)
		check(pg, s);
	++*count;
	return read_head(s, line);
}

int main(int argc, char **argv)
{
	PGconn *pg = PQconnectdb(argc > 1 ? argv[1] : "");
	struct statement s = { .text = NULL };
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int count = 0;

	if (PQstatus(pg) != CONNECTION_OK) {
		(void)fprintf(stderr, "checksql: %s", PQerrorMessage(pg));
		return 1;
	}
	while ((n = getline(&line, &cap, stdin)) > 0)
		if (!take_line(pg, &s, (struct str){ line, (size_t)n - (line[n - 1] == '\n') },
			    &count)) {
			(void)fprintf(stderr, "checksql: cannot read: %s", line);
			return 1;
		}
	if (s.len > 0)
		check(pg, &s);
	PQfinish(pg);
	mem_free(s.text);
	free(line);
	if (bad == 0)
		(void)printf("%d statements are fine\n", count);
	return bad;
}
