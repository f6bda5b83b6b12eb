#include "cli/view.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json_write.h"

#include <errno.h>
#include <stdio.h>

enum {
	CELL_MAX = 1 << 20,
	GAP = 2,
	ROWS_PER_FLUSH = 200,
	COLUMNS_MAX = 24,
	ROOM_LAST = 12,
	ROOM_LEAST = 4
};

int view_print(struct str bytes, struct err *e)
{
	if (bytes.n != 0 && fwrite(bytes.p, 1, bytes.n, stdout) != bytes.n)
		return err_errno(e, "write", "stdout");
	return 0;
}

int view_flush(struct err *e)
{
	return fflush(stdout) == 0 ? 0 : err_errno(e, "write", "stdout");
}

/* ---- cells ----------------------------------------------------------------------------------- */

static void add_column(const struct cli *c, enum cell_place place, const struct column *k,
	const struct jsn *object, struct buf *out)
{
	const struct jsn *v = jsn_find(object, k->pointer);

	place = c->tty ? place : CELL_EXACT;
	if (k->kind == COLUMN_LENGTH)
		cell_add_length(place, v, jsn_find(object, k->until), clock_now(&clock_real), out);
	else if (k->kind != COLUMN_SHAPE)
		cell_add(place, k->kind, v, out);
	else if (jsn_count(v) > 0 || jsn_get_str(v).n != 0)
		k->shape(v, out);
}

static const char *state_color(struct str s)
{
	static const struct {
		const char *state, *color;
	} rows[] = { { "succeeded", "\033[32m" }, { "promoted", "\033[32m" }, { "ok", "\033[32m" },
		{ "active", "\033[32m" }, { "running", "\033[36m" }, { "failed", "\033[31m" },
		{ "lost", "\033[31m" }, { "alert", "\033[31m" }, { "refused", "\033[31m" },
		{ "warn", "\033[33m" }, { "cancelled", "\033[33m" }, { "draining", "\033[33m" },
		{ "queued", "\033[2m" }, { "waiting", "\033[2m" }, { "skipped", "\033[2m" } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (str_is(s, rows[i].state))
			return rows[i].color;
	}
	return NULL;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Cells of a table lie one after the other in `cells`; they are laid out a few hundred rows at a
 * time, so that a long list comes without waiting for its end. */
struct view_list {
	struct cli *c;
	const struct column *columns[COLUMNS_MAX];
	size_t n_columns, n_cells, n_items;
	struct buf text; /* of all cells */
	size_t ends[ROWS_PER_FLUSH * COLUMNS_MAX];
	const struct view *view;
	bool headed;
	bool hidden[COLUMNS_MAX];
};

struct view_list *view_list_new(struct cli *c, const struct view *v)
{
	struct view_list *l = mem_new_of(struct view_list);

	l->c = c;
	l->view = v;
	buf_init(&l->text, 256 << 20);
	for (const struct column *k = v->columns; k->title != NULL; k++) {
		if (k->show_only)
			continue;
		BUG_ON(l->n_columns == COLUMNS_MAX);
		l->columns[l->n_columns++] = k;
	}
	return l;
}

static struct str cell_at(const struct view_list *l, size_t i)
{
	size_t from = i == 0 ? 0 : l->ends[i - 1];

	return str_slice(buf_str(&l->text), from, l->ends[i] - from);
}

static bool is_last(const struct view_list *l, size_t column)
{
	while (++column < l->n_columns) {
		if (!l->hidden[column])
			return false;
	}
	return true;
}

static void put_cell(const struct view_list *l, size_t column, struct str cell, size_t width)
{
	const struct cli *c = l->c;
	size_t have = str_utf8_count(cell);
	const char *color =
		c->color && l->columns[column]->kind == COLUMN_STATE ? state_color(cell) : NULL;

	(void)printf("%s%.*s%s", color != NULL ? color : "", STR_ARG(cell),
		color != NULL ? "\033[0m" : "");
	if (is_last(l, column))
		return;
	if (!c->tty)
		(void)putchar('\t');
	else
		(void)printf("%*s", (int)(width - have) + GAP, "");
}

/* As many code points as fit, the last one a sign that there is more. */
static void put_cut(struct str s, size_t room)
{
	size_t n = 0, points = 0;
	bool fits = str_utf8_count(s) <= room;

	while (!fits && n < s.n) {
		if (((unsigned char)s.p[n] & 0xc0) != 0x80 && ++points == room)
			break;
		n++;
	}
	(void)printf("%.*s%s", fits ? (int)s.n : (int)n, s.p, fits ? "" : "…");
}

static void put_head(const struct view_list *l, const size_t *widths)
{
	if (l->c->color)
		(void)fputs("\033[1m", stdout);
	for (size_t k = 0; k < l->n_columns; k++) {
		if (!l->hidden[k])
			put_cell(l, k, str_c(l->columns[k]->title), widths[k]);
	}
	(void)fputs(l->c->color ? "\033[0m\n" : "\n", stdout);
}

/* The columns of a row, without the last one's own width. */
static size_t width_before_last(const struct view_list *l, const size_t *widths)
{
	size_t sum = 0;

	for (size_t k = 0; k < l->n_columns; k++)
		sum += l->hidden[k] || is_last(l, k) ? 0 : widths[k] + GAP;
	return sum;
}

/* On a terminal: columns without any value, when these are all rows, and those that give way. */
static void hide(struct view_list *l, const size_t *widths, const bool *empty, bool all)
{
	size_t width = (size_t)l->c->width;

	for (size_t k = 0; all && k < l->n_columns; k++)
		l->hidden[k] = empty[k] && l->n_items > 0;
	for (size_t k = l->n_columns; k > 0; k--) {
		if (width_before_last(l, widths) + ROOM_LAST > width &&
			l->columns[k - 1]->gives_way)
			l->hidden[k - 1] = true;
	}
}

static void measure(const struct view_list *l, size_t *widths, bool *empty)
{
	for (size_t k = 0; k < l->n_columns; k++) {
		widths[k] = strlen(l->columns[k]->title);
		empty[k] = true;
		for (size_t i = k; i < l->n_cells; i += l->n_columns) {
			size_t n = str_utf8_count(cell_at(l, i));
			widths[k] = n > widths[k] ? n : widths[k];
			empty[k] = empty[k] && n == 0;
		}
	}
}

static void put_rows(struct view_list *l, bool all)
{
	size_t widths[COLUMNS_MAX];
	bool empty[COLUMNS_MAX];

	measure(l, widths, empty);
	if (!l->headed) {
		if (l->c->tty)
			hide(l, widths, empty, all);
		put_head(l, widths);
	}
	l->headed = true;
	size_t before = width_before_last(l, widths), width = (size_t)l->c->width;
	size_t room = width > before + ROOM_LEAST ? width - before : ROOM_LAST;
	for (size_t i = 0; i < l->n_cells; i++) {
		size_t k = i % l->n_columns;
		struct str cell = cell_at(l, i);
		if (l->c->tty && is_last(l, k) && !l->hidden[k] && str_utf8_count(cell) > room)
			put_cut(cell, room);
		else if (!l->hidden[k])
			put_cell(l, k, cell, widths[k]);
		if (k + 1 == l->n_columns)
			(void)putchar('\n');
	}
	l->n_cells = 0;
	buf_clear(&l->text);
}

static void put_text(const struct jsn *v, bool as_json)
{
	struct buf text;

	buf_init(&text, 256 << 20);
	if (as_json)
		jsn_write(v, &text);
	else
		cell_add(CELL_EXACT, COLUMN_TEXT, v, &text);
	(void)fwrite(text.p, 1, text.n, stdout);
	buf_done(&text);
}

void view_list_add(struct view_list *l, const struct jsn *item)
{
	switch (l->c->output) {
	case OUTPUT_JSON:
	case OUTPUT_JSONL:
		if (l->c->output == OUTPUT_JSON)
			(void)fputs(l->n_items > 0 ? "," : "{\"items\":[", stdout);
		put_text(item, true);
		if (l->c->output == OUTPUT_JSONL)
			(void)putchar('\n');
		break;
	case OUTPUT_NAME:
		put_text(jsn_find(item, l->view->name), false);
		(void)putchar('\n');
		break;
	case OUTPUT_TABLE:
		for (size_t k = 0; k < l->n_columns; k++) {
			add_column(l->c, CELL_TABLE, l->columns[k], item, &l->text);
			l->ends[l->n_cells++] = l->text.n;
		}
		if (l->n_cells == ROWS_PER_FLUSH * l->n_columns)
			put_rows(l, false);
		break;
	}
	l->n_items++;
}

int view_list_end(struct view_list *l, struct str more, struct err *e)
{
	struct cli *c = l->c;

	if (c->output == OUTPUT_JSON) {
		struct buf tail;
		buf_init(&tail, 4096);
		buf_adds(&tail, l->n_items > 0 ? "]" : "{\"items\":[]");
		if (more.n != 0) {
			buf_adds(&tail, ",\"next_cursor\":");
			jsn_put_str(&tail, more);
		}
		buf_adds(&tail, "}\n");
		(void)fwrite(tail.p, 1, tail.n, stdout);
		buf_done(&tail);
	}
	if (c->output == OUTPUT_TABLE && c->tty && l->n_items == 0)
		cli_say(c, "There are none.");
	else if (c->output == OUTPUT_TABLE && (l->n_cells > 0 || !l->headed))
		put_rows(l, true);
	if (more.n != 0 && c->output == OUTPUT_TABLE)
		cli_say(c, "There are more%s",
			command_flag(c->cmd, STR("limit")) != NULL ? "; --limit 0 shows all."
								   : ".");
	view_list_free(l);
	return view_flush(e);
}

void view_list_free(struct view_list *l)
{
	buf_done(&l->text);
	mem_free(l);
}

/* ---- one object ------------------------------------------------------------------------------ */

/* "name<TAB>text<LF>" lines below each other, aligned; in one line where programs read. */
static void put_lines(const struct cli *c, struct str text, int indent)
{
	struct str rest = text, line, name;
	size_t width = 0;
	int i = 0;

	while (c->tty && str_next(&rest, '\n', &line)) {
		ptrdiff_t tab = str_find_char(line, '\t');
		size_t n = tab >= 0 ? str_utf8_count(str_slice(line, 0, (size_t)tab)) : 0;
		width = n > width ? n : width;
	}
	for (rest = text; str_next(&rest, '\n', &line) && (line.n != 0 || rest.n != 0); i++) {
		ptrdiff_t tab = str_find_char(line, '\t');
		name = str_slice(line, 0, tab >= 0 ? (size_t)tab : 0);
		line = str_slice(line, (size_t)(tab + 1), line.n);
		if (!c->tty)
			(void)printf("%s%.*s%s%.*s", i > 0 ? "; " : "", STR_ARG(name),
				name.n != 0 ? ": " : "", STR_ARG(line));
		else
			(void)printf("%s%*s%.*s%*s%.*s", i > 0 ? "\n" : "", i > 0 ? indent : 0, "",
				STR_ARG(name),
				width > 0 ? (int)(width - str_utf8_count(name)) + GAP : 0, "",
				STR_ARG(line));
	}
	(void)putchar('\n');
}

/* Pairs become lines on a terminal, when they are several. */
static bool add_field(
	const struct cli *c, const struct column *k, const struct jsn *object, struct buf *out)
{
	const struct jsn *v = jsn_find(object, k->pointer);
	bool lines = k->kind == COLUMN_PAIRS && c->tty && jsn_count(v) > 1;

	for (size_t i = 0; lines && i < jsn_count(v); i++) {
		cell_add_text(jsn_name(jsn_at(v, i)), out);
		buf_addc(out, '\t');
		cell_add(CELL_FIELD, jsn_type(jsn_at(v, i)) == JSN_OBJ ? COLUMN_PAIRS : COLUMN_TEXT,
			jsn_at(v, i), out);
		buf_addc(out, '\n');
	}
	if (!lines)
		add_column(c, CELL_FIELD, k, object, out);
	return lines || k->kind == COLUMN_SHAPE;
}

static void put_fields(const struct cli *c, const struct view *v, const struct jsn *object)
{
	size_t width = 0;
	struct buf text;

	for (const struct column *k = v->columns; k->title != NULL; k++)
		width = strlen(k->title) > width ? strlen(k->title) : width;
	buf_init(&text, 16 << 20);
	for (const struct column *k = v->columns; k->title != NULL; k++) {
		buf_clear(&text);
		bool lines = add_field(c, k, object, &text);
		if (text.n == 0)
			continue;
		const char *color =
			c->color && k->kind == COLUMN_STATE ? state_color(buf_str(&text)) : NULL;
		if (c->tty)
			(void)printf("%-*s", (int)width + GAP, k->title);
		else
			(void)printf("%s\t", k->title);
		if (lines)
			put_lines(c, buf_str(&text), (int)width + GAP);
		else
			(void)printf("%s%.*s%s\n", color != NULL ? color : "",
				STR_ARG(buf_str(&text)), color != NULL ? "\033[0m" : "");
	}
	buf_done(&text);
}

int view_object(struct cli *c, const struct view *v, struct str text, const struct jsn *object,
	struct err *e)
{
	struct buf name;

	switch (c->output) {
	case OUTPUT_JSON:
	case OUTPUT_JSONL:
		if (view_print(text, e) < 0 || view_print(STR("\n"), e) < 0)
			return -1;
		break;
	case OUTPUT_NAME:
		buf_init(&name, CELL_MAX);
		cell_add(CELL_EXACT, COLUMN_TEXT, jsn_find(object, v->name), &name);
		(void)printf("%.*s\n", STR_ARG(buf_str(&name)));
		buf_done(&name);
		break;
	case OUTPUT_TABLE: put_fields(c, v, object); break;
	}
	return view_flush(e);
}

/* ---- lines of a log -------------------------------------------------------------------------- */

/* The length of a colour sequence at the start of s (ESC [ digits ; m), or 0. */
static size_t color_length(struct str s)
{
	size_t i = 2;

	if (s.n < 3 || s.p[0] != '\033' || s.p[1] != '[')
		return 0;
	while (i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == ';' || s.p[i] == ':'))
		i++;
	return i < s.n && s.p[i] == 'm' ? i + 1 : 0;
}

void view_clean(struct str line, struct buf *out)
{
	bool colored = false;

	for (size_t i = 0; i < line.n;) {
		size_t n = color_length(str_slice(line, i, line.n));
		unsigned char ch = (unsigned char)line.p[i];
		bool c1 = ch == 0xc2 && i + 1 < line.n &&
			  ((unsigned char)line.p[i + 1] & 0xe0) == 0x80;
		if (n != 0) {
			buf_add(out, str_slice(line, i, n));
			colored = true;
		} else if (c1) {
			n = 2;
		} else {
			n = 1;
			if ((ch >= ' ' && ch != 0x7f) || ch == '\t')
				buf_addc(out, (char)ch);
		}
		i += n;
	}
	if (colored)
		buf_adds(out, "\033[0m");
}
