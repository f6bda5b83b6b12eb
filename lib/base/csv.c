#include "lib/base/csv.h"

#include "lib/base/mem.h"

#include <stdarg.h>
#include <stdio.h>

enum state { CELL_START, PLAIN, QUOTED, QUOTE_IN_QUOTED, AFTER_CR };

void csv_init(struct csv *c)
{
	*c = (struct csv){ .line = 1, .row_line = 1, .state = CELL_START };
	buf_init(&c->text, CSV_ROW_MAX);
}

void csv_done(struct csv *c)
{
	buf_done(&c->text);
	mem_free(c->ends);
	mem_free(c->cells);
	c->ends = NULL;
	c->cells = NULL;
}

int csv_fault_at(struct err *e, const char *file, int at, uint64_t line, struct str column,
	const char *fmt, ...)
{
	char text[sizeof e->msg + 4], segment[sizeof e->field];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	(void)err_set_at(e, file, at, ERR_INVALID, "%s", text);
	if (column.n != 0) {
		(void)str_print(segment, sizeof segment, "%.*s", STR_ARG(column));
		err_field_prefix(e, segment);
	}
	(void)str_print(segment, sizeof segment, "%llu", (unsigned long long)line);
	err_field_prefix(e, segment);
	return -1;
}

static int fail(const struct csv *c, struct err *e, const char *what)
{
	return csv_fault(e, c->line, "line %llu: %s", (unsigned long long)c->line, what);
}

static int end_cell(struct csv *c, struct err *e)
{
	if (c->n == CSV_CELLS_MAX)
		return csv_fault(e, c->row_line, "line %llu has more than %d cells",
			(unsigned long long)c->row_line, CSV_CELLS_MAX);
	if (c->n == c->room) {
		c->room = c->room == 0 ? 64 : 2 * c->room;
		c->ends = mem_resize(c->ends, c->room, sizeof *c->ends);
		c->cells = mem_resize(c->cells, c->room, sizeof *c->cells);
	}
	c->ends[c->n++] = c->text.n;
	return 0;
}

static int end_row(struct csv *c, csv_row_cb *fn, void *arg, struct err *e)
{
	size_t from = 0;

	if (!c->started)
		return 0;
	if (end_cell(c, e) < 0)
		return -1;
	if (buf_failed(&c->text))
		return csv_fault(e, c->row_line, "line %llu is longer than %d bytes",
			(unsigned long long)c->row_line, CSV_ROW_MAX);
	if (!str_utf8_valid(buf_str(&c->text)))
		return csv_fault(e, c->row_line, "line %llu is not valid UTF-8",
			(unsigned long long)c->row_line);
	for (size_t i = 0; i < c->n; i++) {
		c->cells[i] = (struct str){ c->text.p != NULL ? c->text.p + from : "",
			c->ends[i] - from };
		from = c->ends[i];
	}
	const struct csv_row row = { c->cells, c->n, c->row_line };
	c->started = false;
	c->n = 0;
	if (fn(arg, &row, e) < 0)
		return -1;
	buf_clear(&c->text);
	return 0;
}

/* Bytes that mean nothing by themselves go in one piece. */
static size_t plain_run(const struct csv *c, const char *p, size_t n)
{
	bool quoted = c->state == QUOTED;
	size_t i = 0;

	while (i < n && p[i] != '"' && p[i] != '\n' && p[i] != '\0' &&
		(quoted || (p[i] != ',' && p[i] != '\r')))
		i++;
	return i;
}

static void begin(struct csv *c)
{
	if (!c->started)
		c->row_line = c->line;
	c->started = true;
}

static int take_quote(struct csv *c, struct err *e)
{
	begin(c);
	switch ((enum state)c->state) {
	case CELL_START: c->state = QUOTED; return 0;
	case QUOTED: c->state = QUOTE_IN_QUOTED; return 0;
	case QUOTE_IN_QUOTED:
		buf_addc(&c->text, '"');
		c->state = QUOTED;
		return 0;
	case PLAIN:
	case AFTER_CR: break;
	}
	return fail(c, e, "a quote stands inside a cell that does not begin with one");
}

/* One byte that is special in the state. */
static int take(struct csv *c, char ch, csv_row_cb *fn, void *arg, struct err *e)
{
	if (ch == '\0')
		return fail(c, e, "a NUL byte");
	if (c->state == AFTER_CR && ch != '\n')
		return fail(c, e, "a carriage return without a line feed");
	if (ch == '"')
		return take_quote(c, e);
	if (c->state == QUOTED) {
		buf_addc(&c->text, ch);
		c->line += ch == '\n';
		return 0;
	}
	switch (ch) {
	case '\n':
		c->state = CELL_START;
		if (end_row(c, fn, arg, e) < 0)
			return -1;
		c->line++;
		return 0;
	case '\r': c->state = AFTER_CR; return 0;
	case ',':
		begin(c);
		c->state = CELL_START;
		return end_cell(c, e);
	default: break;
	}
	if (c->state == QUOTE_IN_QUOTED)
		return fail(c, e, "text stands after a closing quote");
	begin(c);
	c->state = PLAIN;
	buf_addc(&c->text, ch);
	return 0;
}

/* A byte order mark may come in pieces, too. */
static struct str skip_mark(struct csv *c, struct str bytes)
{
	static const char mark[] = "\xef\xbb\xbf";

	while (c->mark < 3 && bytes.n > 0 && *bytes.p == mark[c->mark]) {
		c->mark++;
		bytes = str_slice(bytes, 1, bytes.n);
	}
	if (c->mark < 3 && bytes.n > 0) {
		for (unsigned i = 0; i < c->mark; i++)
			buf_addc(&c->text, mark[i]);
		if (c->mark > 0) {
			begin(c);
			c->state = PLAIN;
		}
		c->mark = 3;
	}
	return bytes;
}

int csv_add(struct csv *c, struct str bytes, csv_row_cb *fn, void *arg, struct err *e)
{
	bytes = skip_mark(c, bytes);
	while (bytes.n > 0) {
		size_t n = c->state == QUOTE_IN_QUOTED || c->state == AFTER_CR
				   ? 0
				   : plain_run(c, bytes.p, bytes.n);

		if (n > 0) {
			begin(c);
			c->state = c->state == QUOTED ? QUOTED : PLAIN;
			buf_add(&c->text, str_slice(bytes, 0, n));
		} else {
			n = 1;
			if (take(c, *bytes.p, fn, arg, e) < 0)
				return -1;
		}
		if (buf_failed(&c->text))
			return csv_fault(e, c->row_line, "line %llu is longer than %d bytes",
				(unsigned long long)c->row_line, CSV_ROW_MAX);
		bytes = str_slice(bytes, n, bytes.n);
	}
	return 0;
}

int csv_end(struct csv *c, csv_row_cb *fn, void *arg, struct err *e)
{
	if (c->state == QUOTED)
		return csv_fault(e, c->row_line, "line %llu: a quote is not closed",
			(unsigned long long)c->row_line);
	if (c->mark > 0 && c->mark < 3)
		return fail(c, e, "not valid UTF-8");
	return end_row(c, fn, arg, e);
}
