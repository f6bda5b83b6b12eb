#include "cli/document.h"

#include "lib/base/num.h"

/* ---- splitting ------------------------------------------------------------------------------- */

/* In no place of a YAML text can such a line be anything else. */
static bool is_mark(struct str line)
{
	return str_starts(line, STR("---")) &&
	       (line.n == 3 || line.p[3] == ' ' || line.p[3] == '\t' || line.p[3] == '\r');
}

/* Blank, a comment, a directive or an end: nothing of a document's own. */
static bool is_filler(struct str line)
{
	struct str rest = str_trim(is_mark(line) ? str_slice(line, 3, line.n) : line);

	if (rest.n != 0 && rest.p[rest.n - 1] == '\r')
		rest.n--;
	return rest.n == 0 || rest.p[0] == '#' || str_is(rest, "...") ||
	       (line.n != 0 && line.p[0] == '%');
}

/* One document on its way; `from` is where it begins. */
struct splitter {
	struct str file;
	const char *from;
	size_t line;
	bool marked, filled;
	struct list *out;
};

static int emit(struct splitter *s, const char *end, struct err *e)
{
	if (s->out->n == DOCUMENTS_MAX)
		return err_set(e, ERR_TOO_LARGE, "%.160s: more than %d documents", s->file.p,
			(int)DOCUMENTS_MAX);
	*list_at(s->out, struct document, s->out->n) = (struct document){
		.file = s->file, .text = { s->from, (size_t)(end - s->from) }, .line = s->line
	};
	s->out->n++;
	return 0;
}

int document_split(struct str file, struct str text, struct list *out, struct err *e)
{
	struct splitter s = { .file = file, .from = text.p, .out = out };
	struct str rest = text, line;
	size_t before = out->n;

	for (size_t i = 0; str_next(&rest, '\n', &line); i++) {
		bool mark = is_mark(line);
		if (mark && s.filled && emit(&s, line.p, e) < 0)
			return -1;
		if (mark && (s.filled || s.marked)) {
			s.from = line.p;
			s.line = i;
			s.filled = false;
		}
		s.marked = s.marked || mark;
		s.filled = s.filled || !is_filler(line);
	}
	if (s.filled || out->n == before) /* of an empty file, that it is */
		return emit(&s, text.p + text.n, e);
	return 0;
}

int document_read(struct cli *c, struct str file, struct list *out, struct err *e)
{
	struct buf text;

	if (cli_read(file.p, &text, e) < 0)
		return -1;
	struct str all = arena_str(c->arena, text.n != 0 ? buf_str(&text) : STR(""));
	buf_done(&text);
	return document_split(str_is(file, "-") ? STR("stdin") : file, all, out, e);
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Takes "line L, column C: " off a message. */
static bool take_place(struct str *msg, uint64_t *ret_line, uint64_t *ret_column)
{
	struct str rest = *msg, line, column;

	if (!str_starts(rest, STR("line ")) || !str_next(&rest, ',', &line) ||
		!str_starts(rest, STR(" column ")) || !str_next(&rest, ':', &column) ||
		!num_parse_u64(str_slice(line, 5, line.n), 1, UINT32_MAX, ret_line) ||
		!num_parse_u64(str_slice(column, 8, column.n), 1, UINT32_MAX, ret_column))
		return false;
	*msg = str_slice(rest, 1, rest.n);
	return true;
}

/* The server says "/source/spec/…" of a text that was a member of its request. */
static void drop_source(struct err *e)
{
	static const char member[] = "/source";
	size_t n = sizeof member - 1;

	if (strncmp(e->field, member, n) == 0 && (e->field[n] == '/' || e->field[n] == '\0'))
		memmove(e->field, e->field + n, strlen(e->field + n) + 1);
}

/* Whether the pointer leads into the document, and not to something else of the request. */
static bool is_within(const char *pointer)
{
	static const char *const members[] = { "apiVersion", "kind", "metadata", "spec" };
	struct str rest = str_c(pointer), first;

	if (!str_next(&rest, '/', &first) || !str_next(&rest, '/', &first))
		return false;
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		if (str_is(first, members[i]))
			return true;
	}
	return false;
}

int document_name(const struct document *d, struct err *e)
{
	char msg[sizeof e->msg];
	bool named = e->field[0] != '\0' && str_find(str_c(e->msg), str_c(e->field)) < 0;

	(void)str_print(msg, sizeof msg, "%.160s: %s%s%s", d->file.p, named ? e->field : "",
		named ? ": " : "", e->msg);
	memcpy(e->msg, msg, sizeof msg);
	e->field[0] = '\0';
	return -1;
}

int document_fail(const struct document *d, struct err *e)
{
	uint64_t line, column;
	struct str msg = str_c(e->msg);
	char out[sizeof e->msg];

	drop_source(e);
	if (!str_starts(msg, STR("line ")) && is_within(e->field)) {
		yaml_locate(d->text, e);
		msg = str_c(e->msg);
	}
	if (!take_place(&msg, &line, &column))
		return e->field[0] == '\0' ? document_name(d, e) : -1;
	(void)str_print(out, sizeof out, "%.160s:%zu:%zu: %.*s", d->file.p, d->line + (size_t)line,
		(size_t)column, STR_ARG(msg));
	memcpy(e->msg, out, sizeof out);
	e->field[0] = '\0';
	return -1;
}

int document_parse(struct document *d, struct err *e)
{
	if (yaml_parse(d->text, &d->tree, e) == 0)
		return 0;
	e->code = e->code == ERR_TOO_LARGE ? ERR_TOO_LARGE : ERR_INVALID;
	return document_fail(d, e);
}
