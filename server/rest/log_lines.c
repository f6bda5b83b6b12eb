/* Lines that are gathered for one answer, and what the answer says of them. */
#include "lib/base/mem.h"
#include "server/rest/log_inside.h"

#include <stdlib.h>

void log_lines_init(struct log_lines *l, size_t text_max)
{
	*l = (struct log_lines){ .n = 0 };
	buf_init(&l->text, text_max);
}

void log_lines_done(struct log_lines *l)
{
	mem_free(l->lines);
	buf_done(&l->text);
}

void log_lines_add(struct log_lines *l, const struct log_line *line)
{
	if (l->n == l->cap) {
		l->cap = l->cap != 0 ? 2 * l->cap : 64;
		l->lines = mem_resize(l->lines, l->cap, sizeof *l->lines);
	}
	/* Views of the text are made in the end: it moves while it grows. */
	l->lines[l->n] = *line;
	l->lines[l->n++].text = (struct str){ NULL, line->text.n };
	buf_add(&l->text, line->text);
}

void log_lines_take_open(struct log_scan *scan, bool complete)
{
	struct log_line open;

	for (int i = 0; i < LOG_STREAMS; i++)
		if (log_scan_open(scan, i, &open)) {
			open.open = !complete;
			scan->on_line(scan->arg, &open);
		}
}

static int by_number(const void *a, const void *b)
{
	const struct log_line *x = a, *y = b;

	return (x->line > y->line) - (x->line < y->line);
}

void log_lines_page(
	struct log_lines *l, int64_t from, int64_t until, int64_t read, struct log_page *out)
{
	const char *text = buf_str(&l->text).p;

	for (size_t i = 0; i < l->n; i++) {
		l->lines[i].text.p = text;
		text += l->lines[i].text.n;
	}
	if (l->n > 1)
		qsort(l->lines, l->n, sizeof *l->lines, by_number);
	while (l->n > 0 && l->lines[l->n - 1].line >= until)
		l->n--;
	out->lines = (struct list){ l->lines, l->n };
	out->first = from;
	out->last = read < until - 1 ? read : until - 1;
	if (out->last < from)
		out->last = from - 1;
}
